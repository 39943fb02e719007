"""Exact outputs of parts, where a process has nothing of what is asked for or refreshed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.distributed.problems import Case, graph_of, trainer_of
from tests.distributed.processes import in_processes
from tests.theory.problems import CLASSES, FEATURES
from vrgcn.distributed.group import Group
from vrgcn.distributed.partitioning import write_parts
from vrgcn.models.models import GCN

TRAINED = 30


class Dropped(Case):
    """Dropout comes before the first propagation: there is a history of the features."""

    def build(self) -> torch.nn.Module:
        torch.manual_seed(0)
        return GCN(FEATURES, 6, CLASSES, layers=2, dropout=0.3, order="before").double()


HISTORY = Dropped("history", "gcn", 2, "history", False, TRAINED, {"visit": "train"})


def checks(group: Group, folder: Path) -> dict[str, Any]:
    trainer = trainer_of(group, folder, HISTORY)
    refreshed = trainer.refreshed
    while trainer.advance():
        pass
    outputs = trainer.sweeps.outputs(trainer.graph.val)
    return {
        "refreshed": -1 if refreshed is None else len(refreshed),
        "tables": sorted(trainer.minibatches.histories.tables),
        "outputs": (tuple(outputs.shape), outputs.dtype),
        "val": [point.val for point in trainer.progress.curve],
    }


def test_a_process_without_validation_nodes_or_nodes_to_refresh_takes_part(tmp_path: Path) -> None:
    graph = graph_of(directed=False, trained=TRAINED)
    assignment = torch.zeros(graph.num_nodes, dtype=torch.int64)
    assignment[graph.val] = 1  # the first process has training nodes alone, the second some
    assignment[graph.train[:5]] = 1
    write_parts(graph, assignment, tmp_path / "parts", parts=2, scaling="none")
    first, second = in_processes(2, checks, tmp_path / "parts")
    assert first["refreshed"] == 0 < second["refreshed"]
    assert first["tables"] == second["tables"]
    assert (0, "h") in first["tables"]
    assert first["outputs"] == ((0, CLASSES), torch.float64)
    assert second["outputs"] == ((len(graph.val), CLASSES), torch.float64)
    assert first["val"] == second["val"]
    assert None not in first["val"]
