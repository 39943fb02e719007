"""`vrgcn demo`, on a graph small enough for a test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.cli import demo
from vrgcn.cli.demo import RUNS, DemoOptions
from vrgcn.data.synthetic import COMMUNITIES, community_graph

SMALL = replace(COMMUNITIES, nodes=600, pairs=6_000, classes=4, train=300, val=150, test=150)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo, "load_dataset", lambda name, seed: community_graph(SMALL, seed))


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_demo_prints_a_row_for_each_run_and_draws_the_curves(small, tmp_path, capsys, suffix):
    picture = tmp_path / "deep" / f"curves.{suffix}"
    demo.run(DemoOptions(epochs=2, out=picture))
    out = capsys.readouterr().out
    for label in RUNS:
        assert f"│ {label} " in out
    assert f"curves: {picture}" in out
    assert picture.stat().st_size > 5_000


def test_a_picture_that_could_not_be_drawn_is_refused_before_training(tmp_path):
    with refused():
        demo.run(DemoOptions(out=Path("curves.txt")))
