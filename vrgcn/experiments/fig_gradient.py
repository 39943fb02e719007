"""Bias and standard deviation of the gradient of each algorithm, at several moments of training.

One trajectory of weights, trained by the exact algorithm M1+PP; along it each algorithm keeps its
histories as if it were the one that trains (diagnostics.trajectory). At chosen moments weights and
histories are frozen, and the gradient of the first weight matrix on one fixed minibatch is computed
many times anew. So all algorithms are compared with the same exact gradient at the same weights.

With dropout the exact gradient is the mean of the exact algorithm's over as many dropout masks.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.diagnostics.trajectory import train_beside
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.experiments.charts import gradients
from vrgcn.experiments.experiment import (
    Choice,
    Experiment,
    Record,
    Unit,
    Verdict,
    undecided,
)
from vrgcn.experiments.runs import label_seeds
from vrgcn.experiments.settings import ALGORITHMS as PAPER
from vrgcn.experiments.settings import chosen_datasets, dataset_label, open_graph, setting
from vrgcn.pages.page import Page
from vrgcn.pages.panels import save_panels, show_panels
from vrgcn.training.batches import build_minibatches
from vrgcn.training.gradients import gradient_moments
from vrgcn.training.moments import Moments, deviation, mean_absolute_deviation

DATASETS = ("citeseer", "cora", "pubmed", "communities")
TRAJECTORY = "M1+PP"
PREPROCESSED = ("NS+PP", "IS+PP", "CV+PP", "CVD+PP")
ALGORITHMS = ("NS", *PREPROCESSED)
MOMENTS = (0.005, 0.05, 0.25, 1.0)  # shares of the paper's epochs, at least one epoch
PASSES = 400  # the paper has 1000; the noise that is left is shown and taken off
ALMOST_UNBIASED = 0.1  # of NS's bias


def units(choice: Choice) -> list[Unit]:
    return [
        Unit(
            {
                "dataset": name,
                "dropout": dropout,
                "epoch": epoch,
                "seed": seed,
                "quick": choice.quick,
            },
            partial(run, name, dropout, epoch, seed, choice),
        )
        for name in chosen_datasets(choice, DATASETS)
        for seed in range(choice.runs or 1)
        for dropout in (False, True)
        for epoch in moments(name, choice)
    ]


def moments(dataset: str, choice: Choice) -> list[int]:
    """The epochs after which is measured."""
    if choice.quick:
        return [1, 3]
    epochs = setting(dataset).train.epochs
    return sorted({max(1, round(share * epochs)) for share in MOMENTS})


def run(dataset: str, dropout: bool, epoch: int, seed: int, choice: Choice) -> dict[str, Any]:
    passes, most = (30, 64) if choice.quick else (PASSES, None)
    graph = open_graph(dataset, choice)
    paper = setting(dataset)
    changes = {} if dropout else {"dropout": 0.0}
    model = paper.build(TRAJECTORY, graph, seed, **changes)
    config = partial(paper.config, seed=seed, epochs=epoch, threads=choice.threads)
    beside = train_beside(
        model,
        graph,
        config(TRAJECTORY),
        estimators={
            name: ESTIMATORS[PAPER[name].estimator] for name in (TRAJECTORY, *PREPROCESSED)
        },
    )
    batches = beside.batches | {"NS": build_minibatches(beside.model, graph, config("NS"))}
    exact = batches[TRAJECTORY]
    nodes = _fixed_minibatch(exact, seed)[:most]
    measure = partial(
        gradient_moments,
        beside.model,
        nodes=nodes,
        parameters=[first_matrix(beside.model)],
        dropout=dropout,
    )
    reference = measure(batches=exact, passes=passes if dropout else 1, seed=seed + 1)
    return {
        "label": dataset_label(dataset, choice),
        "passes": passes,
        "batch": len(nodes),
        "exact_std": mean_absolute_deviation(reference, reference).std,
        "algorithms": {
            name: deviations(
                measure(batches=batches[name], passes=passes, seed=seed + 2), reference
            )
            for name in ALGORITHMS
        },
    }


def deviations(estimate: Moments, reference: Moments) -> dict[str, float]:
    """bias, floor, std: the paper's means of absolute values, and what noise alone would leave of
    the bias; corrected: ‖E g - exact‖ / ‖exact‖ without what noise adds to it, and what of it
    cannot be told from none (diagnostics.moments.deviation)."""
    paper, corrected = (
        mean_absolute_deviation(estimate, reference),
        deviation(estimate, reference),
    )
    return {
        "bias": paper.bias,
        "floor": paper.floor,
        "std": paper.std,
        "corrected": corrected.bias,
        "corrected_floor": corrected.floor,
    }


def first_matrix(model: nn.Module) -> Tensor:
    return next(parameter for parameter in model.parameters() if parameter.dim() == 2)


def _fixed_minibatch(batches: MiniBatches, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(batches.nodes), generator=generator)
    return batches.nodes[order[: batches.batch_size]]


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    records = label_seeds(records)
    page.text(
        "Gradient of the first weight matrix on one fixed minibatch, weights and histories frozen, "
        "over many passes with new samples and dropout masks. bias = mean |E g - exact| / mean "
        "|exact|, std = mean (std g) / mean |exact|. A finite number of passes leaves noise in E "
        "g: alone it would give the bias in brackets. Weights are those of one trajectory, trained "
        f"by {TRAJECTORY}; histories are those that each algorithm would have had along it."
    )
    groups = _by_dataset(records)
    for group in groups:
        _table(group, page)
    panels = gradients(groups, ALGORITHMS)
    page.text("Dotted: the bias that noise alone would show.")
    show_panels(page, panels)
    save_panels(panels, folder, "fig-gradient", columns=4)
    verdicts = [
        claim(group[0]["label"], group)
        for group in groups
        for claim in (almost_unbiased, usually_smaller)
    ]
    return undecided(verdicts) if records[0]["quick"] else verdicts


def _by_dataset(records: list[Record]) -> list[list[Record]]:
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record["dataset"], record["seed"]), []).append(record)
    return [sorted(g, key=lambda r: (r["dropout"], r["epoch"])) for g in groups.values()]


def _table(group: list[Record], page: Page) -> None:
    rows = []
    for record in group:
        cells = [
            f"{part['bias']:.3f} ({part['floor']:.3f}), {part['std']:.2f}"
            for part in (record["algorithms"][name] for name in ALGORITHMS)
        ]
        dropout = "with" if record["dropout"] else "without"
        rows.append([f"{dropout} dropout, epoch {record['epoch']}", *cells])
    page.table(
        ["moment", *ALGORITHMS],
        rows,
        caption=f"{group[0]['label']}: bias (noise alone), std; {group[0]['passes']} passes of "
        f"{group[0]['batch']} nodes",
    )


def almost_unbiased(label: str, group: list[Record]) -> Verdict:
    """At the first moment histories are as old as the weights' first steps, and not counted."""
    counted = [record for record in group if not record["dropout"]][1:]
    claim = (
        f"{label}: without dropout the gradient of CV+PP is almost unbiased: after the first "
        f"moment ‖E g - exact‖ / ‖exact‖ (noise taken off) is below {ALMOST_UNBIASED:g} of NS's: "
    )
    if not counted:
        return Verdict(None, claim + "only one moment was measured.")
    figures, holds = [], []
    for record in counted:
        cv, ns = (record["algorithms"][name] for name in ("CV+PP", "NS"))
        limit = ALMOST_UNBIASED * ns["corrected"]
        figures.append(
            f"{cv['corrected']:.4f} (noise {cv['corrected_floor']:.4f}) against "
            f"{ns['corrected']:.4f} at epoch {record['epoch']}"
        )
        # Its square is known to ± floor². Where that leaves it open, more passes are needed.
        squared, open_by = cv["corrected"] ** 2, cv["corrected_floor"] ** 2
        below, above = squared + open_by < limit**2, squared - open_by >= limit**2
        holds.append(below if below or above else None)
    answer = False if False in holds else None if None in holds else True
    return Verdict(answer, claim + ", ".join(figures) + ".")


def usually_smaller(label: str, group: list[Record]) -> Verdict:
    parts = [record["algorithms"] for record in group if record["dropout"]]
    won = {
        measure: [
            part[ours][measure] < part[theirs][measure]
            for part in parts
            for ours in ("CV+PP", "CVD+PP")
            for theirs in ("NS", "NS+PP")
        ]
        for measure in ("corrected", "std")
    }
    claim = (
        f"{label}: with dropout, bias and standard deviation of CV+PP and CVD+PP are usually "
        "smaller than those of NS and NS+PP, in more than half of the comparisons each: "
    )
    if not parts:
        return Verdict(None, claim + "nothing was measured with dropout.")
    figures = ", ".join(
        f"{'bias' if measure == 'corrected' else 'std'} in {sum(wins)} of {len(wins)}"
        for measure, wins in won.items()
    )
    return Verdict(all(2 * sum(wins) > len(wins) for wins in won.values()), claim + figures + ".")


EXPERIMENT = Experiment(
    "fig-gradient", "Figure: bias and standard deviation of the gradient", units, render
)
