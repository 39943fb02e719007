"""A diagnosis as rows of text, as pictures, and as a page of both."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from rich.table import Table

from vrgcn.costs.epoch_cost import Advice
from vrgcn.diagnostics.diagnosis import REFERENCE, Diagnosis
from vrgcn.diagnostics.staleness import Bin, Staleness
from vrgcn.engine.estimators import find_estimator
from vrgcn.engine.history import NEVER
from vrgcn.engine.samplers import usual_fanout
from vrgcn.files.wording import printable
from vrgcn.pages.page import Page
from vrgcn.pages.panels import Panel, show_panels, spread_widely
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.training.moments import ROUNDING, Deviation

GRADIENT_TITLE = "gradient of each layer's weights: bias, noise"
COLUMNS = ("estimator", "bias", "noise", "error")
STALENESS_COLUMNS = ("table", "rows", "never written", "mean age", "off by", "of it common")
_KINDS = {"h": "activations", "g": "gradients"}


def quantities(diagnosis: Diagnosis) -> dict[str, dict[str, Deviation]]:
    """Return the measured quantities, from the input up: for each, the deviation of each
    estimator."""
    named: dict[str, dict[str, Deviation]] = {}
    for estimator, measured in diagnosis.estimators.items():
        for call, layer in measured.layers.items():
            named.setdefault(f"layer {call + 1}: P h", {})[estimator] = layer
        named.setdefault("outputs", {})[estimator] = measured.outputs
        if measured.gradients.known:
            named.setdefault("gradient", {})[estimator] = measured.gradient
    return named


def rows(deviations: dict[str, Deviation]) -> list[tuple[str, ...]]:
    """Return a row of text under COLUMNS for each estimator."""
    return [
        (
            name,
            "reference" if name == REFERENCE else bias_text(deviation),
            share(deviation.std),
            share(deviation.error),
        )
        for name, deviation in deviations.items()
    ]


def gradient_columns(diagnosis: Diagnosis) -> tuple[str, ...]:
    return ("estimator", *diagnosis.estimators[REFERENCE].gradients.layers)


def gradient_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """Return a row of text under `gradient_columns` for each estimator: bias and noise in each
    layer."""
    return [
        (
            name,
            *(
                share(deviation.std)
                if name == REFERENCE
                else f"{bias_text(deviation)}, {share(deviation.std)}"
                for deviation in measured.gradients.layers.values()
            ),
        )
        for name, measured in diagnosis.estimators.items()
    ]


def staleness_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    return [
        (
            f"{name}, {_table_name(table)}",
            f"{len(table.age):,}",
            share(table.unwritten),
            "–" if math.isnan(table.mean_age) else f"{table.mean_age:.1f} steps",
            share(table.relative),
            share(table.common_share),
        )
        for name, tables in diagnosis.staleness.items()
        for table in tables
    ]


def _table_name(table: Staleness) -> str:
    return f"layer {table.level + 1}: {_KINDS[table.kind]}"


def bias_text(deviation: Deviation) -> str:
    """Return the bias as text, or the floor below which it was not seen."""
    if deviation.biased:
        return share(deviation.bias)
    return "0" if deviation.floor <= ROUNDING else f"< {share(deviation.floor)}"


def share(value: float) -> str:
    return "0" if value <= ROUNDING else f"{value:.1%}" if value >= 0.001 else f"{value:.0e}"


def conditions(diagnosis: Diagnosis) -> str:
    """Describe the conditions of the measurement."""
    config = diagnosis.config
    steps = "1 step" if diagnosis.steps == 1 else f"{diagnosis.steps:,} steps"
    epochs = "1 epoch" if config.epochs == 1 else f"{config.epochs} epochs"
    fanout = config.fanout or (usual_fanout(find_estimator(config.estimator).sampler),)
    start = "filled by an exact pass first" if config.warm_start else "empty at first"
    text = (
        f"minibatches of {len(diagnosis.nodes):,} nodes, {diagnosis.passes} passes of each "
        f"estimator on one of them and gradients on {diagnosis.passes}, at the weights and "
        f"histories after {epochs} ({steps}) of training by "
        f"{config.estimator}, learning rate {config.learning_rate:g}, fan-out "
        f"{' '.join(map(str, fanout))}; histories {start}"
    )
    if diagnosis.preprocessed:
        text += "; layer 1 averages the features, computed once and exact"
    return text


def print_diagnosis(diagnosis: Diagnosis, advice: list[Advice]) -> None:
    """Print the tables and the advice."""
    print(conditions(diagnosis))
    print_table(_table(diagnosis))
    if diagnosis.estimators[REFERENCE].gradients.known:
        columns, lines = gradient_columns(diagnosis), gradient_rows(diagnosis)
        print_table(text_table(GRADIENT_TITLE, columns, lines))
    if diagnosis.staleness:
        title = "histories of a minibatch"
        print_table(text_table(title, STALENESS_COLUMNS, staleness_rows(diagnosis)))
    for name, why in diagnosis.impossible.items():
        print(f"{name}: not possible here: {printable(why)}")
    for piece in advice:
        print(f"advice: {piece}")


def _table(diagnosis: Diagnosis) -> Table:
    table = text_table("distance from the exact algorithm, relative", ("", *COLUMNS), (), names=2)
    for name, deviations in quantities(diagnosis).items():
        for index, row in enumerate(rows(deviations)):
            table.add_row("" if index else name, *row)
        table.add_section()
    return table


def page(diagnosis: Diagnosis, advice: list[Advice], title: str) -> Page:
    """Return a page with advice, tables and pictures; needs matplotlib."""
    made = Page(title)
    made.heading("What to do")
    for action, reason in advice:
        made.note(f"{action[:1].upper()}{action[1:]}.")
        made.text(f"Why: {reason}.")
    made.heading("On what it was measured")
    measured_on = conditions(diagnosis)
    made.text(f"{measured_on[:1].upper()}{measured_on[1:]}.")
    made.heading("Distance from the exact algorithm")
    made.text(
        "Relative to the norm of the exact value (under dropout: its mean over masks). Bias: of "
        "the mean; < marks one too small to be seen with so many passes. Noise: of one pass. "
        "Error: of one pass, both together. Layers and outputs are those of one minibatch. "
        "Gradients are over minibatches, the same for every estimator, and the choice of "
        "minibatches is part of their noise."
    )
    for name, deviations in quantities(diagnosis).items():
        made.table(COLUMNS, rows(deviations), caption=name)
    if diagnosis.estimators[REFERENCE].gradients.known:
        made.table(gradient_columns(diagnosis), gradient_rows(diagnosis), caption=GRADIENT_TITLE)
    show_panels(made, deviation_panels(diagnosis))
    for name, why in diagnosis.impossible.items():
        made.text(f"{name}: not possible here: {why}")
    if diagnosis.staleness:
        made.heading("Histories")
        made.text(
            "Off by: √(Σ ‖μ - h̄‖² / Σ ‖μ‖²), h̄ the history and μ what it would be now, without "
            "dropout. Of activations: the rows that the exact computation of the minibatch uses, "
            "and μ is exact. Of gradients: the minibatch's own rows, and μ is what its backward "
            "pass would write, with what the tables above it are off by."
        )
        made.table(STALENESS_COLUMNS, staleness_rows(diagnosis))
        for name, tables in diagnosis.staleness.items():
            made.heading(f"Histories of {name}", level=3)
            show_panels(made, [p for table in tables for p in staleness_panels(name, table)])
    return made


def deviation_panels(diagnosis: Diagnosis) -> list[Panel]:
    """Return bars of bias and noise, a panel for each quantity."""
    return [
        Panel(f"Bias and noise of {name}", partial(_draw_deviations, deviations))
        for name, deviations in quantities(diagnosis).items()
    ]


def _draw_deviations(deviations: dict[str, Deviation], axes: Any) -> None:
    places = range(len(deviations))
    every = list(deviations.values())
    axes.bar([p - 0.2 for p in places], [d.bias for d in every], 0.4, label="bias")
    axes.bar([p + 0.2 for p in places], [d.std for d in every], 0.4, label="noise")
    floors = [math.nan if n == REFERENCE else d.floor for n, d in deviations.items()]
    axes.plot(
        [p - 0.2 for p in places],
        floors,
        color="black",
        marker="_",
        linestyle="none",
        label="floor of the bias: below it none can be told",
    )
    axes.set_xticks(list(places), list(deviations), rotation=30, ha="right")
    axes.set_ylabel("relative to the exact value")
    axes.grid(visible=False, axis="x")
    spread_widely([value for d in every for value in (d.bias, d.std)], axes)


def staleness_panels(name: str, table: Staleness) -> list[Panel]:
    """Return a histogram of ages, and the distance from present values by age and by degree."""
    title = f"{name}, {_table_name(table)}"
    ages = table.age[table.age != NEVER].tolist()
    if not ages:
        return []
    return [
        Panel(f"{title}, their age", partial(_draw_ages, ages)),
        Panel(f"{title}, off by, by age", partial(_draw_bins, table.by_age(), "age in steps")),
        Panel(f"{title}, off by, by degree", partial(_draw_bins, table.by_degree(), "degree")),
    ]


def _draw_ages(ages: list[int], axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    # A bar covers a whole number of steps, so that no bar stands between two ages.
    width = -(-(max(ages) - min(ages) + 1) // 30)
    edges = [min(ages) - 0.5 + width * n for n in range((max(ages) - min(ages)) // width + 2)]
    axes.hist(ages, bins=edges)
    axes.set(xlabel="age in steps", ylabel="rows")
    axes.set_xlim(min(ages) - 1.5, max(ages) + 1.5)  # a single bar does not fill the panel
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_bins(bins: list[Bin], label: str, axes: Any) -> None:
    names = [str(b.first) if b.first == b.last else f"{b.first}–{b.last}" for b in bins]
    axes.plot(range(len(bins)), [b.relative for b in bins], marker="o")
    axes.set_xticks(range(len(bins)), names, rotation=30, ha="right")
    axes.set(xlabel=label, ylabel="off by")
    axes.set_ylim(0, 1.1 * max(b.relative for b in bins) or None)
