"""The league's records as a table and as a picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from lab.harness.records import Record, in_order, of


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean over splits and its standard error; 0 for one split."""
    if len(values) < 2:
        return values[0], 0.0
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def markdown(records: Sequence[Record]) -> str:
    """A table of test scores in per cent, mean ± standard error: a row for each competitor, a
    column for each graph, the best of a column in bold."""
    graphs, rows = in_order(records, "graph"), in_order(records, "row")
    found = {
        (row, graph): mean_and_error([r["test"] for r in of(records, row=row, graph=graph)])
        for row in rows
        for graph in graphs
        if of(records, row=row, graph=graph)
    }
    best = {g: max(found[row, g][0] for row in rows if (row, g) in found) for g in graphs}
    lines = [f"| test score, % | {' | '.join(graphs)} |", f"|---|{'---|' * len(graphs)}"]
    for row in rows:
        cells = []
        for graph in graphs:
            if (row, graph) not in found:
                cells.append("")
                continue
            mean, error = found[row, graph]
            text = f"{100 * mean:.1f} ± {100 * error:.1f}"
            cells.append(f"**{text}**" if mean == best[graph] else text)
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def seconds(records: Sequence[Record]) -> str:
    """Processor seconds of each competitor on each graph, mean over splits."""
    graphs, rows = in_order(records, "graph"), in_order(records, "row")
    lines = [f"| processor seconds | {' | '.join(graphs)} |", f"|---|{'---|' * len(graphs)}"]
    for row in rows:
        taken = [[r["cpu_seconds"] for r in of(records, row=row, graph=g)] for g in graphs]
        cells = [f"{statistics.mean(values):.1f}" if values else "" for values in taken]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(records: Sequence[Record], file: Path) -> None:
    """Draw, for each graph, every competitor's distance from the best baseline, in points."""
    import matplotlib.pyplot as plt

    graphs = in_order(records, "graph")
    figure, axes = plt.subplots(figsize=(8, 0.5 * len(graphs) + 1.5), layout="constrained")
    for height, graph in enumerate(graphs):
        mine = of(records, graph=graph)
        scores = {
            row: mean_and_error([r["test"] for r in of(mine, row=row)])
            for row in in_order(mine, "row")
        }
        baselines = [mean for row, (mean, _) in scores.items() if row.startswith("baseline")]
        if not baselines:
            continue
        for row, (mean, error) in scores.items():
            kind = row.split()[0]
            colour = {"baseline": "tab:gray", "tune": "tab:red"}.get(kind, "tab:blue")
            gain = 100 * (mean - max(baselines))
            axes.errorbar(gain, height, xerr=100 * error, fmt="o", color=colour, markersize=4)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(graphs)), graphs)
    axes.set_xlabel("test score, points above the best baseline (gray: baselines, red: tune)")
    figure.savefig(file, dpi=150)
    plt.close(figure)
