"""Scaling of features, fitted on the training nodes and kept with the model.

A model that was trained on scaled features silently gives wrong answers for unscaled ones. So `fit`
and `load_model` record on a model what they gave it (`TrainedOn`), and code that combines a model
and a graph compares them (`check_scaled`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.dated import later_nodes
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import Tell, zeros
from vrgcn.graph.sparse import CSR, full_precision, in_blocks, is_dense, is_sparse, with_values

KINDS = ("none", "standard", "row", "blocks", "clipped")
_BY_BLOCKS = ("blocks", "clipped")
_MOST = 2.0  # deviations from the mean that a clipped number has at most
_ROWS = 65_536  # at a time: no second table in memory on the way


@dataclass(frozen=True)
class Scaling:
    """kind: "none"; "standard", each column to mean 0 and deviation 1 over the training nodes;
        "row", each node's features divided by the sum of their absolute values; or "blocks",
        dense columns as by "standard" and each block of sparse columns as by "row"; "clipped", as
        "blocks" with dense columns within two deviations: what was rare in training, and is common
        later, cannot outweigh everything else
    mean, deviation: (columns,), of "standard", "blocks" and "clipped"
    groups: (columns,) int64, of "blocks" and "clipped": columns of one number above 0 are a block
        that is scaled row by row, 0 stands for the others
    """

    kind: str = "none"
    mean: Tensor | None = None
    deviation: Tensor | None = None
    groups: Tensor | None = None

    @staticmethod
    def fit(kind: str, features: Tensor, nodes: Tensor, hidden: Tensor | None = None) -> Scaling:
        """Learn what "standard", "blocks" and "clipped" need from the features (all nodes, columns)
        of some nodes.

        hidden: nodes that nothing may be learned from. A block of rows without any of `nodes` is
            scaled by all its other rows.
        """
        if kind not in KINDS:
            raise InputError(f"scaling {kind!r} is none of {', '.join(KINDS)}")
        if kind in ("none", "row"):
            return Scaling(kind)
        blocks = Blocks.of(features).blocks
        if kind == "standard" and any(block.sparse for block in blocks):
            fitting = "'row'" if len(blocks) == 1 else "'blocks', 'row'"
            raise InputError(
                "scaling 'standard' would fill sparse features with non-zeros; use "
                f"{fitting} or 'none'"
            )
        dtype = full_precision(features.dtype)
        mean = torch.zeros(features.shape[1], dtype=dtype)
        deviation, groups = torch.ones_like(mean), torch.zeros(len(mean), dtype=torch.int64)
        for block in blocks:
            if block.sparse:
                groups[block.columns] = groups.max() + 1
                continue
            rows = _rows_to_learn_from(block, nodes, hidden)
            if not len(rows) and len(nodes):
                continue  # nothing is known of a kind of facts that all came later
            if not len(rows):
                raise InputError(f"scaling {kind!r} needs training nodes to learn from")
            columns = block.columns
            mean[columns], deviation[columns] = _moments(block.values, rows)
        return Scaling(kind, mean, deviation, groups if kind in _BY_BLOCKS else None)

    def apply(self, features: Tensor, file: Path | None = None) -> Tensor:
        """The scaled features, in a new tensor; dense ones in a memory-mapped file where one is
        named."""
        if self.kind == "none":
            return features
        self.check(features)
        if in_blocks(features) or self.kind in _BY_BLOCKS:
            return self._apply_to_blocks(Blocks.of(features))
        if is_sparse(features):
            return _rows_to_one_sparse(features)
        out = zeros(tuple(features.shape), features.dtype, file)
        self._fill(out, features)
        return out

    def _apply_to_blocks(self, x: Blocks) -> Tensor:
        groups = self.groups
        if groups is None:
            groups = torch.full((x.shape[1],), int(self.kind == "row"))
        sums = _group_sums(x, groups)
        blocks = [replace(b, values=self._block(b, groups, b.rows_of(sums))) for b in x.blocks]
        whole = len(blocks) == 1 and blocks[0].values.shape == x.shape
        return blocks[0].values if whole else Blocks(x.shape, blocks)

    def _block(self, block: Block, groups: Tensor, sums: Tensor) -> Tensor:
        """The scaled values of a block. sums: (its rows, groups), 1 in the first column"""
        own, values = groups[block.columns], block.values
        if block.sparse and bool((own > 0).all()):
            matrix = block.matrix
            parts = sums[matrix.row_of_entry, own[matrix.indices]]
            return with_values(values, values.values() / parts)
        values = values.to_dense()  # of sparse columns that the model knows as dense ones
        out = zeros(tuple(values.shape), values.dtype)
        for start, x in _parts(values):
            y = x.to(full_precision(x.dtype))
            if self.mean is not None and self.deviation is not None:
                y = (y - self.mean[block.columns]) / self.deviation[block.columns]
            if self.kind == "clipped":
                y = torch.where(own > 0, y, y.clamp(-_MOST, _MOST))
            if bool((own > 0).any()):
                y = y / sums[start : start + len(x)].index_select(1, own)
            out[start : start + len(x)] = y
        return out

    def apply_to(self, graph: Graph, file: Path | None = None) -> Graph:
        """The graph with its features scaled, which it says of itself from then on."""
        if self.kind == "none":
            return graph
        if graph.scaling is not None:
            raise InputError(
                f"the features of the graph are scaled already ({graph.scaling.kind}): give the "
                "graph as it was before"
            )
        if graph.derived is None or self.kind in _BY_BLOCKS or not is_dense(graph.features):
            return graph.with_features(self.apply(graph.features, file), self)
        features = graph.features
        self.check(features)
        derived = graph.derived.after(f"scaled {self.digest}")
        scaled = derived.table(
            "features",
            tuple(features.shape),
            features.dtype,
            lambda out, tell: self._fill(out, features, tell),
        )
        return graph.replace(features=scaled, scaling=self, derived=derived)

    @property
    def digest(self) -> str:
        """The same for scalings that do the same to any features."""
        digest = hashlib.sha256(self.kind.encode())
        for part in (self.mean, self.deviation, self.groups):
            if part is not None:
                digest.update(f"{part.dtype}".encode() + part.cpu().numpy().tobytes())
        return digest.hexdigest()

    def same(self, other: Scaling) -> bool:
        """Whether the other does the same to any features."""
        pairs = (
            (self.mean, other.mean),
            (self.deviation, other.deviation),
            (self.groups, other.groups),
        )
        return self.kind == other.kind and all(
            a is b or (a is not None and b is not None and torch.equal(a.cpu(), b.cpu()))
            for a, b in pairs
        )

    def check(self, features: Tensor) -> None:
        """Refuse features that the scaling was not made for."""
        if self.mean is not None and len(self.mean) != features.shape[1]:
            raise InputError(
                f"the scaling was fitted to {len(self.mean)} feature columns, and the graph has "
                f"{features.shape[1]}"
            )

    def _fill(self, out: Tensor, features: Tensor, tell: Tell = lambda done: None) -> None:
        for start, x in _parts(features):
            out[start : start + len(x)] = self._scale(x.to(full_precision(x.dtype)))
            tell((start + len(x)) / len(features))

    def _scale(self, x: Tensor) -> Tensor:
        if self.kind == "row":
            return x / _not_zero(x.abs().sum(1, keepdim=True))
        assert self.mean is not None
        assert self.deviation is not None
        return (x - self.mean) / self.deviation


def scale_graph(graph: Graph, kind: str) -> tuple[Graph, Scaling]:
    """The graph with its features scaled, and the scaling, learned from its training nodes, and of
    kinds without any from what is no later than they are."""
    if not graph.num_features:  # kinds without features
        return graph, Scaling()
    hidden = torch.cat([graph.val, graph.test, later_nodes(graph)])
    scaling = Scaling.fit(kind, graph.features, graph.train, hidden)
    return scaling.apply_to(graph), scaling


def suitable_scaling(features: Tensor, *, dated: bool = False) -> str:
    """The kind of scaling for features of which only the layout is known.

    dated: rows have a time of their own, so that later ones differ from those of training
    """
    if dated:
        return "clipped"
    return "blocks" if in_blocks(features) else "row" if is_sparse(features) else "standard"


def _rows_to_learn_from(block: Block, nodes: Tensor, hidden: Tensor | None) -> Tensor:
    """The rows of a block whose values its scaling may know: those of `nodes`, or all that are not
    hidden where none of `nodes` is in it."""
    own = block.find(nodes)
    own = own[own >= 0]
    if len(own) or not len(nodes):
        return own
    known = torch.ones(block.num_rows, dtype=torch.bool)
    others = block.find(nodes if hidden is None else hidden)
    known[others[others >= 0]] = False
    return known.nonzero()[:, 0]


def _moments(values: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of the columns of a dense tensor over some rows."""
    total = torch.zeros(values.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    # Around a first guess of the mean, so that squares of large offsets do not cancel.
    guess = values[rows[0]].double()
    for part in rows.split(_ROWS):
        x = values[part].double() - guess
        total += x.sum(0)
        squares += x.square().sum(0)
    mean = total / len(rows)
    deviation = (squares / len(rows) - mean.square()).clamp(min=0).sqrt()
    # A column that does not vary in training says nothing; leave its scale alone.
    constant = deviation <= 1e-7 * (guess + mean).abs().clamp(min=1e-30)
    deviation[constant] = 1.0
    return guess + mean, deviation


def _group_sums(x: Blocks, groups: Tensor) -> Tensor:
    """(rows, groups + 1): sums of absolute values in the columns of each group, 1 where they are
    0; and 1 in the first column."""
    number = int(groups.max()) + 1
    sums = torch.zeros(x.shape[0], number, dtype=full_precision(x.dtype))
    for block in x.blocks:
        own = groups[block.columns]
        if not bool((own > 0).any()):
            continue
        if block.sparse:
            part = torch.zeros(block.num_rows * number, dtype=sums.dtype)
            places = block.matrix.row_of_entry * number + own[block.matrix.indices]
            part = part.index_add_(0, places, block.values.values().abs()).view(-1, number)
        else:
            part = torch.zeros(block.num_rows, number, dtype=sums.dtype)
            for start, rows in _parts(block.values):
                part[start : start + len(rows)].index_add_(1, own, rows.abs().to(sums.dtype))
        if block.places is None:
            sums[block.row : block.row + block.num_rows] += part
        else:
            sums.index_add_(0, block.places, part)
    sums[:, 0] = 1
    return _not_zero(sums)


def _rows_to_one_sparse(x: Tensor) -> Tensor:
    matrix, values = CSR.from_torch(x), x.values()
    rows = matrix.row_of_entry
    sums = torch.zeros(matrix.num_rows, dtype=x.dtype).index_add_(0, rows, values.abs())
    return with_values(x, values / _not_zero(sums)[rows])


def _not_zero(sums: Tensor) -> Tensor:
    return torch.where(sums > 0, sums, 1)


def _parts(features: Tensor) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(features), _ROWS):
        yield start, features[start : start + _ROWS]


