"""A column that alone tells the label is found by the user's own name, and others are not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from vrgcn import Graph
from vrgcn.leaks import Finding, find_leaks, quick_audit
from vrgcn.leaks.finding import FULL
from vrgcn.leaks.telling import columns_that_tell_labels

N = 600
RING = pd.DataFrame({"source": range(N), "target": [(i + 1) % N for i in range(N)]})


def table(classes: int = 3) -> pd.DataFrame:
    """Nodes with a label and columns that say little or nothing about it."""
    rng = np.random.default_rng(0)
    label = rng.integers(classes, size=N)
    return pd.DataFrame(
        {
            "id": rng.permutation(N),
            "age": rng.normal(size=N) + 0.5 * label,
            "city": rng.choice(["Rome", "Oslo", "Bonn", "Lima"], size=N),
            "label": [f"c{k}" for k in label],
        }
    )


def found(nodes: pd.DataFrame, **options: object) -> list[Finding]:
    graph = Graph.from_pandas(nodes, RING, label="label", ratio=(0.6, 0.2, 0.2), **options)
    return list(columns_that_tell_labels(graph, FULL))


def numbers(nodes: pd.DataFrame) -> np.ndarray:
    return nodes["label"].astype("category").cat.codes.to_numpy()


def test_ordinary_columns_are_no_leaks() -> None:
    assert found(table()) == []


@pytest.mark.parametrize("disguise", ["a number", "a category", "a date", "an order of magnitude"])
def test_a_disguised_copy_of_the_label_is_found_by_the_users_name(disguise: str) -> None:
    nodes = table()
    codes = numbers(nodes)
    noise = np.random.default_rng(1).normal(size=N)
    nodes["status"] = {
        "a number": np.array([7.2, -3.0, 4.4])[codes] + 0.01 * noise,
        "a category": np.array(["x", "y", "z"])[codes],
        "a date": pd.to_datetime("2024-01-01") + pd.to_timedelta(30 * codes, unit="D"),
        "an order of magnitude": 10.0 ** (3 * codes) * np.exp(0.1 * noise),
    }[disguise]
    [finding] = found(nodes)
    assert finding.severity == "high"
    assert "'status'" in finding.text
    assert "--drop status" in finding.advice or 'drop="status"' in finding.advice


def test_a_copy_with_mistakes_is_medium_if_it_is_far_ahead_of_other_columns() -> None:
    nodes = table()
    codes = numbers(nodes)
    wrong = np.random.default_rng(2).random(N) < 0.12
    nodes["guess"] = np.where(wrong, (codes + 1) % 3, codes) * 5.0
    [finding] = found(nodes)
    assert finding.severity == "medium"
    assert "'guess'" in finding.text
    assert "'age'" in finding.text  # the next best


def test_a_column_that_is_empty_for_one_class_is_found_by_its_mark() -> None:
    nodes = table(classes=2)
    nodes["closed"] = np.where(numbers(nodes) == 1, np.nan, 3.0)
    [finding] = found(nodes, fill="closed=mean+mark")
    assert "'closed'" in finding.text


def test_the_label_in_columns_of_its_own_without_names_is_found() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (N,), generator=generator)
    noise = torch.randn(N, 5, generator=generator)
    features = torch.cat([noise, torch.nn.functional.one_hot(labels, 4).float()], dim=1)
    edges = torch.stack([torch.arange(N), torch.arange(N).roll(1)])
    for x in (features, features.to_sparse_csr()):
        graph = Graph(edges, x, labels, train=torch.arange(400))
        [finding] = columns_that_tell_labels(graph, FULL)
        assert finding.severity == "high"
        assert all(f"feature {k}" in finding.text for k in (5, 6, 7, 8))
        assert "feature 4" not in finding.text


def test_one_of_several_labels_among_the_features_is_found() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = (torch.rand(N, 6, generator=generator) < 0.3).float()
    features = torch.randn(N, 4, generator=generator)
    features[:, 2] = 3 - 2 * labels[:, 5]
    edges = torch.stack([torch.arange(N), torch.arange(N).roll(1)])
    [finding] = columns_that_tell_labels(Graph(edges, features, labels, train=range(N)), FULL)
    assert "feature 2" in finding.text
    assert "class 5" in finding.text


def test_a_number_that_is_a_function_of_the_label_is_found() -> None:
    nodes = table().assign(label=np.random.default_rng(3).normal(size=N))
    nodes["twice"] = np.tanh(nodes["label"])
    [finding] = found(nodes, task="regression")
    assert finding.severity == "high"
    assert "R²" in finding.text


def test_columns_of_other_splits_are_not_read() -> None:
    nodes = table().assign(split=["train"] * 400 + ["test"] * 200)
    codes = numbers(nodes)
    nodes["late"] = np.where(nodes["split"] == "test", codes, 0.0)  # a leak in test nodes alone
    graph = Graph.from_pandas(nodes, RING, label="label", split="split")
    assert list(columns_that_tell_labels(graph, FULL)) == []


def test_few_training_nodes_say_nothing() -> None:
    nodes = table().assign(split=["train"] * 30 + ["test"] * 570)
    nodes["copy"] = numbers(nodes)
    graph = Graph.from_pandas(nodes, RING, label="label", split="split")
    assert list(columns_that_tell_labels(graph, FULL)) == []


def test_a_real_table_with_the_labels_source_column_is_caught_and_the_table_itself_is_not() -> None:
    root = Path(os.environ.get("VRGCN_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not (root / "tolokers").is_dir():
        pytest.skip(f"the tables of tolokers are not in {root}; VRGCN_DATA says where")
    nodes = pq.read_table(root / "tolokers" / "nodes.parquet").to_pandas()
    nodes = nodes[["id", "label", "split0", *(f"f{k}" for k in range(10))]]
    edges = pq.read_table(root / "tolokers" / "edges.parquet").slice(0, 20_000).to_pandas()
    noise = np.random.default_rng(0).normal(size=len(nodes))
    options = {"label": "label", "split": "split0"}
    assert find_leaks(Graph.from_pandas(nodes, edges, **options)) == []
    nodes["last_review"] = 40 + 9 * (nodes["label"] == 1) + noise
    for look in (find_leaks, quick_audit):
        [finding] = look(Graph.from_pandas(nodes, edges, **options))
        assert finding.severity == "high"
        assert "'last_review'" in finding.text
