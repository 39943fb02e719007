"""Settings of a run: one value, written to and read from config.toml as a dict.

torch is imported only when `prepare` is called: the command line reads settings before it loads
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from vrgcn.data.tables.spec import check_ratio
from vrgcn.files.setting_names import SHARES, Placeholder, setting
from vrgcn.models.config import ModelConfig
from vrgcn.runs.config_file import as_written, build, flatten
from vrgcn.runs.predicted import EDGES, RELATIONS, check_predicted, names_labels
from vrgcn.training.config import AUTO, TrainConfig
from vrgcn.training.interval import duration

if TYPE_CHECKING:
    from torch import nn

    from vrgcn.data.opening import Opened
    from vrgcn.files.folder import OpenFolder
    from vrgcn.graph.graph import Graph
    from vrgcn.runs.job import Job
    from vrgcn.training.objective import Objective

T = TypeVar("T")
S = TypeVar("S", bound="Settings")

# Shares of training, validation and test pairs, and defaults of settings where pairs are predicted
# (docs/pairs.md has what they score). The model is chosen by pilots (pair_settings.py), unless it
# or one of these settings is given: then it is the GAE of Kipf and Welling in minibatches.
PAIR_RATIO = (0.85, 0.05, 0.1)
PAIR_DEFAULTS: dict[str, Any] = {
    "ratio": PAIR_RATIO,
    "hidden": 64,
    "layer_norm": False,
    "epochs": 60,
}
CHOSEN_PAIRS: dict[str, Any] = {"model": "auto", "dropout": None}
GIVEN_PAIRS: dict[str, Any] = {"model": "gcn", "dropout": 0.0}
OF_PAIR_MODELS = (
    *("model", "layers", "node_embeddings", "decoder"),
    *("loss", "negatives", "negative_sampling", "temperature"),
)
# Where pairs are of a relation between kinds, recommendations matter. Minibatches of a given model
# are of pairs.
OF_RELATIONS: dict[str, Any] = {"metric": "ndcg@20"}
GIVEN_RELATIONS: dict[str, Any] = {"batch_size": 4096}
RELATION = Placeholder("RELATION")
# Where a column of pairs is predicted, such as a rating.
VALUE_DEFAULTS: dict[str, Any] = {
    "ratio": PAIR_RATIO,
    "model": "graphsage",
    "layers": 1,
    "hidden": 128,
    "embedding": 64,
    "dropout": 0.5,
    "layer_norm": False,
    "node_embeddings": True,
    "decoder": "distmult",
    "batch_size": 4096,
    "epochs": 30,
}
# Where the edges of all relations are predicted.
TRIPLE_DEFAULTS: dict[str, Any] = {
    "model": "graphsage",
    "layers": 0,
    "embedding": 128,
    "dropout": 0.3,
    "layer_norm": False,
    "decoder": "distmult",
    "negatives": 1000,
    "epochs": 60,
}

# Settings of ways to split pairs, beside the ratio and its seed.
WAYS = ("leave_one_out", "split_column", "train_until", "val_until", "time_column")

# Entries of config.toml that are no settings: the checksum of a graph whose split the run drew, and
# the estimator that `auto` stood for.
GRAPH_CHECKSUM = "graph_checksum"
CHOSEN_ESTIMATOR = "chosen_estimator"
NOTED = (GRAPH_CHECKSUM, CHOSEN_ESTIMATOR)

# Settings of TrainConfig that may change when a run resumes: they decide when it ends, what is
# measured beside it, what is kept and how fast it is. Threads change the order of sums, and so the
# last bits.
FREE = (
    *("epochs", "patience", "time_limit", "diagnostics", "threads", "memory"),
    *("checkpoint_every", "on_nan", "on_full_disk"),
)
# Further settings that change no bit: the present path of the same graph (its fingerprint is
# checked), what is verified and logged beside the run, and when processes exchange messages.
_BESIDE = (
    *("graph", "data_root", *NOTED, "verify", "log", "wandb", "mlflow"),
    *("halo", "halo_every", "rank_timeout"),
)
# Settings of a search that may change: its trials remain comparable.
_OF_SEARCH = ("trials", "time_limit", "threads", "baselines")
# Settings that can extend a run.
_LENGTHS = ("epochs", "patience", "time_limit", "seeds", "trials")
# Settings of `vrgcn train` beside these: how several runs or processes share the work, and the log.
OF_COMMAND = ("log", "wandb", "mlflow", "seeds", "halo", "halo_every", "rank_timeout")
# Settings of a finished run that do not apply to another training with its other settings.
OVER = ("epochs", "warmup", "time_limit", *OF_COMMAND)


# The model and the training of a run, settled once its graph is known.
USUAL_MODEL = ModelConfig(model="auto", dropout=None, learned_rows=None)
USUAL_TRAIN = TrainConfig(epochs=100)
# The model that a search begins with: it tries learned rows next.
SEARCHED_MODEL = replace(USUAL_MODEL, learned_rows=False)


@dataclass(frozen=True)
class Settings:
    """The graph, the model and the training."""

    dataset: str | None = None
    """A named data set; `vrgcn datasets` lists them."""
    graph: Path | None = None
    """A graph from disk: a folder that `vrgcn import` wrote."""
    data_root: Path | None = None
    """Folder of the raw files of named data sets. None: $VRGCN_DATA, or else data."""
    ratio: tuple[float, ...] | None = None
    """Shares of train, val and test, three numbers such as 0.6 0.2 0.2, to draw a new split from
    the labelled nodes, class by class; for pairs, from the edges. None: the graph's own split, and
    0.85 0.05 0.1 of the edges."""
    split_seed: int = 0
    """Seed of --ratio."""
    predict: str | None = None
    """What to predict: the labels, by the name of their column, such as user.churned; which nodes
    are linked, by a relation such as user-bought-item, or `edges` in a graph without kinds; a
    kept column of a relation, user-rated-item.rating; or `relations`, the edges of all relations at
    once. Pairs are split by --ratio, and those of validation and test carry no messages. None: the
    labels."""
    leave_one_out: bool = False
    """Split pairs by taking one pair of each source for the test and another one for the
    validation, of sources that have at least three, instead of by --ratio: the last ones where the
    graph keeps times."""
    split_column: str | None = None
    """Split pairs by a kept column of the predicted relation that says train, val or test, instead
    of by --ratio. Without validation pairs the second share of --ratio is drawn from the training
    pairs."""
    train_until: str | None = None
    """Split by time instead of by --ratio: the last moment of training, such as 2026, 2026-06 for
    all of June, or 2026-06-15. Nothing later is visible in training. The graph must keep dates of
    the predicted pairs or nodes (vrgcn import --keep)."""
    val_until: str | None = None
    """The last moment of validation; what comes after it is for the test. None: validation pairs
    are drawn from those of training, and all that is later is for the test."""
    time_column: str | None = None
    """Kept column of the times that --train-until and --leave-one-out go by. None: the only one of
    dates."""
    val_negatives: Path | None = None
    """Table of pairs (.csv, .tsv or .parquet) that are no edges: MRR, Hits@K, AUC and AP compare
    validation pairs with these, as OGB defines Hits@K. Where it has a column `split`, the rows of
    that split count. None: all other nodes, and as many random negatives."""
    test_negatives: Path | None = None
    """The same for test pairs."""
    scaling: Literal["auto", "none", "standard", "row", "blocks"] = "auto"
    """Scaling of the features: standard gives columns mean 0 and deviation 1 on the training nodes,
    row makes each node's sum to 1, blocks is standard for dense columns and row for each block of
    sparse ones. auto: as the paper does for the data set; for a graph from disk, standard for dense
    and row for sparse features, blocks where there are both."""
    verify: bool = True
    """Read all files of a graph on disk before training and compare their checksums, so that
    training never uses damaged data: one or two seconds per gigabyte."""
    smooth: Literal["auto", "always", "never"] = "auto"
    """Correct and smooth the trained model's predictions by the training labels (Correct & Smooth).
    auto: if the validation score becomes better, and the graph is small enough to try it in some
    seconds; always: in the way that is best on the validation nodes."""
    calibrate: Literal["auto", "always", "never"] = "auto"
    """Calibrate the trained model on the validation nodes: a temperature for its probabilities, a
    threshold for two classes (both only if held-out validation nodes gain by them), limits of
    prediction sets and intervals. auto: with at least 200 validation nodes."""
    model: ModelConfig = field(default_factory=lambda: USUAL_MODEL)
    train: TrainConfig = field(default_factory=lambda: USUAL_TRAIN)

    # Fields of a derived class that are no settings, such as the folder of a run.
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.ratio is not None:
            check_ratio(self.ratio)
        if self.val_until is not None and self.train_until is None:
            raise ValueError(
                f"{setting('val_until', self.val_until)} needs "
                f"{setting('train_until', Placeholder('DATE'))}"
            )
        for name in ("leave_one_out", "split_column"):
            if getattr(self, name) and names_labels(self.predict):
                raise ValueError(
                    f"{setting(name, getattr(self, name))} splits pairs: give "
                    f"{setting('predict', RELATION)} too"
                )

    def as_dict(self) -> dict[str, Any]:
        """Return every setting by name, with absolute paths."""
        values = {k: v for k, v in flatten(self).items() if k not in self.beside}
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

        opened = open_graph(
            self.dataset,
            store or self.graph,
            self.data_root,
            verify=self.verify,
            memory=self.train.memory,
            ratio=self.ratio if names_labels(self.predict) else None,
            split_seed=self.split_seed,
            on_fill=on_fill,
        )
        graph = opened.graph
        check_predicted(self.predict, graph, self.graph)
        if self.predict == RELATIONS:
            from vrgcn.triples.split import split_triples

            for name in WAYS:
                if name != "split_column" and getattr(self, name):
                    raise ValueError(
                        f"{setting(name, getattr(self, name))} splits one relation: the edges of "
                        f"all relations are split by {setting('ratio')} or "
                        f"{setting('split_column')}"
                    )
            graph = split_triples(
                graph, self.ratio, self.split_seed, split_column=self.split_column
            )
        elif self.predict is not None and not names_labels(self.predict):
            from vrgcn.pairs.split import split_pairs

            graph = split_pairs(
                graph,
                self.predict,
                self.ratio or PAIR_RATIO,
                self.split_seed,
                **{name: getattr(self, name) for name in WAYS},
            )
            graph = with_negatives(graph, self.val_negatives, self.test_negatives)
        elif self.train_until is not None:
            from vrgcn.data.splitting import split_by_time

            until = self.train_until, self.val_until, self.time_column
            graph = split_by_time(graph, *until, self.split_seed)
        elif graph.labels is None or not len(graph.train):
            raise ValueError(
                "the graph has no labelled training nodes; draw some with "
                f"{setting('ratio', SHARES)}, or import it again with a {setting('label')} column "
                f"and {setting('split')} or {setting('ratio')}"
            )
        kind = opened.scaling if self.scaling == "auto" else self.scaling
        return opened._replace(graph=scale_graph(graph, kind)[0])

    def prepare(self, graph: Graph, chosen: str | None = None) -> Job:
        """Return the job of training these settings' model on a graph that `open_graph` returned.

        chosen: the estimator that `auto` stood for when the run began; None: choose now
        """
        from vrgcn.runs.job import prepare
        from vrgcn.training.objective import build_objective

        settled = self.settled(graph)
        config = settled.train
        config = config if chosen is None else replace(config, estimator=chosen)
        objective = build_objective(graph, config)
        return prepare(settled.build_model(graph, objective), graph, config, objective=objective)

    def settled(
        self: S,
        graph: Graph,
        on_note: Callable[[str], None] | None = None,
    ) -> S:
        """Return the settings with values in place of auto and None where they depend on the graph
        (auto_settings.py), except for the estimator.

        graph: as `open_graph` returned it
        on_note: called with the reason of a choice that was made by training
        """
        from vrgcn.runs.auto_settings import settle

        model, train, note = settle(self.model, self.train, graph)
        if note is not None and on_note is not None:
            on_note(note)
        return replace(self, model=model, train=train)

    def build_model(self, graph: Graph, objective: Objective) -> nn.Module:
        """Build the model with new weights, which depend on the seed."""
        from vrgcn.costs.out_of_memory import memory_explained
        from vrgcn.runs.building import build_network

        with memory_explained(graph, self.train):
            return build_network(self.model, graph, objective, self.train.seed)


def with_negatives(
    graph: Graph, val: str | Path | None = None, test: str | Path | None = None
) -> Graph:
    """Return the graph whose pairs are ranked against the negatives of files, if there are any."""
    files = {name: Path(file) for name, file in (("val", val), ("test", test)) if file is not None}
    if not files:
        return graph
    from vrgcn.data.pairs import with_given_negatives

    return with_given_negatives(graph, files)


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name with the defaults of pairs, if they ask for pairs."""
    predict = values.get("predict")
    if predict is None or names_labels(predict):
        return dict(values)
    if predict == RELATIONS:
        return {**TRIPLE_DEFAULTS, **values}
    if "." in predict:  # a column of a relation
        return {**VALUE_DEFAULTS, **values}
    of_relations = predict != EDGES
    usual = PAIR_DEFAULTS | (OF_RELATIONS if of_relations else {})
    if all(values.get(name) in (None, AUTO) for name in OF_PAIR_MODELS):
        return {**usual, **CHOSEN_PAIRS, **values}
    return {**usual, **GIVEN_PAIRS, **(GIVEN_RELATIONS if of_relations else {}), **values}


