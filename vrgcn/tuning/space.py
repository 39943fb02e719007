"""The settings that a search varies, and their bounds. Imports no torch: the command line reads it.

To search another setting, add a line to `SPACE`, or to `PAIR_SPACE` for pairs, with its name in
`ModelConfig` or `TrainConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO
from vrgcn.models.config import ModelConfig
from vrgcn.targets.predicted import Kind
from vrgcn.training.config import TrainConfig

if TYPE_CHECKING:
    from optuna.trial import Trial


@dataclass(frozen=True)
class Choice:
    """One of some values.

    neighbours: True if models that look at no neighbours do not have the setting
    links: True if a column of pairs, such as a rating, does not have it, or has other values of it
    """

    values: tuple[Any, ...]
    neighbours: bool = False
    links: bool = False

    def suggest(self, trial: Trial, name: str) -> Any:
        return trial.suggest_categorical(name, self.values)

    def nearest(self, value: Any) -> Any:
        """The value itself if it is among them, else the first."""
        return value if value in self.values else self.values[0]

    def holding(self, value: Any) -> Choice:
        """The same, with a value that may not be among them."""
        return self if value in self.values else replace(self, values=(*self.values, value))


@dataclass(frozen=True)
class Range:
    """A number between two; log: where factors count and not differences."""

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: Trial, name: str) -> Any:
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(name, self.low, self.high, log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)

    def holding(self, value: float) -> Range:
        return replace(self, low=min(self.low, value), high=max(self.high, value))


_MODELS = ("gcn", "graphsage", "residual", "mlp")
# The best of each kind: with sampled neighbours, without, both ways, and exact.
_ESTIMATORS = ("two-way", "cvd", "exact", "history")

SPACE: dict[str, Choice | Range] = {
    "model": Choice(_MODELS),
    "layers": Range(1, 4),
    "dense": Choice((1, 2)),
    "hidden": Choice((64, 128, 256)),
    "dropout": Range(0.0, 0.7),
    "layer_norm": Choice((True, False)),
    "learning_rate": Range(1e-3, 3e-2, log=True),
    "weight_decay": Choice((0.0, 1e-5, 1e-4, 1e-3)),
    "estimator": Choice(tuple(name for name in _ESTIMATORS if name in ESTIMATORS), neighbours=True),
    "learned_rows": Choice((False, True), neighbours=True),
    "neighbour_labels": Choice((False, True), neighbours=True),
}

# Settings that relational models do not have.
NOT_RELATIONAL = ("learned_rows", "neighbour_labels")

# Tried after the candidates of `vrgcn train`, as far as they are searched: for graphs of different
# kinds. Those that do not suit a graph are paused early, so that all together cost little.
PORTFOLIO: tuple[dict[str, Any], ...] = (
    # For neighbours that are similar to the node.
    {"model": "gcn", "layers": 2, "hidden": 256, "dropout": 0.5},
    # For few labels, or noisy features: reads the labels of neighbours.
    {"neighbour_labels": True, "hidden": 256, "learning_rate": 0.003, "dropout": 0.5},
    # For graphs whose links carry information: many links, few features.
    {"learned_rows": True, "learning_rate": 0.003, "dropout": 0.5},
    # For labels that are hard to fit: many classes for each node, much training data.
    {"layers": 3, "hidden": 256, "dropout": 0.0},
    # For neighbours that are unlike the node: deep, and its own features are kept.
    {"model": "residual", "layers": 4, "learning_rate": 0.003},
    # Larger than the defaults, with a lower rate: the usual result of manual tuning.
    {"layers": 3, "hidden": 256, "learning_rate": 0.003},
    # For few labels: Kipf and Welling's own.
    {"model": "gcn", "layer_norm": False, "weight_decay": 1e-3, "dropout": 0.5},
    # For links that carry information at a distance.
    {"layers": 3, "learned_rows": True, "neighbour_labels": True, "learning_rate": 0.003},
    # For informative features: neighbours are averaged once, and a deeper model reads them.
    {"layers": 1, "dense": 2, "dropout": 0.5},
    # For neighbours without information.
    {"model": "mlp", "layers": 3, "hidden": 256, "learning_rate": 0.003, "dropout": 0.5},
)


# The same for pairs.
PAIR_SPACE: dict[str, Choice | Range] = {
    "model": Choice(("gcn", "graphsage", "lightgcn"), links=True),
    "layers": Range(1, 3),
    "hidden": Choice((64, 128, 256)),
    "embedding": Choice((32, 64, 128)),
    "dropout": Range(0.0, 0.5),
    "learning_rate": Range(1e-3, 5e-2, log=True),
    "weight_decay": Choice((0.0, 1e-6, 1e-5, 1e-4)),
    "decoder": Choice(("dot", "cosine", "lift", "distmult", "mlp"), links=True),
    "loss": Choice(("logistic", "softmax"), links=True),
    "negative_sampling": Choice(("shared", "uniform"), links=True),
    "negatives": Choice((256, 512, 2048), links=True),
    "node_embeddings": Choice((False, True)),
}
_LIFT = ("lightgcn", "softmax", "shared")  # model, loss and negatives that the decoder lift needs
_RANKED = {"decoder": "cosine", "loss": "softmax", "negative_sampling": "shared", "negatives": 512}
PAIR_PORTFOLIO: tuple[dict[str, Any], ...] = (
    # For recommendations: a node's own row, and the mean of its neighbours' rows and features.
    {"model": "graphsage", "layers": 1, "node_embeddings": True, "dropout": 0.3, **_RANKED},
    # For recommendations without features: LightGCN.
    {"model": "lightgcn", "layers": 3, "learning_rate": 0.02, **_RANKED, "decoder": "lift"},
    # For links between nodes of similar features.
    {"model": "gcn", "layers": 2, "dropout": 0.3, **_RANKED},
    # The same by the loss of Kipf and Welling's GAE.
    {
        "model": "gcn", "layers": 2, "dropout": 0.0, "decoder": "dot", "loss": "logistic",
        "negative_sampling": "uniform",
    },
)  # fmt: skip
# The same for the edges of all relations.
TRIPLE_SPACE: dict[str, Choice | Range] = {
    "embedding": Choice((64, 128, 256)),
    "dropout": Range(0.0, 0.5),
    "learning_rate": Range(3e-3, 3e-1, log=True),
    "cube_penalty": Choice((0.0, 0.01, 0.03, 0.1, 0.3)),
    "decoder": Choice(("distmult", "complex")),
    "loss": Choice(("softmax", "logistic")),
    "negatives": Choice((250, 1000, 4000)),
}
TRIPLE_PORTFOLIO: tuple[dict[str, Any], ...] = (
    # For graphs that say little of each entity.
    {"decoder": "complex", "dropout": 0.0, "cube_penalty": 0.3, "learning_rate": 0.03},
    # For relations that are symmetric, and for many triples of each entity.
    {"decoder": "distmult", "dropout": 0.3, "cube_penalty": 0.0, "learning_rate": 0.01},
    # For many entities.
    {"embedding": 256},
)
# Models without tables of their own rows beside features, or without neighbours.
_ROWLESS = {"mlp": ("learned_rows", "neighbour_labels"), "lightgcn": ("node_embeddings",)}


@dataclass(frozen=True)
class Space:
    """What is searched, and what is tried before anything is drawn."""

    settings: Mapping[str, Choice | Range]
    portfolio: tuple[dict[str, Any], ...]


EVERY = SPACE | PAIR_SPACE | TRIPLE_SPACE
OF_NODES = Space(SPACE, PORTFOLIO)
OF_PAIRS = Space(PAIR_SPACE, PAIR_PORTFOLIO)
OF_TRIPLES = Space(TRIPLE_SPACE, TRIPLE_PORTFOLIO)
SPACES: dict[Kind, Space] = {
    "labels": OF_NODES,
    "links": OF_PAIRS,
    "values": OF_PAIRS,
    "relations": OF_TRIPLES,
}


@dataclass(frozen=True)
class TriedSettings:
    """A model and how it is trained."""

    model: ModelConfig
    train: TrainConfig

    def values(self) -> dict[str, Any]:
        return {**asdict(self.model), **asdict(self.train)}

    def changed(self, values: dict[str, Any]) -> TriedSettings:
        """The same but for some settings, by name."""
        model = {name: value for name, value in values.items() if name in asdict(self.model)}
        train = {name: value for name, value in values.items() if name not in model}
        return TriedSettings(replace(self.model, **model), replace(self.train, **train))


class Search:
    """names: of the settings of the space that are varied; the others keep their given values
    left_out: estimators and models that are not drawn, unless one of them was given
    unknown: settings that models of the graph do not have
    among: the settings that can be searched
    tried: further settings that are tried first
    """

    def __init__(
        self,
        given: TriedSettings,
        names: Sequence[str] = tuple(SPACE),
        left_out: Sequence[str] = (),
        unknown: Sequence[str] = (),
        among: Space = OF_NODES,
        tried: Sequence[TriedSettings] = (),
    ) -> None:
        check_names(names, among.settings)
        self.given = given
        self.portfolio = among.portfolio
        self.space = {
            name: bounds
            for name, bounds in _without(among.settings, left_out).items()
            if name in names and name not in unknown
        }
        # Settings that are tried first have to be within the bounds; of `auto`, what it stands for
        # is.
        for values in (each.values() for each in (given, *tried)):
            for name, bounds in self.space.items():
                if values[name] != AUTO:
                    self.space[name] = bounds.holding(values[name])

    def draw(self, trial: Trial) -> TriedSettings:
        """Draw the settings of a trial. A model without neighbours has no settings about them."""
        values: dict[str, Any] = {}
        for name, bounds in self.space.items():
            if self._has(name, values):
                values[name] = bounds.suggest(trial, name)
        return self.changed(values)

    def _has(self, name: str, values: dict[str, Any]) -> bool:
        """True if the model and the loss of a trial have a setting. Negatives that each pair has
        for itself are not searched: many of them are slow."""
        if name == "negatives" and "negative_sampling" in self.space:
            return bool(values.get("negative_sampling") == "shared")
        bounds = self.space[name]
        about = isinstance(bounds, Choice) and bounds.neighbours
        return not about or self._model(values) != "mlp"

    def _models(self) -> tuple[Any, ...]:
        bounds = self.space.get("model")
        return bounds.values if isinstance(bounds, Choice) else ()

    def _model(self, values: dict[str, Any]) -> str:
        return str(values.get("model", self.given.model.model))

    def changed(self, values: dict[str, Any]) -> TriedSettings:
        """Return the given settings with some changed; an MLP has no tables of neighbours, and a
        pair has one negative of its own where none are shared. Lift is for LightGCN with shared
        negatives; others have the cosine in its place."""
        lacking: dict[str, Any] = dict.fromkeys(_ROWLESS.get(self._model(values), ()), False)
        if values.get("negative_sampling", "shared") != "shared":
            lacking["negatives"] = 1
        settings = self.given.changed(values | lacking)
        train, lifted = settings.train, settings.model.decoder == "lift"
        if lifted and (settings.model.model, train.loss, train.negative_sampling) != _LIFT:
            settings = settings.changed({"decoder": "cosine"})
        return settings

    def values_of(self, settings: TriedSettings) -> dict[str, Any]:
        """Return the searched settings among some, as a trial records them."""
        values = settings.values()
        start = {name: values[name] for name in self.space if self._has(name, values)}
        drawn = self.space.get("estimator")
        if isinstance(drawn, Choice) and start.get("estimator") in _ESTIMATORS:
            # One that is too slow for most settings is not drawn for these either.
            start["estimator"] = drawn.nearest(start["estimator"])
        return start

    def portfolio_values(
        self, settled: Callable[[TriedSettings], TriedSettings], tried: Sequence[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the searched settings of the portfolio, each once.

        settled: gives an estimator in place of `auto`; tried: settings that are left out
        """
        known = list(tried)
        for other in self.portfolio:
            searched = {
                name: value
                for name, value in other.items()
                if name in self.space and (name != "model" or value in self._models())
            }
            start = self.values_of(settled(self.changed(searched)))
            if start not in known:
                known.append(start)
                yield start


def _without(
    space: Mapping[str, Choice | Range], left_out: Sequence[str]
) -> dict[str, Choice | Range]:
    """The space without some estimators and models."""
    return {
        name: replace(bounds, values=tuple(v for v in bounds.values if v not in left_out))
        if name in ("model", "estimator") and isinstance(bounds, Choice)
        else bounds
        for name, bounds in space.items()
    }


def searched(names: Sequence[str], kind: Kind) -> tuple[str, ...]:
    """Return the settings that a search varies: those of a kind of target in place of the
    default."""
    if tuple(names) != tuple(SPACE):
        return tuple(names)
    settings = SPACES[kind].settings
    return tuple(
        name
        for name, bounds in settings.items()
        if kind != "values" or not (isinstance(bounds, Choice) and bounds.links)
    )


def check_names(names: Sequence[str], among: Mapping[str, Choice | Range] = EVERY) -> None:
    """Refuse settings that cannot be searched."""
    unknown = [name for name in names if name not in among]
    if unknown:
        raise InputError(f"search: {unknown[0]!r} is none of {', '.join(among)}")
    if not names:
        raise InputError(f"search: name at least one of {', '.join(among)}")
