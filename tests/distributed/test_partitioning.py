"""Parts have everything that their own nodes read, and nothing is lost between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.distributed.problems import NODES, graph_of, write
from tests.messages import refused
from vrgcn.distributed.partitioning import write_parts
from vrgcn.distributed.parts import ARRAYS, load_part, part_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PROPAGATIONS
from vrgcn.graph.scaling import scale_graph


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("rule", ["gcn", "mean"])
def test_rows_of_p_and_of_its_transpose_are_those_of_the_whole_graph(
    tmp_path: Path, directed: bool, rule: str
) -> None:
    graph = graph_of(directed=directed)
    whole = PROPAGATIONS[rule](graph).to_dense()
    seen = []
    write(graph, tmp_path / "parts", 3)
    for number in range(3):
        part = load_part(tmp_path / "parts", number, verify=True)
        own, nodes = torch.arange(part.own), part.nodes
        P = PROPAGATIONS[rule](part.graph)
        for matrix, wanted in ((P, whole), (P.transposed, whole.T)):
            rows = torch.zeros(part.own, NODES, dtype=torch.float64)
            rows[:, nodes] = matrix.to_dense()[own].double()
            torch.testing.assert_close(rows, wanted[nodes[: part.own]].double())
        torch.testing.assert_close(part.graph.features, graph.features[nodes])
        seen.append(nodes[: part.own])
    assert torch.equal(torch.cat(seen).sort().values, torch.arange(NODES))


def test_what_one_part_sends_is_what_the_other_has_in_its_halo(tmp_path: Path) -> None:
    write(graph_of(directed=True), tmp_path / "parts", 3)
    parts = [load_part(tmp_path / "parts", number) for number in range(3)]
    for here in parts:
        halo = here.nodes[here.own :]
        for there in parts:
            a, b = there.send_indptr[here.number : here.number + 2].tolist()
            c, d = here.halo_indptr[there.number : there.number + 2].tolist()
            assert torch.equal(there.nodes[there.send_indices[a:b]], halo[c:d])
            assert here.number != there.number or a == b


def test_splits_labels_and_scaling_are_those_of_the_whole_graph(tmp_path: Path) -> None:
    graph = graph_of(directed=False, trained=30)
    write(graph, tmp_path / "parts", 2)
    scaled, _ = scale_graph(graph, "standard")
    trained = []
    for number in range(2):
        part = load_part(tmp_path / "parts", number)
        found, _ = part.scaled("standard")
        torch.testing.assert_close(found.features, scaled.features[part.nodes], rtol=0, atol=0)
        assert torch.equal(part.graph.labels, graph.labels[part.nodes])
        assert int(part.graph.train.max()) < part.own
        trained.append(part.nodes[part.graph.train])
    assert torch.equal(torch.cat(trained).sort().values, graph.train)


def test_parts_of_two_partitions_do_not_mix(tmp_path: Path) -> None:
    graph = graph_of(directed=False)
    write(graph, tmp_path / "two", 2)
    write(graph, tmp_path / "three", 3)
    stranger = part_folder(tmp_path / "three", 1) / ARRAYS
    (part_folder(tmp_path / "two", 1) / ARRAYS).write_bytes(stranger.read_bytes())
    with refused():
        load_part(tmp_path / "two", 1)
    described = tmp_path / "two" / "parts.json"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"nodes": 5}))
    with refused():
        load_part(tmp_path / "two", 0)


def test_sparse_features_and_empty_parts_are_refused(tmp_path: Path) -> None:
    graph = graph_of(directed=False)
    everything = torch.zeros(NODES, dtype=torch.int64)
    with refused():
        write_parts(graph, everything, tmp_path / "a", parts=2, scaling="none")
    sparse = Graph(
        graph.edge_index(), graph.features.to_sparse_csr(), graph.labels, train=graph.train
    )
    with refused():
        write_parts(sparse, everything, tmp_path / "b", parts=1, scaling="none")
    assert not list(tmp_path.iterdir())
