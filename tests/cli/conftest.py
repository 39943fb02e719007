"""A small graph on disk, and a way to run the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from vrgcn.cli import main
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph


def small_graph(nodes: int = 120, classes: int = 3, seed: int = 0) -> Graph:
    """A ring of communities that is easy to classify."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(nodes) % classes
    source = torch.arange(nodes).repeat_interleave(4)
    target = (source + classes * torch.randint(1, 10, source.shape, generator=generator)) % nodes
    features = torch.randn(nodes, 8, generator=generator)
    features[:, :classes] += 2 * torch.eye(classes)[labels]
    order = torch.randperm(nodes, generator=generator)
    return Graph(
        torch.stack([source, target]),
        features,
        labels,
        undirected=True,
        train=order[: nodes // 2],
        val=order[nodes // 2 : 3 * nodes // 4],
        test=order[3 * nodes // 4 :],
    )


@pytest.fixture
def graph_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    save_graph(small_graph(), folder)
    return folder


@pytest.fixture
def vrgcn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run `vrgcn ARGUMENTS` in an empty folder; gives exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            main([str(argument) for argument in arguments])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
