"""With `--halo exact`, several processes are one with the union of their minibatches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.distributed.problems import NODES, Case, Steps, graph_of, train_parts, train_whole, write
from tests.distributed.processes import in_processes
from vrgcn.distributed.group import Group

CASES = [
    Case("history, 3 layers", "graphsage", 3, "history", True),
    Case("two-way, fan-out 0, 3 layers", "gcn", 3, "two-way", False, settings={"fanout": (0,)}),
    Case("two-way, fan-out 0, directed", "gcn", 3, "two-way", True, settings={"fanout": (0,)}),
    Case(
        "two-way, fan-out 0, few labels",
        "graphsage",
        2,
        "two-way",
        False,
        20,
        {"fanout": (0,)},
    ),
    Case("two-way, few neighbours", "graphsage", 2, "two-way", True),
    Case("two-way, few neighbours, undirected", "gcn", 2, "two-way", False),
    # Shares of some steps have no training node, and no share of others.
    Case("history, few labels", "graphsage", 2, "history", False, 3),
    Case("cvd, few labels", "graphsage", 2, "cvd", False, 3, {"fanout": (NODES,)}),
    Case("cv", "gcn", 2, "cv by hash", True),
    Case("cvd", "graphsage", 2, "cvd", False, settings={"fanout": (NODES,)}),
]


def all_cases(group: Group, folder: Path) -> list[Steps]:
    return [
        train_parts(group, folder / str(case.directed) / str(case.trained), case) for case in CASES
    ]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_exact_halo_gives_the_gradients_of_one_process(tmp_path: Path, ranks: int) -> None:
    for directed, trained in {(case.directed, case.trained) for case in CASES}:
        graph = graph_of(directed=directed, trained=trained)
        write(graph, tmp_path / str(directed) / str(trained), ranks)
    found = in_processes(ranks, all_cases, tmp_path)
    for place, case in enumerate(CASES):
        graph = graph_of(directed=case.directed, trained=case.trained)
        theirs = [steps[place] for steps in found]
        ours = train_whole(graph, case, theirs)
        if case.trained == 3:
            assert {*theirs[0].backward} == {True, False}
        for step, wanted in enumerate(ours.gradients):
            for rank in theirs:
                for mine, one in zip(rank.gradients[step], wanted, strict=True):
                    torch.testing.assert_close(mine, one, rtol=1e-9, atol=1e-11, msg=case.name)
