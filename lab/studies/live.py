"""What a change of a live graph costs, beside predicting the whole graph anew and beside PyG, which
extracts the neighbourhood of two hops for every answer.

    python -m lab.studies.live                            # reddit-like, sparse-communities
    python -m lab.studies.live --graphs facebook_large    # a real graph, of VRGCN_DATA

Networks of two layers, 128 wide, with the weights that they start with: what they predict does not
matter here. Of each sort of work the median and the 99th percentile over many times, in
milliseconds; for changes also the rows that were computed anew (median). The answers of PyG are
compared with ours, with the same weights: both are exact.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.bench.pyg import can_sample
from lab.league.real_graphs import GRAPHS, data_folder, load
from vrgcn import GCN, GraphSAGE, Live, SavedModel, load_dataset, predict
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling, suitable_scaling
from vrgcn.live.changes import Changes

HIDDEN, EDGES = 128, 10
_GATHERED = 50_000_000  # numbers of edges times features, above which PyG gets a sparse matrix
KINDS: dict[str, Any] = {"GraphSAGE": GraphSAGE, "GCN": GCN}


@dataclass
class Work:
    """Seconds of one sort of work, each time that it was done; rows computed anew each time."""

    seconds: list[float] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)

    def timed(self, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = work()
        self.seconds.append(time.perf_counter() - began)
        return found

    def __str__(self) -> str:
        half, most = np.percentile(self.seconds, [50, 99]) * 1000
        return f"{_number(half)} | {_number(most)}"

    @property
    def typical_rows(self) -> str:
        if not self.rows:
            return ""
        return ", ".join(f"{round(count):,}" for count in np.median(np.array(self.rows), axis=0))


def _number(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=["reddit-like", "sparse-communities"])
    parser.add_argument("--models", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--reads", type=int, default=2000)
    parser.add_argument("--adds", type=int, default=100)
    parser.add_argument("--hubs", type=int, default=10)
    parser.add_argument("--peers", type=int, default=20, help="answers by PyG")
    given = parser.parse_args()
    for name in given.graphs:
        graph = find_graph(name)
        counts = graph.adjacency.counts
        print(
            f"\n{name}: {graph.num_nodes:,} nodes, mean degree {counts.double().mean():.1f}, "
            f"largest {int(counts.max()):,}, {graph.num_features} features\n"
        )
        print("| network | work | p50 ms | p99 ms | rows computed anew |\n|---|---|---|---|---|")
        for model in given.models:
            for what, work in measured(graph, model, given):
                print(f"| {model} | {what} | {work} | {work.typical_rows} |", flush=True)


def find_graph(name: str) -> Graph:
    """A built-in graph, or a real one."""
    if name not in GRAPHS:
        return load_dataset(name)
    folder = data_folder()
    if folder is None:
        raise SystemExit(f"{name}: set VRGCN_DATA to the folder of the real graphs")
    return load(name, 0, folder)


def measured(graph: Graph, kind: str, given: Any) -> Iterator[tuple[str, Work]]:
    """Every sort of work on one graph with one network, each when it is done."""
    saved = trained(graph, kind)
    rng = np.random.default_rng(0)
    whole, start = Work(), Work()
    outputs = whole.timed(lambda: predict(saved, graph))
    yield "predict of all nodes", whole
    live = start.timed(lambda: Live(saved, graph, undirected=True))
    assert torch.allclose(live.predict(range(100)).outputs, outputs[:100], atol=1e-4)
    yield "start: all tables", start
    reads = Work()
    for node in rng.integers(0, graph.num_nodes, given.reads).tolist():
        reads.timed(partial(live.predict, node))
    yield "read a known node", reads
    adds = Work()
    for change, node in new_nodes(graph, rng, given.adds):
        adds.rows.append(adds.timed(partial(added, live, change, node)))
    yield f"add a node with {EDGES} edges, and read it", adds
    hubs = Work()
    for pair in hub_pairs(graph, given.hubs):
        hubs.rows.append(hubs.timed(partial(live.add_edges, pair)).rows)
    yield "add an edge between two hubs", hubs
    if kind == "GraphSAGE":  # on PyG's subgraph of two hops, GCN's degrees would be wrong
        yield from peers(saved, graph, outputs, rng, given.peers).items()


def trained(graph: Graph, kind: str) -> SavedModel:
    """A network with the scaling that suits the graph. Its weights are those it starts with:
    they do not change what anything costs."""
    torch.manual_seed(0)
    width = graph.num_features
    sparse = graph.features.layout != torch.strided
    network = KINDS[kind](width, HIDDEN, graph.num_classes, sparse_features=sparse)
    scaling = Scaling.fit(suitable_scaling(graph.features), graph.features, graph.train)
    return SavedModel(network, network.propagation, scaling)


def new_nodes(graph: Graph, rng: np.random.Generator, count: int) -> Iterator[tuple[Changes, int]]:
    """New nodes, each with the features of some node and edges to ten others at random."""
    from vrgcn.graph.sparse import select_rows

    for node in range(graph.num_nodes, graph.num_nodes + count):
        like = torch.from_numpy(rng.integers(0, graph.num_nodes, 1))
        row = select_rows(graph.features, like).to_dense()[0]
        changes = Changes()
        changes.add_nodes({"id": node, "features": row.tolist()})
        ends = rng.choice(graph.num_nodes, EDGES, replace=False).tolist()
        changes.add_edges([(node, end) for end in ends])
        yield changes, node


def added(live: Live, changes: Changes, node: int) -> tuple[int, ...]:
    """Apply a change and read the new node; return the rows that were computed."""
    rows = live.apply(changes).rows
    live.predict(node)
    return rows


def hub_pairs(graph: Graph, count: int) -> list[tuple[int, int]]:
    """Pairs of the nodes with the most neighbours that are not linked yet."""
    hubs = graph.adjacency.counts.topk(min(8 * count + 8, graph.num_nodes)).indices.tolist()
    found: list[tuple[int, int]] = []
    for one, other in zip(hubs[::2], hubs[1::2], strict=False):
        near = graph.adjacency.rows(torch.tensor([one])).indices
        if other not in near.tolist() and len(found) < count:
            found.append((one, other))
    return found


class PyGSAGE(nn.Module):
    """The same GraphSAGE with PyG's layers and our weights."""

    def __init__(self, ours: Any) -> None:
        super().__init__()
        from torch_geometric.nn import SAGEConv

        self.convs = nn.ModuleList()
        for layer in ours.layers:
            linear = layer.linears[0]
            own, others = linear.state_dict()["weight"].chunk(2, dim=1)
            biased = linear.bias is not None
            conv = SAGEConv(own.shape[1], own.shape[0], aggr="mean", bias=biased)
            conv.lin_l.weight.data, conv.lin_r.weight.data = others.clone(), own.clone()
            if biased:
                conv.lin_l.bias.data = linear.bias.detach()
            self.convs.append(conv)
        self.norm = ours.layers[0].norms[0]

    @torch.no_grad()
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.relu(self.norm(self.convs[0](x, edge_index)))
        found: Tensor = self.convs[1](h, edge_index)
        return found


