"""Peak memory, in a process of its own."""

from __future__ import annotations

import torch

from lab.bench.memory import graph_bytes, size_of, tables_bytes, training_memory
from lab.harness.algorithms import ALGORITHMS, Algorithm, Architecture
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph

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


def test_the_peak_holds_the_features_and_the_tables_and_little_more(tmp_path):
    nodes, width = 50_000, 250  # 50 MB of features, as much again of P X
    generator = torch.Generator().manual_seed(0)
    graph = Graph(
        torch.randint(nodes, (2, 4 * nodes), generator=generator),
        torch.randn(nodes, width, generator=generator),
        torch.randint(2, (nodes,), generator=generator),
        train=torch.arange(nodes),
    )
    save_graph(graph, tmp_path / "graph")
    memory = training_memory(
        tmp_path / "graph", ALGORITHMS["CVD+PP"], SMALL, steps=2, threads=1, inductive=False
    )
    assert memory.features == 50_000_000
    assert memory.tables > 50_000_000
    assert memory.held < memory.peak < memory.held + 150_000_000
    assert memory.as_dict()["excess"] == memory.peak - memory.held
