"""Which estimator is ahead after equal seconds of training: by learning rate, batches per epoch and
degree.

    python -m lab.studies.staleness_map --out results/staleness-map.jsonl
    python -m lab.studies.staleness_map --show --out docs/results/staleness-map.jsonl

Histories are up to an epoch old: the more steps an epoch has and the larger they are, the staler.
In every cell of the map the estimators train the same GraphSAGE (two layers or three, 64 hidden
units, dropout .2) on a generated graph of 10,000 nodes, 6,000 of them trained on, as `vrgcn train`
does it by default (two-way visits all nodes), one thread, taking turns: whoever has used
the least time takes the next steps, so that what disturbs the machine disturbs all alike. After
`--budget` seconds of each, exact validation accuracies are compared. A cell is a line of the file;
what is there is not run again.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from lab.harness.race import Validation
from lab.harness.records import Record, append_record, read_lines
from lab.harness.trainers import EndlessTrainer
from vrgcn import TrainConfig
from vrgcn.costs.choice import choose_estimator
from vrgcn.data.synthetic import COMMUNITIES, SPARSE_COMMUNITIES, community_graph
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model

ESTIMATORS = ("two-way", "two-way-cv", "cvd", "history", "exact")
DEGREES = (3, 15, 50)
BATCHES = (10, 50, 250, 1000, 2000)
RATES = (0.003, 0.01, 0.03)
NODES = 10_000
TIE = 0.005  # of accuracy: closer than this counts as the same
STEPS_AT_ONCE = 0.05  # seconds of training before the next one's turn


@dataclass(frozen=True)
class Cell:
    layers: int
    degree: int
    batches: int
    rate: float


def cell_of(record: Record) -> Cell:
    return Cell(*(record[key] for key in ("layers", "degree", "batches", "rate")))


def cells(layers: int) -> list[Cell]:
    return [
        Cell(layers, degree, batches, rate)
        for degree in DEGREES
        for batches in BATCHES
        for rate in RATES
    ]


def model_config(cell: Cell) -> ModelConfig:
    return ModelConfig(model="graphsage", hidden=64, layers=cell.layers, dropout=0.2)


def train_config(cell: Cell, graph: Graph, estimator: str) -> TrainConfig:
    return TrainConfig(
        estimator=estimator,
        learning_rate=cell.rate,
        batch_size=max(1, len(graph.train) // cell.batches),
        threads=1,
    )


def make_model(cell: Cell, graph: Graph) -> nn.Module:
    return build_model(model_config(cell), graph.num_features, graph.num_classes, seed=0)


def make_graph(degree: int) -> Graph:
    """Make a graph like `sparse-communities` at degree 3, otherwise like `communities`."""
    spec = SPARSE_COMMUNITIES if degree == 3 else COMMUNITIES
    size = {"nodes": NODES, "train": 6_000, "val": 2_000, "test": 2_000}
    # The same evidence in total: with fewer neighbours, each has to carry more.
    homophily = {3: spec.homophily, 15: 0.6, 50: spec.homophily}[degree]
    return community_graph(replace(spec, pairs=NODES * degree // 2, homophily=homophily, **size))


def run(cell: Cell, graph: Graph, budget: float) -> Record:
    trainings = {
        name: EndlessTrainer(make_model(cell, graph), graph, train_config(cell, graph, name))
        for name in ESTIMATORS
    }
    while running := [
        each for each in trainings.values() if each.diverged is None and each.seconds < budget
    ]:
        behind = min(running, key=lambda each: each.seconds)
        start = behind.seconds
        while behind.diverged is None and behind.seconds - start < STEPS_AT_ONCE:
            behind.run(1)
    validation = Validation(graph)
    return vars(cell) | {
        "budget": budget,
        "val": {name: validation(each) for name, each in trainings.items()},
        "epochs": {name: each.epochs for name, each in trainings.items()},
    }


def show(records: list[Record], picture: Path) -> None:
    """Show a table of all cells, and the map: each cell in the colour of the leading estimator."""
    print("| layers | degree | batches | rate | " + " | ".join(ESTIMATORS) + " | ahead | auto |")
    print("|---" * (6 + len(ESTIMATORS)) + "|")
    chosen = choices(records)
    for record, auto in zip(records, chosen, strict=True):
        scores = [f"{record['val'][name]:.3f}" for name in ESTIMATORS]
        where = [record[key] for key in ("layers", "degree", "batches", "rate")]
        print("| " + " | ".join(map(str, [*where, *scores, ", ".join(ahead(record)), auto])) + " |")
    wins = {name: sum(name in ahead(record) for record in records) for name in ESTIMATORS}
    print(f"\nahead, or within {TIE:.1%} of who is: {wins} of {len(records)} cells")
    for name in (*ESTIMATORS, "auto"):
        taken = chosen if name == "auto" else [name] * len(records)
        behind = [max(r["val"].values()) - r["val"][n] for r, n in zip(records, taken, strict=True)]
        print(
            f"{name}: behind the best by {statistics.mean(behind):.3f}, at most {max(behind):.3f}"
        )
    draw(records, picture)


def choices(records: list[Record]) -> list[str]:
    """Return the choice of `--estimator auto` in each cell."""
    graphs = {degree: make_graph(degree) for degree in {r["degree"] for r in records}}
    found = []
    for record in records:
        cell = cell_of(record)
        graph = graphs[cell.degree]
        config = train_config(cell, graph, "auto")
        found.append(choose_estimator(make_model(cell, graph), graph, config)[0].estimator)
    return found


def ahead(record: Record) -> list[str]:
    best = max(record["val"].values())
    order = sorted(record["val"], key=lambda name: -record["val"][name])
    return [name for name in order if record["val"][name] >= best - TIE]


def draw(records: list[Record], picture: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Rectangle

    shades = ("#2b6cb0", "#63b3ed", "#dd6b20", "#a0aec0", "#2f855a")
    colours = dict(zip(ESTIMATORS, shades, strict=True))
    depths = sorted({record["layers"] for record in records})
    figure, axes = plt.subplots(
        len(depths),
        len(DEGREES),
        figsize=(4 * len(DEGREES), 3.4 * len(depths)),
        squeeze=False,
        constrained_layout=True,
    )
    for row, layers in enumerate(depths):
        for column, degree in enumerate(DEGREES):
            axis = axes[row][column]
            axis.set_title(f"{layers} layers, mean degree {degree}")
            axis.set_xticks(range(len(BATCHES)), map(str, BATCHES))
            axis.set_yticks(range(len(RATES)), map(str, RATES))
            axis.set_xlabel("batches per epoch")
            axis.set_ylabel("learning rate")
            axis.set_xlim(-0.5, len(BATCHES) - 0.5)
            axis.set_ylim(-0.5, len(RATES) - 0.5)
            for record in records:
                if (record["layers"], record["degree"]) != (layers, degree):
                    continue
                x, y = BATCHES.index(record["batches"]), RATES.index(record["rate"])
                first = ahead(record)
                axis.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=colours[first[0]]))
                text = "\n".join([f"{record['val'][first[0]]:.3f}", *first[:3]])
                axis.text(x, y, text, ha="center", va="center", color="white", fontsize=6.5)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)
    print(f"drawn: {picture}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of each in a cell")
    parser.add_argument("--cells", type=int, default=None, help="stop after so many")
    parser.add_argument("--out", type=Path, default=Path("results/staleness-map.jsonl"))
    parser.add_argument("--show", action="store_true", help="print and draw what is there")
    given = parser.parse_args()
    if not given.show:
        torch.set_num_threads(1)
        done = [cell_of(record) for record in read_lines(given.out)]
        todo = [cell for cell in cells(given.layers) if cell not in done]
        graphs: dict[int, Graph] = {}
        for number, cell in enumerate(todo[: given.cells], start=1):
            print(f"{number}/{len(todo)} {cell}", flush=True)
            if cell.degree not in graphs:
                graphs[cell.degree] = make_graph(cell.degree)
            append_record(given.out, run(cell, graphs[cell.degree], given.budget))
    show(read_lines(given.out), given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
