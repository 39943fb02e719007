"""`VRGCNRecommender`: which items a user should see, from pairs of users and items."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vrgcn.data.any_frame import AnyFrame, is_frame, library_of, like_given, read_frame
from vrgcn.data.config import GraphConfig
from vrgcn.data.frames import column_array
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import declarations
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import scale_graph, suitable_scaling
from vrgcn.inference.predict import exact_sweeps
from vrgcn.inference.saved import SavedModel
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.negatives import drawn_negatives
from vrgcn.runs.config_file import build, check_known, setting_types
from vrgcn.runs.racing import raced
from vrgcn.runs.settings import Settings
from vrgcn.scikit.masks import seed_of
from vrgcn.targets.best import best_partners
from vrgcn.targets.opening import open_target
from vrgcn.targets.ranking import EmbeddedEdges, score_edges
from vrgcn.targets.scored import pairs_of
from vrgcn.targets.spec import TargetSpec, with_usual
from vrgcn.training.result import TrainResult

KINDS = ("user", "item")
TRIPLE = ("user", "chose", "item")
RELATION = "-".join(TRIPLE)
# Settings of what `fit` decides: the graph, what is predicted on it and how it is split.
_OF_GRAPH = {**declarations(GraphConfig), **declarations(TargetSpec)}
_OWN = ("random_state", "verbose", "validation_fraction", "settings")


@dataclass(kw_only=True, eq=False, repr=False)
class VRGCNRecommender(BaseEstimator):  # type: ignore[misc]
    """A recommender in scikit-learn's manner.

    model, hidden, layers, embedding, decoder: the network, as in `ModelConfig`
    estimator, epochs, batch_size, learning_rate, loss, negatives, metric, device: the training, as
        in `TrainConfig`
    settings: a dict of any other settings of `ModelConfig` and `TrainConfig`
    validation_fraction: the share of the pairs, drawn at random, that chooses the best epoch; 0:
        none, and the last epoch is kept
    random_state: a seed, a generator of NumPy's, or None for a seed that NumPy draws
    verbose: show progress

    None stands for what `vrgcn train --predict user-chose-item` takes.

    After `fit`: `model_` is the trained network, which `save_model` writes; `result_` the
    `TrainResult`; `n_iter_` the epochs trained; `graph_` the graph of users and items; `columns_`
    the names of the columns of users and items; `n_features_in_` 2.
    """

    model: str | None = None
    hidden: int | None = None
    layers: int | None = None
    embedding: int | None = None
    decoder: str | None = None
    estimator: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    loss: str | None = None
    negatives: int | None = None
    metric: str | None = None
    settings: Mapping[str, Any] | None = None
    validation_fraction: float = 0.0
    random_state: Any = None
    verbose: bool = False
    device: str | None = None

    # Attributes that `fit` sets; they are no parameters.
    model_: ClassVar[PairModel]
    result_: ClassVar[TrainResult]
    graph_: ClassVar[Graph]
    columns_: ClassVar[tuple[str, str]]
    metric_: ClassVar[str]
    n_iter_: ClassVar[int]
    n_features_in_: ClassVar[int]

    def fit(
        self, X: Any, y: Any = None, *, user_features: Any = None, item_features: Any = None
    ) -> Self:
        """Train the model.

        X: pairs, a user and an item in each row: a DataFrame (of pandas, polars or PyArrow) with
            the two in its first two columns, or an array (pairs, 2). Ids are numbers or texts
        y: ignored
        user_features, item_features: a DataFrame with the ids in a column called as that of X, or
            `id`, or else in the index; columns become features as `vrgcn import` makes them. Or an
            array (users, features), whose rows are the ids 0, 1, ... A table may have users and
            items without pairs. Without a table the nodes are those of X, and have learned rows
        """
        pairs, columns = _frame(X)
        tables = {
            kind: _table(given, kind, column)
            for kind, given, column in zip(
                KINDS, (user_features, item_features), columns, strict=True
            )
            if given is not None
        }
        made = Graph.from_tables(tables, {TRIPLE: replace(pairs, names=[*KINDS])})
        settings = self._settings()
        if not 0 <= self.validation_fraction < 1:
            raise InputError(
                "validation_fraction must be at least 0 and below 1, not "
                f"{self.validation_fraction}"
            )
        share = self.validation_fraction
        spec = TargetSpec(RELATION, (1 - share, share, 0.0), settings.train.seed)
        graph = open_target(spec, made)
        held = pairs_of(graph)
        if share and not len(held.val):
            raise InputError(
                f"validation_fraction={share} of {len(held.train)} pairs is none: give more"
            )
        graph, _ = scale_graph(graph, suitable_scaling(graph.features))
        _, job, begun = raced(settings, graph, verbose=self.verbose)
        self.result_ = job.train(begun=begun, verbose=self.verbose)  # type: ignore[misc]
        assert isinstance(job.model, PairModel)
        self.model_ = job.model  # type: ignore[misc]
        self.graph_ = graph  # type: ignore[misc]
        self.columns_ = columns  # type: ignore[misc]
        self.metric_ = settings.train.metric or "ndcg@20"  # type: ignore[misc]
        self.n_iter_ = len(self.result_.curve)  # type: ignore[misc]
        self.n_features_in_ = 2  # type: ignore[misc]
        self._library = library_of(X) if is_frame(X) else "pandas"
        self._embeddings: Tensor | None = None
        return self

    def recommend(self, users: Any = None, top: int = 20) -> Any:
        """Return the best new items of each user, best first: a DataFrame of the library that X of
        `fit` came in (pandas for an array), with the columns of users and items as X called them,
        `rank` from 1, and `score`.

        users: ids; None: all users
        top: items for each; pairs that `fit` has seen are left out
        """
        scorer = self._scorer()
        if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
            raise InputError(f"top must be a number from 1, not {top!r}")
        pairs = pairs_of(self.graph_)
        sources = torch.arange(pairs.sources.start, pairs.sources.stop)
        if users is not None:
            sources = torch.from_numpy(self._places(_ids(users), "users", 0))
        if not len(sources):
            raise InputError("users names nobody: give ids, or None for all users")
        parts = list(best_partners(scorer, pairs, sources, int(top)))
        best = torch.cat([part.pairs for part in parts])
        ids = {column: self._own_ids(best[:, end], end) for end, column in enumerate(self.columns_)}
        ranks, scores = (
            torch.cat([getattr(part, name) for part in parts]).numpy()
            for name in ("ranks", "scores")
        )
        return like_given(pa.table({**ids, "rank": ranks, "score": scores}), self._library)

    def score_pairs(self, X: Any) -> NDArray[np.float32]:
        """Return the score of each pair, (pairs,): the larger, the more likely.

        X: as in `fit`; its users and items must be known
        """
        scorer = self._scorer()
        frame, _ = _frame(X)
        ends = [
            self._places(frame.listed(name), f"X, column {name!r}", end)
            for end, name in enumerate(frame.names)
        ]
        scores: NDArray[np.float32] = scorer.score(torch.from_numpy(np.stack(ends, axis=1))).numpy()
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Return how high held-out pairs rank among all items that were not seen with their users:
        NDCG@20, or the `metric` that was given. Pairs of unknown users and items, and those that
        `fit` has seen, are left out, with a warning.

        X: as in `fit`; y: ignored
        """
        scorer = self._scorer()
        pairs = pairs_of(self.graph_)
        frame, _ = _frame(X)
        ends = [
            self._known(frame.listed(name), kind)
            for name, kind in zip(frame.names, KINDS, strict=True)
        ]
        held = torch.from_numpy(np.stack(ends, axis=1))
        known = (held >= 0).all(1)
        known[known.clone()] &= ~pairs.known_in_training.has(held[known][:, 0], held[known][:, 1])
        held = held[known].unique(dim=0)
        if not len(held):
            raise InputError("X has no pair of a known user and a known item that fit has not seen")
        if not known.all():
            warnings.warn(
                f"{int((~known).sum())} of {len(known)} pairs are left out: their users or items "
                "are unknown, or fit has seen them",
                stacklevel=2,
            )
        empty = held[:0]
        asked = replace(pairs, val=empty, test=held)
        if self.metric_ in ("auc", "ap"):
            generator = torch.Generator().manual_seed(0)
            negatives = {"test": drawn_negatives(asked, len(held), generator)}
            asked = replace(asked, negatives=negatives)
        return score_edges(scorer, asked, "test", (self.metric_,))[self.metric_]

    def _settings(self) -> Settings:
        """The settings of a run with these parameters; those that are None have its defaults."""
        own = [field.name for field in fields(self) if field.name not in _OWN]
        given = {name: getattr(self, name) for name in own if getattr(self, name) is not None}
        extra = dict(self.settings or {})
        types = setting_types(Settings)
        for name, value in extra.items():
            check_known(name, types)
            if name in _OF_GRAPH:
                raise InputError(
                    f"settings: VRGCNRecommender predicts the links of the pairs that `fit` gets, "
                    f"without {setting(name, value)}; vrgcn.train takes it, with a graph"
                )
            if name in given:
                raise InputError(f"{name} is given twice: as a parameter and in settings")
        seed = {"seed": seed_of(self.random_state)}
        values = {"predict": RELATION, **seed, **given, **extra}
        return build(Settings, with_usual(values))

    def _scorer(self) -> EmbeddedEdges:
        check_is_fitted(self, "model_")
        if self._embeddings is None:
            saved = SavedModel.of(self.model_)
            self._embeddings = exact_sweeps(saved, self.graph_).outputs(None).cpu()
        return EmbeddedEdges(self.model_.decoder.cpu(), self._embeddings, pairs_of(self.graph_))

    def _own_ids(self, nodes: Tensor, end: int) -> Any:
        """The user's ids of nodes at one end of pairs."""
        kinds, kind = self.graph_.kinds, KINDS[end]
        ids = self.graph_.names.ids_of(kind)
        return ids.take(kinds.within(kind, nodes).numpy())

    def _places(self, ids: list[Any], where: str, end: int) -> NDArray[np.int64]:
        return self.graph_.names.places(ids, where, self.graph_.num_nodes, KINDS[end])

    def _known(self, ids: list[Any], kind: str) -> NDArray[np.int64]:
        """(ids,) nodes; -1 for ids that `fit` did not know."""
        kinds = self.graph_.kinds
        own = self.graph_.names.ids_of(kind).cast(pa.string())
        numbers = pc.index_in(pa.array([str(i) for i in ids], pa.string()), value_set=own)
        places = numbers.fill_null(-1).to_numpy().astype(np.int64)
        return np.where(places < 0, -1, places + kinds.range(kind).start)


