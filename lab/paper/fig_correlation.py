"""Appendix G: are activations uncorrelated under dropout, as Table 2 assumes?

A 10-layer GCN is trained, and run by the exact algorithm over many dropout masks. For the input
h^(l) of each propagation l (1: the first hidden layer) the Pearson correlation over masks is taken

    between neighbours   h_{v,d} and h_{w,d}, two nodes v, w that are averaged for the same node u
                         (u itself may be one of them), the same column d
    between features     h_{v,c} and h_{v,d}, two columns of the same node

and averaged over random pairs. What Table 2 needs of it is measured for all nodes and columns too,
the variance of the average over what it is without correlation:

    inflation            sum of Var (P h)_u  /  sum of Σ_v P_uv^2 Var h_v

Over M masks the mean absolute correlation of independent columns is about √(2 / (π M)), the floor.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lab.harness.records import Record
from lab.harness.units import Unit
from lab.paper.charts import correlations as correlation_panels
from lab.paper.experiment import Choice, Experiment, Verdict, undecided
from lab.paper.pictures import save_panels
from lab.paper.runs import label_seeds
from lab.paper.settings import dataset_label, open_graph, setting, unit_per_seed
from vrgcn.diagnostics.staleness import Recorder
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.wording import counted
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR
from vrgcn.pages.page import Page
from vrgcn.pages.panels import show_panels
from vrgcn.runs.fit import fit

DATASETS = ("cora",)
LAYERS = 10
TRAINED_BY = "CVD+PP"
WEAK = 0.1  # mean correlation
CHANCE = 1.1  # times the floor: mean absolute correlations that are there by chance


def units(choice: Choice) -> list[Unit]:
    return unit_per_seed(choice, DATASETS, run)


def run(dataset: str, seed: int, choice: Choice) -> dict[str, Any]:
    masks, pairs, layers, epochs = 1000, 2000, LAYERS, setting(dataset).train.epochs
    if choice.quick:
        masks, pairs, layers, epochs = 40, 300, 4, 1
    graph = open_graph(dataset, choice)
    model, test = _trained(dataset, graph, seed, layers, epochs, choice)
    return {
        "label": dataset_label(dataset, choice),
        "masks": masks,
        "pairs": pairs,
        "layers": layers,
        "epochs": epochs,
        "test": test,
        "correlations": correlations(model, graph, masks, pairs, seed),
    }


def correlations(
    model: nn.Module, graph: Graph, masks: int, pairs: int, seed: int
) -> list[dict[str, float | None]]:
    """Return the correlations of the input of each propagation except the first, which has the
    features."""
    batches = MiniBatches(model, graph, estimator="exact", nodes=torch.arange(graph.num_nodes))
    batch = batches.batch(torch.arange(graph.num_nodes))
    generator = torch.Generator().manual_seed(seed)
    P = batches.setup.P[None]
    v, w = neighbour_pairs(P, pairs, generator)
    recorder = Recorder(model.train())
    layers = [Layer(P, v, w, generator) for _ in range(1, batches.setup.training.depth)]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(masks):
            recorder.passes.clear()
            batch.run(recorder)
            calls = recorder.passes[0]
            hidden = zip(layers, calls.inputs[1:], calls.answers[1:], strict=True)
            for layer, h, average in hidden:
                layer.add(h, average)
    return [layer.result() for layer in layers]


def neighbour_pairs(
    P: Propagation, count: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw pairs of different nodes, (count,) twice, each from a random node and its neighbours."""
    indptr, columns = P.adjacency.indptr, P.adjacency.indices
    degree = indptr.diff()
    able = (degree > 0).nonzero()[:, 0]
    u = able[torch.randint(len(able), (count,), generator=generator)]
    # Two different places among 0 (u itself), 1, ..., degree.
    n = degree[u] + 1
    first = (torch.rand(count, generator=generator, dtype=torch.float64) * n).long()
    other = (torch.rand(count, generator=generator, dtype=torch.float64) * (n - 1)).long()
    second = other + (other >= first)
    # The node at a place; for u itself the last index is taken and not used.
    at = [
        torch.where(place == 0, u, columns[indptr[u] + (place - 1).clamp(min=0)])
        for place in (first, second)
    ]
    return at[0], at[1]


class Correlation:
    """Pearson correlation of two series of tensors of the same shape, entry by entry."""

    def __init__(self) -> None:
        self.count = 0
        self.origin: list[Tensor] = []
        self.sums: list[Tensor] = []

    def add(self, x: Tensor, y: Tensor) -> None:
        x, y = x.double(), y.double()
        if not self.count:
            self.origin = [x, y]
            self.sums = [torch.zeros_like(x) for _ in range(5)]
        self.count += 1
        # Relative to the first values, so that squares of large means do not cancel.
        x, y = x - self.origin[0], y - self.origin[1]
        for total, term in zip(self.sums, (x, y, x * x, y * y, x * y), strict=True):
            total.add_(term)

    def result(self) -> Tensor:
        """Return the correlations; NaN if one of the two does not vary."""
        x, y, xx, yy, xy = (total / self.count for total in self.sums)
        variances = (xx - x * x).clamp(min=0), (yy - y * y).clamp(min=0)
        product = (variances[0] * variances[1]).sqrt()
        constant = (variances[0] <= 1e-12 * xx) | (variances[1] <= 1e-12 * yy)
        return torch.where(constant, torch.nan, (xy - x * y) / product)


