"""Runs that predict a relation have what other runs have: seeds and time limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from vrgcn import Graph
from vrgcn.data.store import save_graph

FLAGS = (
    *("--predict", "user-likes-item", "--epochs", 3, "--batch-size", 64, "--hidden", 8),
    *("--embedding", 8, "--no-baseline", "--ratio", 0.7, 0.15, 0.15),
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    every = torch.cartesian_prod(torch.arange(30), torch.arange(20))
    liked = every[(every.sum(1) % 2 == 0) & (torch.rand(len(every)) < 0.7)]
    features = {"user": torch.randn(30, 3), "item": 20}
    graph = Graph.from_kinds(features, {("user", "likes", "item"): liked.t()})
    save_graph(graph, tmp_path / "store")
    return tmp_path / "store"


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def test_seeds_differ_and_their_mean_is_shown(vrgcn, store: Path, tmp_path: Path) -> None:
    code, out, error = vrgcn("train", store, *FLAGS, "--seeds", 2, "--out", tmp_path / "seeds")
    assert code == 0, error
    assert "validation NDCG@20" in " ".join(out.split())
    results = [
        json.loads((tmp_path / "seeds" / f"seed-{seed}" / "result.json").read_text())
        for seed in (0, 1)
    ]
    assert results[0]["metric"] == "NDCG@20"
    assert weights(tmp_path / "seeds" / "seed-0") != weights(tmp_path / "seeds" / "seed-1")


def test_a_time_limit_ends_the_training_and_more_time_goes_on(
    vrgcn, store: Path, tmp_path: Path, by_hand: None
) -> None:
    run = tmp_path / "short"
    flags = (*FLAGS, "--epochs", 6, "--patience", 0, "--out", run)
    code, out, error = vrgcn("train", store, *flags, "--time-limit", "0.9s")
    assert code == 0, error
    assert "the time limit of 0.9s ended the training in epoch 2 of 6" in " ".join(out.split())
    assert json.loads((run / "result.json").read_text())["stopped"] == "time"
    code, out, error = vrgcn("train", "--resume", run, "--time-limit", "1.9s")
    assert code == 0, error
    assert "the time limit of 1.9s ended the training in epoch 4 of 6" in " ".join(out.split())


def test_auto_takes_no_history_of_gradients_for_minibatches_of_pairs(
    vrgcn, store: Path, tmp_path: Path
) -> None:
    flags = (*FLAGS, "--pair-batches", "pairs", "--out", tmp_path / "run")
    code, out, error = vrgcn("train", store, *flags)
    assert code == 0, error
    assert "estimator two-way" not in out
    code, _, error = vrgcn(
        "train", store, *FLAGS, "--pair-batches", "pairs", "--estimator", "two-way"
    )
    assert code == 1
    assert "minibatches of pairs do not visit every node equally often" in error
