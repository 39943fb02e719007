"""Masks: what differs between two recordings is replaced, and no other number is."""

from __future__ import annotations

import pytest

from lab.golden.masks import Masks

MASKS = Masks(
    places={"/tmp/work": "<work>", "/tmp/work/deeper": "<deeper>"},
    versions={"vrgcn 0.1.0": "vrgcn <version>"},
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("epoch 3  loss 1.2252  0.03 s", "epoch 3  loss 1.2252  <seconds> s"),
        ("written to g in 1,234.5 s", "written to g in <seconds> s"),
        ("4 seconds in all", "<seconds> seconds in all"),
        ("2e-05 s of training", "<seconds> s of training"),
        ("history age 2.5 steps", "history age 2.5 steps"),
        ("300 nodes, 12 seeds", "300 nodes, 12 seeds"),
        (
            "--time-limit 'soon' is no time, such as 90s",
            "--time-limit 'soon' is no time, such as 90s",
        ),
        ("in use by process 4711", "in use by process <id>"),
        ("saved by vrgcn 0.1.0", "saved by vrgcn <version>"),
        ("<object at 0x7f00c0ffee10>", "<object at <address>>"),
        ("see /tmp/work/g and /tmp/work/deeper/h", "see <work>/g and <deeper>/h"),
        ("left .g.0123abcd.partial", "left .g.<random>.partial"),
    ],
)
def test_a_line_of_output(text: str, masked: str) -> None:
    assert MASKS.output(text) == masked


def table(seconds: str, width: int) -> str:
    line, space = "━" * width, " " * width
    return (
        f"┏━━━━━━┳{line}━━━━┓\n┃ seed ┃{space}  s ┃\n┡━━━━━━╇{line}━━━━┩\n"
        f"│ 0.50 │{space}{seconds} │\n└──────┴{line}┘"
    )


def test_a_column_of_seconds_is_masked_and_the_widths_that_follow_it_too() -> None:
    short, long = (MASKS.output(table(*given)) for given in (("0.1", 3), ("123.4 ± 9.9", 11)))
    assert "│ 0.50 │ <seconds> │" in short
    assert "│ 0.50 │ <seconds> ± <seconds> │" in long
    assert short.replace("<seconds>", "") == long.replace("<seconds> ± <seconds>", "")


def test_the_columns_of_a_table_are_not_those_of_the_next() -> None:
    other = table("0.1", 3) + "\n" + table("7.7", 3).replace("  s ┃", "  x ┃")
    assert "│ 7.7 │" in MASKS.output(other)


def test_seconds_and_versions_of_json_are_masked_by_their_keys() -> None:
    value = {
        "seconds": 1.5,
        "evaluation_seconds": 2,
        "curve": [{"epoch": 3, "seconds": 0.5, "loss": 0.25}],
        "vrgcn": "0.1.0",
        "graph": "/tmp/work/g",
        "time_limit_seconds": None,
    }
    assert MASKS.json(value) == {
        "seconds": "<seconds>",
        "evaluation_seconds": "<seconds>",
        "curve": [{"epoch": 3, "seconds": "<seconds>", "loss": 0.25}],
        "vrgcn": "<version>",
        "graph": "<work>/g",
        "time_limit_seconds": None,
    }
