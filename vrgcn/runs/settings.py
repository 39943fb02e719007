"""Settings of a run: one value, written to and read from config.toml as a dict.

No torch here until `prepare` is called: the command line reads settings before it loads anything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from vrgcn.data.tables.spec import check_ratio
from vrgcn.files.setting_names import SHARES, setting
from vrgcn.models.config import ModelConfig
from vrgcn.runs.config_file import build, flatten, settings_text
from vrgcn.training.config import AUTO, TrainConfig
from vrgcn.training.interval import duration

if TYPE_CHECKING:
    from vrgcn.data.opening import Opened
    from vrgcn.files.folder import OpenFolder
    from vrgcn.graph.graph import Graph
    from vrgcn.models.models import GraphModel
    from vrgcn.runs.job import Job
    from vrgcn.training.objective import Objective

T = TypeVar("T")

# Settings of runs from before they existed, where that is not their default.
BEFORE = {"transform_first": "never"}

# Entries of config.toml that are no settings: by what a graph is known again whose split the run
# drew, and the estimator that `auto` stood for.
GRAPH_CHECKSUM = "graph_checksum"
CHOSEN_ESTIMATOR = "chosen_estimator"
NOTED = (GRAPH_CHECKSUM, CHOSEN_ESTIMATOR)

# Settings of TrainConfig that a run may resume with changed: they decide when it ends, what is
# measured beside it, what is kept of it and how fast it is. Threads change the order of sums, and
# with it last bits.
FREE = (
    *("epochs", "patience", "time_limit", "diagnostics", "threads", "memory"),
    *("checkpoint_every", "on_nan", "on_full_disk"),
)
# Further settings that change no bit: where the same graph lies now (its fingerprint decides), what
# is looked at and logged beside the run, and when processes hear of each other.
_BESIDE = ("graph", "data_root", *NOTED, "verify", "log", "halo", "halo_every", "rank_timeout")
# Settings of a search that may change: its trials compare all the same.
_OF_SEARCH = ("trials", "time_limit", "threads", "baselines")
# Settings by which a run is made longer.
_LENGTHS = ("epochs", "patience", "time_limit", "seeds", "trials")
# Settings of `vrgcn train` beside these: how several runs or processes share the work, and the log.
OF_COMMAND = ("log", "seeds", "halo", "halo_every", "rank_timeout")
# Settings of a finished run that say nothing of another training by its other settings.
OVER = ("epochs", "warmup", "time_limit", *OF_COMMAND)


@dataclass(frozen=True)
class Settings:
    """What is trained on which graph, and how."""

    dataset: str | None = None
    """A graph by name; `vrgcn datasets` lists them."""
    graph: Path | None = None
    """A graph from disk, a folder that `vrgcn import` wrote."""
    data_root: Path | None = None
    """Where raw files of named data sets lie or go. None: $VRGCN_DATA, or else data."""
    ratio: tuple[float, ...] | None = None
    """Shares of train, val and test, three numbers such as 0.6 0.2 0.2, to draw the split anew from
    the labelled nodes, class by class. None: as the graph has it."""
    split_seed: int = 0
    """Seed of --ratio."""
    scaling: Literal["auto", "none", "standard", "row"] = "auto"
    """Scaling of the features: standard gives columns mean 0 and deviation 1 on the training nodes,
    row makes each node's sum to 1. auto: as the paper does for the data set; for a graph from disk,
    standard for dense and row for sparse features."""
    verify: bool = True
    """Read all of a graph on disk before training and compare its checksums: one or two seconds for
    each gigabyte, against training on damaged numbers."""
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    # Fields of a class derived from this one that are no settings, such as where a run is written.
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.ratio is not None:
            check_ratio(self.ratio)

    def as_dict(self) -> dict[str, Any]:
        """Every setting by name, paths holding from any folder."""
        values = {k: v for k, v in flatten(self).items() if k not in self.beside}
        return {k: v.resolve() if isinstance(v, Path) else v for k, v in values.items()}

    def as_written(self) -> dict[str, Any]:
        """The settings as config.toml gives them back."""
        return tomllib.loads(settings_text(self.as_dict()))

    def changed(self: T, values: Mapping[str, Any]) -> T:
        """The same but for some settings, by name."""
        return build(type(self), flatten(self) | dict(values))

    def open_graph(
        self,
        on_fill: Callable[[str, float], None] | None = None,
        store: OpenFolder | None = None,
    ) -> Opened:
        """The graph with its features scaled.

        on_fill: told how tables are made that are kept beside a graph on disk
        store: the folder of a graph on disk, if it is open already
        """
        from vrgcn.data.opening import open_graph
        from vrgcn.graph.scaling import scale_graph

        opened = open_graph(
            self.dataset,
            store or self.graph,
            self.data_root,
            verify=self.verify,
            memory=self.train.memory,
            ratio=self.ratio,
            split_seed=self.split_seed,
            on_fill=on_fill,
        )
        graph = opened.graph
        if graph.labels is None or not len(graph.train):
            raise ValueError(
                "the graph has no labelled training nodes; draw some with "
                f"{setting('ratio', SHARES)}, or import it again with a {setting('label')} column "
                f"and {setting('split')} or {setting('ratio')}"
            )
        kind = opened.scaling if self.scaling == "auto" else self.scaling
        return opened._replace(graph=scale_graph(graph, kind)[0])

    def prepare(self, graph: Graph, chosen: str | None = None) -> Job:
        """The job of training these settings' model on a graph that `open_graph` gave.

        chosen: the estimator that `auto` stood for when the run began; None: choose now
        """
        from vrgcn.runs.job import prepare
        from vrgcn.training.objective import build_objective

        config = self.train if chosen is None else replace(self.train, estimator=chosen)
        objective = build_objective(graph, config)
        return prepare(self.build_model(graph, objective), graph, config, objective=objective)

    def build_model(self, graph: Graph, objective: Objective) -> GraphModel:
        """The model with new weights, which the seed decides."""
        from vrgcn.costs.order import build_for
        from vrgcn.costs.out_of_memory import memory_explained

        with memory_explained(graph, self.train):
            return build_for(self.model, graph, objective.outputs, self.train.seed)


def with_choice(values: Mapping[str, Any], estimator: str) -> dict[str, Any]:
    """Settings as config.toml has them, the estimator noted that `auto` stands for."""
    asked = values.get("estimator")
    return {**values, **({CHOSEN_ESTIMATOR: estimator} if asked == AUTO else {})}


def free_settings(schedule: str | None) -> tuple[str, ...]:
    """The settings of FREE that are free with a schedule: along a cosine, the number of epochs
    decides the rate of every step."""
    return tuple(name for name in FREE if name != "epochs" or schedule != "cosine")


def settings_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings by which a run would be another one, each with what it was and is.

    before: all settings of a run, as config.toml has them; now: those to resume it with
    """
    free = {*_BESIDE, *_OF_SEARCH}
    if "search" not in now:  # trials of a search would not compare
        free |= {*free_settings(now["schedule"])}
    if before.get("seeds") and now.get("seeds"):
        free.add("seeds")
    if before.get(CHOSEN_ESTIMATOR) == now["estimator"]:
        free.add("estimator")
    return [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if name not in free and before.get(name) != now.get(name)
    ]


def is_longer(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a run that has ended is asked for more."""
    return any(
        name in before and _length(now.get(name)) > _length(before[name]) for name in _LENGTHS
    )


def _length(value: Any) -> float:
    """A number of epochs or runs, or the seconds of a time; infinite without a limit."""
    if value is None:
        return float("inf")
    return (duration(value) or 0.0) if isinstance(value, str) else value
