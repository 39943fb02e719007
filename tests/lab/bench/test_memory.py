"""Peak memory; tests/soak/soak_measuring.py has it in a process of its own."""

from __future__ import annotations

import torch

from lab.bench import memory as module
from lab.bench.memory import graph_bytes, size_of, tables_bytes
from lab.harness.algorithms import ALGORITHMS, Algorithm, Architecture
from vrgcn.data.store import save_graph

SMALL = Architecture(hidden=8, batch=64)


def test_what_is_in_the_same_place_counts_once():
    x = torch.zeros(100, 10)
    assert size_of(x, x[:5], {"again": [x]}) == 4_000
    assert size_of(None, x.to_sparse_csr()) == 101 * 8
    assert size_of(x.short(), x.double()) == 2_000 + 8_000


def test_tables_are_the_matrix_the_averaged_features_and_the_histories(graph):
    algorithm = Algorithm(graph, ALGORITHMS["CVD+PP"], SMALL)
    algorithm.run(1)
    V = graph.num_nodes
    inside = graph.among(graph.train).num_edges
    P = V * 4 + (V + 1) * 8 + inside * 8  # the factor of each row, and the edges
    history = V * (8 * 2 + 8)  # float16, and the step of each row
    assert tables_bytes(algorithm.batches) == P + V * graph.num_features * 4 + history
    splits = len(graph.train) + len(graph.val) + len(graph.test)
    adjacency = (V + 1) * 8 + graph.num_edges * 8
    assert graph_bytes(graph) == adjacency + V * 8 + splits * 8


def test_the_peak_is_counted_from_the_imports_on(graph, tmp_path, monkeypatch):
    save_graph(graph, tmp_path / "graph")
    peaks = iter([1_000_000_000, 1_600_000_000])  # after the imports, and after training
    monkeypatch.setattr(module, "_peak", lambda: next(peaks))
    recipe = ALGORITHMS["CVD+PP"]
    memory = module._train(tmp_path / "graph", recipe, SMALL, 1, threads=1, inductive=False)
    assert memory.peak == 600_000_000
    assert memory.features == graph.num_nodes * graph.num_features * 4
    assert memory.graph == graph_bytes(graph)
    assert memory.tables > memory.features  # with P X
    assert memory.as_dict()["excess"] == memory.peak - memory.held
