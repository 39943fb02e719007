"""Processes that train on GPUs: each of them pretends to have one, and gloo stands for NCCL."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from tests.distributed.problems import Case, graph_of, write
from tests.distributed.processes import in_processes
from tests.engine.pretended_cuda import CPU, CUDA, pretended_cuda
from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.group import Group
from vrgcn.distributed.parts import load_part
from vrgcn.distributed.trainer import PartTrainer

CASES = [
    Case("two-way", "graphsage", 2, "two-way", True),
    Case("cvd", "graphsage", 2, "cvd", True),
]
STEPS = 3


def numbers_of(group: Group, folder: Path, case: Case) -> list[Tensor]:
    """The weights after some steps, and the exact outputs of our part's nodes."""
    part = load_part(folder, group.rank)
    model = case.build().to(group.device)
    settings = DistributedConfig()
    trainer = PartTrainer(model, part, part.graph, case.config(), settings, group)
    for _ in range(STEPS):
        assert trainer.advance()
    trainer.state()
    return [*(weight.detach().cpu() for weight in model.parameters()), trainer.sweeps.outputs()]


def on_both_devices(group: Group, folder: Path) -> list[tuple[list[Tensor], list[Tensor]]]:
    found = []
    for case in CASES:
        group.device = CPU
        wanted = numbers_of(group, folder, case)
        with pretended_cuda():
            group.device = CUDA
            found.append((numbers_of(group, folder, case), wanted))
    return found


def test_processes_on_gpus_train_and_predict_as_on_cpus(tmp_path: Path) -> None:
    write(graph_of(directed=True), tmp_path / "parts", 2)
    for cases in in_processes(2, on_both_devices, tmp_path / "parts"):
        for ours, theirs in cases:
            assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
