"""Charts of the experiments on single models: variances, tests, gradients, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def draw_dropout_variance(
    rows: Sequence[Mapping[str, Any]], labels: Mapping[str, str], title: str
) -> Any:
    """Variance by dropout over S against R, measured and by formula (records of table2)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    ratios = sorted({row["R"] for row in rows})
    formulas = {
        "exact": [1.0 for _ in ratios],
        "ns": ratios,
        "cv": [2 * R - 1 for R in ratios],
        "cvd": [1.0 for _ in ratios],
    }
    markers = {"exact": "o", "ns": "s", "cv": "^", "cvd": "x"}
    for name, label in labels.items():
        (line,) = axes.plot(ratios, formulas[name], linewidth=1, alpha=0.7)
        measured = [
            (row["R"], (row["estimators"][name]["dropout"][0] - row["own"]) / row["S"])
            for row in rows
            if row["S"] > 0
        ]
        axes.plot(
            [R for R, _ in measured],
            [value for _, value in measured],
            markers[name],
            color=line.get_color(),
            label=label,
        )
    axes.plot(ratios, [3 + R for R in ratios], "k--", linewidth=1, label="CV as printed, 3 + R")
    axes.set(xlabel="R", ylabel="VD / S", xscale="log", yscale="log", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def draw_testing(records: Sequence[Mapping[str, Any]]) -> Any:
    """Test scores against the fan-out, one panel for each model (records of fig-testing)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.5, 3.5 * len(records)), 3.6), layout="constrained")
    panels = figure.subplots(1, len(records), squeeze=False)[0]
    for axes, record in zip(panels, records, strict=True):
        for label, parts in record["sampled"].items():
            fanouts = [part["fanout"] for part in parts]
            means = [sum(part["scores"]) / len(part["scores"]) for part in parts]
            low = [mean - min(part["scores"]) for mean, part in zip(means, parts, strict=True)]
            high = [max(part["scores"]) - mean for mean, part in zip(means, parts, strict=True)]
            axes.errorbar(fanouts, means, yerr=[low, high], marker=".", capsize=3, label=label)
        axes.axhline(record["exact"], color="black", linewidth=1, label="Exact")
        for part, style in zip(record["cv"], (":", "--", "-."), strict=False):
            axes.axhline(
                part["score"], color="tab:red", linestyle=style, label=f"CV, sweep {part['sweep']}"
            )
        axes.set(title=record["label"], xlabel="fan-out of NS", xscale="log")
        axes.set_xticks(fanouts, [str(fanout) for fanout in fanouts])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel(f"test {records[0]['metric']}")
    panels[-1].legend(fontsize="small")
    return figure


def draw_gradients(
    records: Sequence[Mapping[str, Any]], algorithms: Sequence[str], title: str
) -> Any:
    """Bias and standard deviation against epochs, without and with dropout (fig-gradient)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    panels = iter(figure.subplots(1, 4))
    for dropout in (False, True):
        chosen = [record for record in records if record["dropout"] == dropout]
        epochs = [record["epoch"] for record in chosen]
        words = "with dropout" if dropout else "without dropout"
        for measure in ("bias", "std"):
            axes = next(panels)
            for name in algorithms:
                parts = [record["algorithms"][name] for record in chosen]
                (line,) = axes.plot(
                    epochs, [part[measure] for part in parts], marker=".", label=name
                )
                if measure == "bias":
                    floors = [part["floor"] for part in parts]
                    axes.plot(epochs, floors, ":", color=line.get_color(), linewidth=1)
            axes.set(title=f"{measure} {words}", xlabel="epoch", xscale="log")
            if chosen:
                axes.set_xticks(epochs, [str(epoch) for epoch in epochs])
                axes.minorticks_off()
            axes.set_yscale("symlog", linthresh=1e-3)
            axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.suptitle(f"{title}: gradient of the first weights; dotted: bias by noise alone")
    return figure


def draw_correlations(record: Mapping[str, Any], floor: float) -> Any:
    """Mean correlations, and the inflation of the variance, in each layer (fig-correlation)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    layers = range(1, len(record["correlations"]) + 1)
    for name in ("neighbours", "features"):
        points = record["correlations"]
        (line,) = left.plot(layers, _gaps(points, name), marker=".", label=f"{name}, mean")
        left.plot(
            layers,
            _gaps(points, f"{name}_absolute"),
            "--",
            color=line.get_color(),
            label=f"{name}, mean absolute",
        )
    left.axhline(floor, color="black", linestyle=":", linewidth=1, label="absolute, by chance")
    right.plot(layers, _gaps(record["correlations"], "inflation"), marker=".")
    right.axhline(1, color="black", linewidth=1)
    left.set(xlabel="layer", ylabel="correlation")
    right.set(xlabel="layer", ylabel="variance of P h / without correlation")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.set_xticks(list(layers))
    left.legend(fontsize="small")
    figure.suptitle(record["label"])
    return figure


def _gaps(points: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """Values of a list of records, NaN where there is none, which is drawn as a gap."""
    return [float("nan") if point[name] is None else point[name] for point in points]
