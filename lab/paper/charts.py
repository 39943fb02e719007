"""Charts of the experiments on single models: variances, tests, gradients, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from lab.harness.records import Record
from lab.paper.curves import COLOURS
from vrgcn.pages.panels import Panel, plain_ticks

_MARKERS = {"exact": "o", "ns": "s", "cv": "^", "cvd": "x", "two-way": "+"}
_ALGORITHM = {  # of the same colour
    "exact": "M1+PP",
    "ns": "NS",
    "cv": "CV+PP",
    "cvd": "CVD+PP",
    "two-way": "two-way",
}


def dropout_variances(records: Sequence[Record], labels: Mapping[str, str]) -> list[Panel]:
    """Draw the variance by dropout over S against R, measured and by formula (table2)."""
    return [
        Panel(record["label"], partial(_draw_variance, record["rows"], labels))
        for record in records
    ]


def _draw_variance(rows: Sequence[Mapping[str, Any]], labels: Mapping[str, str], axes: Any) -> None:
    rows = [row for row in rows if row["S"] > 0]
    ratios = sorted({row["R"] for row in rows})
    formulas = {
        "exact": [1.0 for _ in ratios],
        "ns": ratios,
        "cv": [2 * R - 1 for R in ratios],
        "cvd": [1.0 for _ in ratios],
        "two-way": [1.0 for _ in ratios],
    }
    for name, label in labels.items():
        if any(name not in row["estimators"] for row in rows):
            continue  # not measured
        colour = COLOURS[_ALGORITHM[name]]
        axes.plot(ratios, formulas[name], linewidth=1, alpha=0.7, color=colour)
        axes.plot(
            [row["R"] for row in rows],
            [(row["estimators"][name]["dropout"][0] - row["own"]) / row["S"] for row in rows],
            _MARKERS[name],
            color=colour,
            label=label,
        )
    axes.plot(ratios, [3 + R for R in ratios], "--", color="tab:red", label="CV as printed")
    axes.set(xlabel="R", ylabel="VD / S", xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)


def testing_scores(groups: Sequence[Sequence[Record]]) -> list[Panel]:
    """Draw test scores against the fan-out, a panel for each data set (records of fig-testing).

    groups: the runs of one data set each
    """
    return [Panel(group[0]["label"], partial(_draw_testing, group)) for group in groups]


def _draw_testing(group: Sequence[Record], axes: Any) -> None:
    record = group[0]
    fanouts = [part["fanout"] for part in record["sampled"]["NS"]]
    for label in record["sampled"]:
        scores = [
            [value for run in group for value in run["sampled"][label][place]["scores"]]
            for place in range(len(fanouts))
        ]
        means = [fmean(values) for values in scores]
        # The mean of equal numbers may differ in the last bit, and bars must not be drawn
        # downwards.
        low = [max(0.0, mean - min(some)) for mean, some in zip(means, scores, strict=True)]
        high = [max(0.0, max(some) - mean) for mean, some in zip(means, scores, strict=True)]
        axes.errorbar(
            fanouts,
            means,
            yerr=[low, high],
            marker="o",
            markersize=4,
            capsize=3,
            color=COLOURS[label],
            label=label,
        )
    exact = fmean(run["exact"] for run in group)
    axes.axhline(exact, color=COLOURS["M1+PP"], linewidth=1, label="Exact")
    for place, style in enumerate((":", "--", "-.")[: len(record["cv"])]):
        name = f"CV, sweep {place + 1}"
        height = fmean(run["cv"][place]["score"] for run in group)
        axes.axhline(height, color=COLOURS["CV+PP"], linestyle=style, label=name)
    if all("two_way" in run for run in group):
        last = fmean(run["two_way"][-1]["score"] for run in group)
        axes.axhline(last, color=COLOURS["two-way"], linestyle=(0, (1, 4)), label="two-way")
    axes.set(xlabel="fan-out of NS", xscale="log", ylabel=f"test {record['metric']}")
    axes.set_xticks(fanouts, [str(fanout) for fanout in fanouts])
    axes.minorticks_off()


def gradients(records: Sequence[Record], algorithms: Sequence[str]) -> list[Panel]:
    """Draw bias and standard deviation without and with dropout, bars for each data set and
    algorithm (fig-gradient); "Exact" is included for its own noise."""
    return [
        Panel(
            f"{words} {'with' if dropout else 'without'} dropout",
            partial(
                _draw_gradients,
                [record for record in records if record["dropout"] == dropout],
                algorithms,
                measure,
            ),
        )
        for dropout in (False, True)
        for measure, words in (("bias", "Bias"), ("std", "Standard deviation"))
        if any(record["dropout"] == dropout for record in records)
    ]


def _draw_gradients(
    records: Sequence[Record], algorithms: Sequence[str], measure: str, axes: Any
) -> None:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["label"], []).append(record)
    width = 0.8 / len(algorithms)
    for number, name in enumerate(algorithms):
        places = [place + (number + 0.5) * width - 0.4 for place in range(len(groups))]
        bars = [mean_over_runs(group, name, measure) for group in groups.values()]
        axes.bar(places, bars, width, color=_colour(name), label=name)
        if measure == "bias":
            floors = [mean_over_runs(group, name, "floor") for group in groups.values()]
            axes.plot(places, floors, "_", color="black", markersize=5)
    axes.set(ylabel="relative to the exact gradient")
    if any(mean_over_runs(g, name, measure) > 0 for g in groups.values() for name in algorithms):
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
    axes.set_xticks(range(len(groups)), list(groups), fontsize=8)


def mean_over_runs(records: Sequence[Record], algorithm: str, measure: str) -> float:
    """Return means over the runs. Exact has no bias, and only the noise of dropout."""
    if algorithm == "Exact":
        return fmean(record["exact_std"] if measure == "std" else 0.0 for record in records)
    return fmean(record["algorithms"][algorithm][measure] for record in records)


def _colour(algorithm: str) -> str:
    return COLOURS["M1+PP" if algorithm == "Exact" else algorithm]


def correlations(records: Sequence[Record], floors: Sequence[float]) -> list[Panel]:
    """Mean correlations, and the inflation of the variance, in each layer (fig-correlation).

    floors: of each record, the mean absolute correlation that is there by chance
    """
    panels = []
    for record, floor in zip(records, floors, strict=True):
        points, label = record["correlations"], record["label"]
        panels += [
            Panel(f"{label}: correlations", partial(_draw_correlation, points, floor)),
            Panel(
                f"{label}: variance of P h over that without correlation",
                partial(_draw_inflation, points),
            ),
        ]
    return panels


def _draw_correlation(points: Sequence[Mapping[str, Any]], floor: float, axes: Any) -> None:
    layers = list(range(1, len(points) + 1))
    for name, colour in (("neighbours", "tab:blue"), ("features", "tab:orange")):
        axes.plot(layers, _gaps(points, name), "o-", ms=4, color=colour, label=f"{name}, mean")
        absolute = _gaps(points, f"{name}_absolute")
        axes.plot(layers, absolute, "--", color=colour, label=f"{name}, mean absolute")
    axes.axhline(floor, color="black", linestyle=":", label="absolute, by chance")
    axes.set(xlabel="layer", ylabel="correlation")
    axes.set_xticks(layers)


def _draw_inflation(points: Sequence[Mapping[str, Any]], axes: Any) -> None:
    layers = list(range(1, len(points) + 1))
    axes.plot(layers, _gaps(points, "inflation"), "o-", ms=4, color="tab:green")
    axes.axhline(1, color="black", linewidth=1)
    axes.set(xlabel="layer", ylabel="inflation")
    axes.set_xticks(layers)


def _gaps(points: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """Return values of a list of records, NaN for missing ones, which are drawn as gaps."""
    return [float("nan") if point[name] is None else point[name] for point in points]
