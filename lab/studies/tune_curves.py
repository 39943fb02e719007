"""The best validation score so far of searches by `vrgcn tune`, by the seconds of their trials.

python -m lab.studies.tune_curves runs/communities-tuned runs/pubmed-tuned --out tune.png
"""

from __future__ import annotations

import argparse
import json
from itertools import accumulate
from pathlib import Path

from matplotlib import pyplot

from vrgcn.runs.folder import LEADERBOARD
from vrgcn.tasks.metrics import titled_metric


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("tune.png"))
    options = parser.parse_args()
    count = len(options.folders)
    _, grid = pyplot.subplots(
        1, count, figsize=(4 * count, 3.2), layout="constrained", squeeze=False
    )
    for panel, folder in zip(grid[0], options.folders, strict=True):
        about = json.loads((folder / LEADERBOARD).read_text())
        metric = titled_metric(about["metric"])
        assert metric is not None
        ends = list(accumulate(trial["seconds"] for trial in about["trials"]))
        tried = [
            (end, trial["val"], trial["state"])
            for end, trial in zip(ends, about["trials"], strict=True)
            if trial["val"] is not None
        ]
        leaders: list[float] = []
        for _, val, state in tried:
            before = leaders[-1] if leaders else val
            ahead = state == "complete" and metric.better(val, before)
            leaders.append(val if ahead else before)
        panel.step([end for end, _, _ in tried], leaders, where="post", label="best so far")
        for state, marker in (("complete", "o"), ("paused", "x")):
            points = [(end, val) for end, val, how in tried if how == state]
            if points:
                panel.scatter(*zip(*points, strict=True), marker=marker, s=18, label=state)
        panel.set(
            title=folder.name, xlabel="seconds of trials", ylabel=f"validation {metric.title}"
        )
        # Trials far behind are left out of the picture.
        low, high = min(leaders), max(leaders)
        behind, ahead = 3 * (high - low) + 0.005, 0.2 * (high - low) + 0.001
        below, above = (behind, ahead) if metric.better(1.0, 0.0) else (ahead, behind)
        panel.set_ylim(low - below, high + above)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    pyplot.savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
