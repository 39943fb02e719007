"""The examples and the README's Python run as they are written."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from vrgcn import Graph, TrainConfig, fit, predict

ROOT = Path(__file__).resolve().parents[1]


def python_blocks(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)


def some_graph() -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    return {
        "edge_index": torch.randint(60, (2, 300), generator=generator),
        "features": torch.randn(60, 8, generator=generator),
        "labels": torch.arange(60) % 3,
        "train_ids": torch.arange(0, 30),
        "val_ids": torch.arange(30, 45),
        "test_ids": torch.arange(45, 60),
    }


def test_the_readmes_python_trains_and_predicts():
    names = some_graph()
    use, model = python_blocks("README.md")
    exec(use, names)
    assert names["outputs"].shape == (60, 3)
    assert torch.allclose(names["some"], names["outputs"][[3, 14]], atol=1e-5)
    exec(model, names)
    residual = names["Residual"](8, 16, 3)
    result = fit(residual, names["graph"], TrainConfig(epochs=2))
    assert result.test is not None
    assert predict(residual, names["graph"]).shape == (60, 3)


def test_the_loop_in_the_docs_trains():
    import torch.nn.functional as F
    from torch import nn

    blocks = python_blocks("docs/own-models.md")
    names = {"torch": torch, "nn": nn, "F": F, **some_graph()}
    exec(blocks[0], names)
    model = names["model"] = names["Residual"](8, 16, 3, depth=3)
    names["graph"] = Graph(
        names["edge_index"], names["features"], names["labels"], train=names["train_ids"],
        val=names["val_ids"], test=names["test_ids"],
    )  # fmt: skip
    names["optimizer"] = torch.optim.Adam(model.parameters(), lr=0.01)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    exec(blocks[-1], names)
    assert all(
        not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)
    )


def test_the_objective_in_the_docs_is_a_bound():
    names = some_graph()
    [block] = python_blocks("docs/objectives.md")
    generator = torch.Generator().manual_seed(1)
    numbers = 1000 + 50 * torch.randn(600, generator=generator)
    features = torch.randn(600, 4, generator=generator)
    names["graph"] = Graph([], features, numbers, train=range(600), task="regression")
    torch.manual_seed(0)
    exec(block, names)
    below = numbers < predict(names["model"], names["graph"])[:, 0]
    assert 0.85 < below.double().mean() < 0.95


def test_the_planetoid_example_reaches_the_papers_accuracy(real_data, tmp_path):
    shutil.copytree(real_data / "planetoid" / "Cora" / "raw", tmp_path / "Cora" / "raw")
    script = ROOT / "examples" / "planetoid.py"
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    accuracy = float(re.search(r"test accuracy ([\d.]+)", done.stdout)[1])
    assert 0.78 < accuracy < 0.85
