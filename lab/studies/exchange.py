"""Bytes that processes exchange in an epoch, by estimator and --halo, compared with neighbour
sampling.

    vrgcn partition communities --parts 4 --out parts
    torchrun --nproc-per-node 4 -m lab.studies.exchange parts communities

A line of JSON for each choice, from the first process. Rows are those of two epochs' mean, all
processes together; `gradients` are the weights' sums. Neighbour sampling at [25, 10] (two layers,
the same minibatches) has to fetch the features of every node in a minibatch's two hops that another
process owns; counted without a cache, once for each minibatch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from vrgcn.data.opening import open_graph
from vrgcn.distributed.config import DistributedConfig, HaloMode
from vrgcn.distributed.group import Group, joined
from vrgcn.distributed.parts import Part, load_part
from vrgcn.distributed.trainer import PartTrainer
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.models.models import GraphSAGE
from vrgcn.training.config import TrainConfig

EPOCHS, BATCH = 2, 512
FREE = {"estimator": "two-way", "fanout": (0,)}
CHOICES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("history", {"estimator": "history"}, {}),
    ("two-way, fan-out 0", FREE, {}),
    ("two-way, fan-out 0, float16", FREE | {"history_dtype": "float16"}, {}),
    ("two-way, fan-out 0, exact", FREE, {"halo": "exact"}),
    ("two-way, fan-out 0, 3 layers", FREE, {"layers": 3}),
    ("cvd", {"estimator": "cvd"}, {}),
    ("cvd, exact", {"estimator": "cvd"}, {"halo": "exact"}),
]


def main(folder: str, source: str) -> None:
    torch.set_num_threads(1)
    with joined(torch.device("cpu"), 600.0) as group:
        part = load_part(Path(folder), group.rank)
        for name, settings, others in CHOICES:
            line = measured(group, part, settings, **others)
            if group.first:
                print(json.dumps({"choice": name, **line}), flush=True)
        owners = [part.nodes[: part.own] for part in _parts(Path(folder), group)]
        if group.first:
            print(json.dumps({"choice": "ns [25, 10]", **sampled(source, owners)}), flush=True)
        group.barrier()


def measured(
    group: Group,
    part: Part,
    settings: dict[str, Any],
    *,
    layers: int = 2,
    halo: HaloMode = "delayed",
) -> dict[str, Any]:
    graph, _ = part.scaled("auto")
    torch.manual_seed(0)
    model = GraphSAGE(graph.num_features, 128, graph.num_classes, layers=layers, dropout=0.2)
    config = TrainConfig(
        epochs=EPOCHS, batch_size=BATCH, evaluate_every=EPOCHS, select="last", **settings
    )
    trainer = PartTrainer(model, part, graph, config, DistributedConfig(halo=halo), group)
    setup = group.total(sum(group.sent.values()))[0]
    group.sent.clear()
    trainer._sent = 0
    while trainer.advance():
        pass
    sent = {
        what: group.total(group.sent.get(what, 0))[0] / EPOCHS
        for what in ("rows", "slots", "counts", "gradients")
    }
    point = trainer.progress.curve[-1]
    return {
        **{what: round(size) for what, size in sent.items()},
        "epoch": round(sum(sent.values())),
        "steps": len(trainer.minibatches),
        "halo_age": point.halo_age,
        "age": point.age,
        "halo_staleness": point.halo_staleness,
        "val": point.val,
        "setup": round(setup),
    }


def sampled(source: str, owners: list[torch.Tensor]) -> dict[str, Any]:
    """Return the bytes that neighbour sampling would fetch in an epoch of training nodes."""
    opened = (
        open_graph(source, None) if not Path(source).is_dir() else open_graph(None, Path(source))
    )
    graph = opened.graph
    owner = torch.empty(graph.num_nodes, dtype=torch.int64)
    for number, nodes in enumerate(owners):
        owner[nodes] = number
    model = GraphSAGE(graph.num_features, 128, graph.num_classes)
    batches = MiniBatches(model, graph, estimator="ns", fanout=(25, 10), preprocess=False)
    remote = local = 0
    share = -(-BATCH // len(owners))
    for number in range(len(owners)):
        own = graph.train[owner[graph.train] == number]
        for nodes in own[torch.randperm(len(own))].split(share):
            needed = owner[batches.batch(nodes).plan.levels[0].nodes]
            remote += int((needed != number).sum())
            local += int((needed == number).sum())
    width = graph.num_features * graph.features.element_size()
    return {"rows": remote * (width + 8), "nodes fetched": remote, "nodes at home": local}


def _parts(folder: Path, group: Group) -> list[Part]:
    return [load_part(folder, number) for number in range(group.size)] if group.first else []


if __name__ == "__main__":
    main(*sys.argv[1:])
