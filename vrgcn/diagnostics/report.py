"""A diagnosis as rows of text, as pictures, and as a page of both."""

from __future__ import annotations

import math
from typing import Any

from vrgcn.diagnostics.diagnosis import REFERENCE, Diagnosis
from vrgcn.diagnostics.moments import ROUNDING, Deviation
from vrgcn.diagnostics.staleness import Staleness
from vrgcn.history import NEVER
from vrgcn.page import Page

COLUMNS = ("estimator", "bias", "noise", "error")
STALENESS_COLUMNS = ("table", "rows read", "never written", "mean age", "off by")


def quantities(diagnosis: Diagnosis) -> dict[str, dict[str, Deviation]]:
    """What was measured, from the input up: for each, the deviation of each estimator."""
    named: dict[str, dict[str, Deviation]] = {}
    for estimator, measured in diagnosis.estimators.items():
        for call, layer in measured.layers.items():
            named.setdefault(f"layer {call + 1}: P h", {})[estimator] = layer
        named.setdefault("outputs", {})[estimator] = measured.outputs
        named.setdefault("gradient", {})[estimator] = measured.gradient
    return named


def rows(deviations: dict[str, Deviation]) -> list[tuple[str, ...]]:
    """A row of text under COLUMNS for each estimator."""
    return [
        (
            name,
            "reference" if name == REFERENCE else bias_text(found),
            share(found.std),
            share(found.error),
        )
        for name, found in deviations.items()
    ]


def staleness_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    return [
        (
            f"{name}, layer {table.call + 1}",
            f"{len(table.age):,}",
            share(table.unwritten),
            "–" if math.isnan(table.mean_age) else f"{table.mean_age:.1f} steps",
            share(table.relative),
        )
        for name, tables in diagnosis.staleness.items()
        for table in tables
    ]


def bias_text(found: Deviation) -> str:
    """The bias, or the floor under which it was not seen."""
    if found.biased:
        return share(found.bias)
    return "0" if found.floor <= ROUNDING else f"< {share(found.floor)}"


def share(value: float) -> str:
    return "0" if value <= ROUNDING else f"{value:.1%}" if value >= 0.001 else f"{value:.0e}"


def conditions(diagnosis: Diagnosis) -> str:
    """On what the numbers were measured."""
    config = diagnosis.config
    most = max(measured.passes for measured in diagnosis.estimators.values())
    epochs = "1 epoch" if config.epochs == 1 else f"{config.epochs} epochs"
    start = "filled by an exact pass first" if config.warm_start else "empty at first"
    text = (
        f"{len(diagnosis.nodes):,} nodes, up to {most} passes of each estimator, at the weights "
        f"and histories after {epochs} ({diagnosis.steps:,} steps) of training by "
        f"{config.estimator}, learning rate {config.learning_rate:g}, fan-out "
        f"{' '.join(map(str, config.fanout))}; histories {start}"
    )
    if diagnosis.preprocessed:
        text += "; layer 1 averages the features, computed once and exact"
    return text


def page(diagnosis: Diagnosis, advice: list[str], title: str) -> Page:
    """Advice, tables and pictures; needs matplotlib."""
    made = Page(title)
    made.text(conditions(diagnosis))
    made.heading("Advice")
    for sentence in advice:
        made.text(sentence)
    made.heading("Distance from the exact algorithm")
    made.text(
        "Relative to the norm of the exact value (under dropout: its mean over masks). Bias: of "
        "the mean; < marks one too small to be seen with so many passes. Noise: of one pass. "
        "Error: of one pass, both together."
    )
    for name, deviations in quantities(diagnosis).items():
        made.table(COLUMNS, rows(deviations), caption=name)
    made.figure(draw_deviations(diagnosis), "Bias and noise of each estimator")
    for name, why in diagnosis.impossible.items():
        made.text(f"{name}: not possible here: {why}")
    if diagnosis.staleness:
        made.heading("Histories")
        made.text(
            "Of the rows that the exact computation of the minibatch uses. Off by: "
            "√(Σ ‖μ - h̄‖² / Σ ‖μ‖²), h̄ the history and μ the present activation without dropout."
        )
        made.table(STALENESS_COLUMNS, staleness_rows(diagnosis))
        for name, tables in diagnosis.staleness.items():
            for table in tables:
                caption = f"{name}, layer {table.call + 1}: age of the histories, their distance"
                made.figure(draw_staleness(table), caption + " from the present by age and degree")
    return made


def draw_deviations(diagnosis: Diagnosis) -> Any:
    """Bars of bias and noise, a panel for each quantity."""
    from matplotlib.figure import Figure

    shown = quantities(diagnosis)
    figure = Figure(figsize=(min(3.6 * len(shown), 18), 3.6), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, (name, deviations) in zip(panels, shown.items(), strict=True):
        places = range(len(deviations))
        found = list(deviations.values())
        axes.bar([p - 0.2 for p in places], [d.bias for d in found], 0.4, label="bias")
        axes.bar([p + 0.2 for p in places], [d.std for d in found], 0.4, label="noise")
        floors = [math.nan if n == REFERENCE else d.floor for n, d in deviations.items()]
        axes.plot([p - 0.2 for p in places], floors, "k_", label="floor of the bias")
        axes.set_xticks(list(places), list(deviations), rotation=60, ha="right")
        axes.set_title(name)
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("relative to the exact value")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def draw_staleness(table: Staleness) -> Any:
    """Histogram of ages, and the distance from the present by age and by degree."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    ages, by_age, by_degree = figure.subplots(1, 3)
    ages.hist(table.age[table.age != NEVER].tolist(), bins=30)
    ages.set(xlabel="age in steps", ylabel="rows")
    for axes, bins, label in (
        (by_age, table.by_age(), "age in steps"),
        (by_degree, table.by_degree(), "degree"),
    ):
        names = [str(b.first) if b.first == b.last else f"{b.first}–{b.last}" for b in bins]
        axes.plot(range(len(bins)), [b.relative for b in bins], marker="o")
        axes.set_xticks(range(len(bins)), names, rotation=60, ha="right")
        axes.set(xlabel=label, ylabel="off by")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    return figure
