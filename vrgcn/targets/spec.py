"""What is predicted and how it is split, as settings; and the usual settings of each prediction,
whose scores docs/results/links.md has.

No torch here: the command line reads settings before it loads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from vrgcn.data.tables.spec import check_ratio
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.settings import declarations, declared
from vrgcn.models.config import ModelConfig
from vrgcn.targets.predicted import EDGES, Kind, check_used, kind_of
from vrgcn.training.config import TrainConfig

# Shares of training, validation and test pairs.
PAIR_RATIO = (0.85, 0.05, 0.1)


@dataclass(frozen=True)
class TargetSpec:
    """What is predicted, and how it is split."""

    """Group predict: what to predict, and how to split the data."""
    predict: str | None = declared(None, whole=True)
    """What to predict: labels, links or ratings.

    Labels by the name of their column, such as user.churned; links by a relation such as
    user-bought-item, or `edges` in a graph without kinds; ratings, or another kept column of a
    relation, as user-rated-item.rating; or `relations`, the edges of all relations at once. Pairs
    are split by --ratio, and those of validation and test carry no messages. None: the labels."""
    ratio: tuple[float, ...] | None = declared(None, whole=True)
    """Shares of train, val and test, for a random split.

    Three numbers such as 0.6 0.2 0.2. The split is drawn from the labelled nodes, class by class;
    for pairs, from the edges. None: the graph's own split, and 0.85 0.05 0.1 of the edges."""
    split_seed: int = 0
    """Seed of --ratio."""
    leave_one_out: bool = declared(False, of=("links", "values"))
    """Split pairs by taking one pair of each source for the test and another one for the
    validation, of sources that have at least three, instead of by --ratio: the last ones where the
    graph keeps times."""
    split_column: str | None = declared(None, of=("links", "values", "relations"))
    """Split pairs by a kept column of the predicted relation that says train, val or test, instead
    of by --ratio. Without validation pairs the second share of --ratio is drawn from the training
    pairs."""
    train_until: str | None = declared(None, of=("labels", "links", "values"), whole=True)
    """Split by time: last date of training, such as 2026-06.

    2026 includes all of that year, 2026-06 all of June, 2026-06-15 that day. Used instead of
    --ratio. Nothing later is visible in training. The graph must keep dates of the predicted pairs
    or nodes (vrgcn import --keep)."""
    val_until: str | None = declared(None, of=("labels", "links", "values"))
    """Last moment of validation; later pairs are for the test. None: validation pairs are drawn
    from the training pairs, and all later pairs are for the test."""
    time_column: str | None = declared(None, of=("labels", "links", "values"))
    """Kept column with the dates for --train-until and --leave-one-out. None: the only column of
    dates."""
    known_until: str | None = declared(None, of=("labels",), whole=True)
    """For rows with a time of their own: the date, such as 2009-12-31, until which later rows see
    facts; validation rows before it see facts until the first of them, and training rows are
    repeated with facts that are as old. None: every row sees the facts until its own time."""
    val_negatives: Path | None = declared(None, of=("links",))
    """Table of pairs (.csv, .tsv or .parquet) that are no edges: MRR, Hits@K, AUC and AP compare
    validation pairs with these, as OGB defines Hits@K. Where it has a column `split`, the rows of
    that split count. None: all other nodes, and as many random negatives."""
    test_negatives: Path | None = declared(None, of=("links",))
    """The same for test pairs."""

    def __post_init__(self) -> None:
        check_used(self, self.kind)
        if self.ratio is not None:
            check_ratio(self.ratio)
        if self.val_until is not None and self.train_until is None:
            raise InputError(
                f"{setting('val_until', self.val_until)} needs "
                f"{setting('train_until', Placeholder('DATE'))}"
            )

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Return the target of a run, whose config.toml says `config`."""
        given = {part.name: config[part.name] for part in fields(cls) if part.name in config}
        if given.get("ratio") is not None:
            given["ratio"] = tuple(given["ratio"])
        for name in ("val_negatives", "test_negatives"):
            if given.get(name) is not None:
                given[name] = Path(given[name])
        return cls(**given)

    @property
    def kind(self) -> Kind:
        """The kind of target."""
        return kind_of(self.predict)

    @property
    def labels(self) -> bool:
        """True if labels of nodes are predicted, and no pairs."""
        return self.kind == "labels"

    def elsewhere(self) -> Self:
        """Return the same target on another graph than the run's own: labels keep that graph's
        split, and every pair is known and carries messages."""
        if self.labels:
            return type(self)()
        known = (1.0, 0.0, 0.0)
        return type(self)(predict=self.predict, ratio=known, split_seed=self.split_seed)

    @property
    def split_name(self) -> str:
        """The split in a few words, the same for runs that are split alike; "" for the split that
        the graph has."""
        seed = f" by seed {self.split_seed}" if self.split_seed else ""
        if self.split_column is not None:
            return f"split by the column {self.split_column}{seed}"
        if self.train_until is not None:
            moments = " and ".join(filter(None, (self.train_until, self.val_until)))
            times = "" if self.time_column is None else f" of {self.time_column}"
            return f"split until {moments}{times}{seed}"
        if self.leave_one_out:
            times = "" if self.time_column is None else f" by {self.time_column}"
            return f"split by leaving one out{times}{seed}"
        if self.known_until is not None:
            split = replace(self, known_until=None).split_name
            return ", ".join(filter(None, (split, f"facts known until {self.known_until}")))
        if self.ratio is None:
            return ""
        return f"split {'/'.join(f'{100 * share:g}' for share in self.ratio)}{seed}"


# Links: a race chooses the model (runs/pair_candidates.py), unless it or another setting that they
# compare is given. Then it is the GAE of Kipf and Welling in minibatches.
_COMPARED = [
    name
    for part in (ModelConfig, TrainConfig)
    for name, said in declarations(part).items()
    if said.compared
]
_LINKS: dict[str, Any] = {
    "ratio": PAIR_RATIO,
    "hidden": 64,
    "layer_norm": False,
    "epochs": 60,
}
_CHOSEN: dict[str, Any] = {"model": "auto", "dropout": None}
_GIVEN: dict[str, Any] = {"model": "gcn", "dropout": 0.0}
# Links between kinds are recommendations; minibatches of a given model are of pairs.
_BETWEEN_KINDS: dict[str, Any] = {"metric": "ndcg@20"}
_GIVEN_BETWEEN: dict[str, Any] = {"batch_size": 4096}
_VALUES: dict[str, Any] = {
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
_RELATIONS: dict[str, Any] = {
    "model": "graphsage",
    "layers": 0,
    "embedding": 128,
    "layer_norm": False,
    "negatives": 1000,
    "epochs": 60,
}
# Rows that nothing but the penalty holds back learn at a high rate; networks of messages do not.
_OF_ROWS: dict[str, Any] = {
    "decoder": "complex",
    "dropout": 0.0,
    "cube_penalty": 0.1,
    "learning_rate": 0.03,
}
_OF_MESSAGES: dict[str, Any] = {"decoder": "distmult", "dropout": 0.3}


def with_usual(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name, with those that are usual for what they predict."""
    kind = kind_of(values.get("predict"))
    usual = {"labels": {}, "values": _VALUES, "relations": _of_relations(values)}
    return {**(_of_links(values) if kind == "links" else usual[kind]), **values}


def _of_relations(values: Mapping[str, Any]) -> dict[str, Any]:
    rows = not values.get("layers") and values.get("decoder") != "mlp"
    return _RELATIONS | (_OF_ROWS if rows else _OF_MESSAGES)


def _of_links(values: Mapping[str, Any]) -> dict[str, Any]:
    between = values["predict"] != EDGES
    found = _LINKS | (_BETWEEN_KINDS if between else {})
    if all(values.get(name) in (None, "auto") for name in _COMPARED):
        return found | _CHOSEN
    return found | _GIVEN | (_GIVEN_BETWEEN if between else {})
