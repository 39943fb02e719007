"""Table 2: the variances of the estimators, measured on a model's own activations.

A model is trained a little. Of some nodes u, the hidden activations of u and its neighbours are
taken under many dropout masks; these are the distribution that activations are drawn from, each
node's independently, as the formulas assume (fig-correlation asks whether they are). So the
formulas of `variances` can be evaluated without error, and are compared with what the real
sampler and the real estimators give over many draws. μ̄ are the means at the weights of an epoch
before; the histories' noise is drawn as that of the activations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lab.harness.records import Record
from lab.harness.units import Unit
from lab.paper.charts import dropout_variances
from lab.paper.experiment import Choice, Experiment, Verdict, undecided
from lab.paper.pictures import save_panels
from lab.paper.runs import label_seeds
from lab.paper.settings import dataset_label, open_graph, setting, unit_per_seed
from lab.paper.variance_draws import PARTS, ROWS, Neighbourhood, measure
from vrgcn.diagnostics.staleness import Recorder
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.pages.page import Page
from vrgcn.pages.panels import show_panels
from vrgcn.runs.fit import fit
from vrgcn.targets.opening import find_target
from vrgcn.training.components import build_minibatches
from vrgcn.training.state import Epoch

DATASETS = ("cora", "communities")
FANOUTS = (1, 2)
TOLERANCE = 5.0  # standard errors: a right formula is refused once in two million measurements
WIDTH = 8  # columns of the hidden activations
LABELS = {"exact": "Exact", "ns": "NS", "cv": "CV", "cvd": "CVD", "two-way": "two-way"}
FORMULAS = {"exact": "S", "ns": "R S", "cv": "(2R - 1) S", "cvd": "S", "two-way": "S"}


def units(choice: Choice) -> list[Unit]:
    return unit_per_seed(choice, DATASETS, run)


def run(dataset: str, seed: int, choice: Choice) -> dict[str, Any]:
    count, masks, draws = (3, 100, 1_500) if choice.quick else (10, 500, 20_000)
    graph = open_graph(dataset, choice)
    model, earlier, epochs, batches = _partly_trained(dataset, graph, seed, choice)
    generator = torch.Generator().manual_seed(seed)
    rows = [
        measure(around, batches.setup.P[None], fanout, draws, generator)
        for around in _neighbourhoods(model, earlier, batches, count, masks, seed)
        for fanout in FANOUTS
        if fanout < len(around.weights)
    ]
    return {
        "label": dataset_label(dataset, choice),
        "epochs": epochs,
        "masks": masks,
        "draws": draws,
        "rows": rows,
    }


def _partly_trained(
    dataset: str, graph: Graph, seed: int, choice: Choice
) -> tuple[nn.Module, nn.Module, int, MiniBatches]:
    """Return a model after a tenth of the paper's epochs, the same an epoch before, and minibatches
    in which the hidden activation of a node depends only on its preprocessed features."""
    paper = setting(dataset)
    epochs = max(2, paper.train.epochs // 10)
    config = paper.config(
        "CVD+PP", seed, epochs=epochs, evaluate_every=epochs, threads=choice.threads
    )
    model, earlier = (paper.build("CVD+PP", graph, seed) for _ in range(2))

    def keep(point: Epoch) -> None:
        if point.epoch == epochs - 1:
            earlier.load_state_dict(model.state_dict())

    fit(model, graph, config, on_epoch=keep)
    target, history = find_target(graph, config), ESTIMATORS["history"]
    batches = build_minibatches(model, graph, config, target, estimator=history)
    return model, earlier, epochs, batches


def _neighbourhoods(
    model: nn.Module, earlier: nn.Module, batches: MiniBatches, count: int, masks: int, seed: int
) -> list[Neighbourhood]:
    """Return the neighbourhoods of `count` nodes of all degrees, with their activations at the
    weights of both models."""
    P = batches.setup.P[None]
    chosen = spread_by_degree(P.adjacency.counts, count)
    nodes = torch.unique(torch.cat([chosen, P.rows(chosen).indices]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        trial = _activations(model.train(), batches, nodes, 10, None)
        varied = trial.var(0).sum(0).argsort(descending=True)[:WIDTH]  # not the dead ones
        pool = _activations(model.train(), batches, nodes, masks, varied)
        past = _activations(earlier.train(), batches, nodes, masks, varied).mean(0)
        scaled = _activations(model.eval(), batches, nodes, 1, varied)[0]
    out = []
    for u in chosen:
        own, others = P.own_rows(u[None]), P.rows(u[None])
        place = torch.searchsorted(nodes, torch.cat([u[None], others.indices]))
        out.append(
            Neighbourhood(
                int(u),
                others.indices,
                float(own),
                others.weights(torch.float64),
                pool[:, place],
                scaled[place],
                past[place],
            )
        )
    return out


def spread_by_degree(degree: Tensor, count: int) -> Tensor:
    """Return nodes with at least two neighbours, evenly from the lowest degree to the highest."""
    nodes = (degree >= 2).nonzero()[:, 0]
    ascending = nodes[degree[nodes].argsort(stable=True)]
    places = torch.linspace(0, len(nodes) - 1, min(count, len(nodes))).long()
    return ascending[places]


def _activations(
    model: nn.Module, batches: MiniBatches, nodes: Tensor, masks: int, columns: Tensor | None
) -> Tensor:
    """Return the input of the last propagation (masks, nodes, width), in the model's mode."""
    recorder = Recorder(model)
    batch = batches.batch(nodes)
    out = []
    with torch.no_grad():
        for _ in range(masks):
            recorder.passes.clear()
            batch.run(recorder)
            h = recorder.passes[0].inputs[-1].double()
            out.append(h if columns is None else h[:, columns])
    return torch.stack(out)


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    records = label_seeds(records)
    page.text(
        "Variances of the estimates of (P h)_u for single nodes u, by sampling (VNS) and by "
        "dropout (VD), over many draws of neighbours and of the model's activations under dropout. "
        "R is the number of neighbours over that of the neighbours drawn, S the sum of P_uv² Var "
        "h_v. A node's own edge is exact here, and its dropout variance is taken off VD. two-way "
        "is not the paper's; it samples nothing at these nodes, and what stands as its VNS is the "
        "square of its bias, Σ P Δμ."
    )
    for record in records:
        _table(record, page)
    panels = dropout_variances(records, LABELS)
    page.text("Variance by dropout over S, against R: measured (points) and by formula (lines).")
    show_panels(page, panels)
    save_panels(panels, folder, "table2")
    verdicts = [verdict for record in records for verdict in verdicts_of(record)]
    return undecided(verdicts) if records[0]["quick"] else verdicts