def peers(
    saved: SavedModel, graph: Graph, outputs: Tensor, rng: np.random.Generator, count: int
) -> dict[str, Work]:
    """PyG's answers for known nodes and for a new one, from the neighbourhood of two hops."""
    from torch_geometric.utils import k_hop_subgraph, to_torch_csr_tensor

    from vrgcn.graph.sparse import select_rows

    model = PyGSAGE(saved.model).eval()
    scaled = saved.prepare(graph)
    edge_index = graph.edge_index()

    def answer(node: int, edges: Tensor, more: Tensor | None = None) -> Tensor:
        nodes = graph.num_nodes + (more is not None)
        near, sub, mapped, _ = k_hop_subgraph([node], 2, edges, True, num_nodes=nodes)
        known = near[near < graph.num_nodes]
        x = select_rows(scaled.features, known).to_dense()
        x = x if more is None else torch.cat([x, more])
        if sub.shape[1] * x.shape[1] > _GATHERED:  # PyG would hold a row for every edge
            sub = to_torch_csr_tensor(sub.flip(0), size=(len(x), len(x)))
        return model(x, sub)[mapped]

    def answer_new(ends: Tensor, row: Tensor) -> Tensor:
        new = torch.full((EDGES,), graph.num_nodes)
        both = torch.cat([torch.stack([ends, new]), torch.stack([new, ends])], dim=1)
        return answer(graph.num_nodes, torch.cat([edge_index, both], dim=1), row)

    works = {"PyG, k_hop_subgraph, known node": Work(), "PyG, k_hop_subgraph, new node": Work()}
    nodes = rng.integers(0, graph.num_nodes, count)
    for node in nodes.tolist():
        work = works["PyG, k_hop_subgraph, known node"]
        found = work.timed(partial(answer, node, edge_index))
        assert torch.allclose(found[0], outputs[node], atol=1e-3)
    for node in nodes.tolist():
        ends = torch.from_numpy(rng.choice(graph.num_nodes, EDGES, replace=False))
        row = select_rows(scaled.features, torch.tensor([node])).to_dense()
        works["PyG, k_hop_subgraph, new node"].timed(partial(answer_new, ends, row))
    if can_sample():
        works |= loader_peers(model, scaled, outputs, nodes)
    return works


def loader_peers(
    model: PyGSAGE, graph: Graph, outputs: Tensor, nodes: np.ndarray[Any, Any]
) -> dict[str, Work]:
    """The same from `NeighborLoader` with all neighbours, which is made anew after a change."""
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    x = graph.features if graph.features.layout == torch.strided else graph.features.to_dense()
    data = Data(x=x, edge_index=graph.edge_index(), num_nodes=graph.num_nodes)
    made, read = Work(), Work()
    asked = torch.from_numpy(nodes)
    loader = made.timed(lambda: NeighborLoader(data, [-1, -1], input_nodes=asked, batch_size=1))
    batches = iter(loader)
    for node in nodes.tolist():

        def answer() -> Tensor:
            batch = next(batches)
            return model(batch.x, batch.edge_index)[:1]

        found = read.timed(answer)
        assert torch.allclose(found[0], outputs[node], atol=1e-3)
    return {
        "PyG, NeighborLoader, made once for a graph": made,
        "PyG, NeighborLoader, known node": read,
    }


if __name__ == "__main__":
    main()
