"""Tables on the terminal show names as they are."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from vrgcn.pages.terminal import print_table, text_table


@pytest.mark.parametrize("name", ["[deleted]", "[/x]", "[bold]b[/bold]", ":smile:", "$10-$20"])
def test_names_are_no_markup(name: str) -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(text_table(f"of {name}", (name, "f1"), [(name, "0.5")]))
    assert out.getvalue().count(name) == 3


def test_a_name_cannot_clear_the_screen() -> None:
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True).print(text_table("t", ("c",), [("\x1b[2Jx",)]))
    assert "\x1b[2J" not in out.getvalue()
    assert r"\x1b[2Jx" in out.getvalue()
    long = text_table("t", ("c",), [("x" * 10**6,)])
    assert len(str(next(iter(long.columns[0].cells)))) == 500


def test_columns_stay_straight_where_letters_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    print_table(text_table("t", ("name", "f1"), [("caf\u00e9", "0.5"), ("plain", "\u2248 1")]))
    lines = out.buffer.getvalue().decode("ascii").splitlines()[1:]  # below the title
    assert r"| caf\xe9 |      0.5 |" in lines
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("width", [20, 60, 200])
def test_no_number_is_cut_in_a_narrow_window(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    numbers = ["123,456,789", "≈ 1,234", "0.98765"]
    name = "a run with quite a long name"
    table = text_table("t", ("run", "V", "E", "never written"), [])
    table.add_row(name, *numbers)
    print_table(table)
    out = capsys.readouterr().out
    assert all(number in out for number in numbers)
    assert "…" not in out
    assert all(word in out for word in name.split())
