"""Pages and pictures of explanations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vrgcn.live.explaining import Effect, Effects, Explanation
from vrgcn.pages.explanation import draw_effects, rows, summary, write_explanations

EDGES = Effects(
    [
        Effect("u7", 0.4, -0.3, id="u7", relation="likes"),
        Effect("<u8>", 0.75, 0.05, id="<u8>", relation="likes"),
    ],
    looked_at=2,
    there=9,
    total=-0.25,
    together=-0.5,
)
NONE = Effects([], 0, 0, 0.0, 0.0)
ONE = Explanation("u1", None, "a", 0.7, EDGES, NONE, NONE, "a note")


def test_the_sum_stands_beside_leaving_everything_out() -> None:
    assert rows(EDGES, 1) == [["u7", "0.4", "-0.3"]]
    assert summary("edge", EDGES) == (
        "2 of 9 edges, those that weigh most, left out one by one: sum of the changes -0.25; all "
        "of them at once: -0.5"
    )


@pytest.mark.parametrize("ending", [".html", ".svg", ".json"])
def test_every_form_is_written(ending: str, tmp_path: Path) -> None:
    alone = Explanation("u2", "user", None, 3.5, NONE, NONE, NONE)
    path = tmp_path / f"why{ending}"
    write_explanations([ONE, alone], path, 5)
    text = path.read_text(encoding="utf-8")
    if ending == ".json":
        assert [one["id"] for one in json.loads(text)] == ["u1", "u2"]
    elif ending == ".html":
        assert "&lt;u8&gt;" in text
        assert "user u2: 3.5" in text
        assert "all of them at once: -0.5" in text
    else:
        assert text.startswith("<?xml")


def test_bars_are_the_changes() -> None:
    axes, *others = draw_effects([ONE]).axes
    assert [bar.get_width() for bar in axes.patches] == [0.05, -0.3]  # drawn from below
    assert [other.get_visible() for other in others] == [False, False]