def with_choice(values: Mapping[str, Any], estimator: str) -> dict[str, Any]:
    """Return settings as config.toml has them, with the estimator that `auto` stands for."""
    asked = values.get("estimator")
    return {**values, **({CHOSEN_ESTIMATOR: estimator} if asked == AUTO else {})}


def free_settings(schedule: str | None) -> tuple[str, ...]:
    """Return the settings of FREE that may change under a schedule: with a cosine, the number of
    epochs decides the rate of every step."""
    return tuple(name for name in FREE if name != "epochs" or schedule != "cosine")


def settings_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the settings that would make a run another one, each with its old and new value.

    before: all settings of a run, as config.toml has them; now: those to resume it with
    """
    free = {*_BESIDE, *_OF_SEARCH}
    if "search" not in now:  # trials of a search would not be comparable
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
    """Return True if a finished run is asked for more. Patience that is not given is left to the
    graph, and asks for nothing."""
    given = [name for name in _LENGTHS if name in now or name != "patience"]
    return any(name in before and _lasts(now, name) > _lasts(before, name) for name in given)


def _lasts(settings: Mapping[str, Any], name: str) -> float:
    value = settings.get(name)
    return _length(None if name == "patience" and value == 0 else value)


def _length(value: Any) -> float:
    """Return a number of epochs or runs, or the seconds of a time; infinity without a limit."""
    if value is None:
        return float("inf")
    return (duration(value) or 0.0) if isinstance(value, str) else value