def _ids(users: Any) -> list[Any]:
    """Ids of users as a list."""
    if isinstance(users, str) or not np.iterable(users):
        raise InputError(f"users must be a list of ids, not {users!r}")
    return list(users.tolist() if hasattr(users, "tolist") else users)


def _frame(X: Any) -> tuple[AnyFrame, tuple[str, str]]:
    """Pairs as a table of two columns, and the names of these."""
    if is_frame(X):
        frame = read_frame("X", X)
        if len(frame.names) < 2:
            raise InputError(f"X needs a column of users and one of items, not {frame.names}")
    else:
        array = np.asarray(X)
        if array.ndim != 2 or array.shape[1] != 2:
            raise InputError(
                f"X must be pairs, (pairs, 2) or a DataFrame of two columns, not {array.shape}"
            )
        frame = AnyFrame([*KINDS], [array[:, 0], array[:, 1]], range(len(array)))
    if not len(frame):
        raise InputError("X has no pairs")
    pairs = AnyFrame(frame.names[:2], frame.values[:2], frame.rows)
    missing = np.logical_or(*(_missing(values) for values in pairs.values))
    if missing.any():
        row = int(missing.nonzero()[0][0])
        raise InputError(
            f"X has {int(missing.sum())} pairs without a user or item, first: row {row}"
        )
    one, other = pairs.names
    if one == other:
        raise InputError(f"X has two columns called {one!r}: give them different names")
    return pairs, (one, other)


def _missing(values: Any) -> NDArray[np.bool_]:
    """(rows,) True where a column has no value."""
    array = column_array(values)
    absent: NDArray[np.bool_] = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return absent


def _table(given: Any, kind: str, column: str) -> AnyFrame:
    """Features of users or items as a table with a column `id`."""
    if not is_frame(given):
        array = np.asarray(given)
        if array.ndim != 2:
            raise InputError(
                f"{kind}_features must be ({kind}s, features) or a DataFrame, not {array.shape}"
            )
        names = [f"f{place}" for place in range(array.shape[1])]
        frame = AnyFrame(names, [*array.T], range(len(array)))
        return frame.with_index("id")
    frame = read_frame(f"{kind}_features", given)
    if column in frame.names:
        renamed = ["id" if name == column else name for name in frame.names]
        return replace(frame, names=renamed, index=None)
    return frame if "id" in frame.names else frame.with_index("id")
