"""Processes that do not agree are refused before the first step, in all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.distributed.problems import Case, graph_of, trainer_of, write
from tests.distributed.processes import in_processes
from vrgcn.distributed import trainer as module
from vrgcn.distributed.group import Group

CASE = Case("two-way", "graphsage", 2, "two-way", False, settings={"fanout": (0,)})
ODD = 1  # the rank that differs


class OtherWeights(Case):
    def build(self) -> torch.nn.Module:
        model = super().build()
        with torch.no_grad():
            next(model.parameters()).view(-1)[0] += 1
        return model


def refusals(group: Group, folder: Path, other: Path) -> dict[str, str]:
    """Return the error that refuses each difference; empty if there is none."""
    odd = group.rank == ODD
    found = {"nothing": refusal(group, folder, CASE)}
    settings = replace(CASE, settings={"fanout": (2 if odd else 0,)})
    found["settings"] = refusal(group, folder, settings)
    weights = OtherWeights(**vars(CASE)) if odd else CASE
    found["weights"] = refusal(group, folder, weights)
    found["parts"] = refusal(group, other if odd else folder, CASE)
    with pytest.MonkeyPatch.context() as patch:
        if odd:
            patch.setattr(module, "__version__", "0.0.1")
        found["vrgcn"] = refusal(group, folder, CASE)
    return found


def refusal(group: Group, folder: Path, case: Case) -> str:
    try:
        trainer_of(group, folder, case)
    except ValueError as error:
        return str(error)
    return ""


def test_who_differs_and_in_what_is_named_in_every_process(tmp_path: Path) -> None:
    write(graph_of(directed=False), tmp_path / "parts", 3)
    # The same graph cut once more: its parts have the same sizes, and another checksum.
    write(graph_of(directed=False, trained=20), tmp_path / "other", 3)
    for found in in_processes(3, refusals, tmp_path / "parts", tmp_path / "other"):
        assert not found.pop("nothing")
        for what, told in found.items():
            assert f"rank {ODD} has other {what} than rank 0" in told, (what, told)
        assert "0.0.1 and" in found["vrgcn"]
