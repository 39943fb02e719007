"""A search while it runs: what its parts share, and what was tried so far."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.files.writing import remove_partial, write_text
from vrgcn.graph.graph import Graph
from vrgcn.runs.folder import BASELINES, BEST, LEADERBOARD, TRIAL, TRIALS
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.training.clock import Clock
from vrgcn.training.target import Target
from vrgcn.tuning.leaderboard import Leaderboard
from vrgcn.tuning.members import fitted_baseline
from vrgcn.tuning.space import Search
from vrgcn.tuning.standings import Standing
from vrgcn.tuning.study import Tried, tried

if TYPE_CHECKING:
    import optuna

KEPT = 0.05  # share of the time kept for the average and the test nodes


@dataclass
class Session:
    """One search in its folder.

    graph: with all its nodes; what is tried sees `untested`, the graph without test nodes
    options: what config.toml of a run says beside its settings
    baselines: what was fitted, or scored by a rule, by name
    """

    graph: Graph
    target: Target
    search: Search
    study: optuna.Study
    folder: Path
    clock: Clock
    leaderboard: Leaderboard
    options: Mapping[str, Any]
    on_note: Callable[[str], None]

    def __post_init__(self) -> None:
        """Continue from what an earlier process left in the folder."""
        self.untested = self.graph.with_splits({"train": self.graph.train, "val": self.graph.val})
        self.baselines: dict[str, Tried] = {}
        for path in sorted((self.folder / BASELINES).glob("*")):
            fitted = fitted_baseline(path)
            if fitted is not None:
                self.baselines[path.name] = fitted
        self.clock.go_on(self.study.user_attrs.get("used", 0.0))
        self.leaderboard.restore([*self.baselines.values(), *self.ended])
        for pattern in (BEST, f"{TRIALS}/{TRIAL}*", f"{BASELINES}/*"):
            for run in self.folder.glob(pattern):
                remove_partial(run)  # left by a killed process

    @property
    def ended(self) -> list[Tried]:
        """The trials that have ended, in their order."""
        return [trial for trial in tried(self.study) if trial.state != "running"]

    @property
    def metric(self) -> LabelMetric:
        """The score of labels, computed."""
        return find_task(self.graph.task).find_metric(self.search.given.train.metric)

    @property
    def left(self) -> float:
        """The seconds for further trials, without those reserved for the end of the search."""
        limit = self.clock.limit
        return float("inf") if limit is None else (1 - KEPT) * limit - self.clock.used

    def trial_folder(self, number: int) -> Path:
        return self.folder / TRIALS / f"{TRIAL}{number:03d}"

    def note(self, ended: Tried) -> None:
        """Show and record what was tried."""
        if ended.baseline is not None:
            self.baselines[ended.baseline] = ended
        self.leaderboard.ended(ended)
        self.study.set_user_attr("used", self.clock.used)
        self.write()

    def write(self, rows: Sequence[Standing] = ()) -> None:
        """Write the leaderboard. rows: of its end"""
        about = {
            "metric": self.target.metric.title,
            "seconds": self.clock.used,
            "baselines": [asdict(ended) for ended in self.baselines.values()],
            "trials": [asdict(trial) for trial in tried(self.study)],
            "standings": [asdict(row) for row in rows],
        }
        write_text(self.folder / LEADERBOARD, json.dumps(about, indent=1) + "\n")