class Layer:
    """Accumulates one layer: activations h (nodes, width) and averages P h over masks."""

    def __init__(self, P: Propagation, v: Tensor, w: Tensor, generator: torch.Generator) -> None:
        self.v, self.w = v, w
        self.generator = generator
        self.squares = _squared(P)
        self.neighbours, self.features = Correlation(), Correlation()
        self.columns: tuple[Tensor, Tensor] | None = None
        self.count = 0
        self.sums: list[Tensor] = []

    def add(self, h: Tensor, average: Tensor) -> None:
        width = h.shape[1]
        if self.columns is None:
            first = torch.randint(width, (len(self.v),), generator=self.generator)
            step = torch.randint(1, max(width, 2), (len(self.v),), generator=self.generator)
            self.columns = (first, (first + step) % width)
            self.sums = [torch.zeros_like(h, dtype=torch.float64) for _ in range(4)]
        self.neighbours.add(h[self.v], h[self.w])
        self.features.add(h[self.v, self.columns[0]], h[self.v, self.columns[1]])
        self.count += 1
        h, average = h.double(), average.double()
        for total, term in zip(self.sums, (h, h.square(), average, average.square()), strict=True):
            total.add_(term)

    def result(self) -> dict[str, float | None]:
        h, hh, a, aa = (total / self.count for total in self.sums)
        alone = float((self.squares @ (hh - h.square())).sum())
        together = float((aa - a.square()).sum())
        return {
            **_summary("neighbours", self.neighbours.result()),
            **_summary("features", self.features.result()),
            "inflation": together / alone if alone > 0 else None,
        }


def _summary(name: str, correlation: Tensor) -> dict[str, float | None]:
    """Return means over the pairs that vary, None if none does, and the share of pairs that
    vary."""
    varied = correlation[~correlation.isnan()]
    mean, absolute = (
        (float(varied.mean()), float(varied.abs().mean())) if len(varied) else (None, None)
    )
    return {
        name: mean,
        f"{name}_absolute": absolute,
        f"{name}_varied": len(varied) / correlation.numel(),
    }


def _squared(P: Propagation) -> Propagation:
    """Return the matrix of the squares of P's entries."""
    A = P.rows(torch.arange(P.num_nodes))
    squares = CSR(A.indptr, A.indices, A.weights(torch.float64).square(), A.columns)
    own = P.own.double().square() if isinstance(P.own, Tensor) else P.own**2
    return Propagation(own, None, squares, None, torch.float64)


def floor(masks: int) -> float:
    """Return the mean absolute correlation of independent series, by chance."""
    return math.sqrt(2 / (math.pi * masks))


def _trained(
    dataset: str, graph: Graph, seed: int, layers: int, epochs: int, choice: Choice
) -> tuple[nn.Module, float | None]:
    paper = setting(dataset)
    model = paper.build(TRAINED_BY, graph, seed, model="gcn", layers=layers)
    config = paper.config(
        TRAINED_BY, seed, epochs=epochs, evaluate_every=epochs, threads=choice.threads
    )
    return model, fit(model, graph, config).test


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    records = label_seeds(records)
    page.text(
        "Correlation of hidden activations over dropout masks, between nodes that are averaged "
        "together and between columns of one node, in each layer of a deep GCN. Inflation is the "
        "variance of P h over what it would be without correlation, the S of Table 2."
    )
    for record in records:
        _table(record, page)
    panels = correlation_panels(records, [floor(record["masks"]) for record in records])
    show_panels(page, panels)
    save_panels(panels, folder, "fig-correlation", columns=2)
    verdicts = [verdict for record in records for verdict in verdicts_of(record)]
    return undecided(verdicts) if records[0]["quick"] else verdicts


def _table(record: Record, page: Page) -> None:
    test = "–" if record["test"] is None else f"{record['test']:.3f}"
    page.table(
        ["layer", "neighbours", "neighbours, absolute", "features", "features, absolute",
         "inflation", "varied"],
        [
            [
                str(number),
                *(
                    _text(layer[name])
                    for name in (
                        "neighbours", "neighbours_absolute", "features", "features_absolute",
                        "inflation", "neighbours_varied",
                    )
                ),
            ]
            for number, layer in enumerate(record["correlations"], start=1)
        ],
        caption=f"{record['label']}: mean correlation over {record['masks']} masks and "
        f"{record['pairs']} pairs; {record['layers']} layers, {record['epochs']} epochs, test "
        f"score {test}; absolute means are {floor(record['masks']):.3f} by chance; varied: the "
        "share of pairs in which both are not constant, as dead units are",
    )  # fmt: skip


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def verdicts_of(record: Record) -> list[Verdict]:
    first, label = record["correlations"][0], record["label"]
    chance = floor(record["masks"])
    absolute = first["neighbours_absolute"]
    known = [
        (layer["neighbours"], number)
        for number, layer in enumerate(record["correlations"], start=1)
        if layer["neighbours"] is not None
    ]
    dead = len(record["correlations"]) - len(known)
    largest, where = max(known, key=lambda pair: abs(pair[0]), default=(math.nan, 0))
    inflation = max((layer["inflation"] or 0.0) for layer in record["correlations"])
    return [
        Verdict(
            None if absolute is None else absolute < CHANCE * chance,
            f"{label}: in the first hidden layer, all that a model of two layers estimates, "
            f"neighbours are uncorrelated: the mean absolute correlation is {_text(absolute)}, "
            f"below {CHANCE:g} times the {chance:.3f} of chance; inflation "
            f"{_text(first['inflation'])}.",
        ),
        Verdict(
            abs(largest) < WEAK if not dead else None,
            f"{label}: in every layer of {record['layers']} neighbours are weakly correlated, on "
            f"average by less than {WEAK:g}: the largest is {largest:.3f}, in layer {where}; the "
            f"variance of P h is up to {inflation:.2f} times that without correlation"
            + (f"; nothing varies in {counted(dead, 'layer')}." if dead else "."),
        ),
    ]


EXPERIMENT = Experiment("fig-correlation", "Appendix G: correlation of activations", units, render)