_ATTRIBUTE = "trained_on"


@dataclass(frozen=True, eq=False)
class TrainedOn:
    """scaling: what was done to the features first
    task: what the labels are, `Graph.task`
    classes, features: the names of classes and feature columns; None if they have none
    own_matrix: whether the propagation was neither a name nor the model's own choice
    nodes: ids of the nodes, for models that have a row for each; None: their numbers
    """

    scaling: Scaling
    task: str
    classes: list[str] | None = None
    features: list[str] | None = None
    own_matrix: bool = False
    nodes: pa.Array | None = None

    @staticmethod
    def of(graph: Graph, *, own_matrix: bool = False) -> TrainedOn:
        """The note for a model that is trained on this graph as it is."""
        names, scaling = graph.names, graph.scaling or Scaling()
        return TrainedOn(
            scaling, graph.task, names.classes, names.features, own_matrix, names.unique()
        )


def note_trained_on(model: nn.Module, trained_on: TrainedOn) -> None:
    """From now on the model says so of itself. Nothing of it is in the state dict."""
    setattr(model, _ATTRIBUTE, trained_on)


def find_trained_on(model: nn.Module) -> TrainedOn | None:
    """The note on a model; None for a model that was never trained."""
    noted: TrainedOn | None = getattr(model, _ATTRIBUTE, None)
    return noted


