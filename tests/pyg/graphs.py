"""Small graphs for PyG models, in PyG's form and ours: directed, with self-loops, and a node that
nothing points to."""

from __future__ import annotations

import torch
from torch_geometric.data import Data, HeteroData

from vrgcn import Graph

NODES, WIDTH, CLASSES = 24, 5, 3


def one_kind(*, weighted: bool = False, dtype: torch.dtype = torch.float32) -> tuple[Data, Graph]:
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(0, NODES, (2, 110), generator=draw)
    edges = torch.unique(edges[:, edges[1] > 0], dim=1)
    data = Data(
        x=torch.randn(NODES, WIDTH, generator=draw, dtype=dtype),
        edge_index=edges,
        y=torch.randint(0, CLASSES, (NODES,), generator=draw),
        train_mask=torch.rand(NODES, generator=draw) < 0.8,
    )
    if weighted:
        data.edge_weight = torch.rand(edges.shape[1], generator=draw).to(dtype) + 0.1
    return data, Graph.from_pyg(data)


def several_kinds(dtype: torch.dtype = torch.float32) -> tuple[HeteroData, Graph]:
    """Users, items and shops, of different widths; users have labels."""
    draw = torch.Generator().manual_seed(0)
    sizes = {"user": (20, 5), "item": (12, 4), "shop": (4, 3)}
    data = HeteroData()
    for kind, (nodes, width) in sizes.items():
        data[kind].x = torch.randn(nodes, width, generator=draw, dtype=dtype)
    data["user"].y = torch.randint(0, CLASSES, (20,), generator=draw)
    data["user"].train_mask = torch.arange(20) < 14
    for source, name, target, count in (
        ("user", "bought", "item", 50),
        ("item", "sold_by", "shop", 16),
        ("user", "follows", "user", 40),
    ):
        ends = [torch.randint(0, sizes[k][0], (count,), generator=draw) for k in (source, target)]
        edges = torch.unique(torch.stack(ends), dim=1)
        data[source, name, target].edge_index = edges
        data[target, f"rev_{name}", source].edge_index = edges.flip(0)
    return data, Graph.from_pyg(data)
