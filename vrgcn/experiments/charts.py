"""Charts of the experiments on single models: variances, tests, gradients, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vrgcn.experiments.curves import COLOURS
from vrgcn.experiments.experiment import Record


def draw_dropout_variance(records: Sequence[Record], labels: Mapping[str, str]) -> Any:
    """Variance by dropout over S against R, measured and by formula (table2)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6, 5 * len(records)), 4.2), layout="constrained")
    panels = figure.subplots(1, len(records), squeeze=False)[0]
    markers = {"exact": "o", "ns": "s", "cv": "^", "cvd": "x"}
    for axes, record in zip(panels, records, strict=True):
        rows = [row for row in record["rows"] if row["S"] > 0]
        ratios = sorted({row["R"] for row in rows})
        formulas = {
            "exact": [1.0 for _ in ratios],
            "ns": ratios,
            "cv": [2 * R - 1 for R in ratios],
            "cvd": [1.0 for _ in ratios],
        }
        for name, label in labels.items():
            (line,) = axes.plot(ratios, formulas[name], linewidth=1, alpha=0.7)
            axes.plot(
                [row["R"] for row in rows],
                [(row["estimators"][name]["dropout"][0] - row["own"]) / row["S"] for row in rows],
                markers[name],
                color=line.get_color(),
                label=label,
            )
        axes.plot(ratios, [3 + R for R in ratios], "k--", linewidth=1, label="CV as printed")
        axes.set(xlabel="R", ylabel="VD / S", xscale="log", yscale="log", title=record["label"])
        axes.grid(alpha=0.3)
    panels[0].legend()
    return figure


def draw_testing(records: Sequence[Record]) -> Any:
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


def draw_gradients(groups: Sequence[Sequence[Record]], algorithms: Sequence[str]) -> Any:
    """Bias and standard deviation against epochs, without and with dropout (fig-gradient).

    groups: the records of one data set and seed each
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3 * len(groups) + 0.4), layout="constrained")
    panels = iter(figure.subplots(len(groups), 4, squeeze=False).flat)
    drawn = []
    for group in groups:
        for dropout in (False, True):
            chosen = [record for record in group if record["dropout"] == dropout]
            for measure in ("bias", "std"):
                axes = next(panels)
                if not chosen:  # a run that was stopped half way
                    axes.set_visible(False)
                    continue
                drawn.append(axes)
                _gradient_panel(axes, chosen, algorithms, measure)
                words = "with dropout" if dropout else "without dropout"
                axes.set_title(f"{group[0]['label']}: {measure} {words}", fontsize="medium")
    drawn[-1].legend(fontsize="small")
    figure.suptitle("Gradient of the first weights; dotted: bias by noise alone")
    return figure


def _gradient_panel(
    axes: Any, records: Sequence[Record], algorithms: Sequence[str], measure: str
) -> None:
    epochs = [record["epoch"] for record in records]
    positive = False
    for name in algorithms:
        parts = [record["algorithms"][name] for record in records]
        colour = COLOURS[name]
        axes.plot(epochs, [part[measure] for part in parts], ".-", color=colour, label=name)
        if measure == "bias":
            axes.plot(epochs, [part["floor"] for part in parts], ":", color=colour, linewidth=1)
        positive = positive or any(part[measure] > 0 for part in parts)
    axes.set(xlabel="epoch", xscale="log", yscale="log" if positive else "linear")
    axes.set_xticks(epochs, [str(epoch) for epoch in epochs])
    axes.xaxis.minorticks_off()
    axes.grid(alpha=0.3)


def draw_correlations(records: Sequence[Record], floors: Sequence[float]) -> Any:
    """Mean correlations, and the inflation of the variance, in each layer (fig-correlation).

    floors: of each record, the mean absolute correlation that is there by chance
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4 * len(records)), layout="constrained")
    rows = figure.subplots(len(records), 2, squeeze=False)
    for (left, right), record, floor in zip(rows, records, floors, strict=True):
        points = record["correlations"]
        layers = range(1, len(points) + 1)
        for name, colour in (("neighbours", "tab:blue"), ("features", "tab:orange")):
            left.plot(layers, _gaps(points, name), ".-", color=colour, label=f"{name}, mean")
            absolute = _gaps(points, f"{name}_absolute")
            left.plot(layers, absolute, "--", color=colour, label=f"{name}, mean absolute")
        left.axhline(floor, color="black", linestyle=":", linewidth=1, label="absolute, by chance")
        right.plot(layers, _gaps(points, "inflation"), ".-")
        right.axhline(1, color="black", linewidth=1)
        left.set(xlabel="layer", ylabel="correlation", title=record["label"])
        right.set(xlabel="layer", ylabel="variance of P h / without correlation")
        for axes in (left, right):
            axes.grid(alpha=0.3)
            axes.set_xticks(list(layers))
    # Outside: the lines leave no corner free.
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize="small"
    )
    return figure


def _gaps(points: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """Values of a list of records, NaN where there is none, which is drawn as a gap."""
    return [float("nan") if point[name] is None else point[name] for point in points]