def check_scaled(model: nn.Module, graph: Graph) -> None:
    """Refuse a graph whose features are not scaled as those were that the model learned from, or
    are other columns."""
    trained_on = find_trained_on(model)
    if trained_on is None:
        return
    if trained_on.scaling.same(graph.scaling or Scaling()):
        _check_columns(trained_on.features, graph.names.features)
        return
    if graph.scaling is None:
        raise InputError(
            f"the model was trained on scaled features ({trained_on.scaling.kind}), and those of "
            "this graph are as they are. Predict with the saved model, which scales them itself: "
            "predict(load_model(path), graph); or scale them first: "
            "graph = load_model(path).prepare(graph)"
        )
    raise InputError(
        f"the features of this graph are scaled ({graph.scaling.kind}) in another way than those "
        f"that the model was trained on ({trained_on.scaling.kind}): give the graph as it was "
        "before it was scaled"
    )


def _check_columns(ours: list[str] | None, theirs: list[str] | None) -> None:
    """Refuse columns that are known to be others, or in another order."""
    if ours is None or theirs is None or ours == theirs:
        return
    place = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    if place is None:
        first = f"{len(theirs)} of them, and the model {len(ours)}"
    else:
        first = f"column {place} is {theirs[place]!r}, and that of the model {ours[place]!r}"
    raise InputError(
        f"the feature columns of this graph are not those that the model was trained on: {first}. "
        "A saved model puts columns in its order: predict(SavedModel.of(model), graph), of a graph "
        "that is not scaled yet"
    )
