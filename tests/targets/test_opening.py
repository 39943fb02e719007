"""Every door opens a run's graph with the same split: the run, evaluation and report score the same
rows, and score them alike."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import vrgcn as package
from tests.targets.shop import LIKED, STARS, evaluated, save
from vrgcn.pages.runs.records import read_runs
from vrgcn.pages.runs.scores import RunScorer, RunScores
from vrgcn.runs.run import open_run_graph

MOMENTS = {"train_until": "2026-04", "val_until": "2026-05"}
SPLITS = ("split_pairs", "split_triples", "split_by_time", "random_split")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The graph with a stored split of its labels, and without."""
    home = tmp_path_factory.mktemp("stores")
    return {True: save(home / "split"), False: save(home / "plain", None)}


CASES: dict[str, tuple[bool, dict[str, Any], int, str]] = {
    # whether the graph has a split of labels, the settings, test rows, the name of the split
    "labels, stored": (True, {}, 12, ""),
    "labels, ratio": (True, {"ratio": (0.5, 0.2, 0.3)}, 18, "split 50/20/30"),
    "labels, time": (True, MOMENTS, 10, "split until 2026-04 and 2026-05"),
    "labels, time, none stored": (False, MOMENTS, 10, "split until 2026-04 and 2026-05"),
    "links, ratio": (True, {"predict": LIKED, "ratio": (0.7, 0.1, 0.2)}, 48, "split 70/10/20"),
    "links, default": (True, {"predict": LIKED}, 24, "split 85/5/10"),
    "links, leave one out": (
        *(True, {"predict": LIKED, "leave_one_out": True}),
        *(60, "split by leaving one out"),
    ),
    "links, time": (
        *(True, {"predict": LIKED, **MOMENTS}),
        *(40, "split until 2026-04 and 2026-05"),
    ),
    "links, column": (
        *(True, {"predict": LIKED, "split_column": "part"}),
        *(48, "split by the column part"),
    ),
    "relations, stored": (True, {"predict": "relations"}, 48, ""),
    "relations, ratio": (
        *(True, {"predict": "relations", "ratio": (0.7, 0.1, 0.2), "split_seed": 3}),
        *(48, "split 70/10/20 by seed 3"),
    ),
    "values, ratio": (True, {"predict": STARS, "ratio": (0.7, 0.1, 0.2)}, 48, "split 70/10/20"),
    "values, leave one out": (
        *(True, {"predict": STARS, "leave_one_out": True}),
        *(60, "split by leaving one out"),
    ),
    "values, time": (
        *(True, {"predict": STARS, **MOMENTS}),
        *(40, "split until 2026-04 and 2026-05"),
    ),
    "values, column": (
        *(True, {"predict": STARS, "split_column": "part"}),
        *(48, "split by the column part"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_run_evaluation_and_report_score_the_same_rows_alike(
    vrgcn, stores: dict[bool, Path], tmp_path: Path, name: str
) -> None:
    stored, settings, count, split = CASES[name]
    model = {} if settings.get("predict") == STARS else {"model": "graphsage"}
    run = package.train(
        stores[stored], out=tmp_path / "run", epochs=1, hidden=4, **model, **settings
    )
    assert run.result is not None
    then = run.result["test"]
    code, _, error = vrgcn("evaluate", "run")
    assert code == 0, error
    assert evaluated(run.folder, run.result["metric"]) == pytest.approx(then, abs=1e-6)
    (record,) = read_runs([run.folder])
    reported = RunScorer(None, torch.device("cpu"))(record)
    assert isinstance(reported, RunScores), reported
    assert reported.total == pytest.approx(then, abs=1e-6)
    assert reported.nodes == count
    graph = run.graph()
    predicted = graph.pairs or graph.triples or graph
    assert len(predicted.test) == count
    target = [settings["predict"]] if "predict" in settings else []
    assert record.graph == ", ".join([stores[stored].name, *target, *([split] if split else [])])


def test_a_run_that_was_split_by_time_knows_its_graph_after_a_move(
    stores: dict[bool, Path], tmp_path: Path
) -> None:
    shutil.copytree(stores[False], tmp_path / "before")
    run = package.train(tmp_path / "before", out=tmp_path / "run", epochs=1, hidden=4, **MOMENTS)
    (tmp_path / "before").rename(tmp_path / "after")
    opened = open_run_graph(run, None, tmp_path / "after", None)
    assert len(opened.graph.test) == 10
    assert opened.note is None


def test_one_file_calls_the_splits() -> None:
    root = Path(package.__file__).parent
    calling = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if any(name in path.read_text(encoding="utf-8") for name in SPLITS)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in SPLITS
    }
    assert calling == {"targets/opening.py"}
