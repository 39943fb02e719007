"""Settings of a run: one value, written to and read from config.toml as a dict.

torch is imported only when `prepare` is called: the command line reads settings before it loads
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from vrgcn.data.config import GraphConfig
from vrgcn.files.settings import AUTO, Declaration, declarations
from vrgcn.inference.config import CalibrationConfig, SmoothingConfig
from vrgcn.models.config import ModelConfig
from vrgcn.runs.config_file import as_written, build, flatten
from vrgcn.targets.predicted import check_used
from vrgcn.targets.spec import TargetSpec
from vrgcn.training.clock import duration
from vrgcn.training.config import TrainConfig, free_settings

if TYPE_CHECKING:
    from torch import nn

    from vrgcn.data.opening import Opened
    from vrgcn.files.folder import OpenFolder
    from vrgcn.graph.graph import Graph
    from vrgcn.runs.job import Job
    from vrgcn.training.target import Target

T = TypeVar("T")
S = TypeVar("S", bound="Settings")

# Entries of config.toml that are no settings: the checksum of a graph whose split the run drew, and
# the estimator that `auto` stood for.
GRAPH_CHECKSUM = "graph_checksum"
CHOSEN_ESTIMATOR = "chosen_estimator"
NOTED = (GRAPH_CHECKSUM, CHOSEN_ESTIMATOR)

# The model and the training of a run, settled once its graph is known.
USUAL_MODEL = ModelConfig(model="auto", dropout=None, learned_rows=None, linear_path="auto")
USUAL_TRAIN = TrainConfig(epochs=100)


@dataclass(frozen=True)
class Candidate:
    """Settings between which a race or a search chooses, with values in place of auto and None
    except for the estimator.

    name: what notes call it
    gain: by which its validation score has to be better than that of the first candidate
    """

    name: str
    model: ModelConfig
    train: TrainConfig
    gain: float = 0.0


@dataclass(frozen=True)
class Settings(CalibrationConfig, SmoothingConfig, GraphConfig):
    """The graph, the model and the training."""

    """Group graph."""
    spec: TargetSpec = field(default_factory=TargetSpec)
    scaling: Literal["auto", "none", "standard", "row", "blocks", "clipped"] = "auto"
    """Scaling of the features: standard gives columns mean 0 and deviation 1 on the training nodes,
    row makes each node's sum to 1, blocks is standard for dense columns and row for each block of
    sparse ones, clipped is blocks with dense columns within two deviations. auto: as the paper does
    for the data set; for a graph from disk, standard for dense and row for sparse features, blocks
    where there are both, and clipped for rows with a time of their own."""
    model: ModelConfig = field(default_factory=lambda: USUAL_MODEL)
    train: TrainConfig = field(default_factory=lambda: USUAL_TRAIN)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_used(self, self.spec.kind)

    def as_dict(self) -> dict[str, Any]:
        """Return every setting by name, with absolute paths."""
        said = declarations(type(self))
        values = {k: v for k, v in flatten(self).items() if not said[k].of_command}
        return {k: v.resolve() if isinstance(v, Path) else v for k, v in values.items()}

    def as_written(self) -> dict[str, Any]:
        """Return the settings as config.toml gives them back."""
        return as_written(self.as_dict())

    def changed(self: T, values: Mapping[str, Any]) -> T:
        """Return a copy with some settings changed, by name."""
        return build(type(self), flatten(self) | dict(values))

    def open_graph(
        self,
        on_fill: Callable[[str, float], None] | None = None,
        store: OpenFolder | None = None,
    ) -> Opened:
        """Open the graph with its features scaled.

        on_fill: called with the progress of tables that are written beside a graph on disk
        store: the folder of a graph on disk, if it is open already
        """
        from vrgcn.data.opening import open_graph
        from vrgcn.graph.scaling import scale_graph
        from vrgcn.targets.opening import check_trainable, for_training

        opened = open_graph(
            self.dataset,
            store or self.graph,
            self.data_root,
            verify=self.verify,
            memory=self.train.memory,
            on_fill=on_fill,
        )
        graph = for_training(self.spec, opened.graph, self.graph)
        check_trainable(graph, self.graph)
        kind = opened.scaling if self.scaling == "auto" else self.scaling
        return opened._replace(graph=scale_graph(graph, kind)[0])

    def prepare(self, graph: Graph, chosen: str | None = None) -> Job:
        """Return the job of training these settings' model on a graph that `open_graph` returned.

        chosen: the estimator that `auto` stood for when the run began; None: choose now
        """
        from vrgcn.runs.job import prepare
        from vrgcn.targets.opening import find_target

        settled = self.settled(graph)
        config = settled.train
        config = config if chosen is None else replace(config, estimator=chosen)
        target = find_target(graph, config)
        return prepare(settled.build_model(graph, target), graph, config, target)

    def candidates(self, graph: Graph) -> Sequence[Candidate]:
        """Return the candidates that these settings stand for on a graph that `open_graph`
        returned, the usual one first."""
        from vrgcn.runs.candidates import candidates

        return candidates(self.model, self.train, graph)

    def settled(self: S, graph: Graph, candidate: Candidate | None = None) -> S:
        """Return the settings with those of a candidate in place of auto and None; the estimator
        may stay auto.

        graph: as `open_graph` returned it
        candidate: None: the usual one
        """
        found = candidate or self.candidates(graph)[0]
        return replace(self, model=found.model, train=found.train)

    def build_model(self, graph: Graph, target: Target) -> nn.Module:
        """Build the model with new weights, which depend on the seed."""
        from vrgcn.costs.out_of_memory import memory_explained
        from vrgcn.runs.building import build_network

        with memory_explained(graph, self.train):
            return build_network(self.model, graph, target, self.train.seed)


def with_choice(values: Mapping[str, Any], estimator: str) -> dict[str, Any]:
    """Return settings as config.toml has them, with the estimator that `auto` stands for."""
    asked = values.get("estimator")
    return {**values, **({CHOSEN_ESTIMATOR: estimator} if asked == AUTO else {})}


def settings_changes(
    before: Mapping[str, Any], now: Mapping[str, Any], said: Mapping[str, Declaration]
) -> list[str]:
    """Return the settings that would make a run another one, each with its old and new value.

    before: all settings of a run, as config.toml has them; now: those to resume it with
    said: declarations of these
    """
    free = {name for name, each in said.items() if each.resume == "always" or each.of_command}
    free |= {
        name
        for name, each in said.items()
        if each.resume == "given" and before.get(name) and now.get(name)
    }
    if "search" not in now:  # trials of a search would not be comparable
        free |= free_settings(now["schedule"])
    if before.get(CHOSEN_ESTIMATOR) == now["estimator"]:
        free.add("estimator")
    return [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted(said)
        if name not in free and before.get(name) != now.get(name)
    ]


def is_longer(
    before: Mapping[str, Any], now: Mapping[str, Any], said: Mapping[str, Declaration]
) -> bool:
    """Return True if a finished run is asked for more. Patience that is not given is left to the
    graph, and asks for nothing."""
    lengths = (name for name, each in said.items() if each.lengthens)
    given = [name for name in lengths if name in now or name != "patience"]
    return any(name in before and _lasts(now, name) > _lasts(before, name) for name in given)


def _lasts(settings: Mapping[str, Any], name: str) -> float:
    value = settings.get(name)
    return _length(None if name == "patience" and value == 0 else value)


def _length(value: Any) -> float:
    """Return a number of epochs or runs, or the seconds of a time; infinity without a limit."""
    if value is None:
        return float("inf")
    return (duration(value) or 0.0) if isinstance(value, str) else value
