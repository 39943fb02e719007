"""The race against PyG: the same network on both sides, each run once, times to one score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lab.harness.blocks import read_block
from lab.harness.records import read_lines
from lab.league.real_graphs import Entry
from lab.studies import pyg_race, pyg_times
from lab.studies.pyg_race import Budget, race, units
from lab.studies.pyg_residual import Residual, SameResidual, csr_adjacency
from lab.studies.pyg_times import OURS, arrivals, part, publish, same, table
from vrgcn import Graph
from vrgcn.inference.predict import predict

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")


@pytest.mark.parametrize("layer", ["GCN", "GraphSAGE"])
@pytest.mark.parametrize("sparse", [True, False])
def test_with_the_same_weights_both_networks_have_the_same_outputs(
    graph: Graph, layer: Any, sparse: bool
) -> None:
    torch.manual_seed(0)
    if sparse:
        few = graph.features * (graph.features > 1)
        graph = graph.with_features(few.to_sparse_csr())
    sizes = (layer, graph.num_features, 8, graph.num_classes)
    theirs, ours = Residual(*sizes).eval(), SameResidual(*sizes).eval()
    weights = {name: value for name, value in theirs.state_dict().items() if "convs" not in name}
    for place, conv in enumerate(theirs.convs):
        known = dict(conv.named_parameters())
        if layer == "GCN":
            weights[f"averaged.{place}.weight"] = known["lin.weight"]
            weights[f"averaged.{place}.bias"] = known["bias"]
        else:
            weights[f"averaged.{place}.weight"] = known["lin_l.weight"]
            weights[f"averaged.{place}.bias"] = known["lin_l.bias"]
            weights[f"own.{place}.weight"] = known["lin_r.weight"]
    ours.load_state_dict(weights)
    with torch.no_grad():
        outputs = theirs(graph.features, csr_adjacency(graph))
    torch.testing.assert_close(predict(ours, graph), outputs, rtol=1e-4, atol=1e-4)


def record(method: str, rate: float, curve: list[tuple[float, float]]) -> dict[str, Any]:
    return {
        **{"graph": "cora", "method": method, "rate": rate, "split": 0, "degree": 4.0},
        **{"curve": curve, "version": "0.1.0, commit 1a2b3c4 of 2026-11-18"},
    }


RECORDS = [
    record(OURS, 0.01, [(0.5, 0.7), (1.0, 0.8), (2.0, 0.85)]),
    record("PyG GCN", 0.01, [(4.0, 0.7), (8.0, 0.78), (12.0, 0.805)]),
    record("PyG GCN", 0.03, [(4.0, 0.5), (9.0, 0.8), (12.0, 0.6)]),
]


def test_the_target_is_just_below_the_lower_of_the_two_best_scores() -> None:
    (found,) = arrivals(RECORDS, "cora", OURS, "PyG GCN")
    assert found.target == pytest.approx(0.8)
    assert (found.ours, found.peer, found.rates) == (1.0, 9.0, (0.01, 0.03))
    row = table(RECORDS).splitlines()[-1]
    assert row == (
        "| cora | 4 | PyG GCN, rate 0.03 | vrgcn train, rate 0.01 | 80.5 | 85.0 | 80.0 "
        "| 9.0 | 1.0 | 9.0 |"
    )


@pytest.fixture
def small(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """Every graph of the race is a small one."""
    monkeypatch.setattr(pyg_race, "data_folder", Path)
    monkeypatch.setattr(pyg_race, "load", lambda name, split, folder: graph)
    return Entry("small", graph)


def test_what_has_a_record_is_not_run_again_and_all_is_shown(
    study: Any, small: Entry, tmp_path: Path
) -> None:
    out = tmp_path / "race.jsonl"
    flags = ("--graphs", "cora", "--evaluations", 2, "--out", out)
    study(pyg_race, *flags)
    records = read_lines(out)
    keys = [(r["graph"], r["method"], r["rate"], r["split"]) for r in records]
    assert keys == list(units(["cora"], 1))
    assert all(len(r["curve"]) == 2 and r["prepared"] > 0 for r in records)
    shown = study(pyg_race, *flags, "--figure", tmp_path / "race.png")
    assert read_lines(out) == records
    assert shown.count("\n| cora | ") == 4  # two peers beside the default and beside their own
    assert (tmp_path / "race.png").stat().st_size > 5000


def test_preparations_count_and_a_run_ends_with_its_patience(small: Entry) -> None:
    class Still:
        def __init__(self) -> None:
            self.advanced = 0

        def advance(self) -> None:
            self.advanced += 1

        def outputs(self) -> torch.Tensor:
            return torch.zeros(len(small.graph.val), small.graph.num_classes)

    method = Still()
    found = race(lambda: method, small, Budget(1e9, 100, 3))
    assert method.advanced == 4  # the first score, and three that are no better
    assert all(seconds >= found["prepared"] for seconds, _ in found["curve"])


def test_the_page_says_what_the_records_say(tmp_path: Path) -> None:
    page = tmp_path / pyg_times.PAGE
    page.parent.mkdir(parents=True)
    page.write_text(f"# Performance\n\n{pyg_times.BEFORE}\n", encoding="utf-8")
    publish(RECORDS, tmp_path)
    assert read_block(page.read_text(encoding="utf-8"), pyg_times.BLOCK) == part(RECORDS)
    assert len(read_lines(tmp_path / pyg_times.RECORDS)) == len(RECORDS)
    assert (tmp_path / "docs/images/pyg-race.png").is_file()
    file = pyg_times.ROOT / pyg_times.RECORDS
    if file.is_file():
        written = (pyg_times.ROOT / pyg_times.PAGE).read_text(encoding="utf-8")
        assert read_block(written, pyg_times.BLOCK) == part(read_lines(file))


def test_a_network_has_the_same_name_on_both_sides() -> None:
    assert same("PyG GCN") == "vrgcn GCN"
