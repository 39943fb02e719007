"""Bias and standard deviation of the gradient of each algorithm at the end of training.

The paper's figure has a bar for each data set and algorithm, at the weights of a model that was
trained. Here they come from one run of the exact algorithm M1+PP, along which each algorithm keeps
its histories as if it were the one that trains (diagnostics.trajectory). Then weights and histories
are frozen, and the gradient of the first weight matrix on one fixed minibatch is computed many
times anew: all algorithms are compared with the same exact gradient at the same weights.

With dropout the exact gradient is the mean of the exact algorithm's over as many dropout masks.

`two-way` has no gradient of one minibatch to compare: see `_two_way`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from lab.harness.algorithms import ALGORITHMS as RECIPES
from lab.harness.algorithms import TWO_WAY
from lab.harness.records import Record, in_order, of
from lab.harness.units import Unit
from lab.paper.charts import gradients, mean_over_runs
from lab.paper.cuts import cuts
from lab.paper.experiment import Choice, Experiment, Verdict, undecided
from lab.paper.pictures import save_panels
from lab.paper.settings import (
    FIGURES,
    chosen_datasets,
    dataset_label,
    epochs_of,
    open_graph,
    runs_of,
    setting,
)
from lab.paper.wording import mean_text
from vrgcn.diagnostics.gradients import minibatch_gradient, random_minibatch, reached_nodes
from vrgcn.diagnostics.trajectory import Trajectory, train_beside
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.pages.page import Page
from vrgcn.pages.panels import show_panels
from vrgcn.targets.opening import find_target
from vrgcn.training.components import build_minibatches
from vrgcn.training.gradients import gradient_moments
from vrgcn.training.moments import Moments, deviation, mean_absolute_deviation

DATASETS = FIGURES
TRAJECTORY = "M1+PP"
EXACT = "Exact"
PREPROCESSED = ("NS+PP", "IS+PP", "CV+PP", "CVD+PP")
ALGORITHMS = ("NS", *PREPROCESSED, TWO_WAY)
PASSES = 1000
# A pass takes a third of a second where the matrix has four million entries, or the neighbours of
# neighbours are most of the graph.
FEWER_PASSES = {"nell-paper": 200, "nell": 200, "ppi-small": 300, "ppi": 300}
FEWER_PASSES |= {"reddit-like": 100, "reddit2": 100}
ALMOST_UNBIASED = 0.1  # of NS's bias


def units(choice: Choice) -> list[Unit]:
    return [
        Unit(
            {"dataset": name, "dropout": dropout, "seed": seed, "quick": choice.quick},
            partial(run, name, dropout, seed, choice),
            _epochs(name, choice),
        )
        for name in chosen_datasets(choice, DATASETS)
        for seed in range(1 if choice.quick else runs_of(choice, name))
        for dropout in (False, True)
    ]


def _epochs(dataset: str, choice: Choice) -> int:
    return epochs_of(choice, setting(dataset).train.epochs, 3)


def run(dataset: str, dropout: bool, seed: int, choice: Choice) -> dict[str, Any]:
    passes = 30 if choice.quick else FEWER_PASSES.get(dataset, PASSES)
    graph = open_graph(dataset, choice)
    paper = setting(dataset)
    epochs = _epochs(dataset, choice)
    changes = {} if dropout else {"dropout": 0.0}
    model = paper.build(TRAJECTORY, graph, seed, **changes)
    config = partial(paper.config, seed=seed, epochs=epochs, threads=choice.threads)
    beside = train_beside(
        model,
        graph,
        config(TRAJECTORY),
        estimators={
            name: ESTIMATORS[RECIPES[name].estimator] for name in (TRAJECTORY, *PREPROCESSED)
        },
    )
    target = find_target(graph, config(TRAJECTORY))
    batches = beside.batches | {"NS": build_minibatches(beside.model, graph, config("NS"), target)}
    exact = batches[TRAJECTORY]
    nodes = _fixed_minibatch(exact, seed)[: 64 if choice.quick else None]
    measure = partial(
        gradient_moments,
        beside.model,
        nodes=nodes,
        target=target,
        parameters=[first_matrix(beside.model)],
        dropout=dropout,
    )
    # Without dropout the exact gradient is the same in every pass.
    reference = measure(batches=exact, passes=passes if dropout else 1, seed=seed + 1)
    found = {
        name: deviations(measure(batches=batches[name], passes=passes, seed=seed + 2), reference)
        for name in ("NS", *PREPROCESSED)
    }
    # Its tables are kept along minibatches that visit what it visits, at the same learning rate.
    own = paper.config(TWO_WAY, seed)
    theirs = train_beside(
        model,
        graph,
        config(TRAJECTORY, visit=own.visit, batch_size=own.batch_size),
        estimators={name: ESTIMATORS[RECIPES[name].estimator] for name in (TRAJECTORY, TWO_WAY)},
    )
    training = build_minibatches(theirs.model, graph, config(TRAJECTORY), target)
    found[TWO_WAY] = _two_way(theirs, training, passes=passes, dropout=dropout, seed=seed)
    return {
        "label": dataset_label(dataset, choice),
        "epochs": epochs,
        "passes": passes,
        "batch": len(nodes),
        "exact_std": mean_absolute_deviation(reference, reference).std,
        "algorithms": found,
    }


def _two_way(
    beside: Trajectory, training: MiniBatches, *, passes: int, dropout: bool, seed: int
) -> dict[str, float]:
    """Measure two-way. A visited node takes its neighbours' last gradients whichever other nodes
    are visited, and only the mean over minibatches is the exact gradient of all training nodes. So
    each pass draws a minibatch, and g - r, with r the exact gradient on it, replaces g - E r.

    training: only the training nodes, by the exact algorithm
    """
    model, (exact, ours) = beside.model, (beside.batches[n] for n in (TRAJECTORY, TWO_WAY))
    matrix = [first_matrix(model)]
    once = passes if dropout and len(training.nodes) <= training.batch_size else 20
    whole = gradient_moments(
        model,
        training,
        training.nodes,
        find_target(training.graph),
        passes=once if dropout else 1,
        parameters=matrix,
        dropout=dropout,
        seed=seed + 1,
    ).mean[0]
    drawn = reached_nodes(beside.batches)
    generator = torch.Generator().manual_seed(seed + 3)
    estimate, reference = Moments(), Moments()
    reference.add([whole])
    for number in range(passes):
        nodes = random_minibatch(drawn, exact.batch_size, generator)
        # The loss weights each training node by the number of nodes that an epoch visits.
        g, r = (
            minibatch_gradient(
                model,
                their,
                nodes,
                find_target(their.graph),
                seed * 1_000_003 + number,
                parameters=matrix,
            )[0]
            * (len(drawn) / len(their.visits.backward))
            for their in (ours, exact)
        )
        estimate.add([g - r + whole])
    return deviations(estimate, reference)


def deviations(estimate: Moments, reference: Moments) -> dict[str, float]:
    """Return bias, floor, std: the paper's means of absolute values, and the bias that noise alone
    would give; corrected: ‖E g - exact‖ / ‖exact‖ without the part that noise adds, and the size
    below which it cannot be told from none (training.moments.deviation)."""
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
    datasets = in_order(records, "dataset")
    page.text(
        "Gradient of the first weight matrix on one fixed minibatch at the end of training, "
        "weights and histories frozen, over many passes with new samples and dropout masks. bias = "
        "mean |E g - exact| / mean |exact|, std = mean (std g) / mean |exact|: the paper's figure, "
        "which is normalised by the gradient, not by the weights. A finite number of passes leaves "
        "noise in E g: alone it would give the bias in brackets. Weights are those of one "
        f"trajectory, trained by {TRAJECTORY}; histories are those that each algorithm would have "
        "had along it. IS+PP is not in the paper's figure, and NS is not there for NELL. two-way, "
        "not the paper's, is compared over random minibatches with the exact gradient on each: its "
        "std is that of the difference, and with dropout it has the noise of both; what the masks "
        "of its frozen histories add is bias here. " + cuts(records)
    )
    for dropout in (False, True):
        rows = [
            _row(of(records, dataset=dataset, dropout=dropout))
            for dataset in datasets
            if of(records, dataset=dataset, dropout=dropout)
        ]
        page.table(
            ["data set", "runs", "epochs", "passes", EXACT, *ALGORITHMS],
            rows,
            caption=f"{'With' if dropout else 'Without'} dropout: bias (of noise alone), std; "
            "means over the runs",
        )
    panels = gradients(records, (EXACT, *ALGORITHMS))
    page.text("Means over the runs; dashes: the bias that noise alone would show.")
    show_panels(page, panels)
    save_panels(panels, folder, "fig-gradient", columns=2)
    verdicts = [
        claim(group[0]["label"], group)
        for group in (of(records, dataset=dataset) for dataset in datasets)
        for claim in (almost_unbiased, usually_smaller)
    ]
    return undecided(verdicts) if records[0]["quick"] else verdicts


def _row(records: list[Record]) -> list[str]:
    first = records[0]
    mean = partial(mean_over_runs, records)
    cells = [
        f"{mean(name, 'bias'):.3f} ({mean(name, 'floor'):.3f}), {mean(name, 'std'):.2f}"
        for name in ALGORITHMS
    ]
    about = [
        " to ".join(map(str, sorted({record[name] for record in records})))
        for name in ("epochs", "passes")
    ]
    return [first["label"], str(len(records)), *about, f"0, {mean(EXACT, 'std'):.2f}", *cells]


def almost_unbiased(label: str, group: list[Record]) -> Verdict:
    counted = [record["algorithms"] for record in group if not record["dropout"]]
    claim = (
        f"{label}: without dropout the gradient of CV+PP is almost unbiased at the end of "
        f"training: ‖E g - exact‖ / ‖exact‖ (noise taken off) is below {ALMOST_UNBIASED:g} of "
        "NS's, in every run: "
    )
    if not counted:
        return Verdict(None, claim + "nothing was measured without dropout.")
    holds = [_below(part["CV+PP"], ALMOST_UNBIASED * part["NS"]["corrected"]) for part in counted]
    cv, ns = ([part[name]["corrected"] for part in counted] for name in ("CV+PP", "NS"))
    floor = fmean(part["CV+PP"]["corrected_floor"] for part in counted)
    figures = f"{mean_text(cv, digits=4)} (noise {floor:.4f}) against {mean_text(ns, digits=4)}"
    answer = False if False in holds else None if None in holds else True
    return Verdict(answer, f"{claim}{figures}.")


def _below(part: dict[str, float], limit: float) -> bool | None:
    """Return True if a bias is below a limit. Its square is known to ± floor²: if that leaves it
    open, more passes are needed."""
    squared, open_by = part["corrected"] ** 2, part["corrected_floor"] ** 2
    below, above = squared + open_by < limit**2, squared - open_by >= limit**2
    return below if below or above else None


def usually_smaller(label: str, group: list[Record]) -> Verdict:
    parts = [record["algorithms"] for record in group if record["dropout"]]
    won = {
        name: [
            part[ours][measure] < part[theirs][measure]
            for part in parts
            for ours in ("CV+PP", "CVD+PP")
            for theirs in ("NS", "NS+PP")
        ]
        for name, measure in (("bias", "corrected"), ("std", "std"))
    }
    claim = (
        f"{label}: with dropout, bias (noise taken off) and standard deviation of CV+PP and CVD+PP "
        "are usually smaller than those of NS and NS+PP, in more than half of the comparisons "
        "each: "
    )
    if not parts:
        return Verdict(None, claim + "nothing was measured with dropout.")
    figures = ", ".join(f"{measure} in {sum(wins)} of {len(wins)}" for measure, wins in won.items())
    return Verdict(all(2 * sum(wins) > len(wins) for wins in won.values()), claim + figures + ".")


EXPERIMENT = Experiment(
    "fig-gradient", "Figure: bias and standard deviation of the gradient", units, render
)