def _table(record: Record, page: Page) -> None:
    rows = []
    for name in _measured(record):
        cells = [_ratio(record["rows"], name, part) for part in PARTS]
        worst = max(row["estimators"][name][part][2] for row in record["rows"] for part in PARTS)
        rows.append([LABELS[name], FORMULAS[name], *cells, f"{worst:.1f}"])
    page.table(
        ["estimator", "VD, formula", "VNS", "VD", "both", "farthest"],
        rows,
        caption=f"{record['label']}: measured over formula, sums over {len(record['rows'])} pairs "
        f"of node and fan-out, {record['draws']:,} draws each; farthest: in standard errors",
    )


def _measured(record: Record) -> list[str]:
    """Return the estimators of a record: older records lack two-way."""
    return [name for name in ROWS if all(name in row["estimators"] for row in record["rows"])]


def _ratio(rows: list[dict[str, Any]], name: str, part: str) -> str:
    measured = sum(row["estimators"][name][part][0] for row in rows)
    formula = sum(row["estimators"][name][part][1] for row in rows)
    return f"{measured / formula:.3f}" if formula > 0 else "0 of 0"


def verdicts_of(record: Record) -> list[Verdict]:
    rows, label = record["rows"], record["label"]
    off = [
        row["estimators"][name][part][2]
        for row in rows
        for name in _measured(record)
        for part in PARTS
    ]
    right = Verdict(
        max(off) < TOLERANCE,
        f"{label}: the variances are those of the formulas, (2R - 1) S for CV's dropout: of "
        f"{len(off)} measured, all within {TOLERANCE:g} standard errors; the farthest is "
        f"{max(off):.1f} off.",
    )
    # 3 + R and 2 R - 1 are the same number at R = 4.
    apart = [row for row in rows if row["R"] != 4]
    refused = [row for row in apart if row["printed"][2] > TOLERANCE]
    worst = max(apart, key=lambda row: row["printed"][2], default=None)
    printed = Verdict(
        None if worst is None else not refused,
        f"{label}: CV's dropout variance is (3 + R) S, as the paper prints: "
        + (
            "no node with R other than 4 to decide it."
            if worst is None
            else f"refused by more than {TOLERANCE:g} standard errors for {len(refused)} of "
            f"{len(apart)} pairs of node and fan-out with R other than 4, by "
            f"{worst['printed'][2]:.0f} at R = {worst['R']:g}, where it gives "
            f"{worst['printed'][1]:.3g} and {worst['printed'][0]:.3g} is measured."
        ),
    )
    scaled = [row["weight_scaling"] for row in rows]
    largest = max(entry["relative"] for entry in scaled)
    bias = Verdict(
        max(entry["off"] for entry in scaled) < TOLERANCE,
        f"{label}: with μ by weight scaling CVD has the bias -(1 - 1/√R) Σ P (E h - μ), to "
        f"{TOLERANCE:g} standard errors in every column (farthest "
        f"{max(entry['off'] for entry in scaled):.1f}); it is at most {largest:.1%} of (P h)_u.",
    )
    return [right, printed, bias]


EXPERIMENT = Experiment("table2", "Table 2: variances of the estimators", units, render)
