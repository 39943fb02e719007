"""`HopInputs`: what trees and perceptrons read of a node, as a few dense columns.

    X', P X', P P X', log(1 + degree)   X' are the features, or a projection of wide ones
    max P X, min P X                    softly, of few features: what averages do not tell
    U                                   the first singular vectors of the adjacency matrix
    PageRank                            its logarithm
    P Y, P P Y                          shares of classes among labelled neighbours, and theirs

P is the mean over the neighbours. X' of wide sparse features are the first right singular vectors
of P X, whose columns are weighted by log(nodes / nodes that have the column) and whose rows have
length 1: rare columns tell more than frequent ones. A node's own label is in none of its columns:
what P P Y would return of it is subtracted. U and Y are tables whose rows follow their nodes to
another graph; a new node gets those of its known neighbours. So does PageRank, which is
1 - d + d times the sum of the neighbours' shares. The soft maximum of the standardised features z
is log(sum of exp(b z)) / b: a sum over neighbours, which can be streamed like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vrgcn.baselines.baseline import make_tensor, mean_and_degree, times
from vrgcn.graph.forms import row_lengths
from vrgcn.graph.propagation import build_propagation, is_symmetric
from vrgcn.graph.sparse import CSR, in_blocks, is_dense, is_sparse
from vrgcn.models.node_table import NodeTable

if TYPE_CHECKING:
    from vrgcn.baselines.problem import Problem

WIDEST = 128  # feature columns that are taken as they are
COMPONENTS = 64  # columns that wider ones are projected to
SPECTRAL = 32  # singular vectors of the adjacency matrix
INPUTS = ("hops", "components", "extremes", "spectral", "ranks", "label_hops", "known")
_MOST_EXTREMES = 48  # feature columns of which extremes are taken
_SHARPNESS, _FAR = 8.0, 5.0  # b above, and the largest z: exp(b z) of it is far from overflow
_DAMPING, _RANK_STEPS = 0.85, 40
_MOST_LABELS = 256  # label columns: of more outputs, labels are left out
_SPARE, _ITERATIONS = 8, 3  # further columns and rounds by which singular vectors are found
_SPECTRAL_WORK = 2e10  # multiplications for U at most; it is left out of larger graphs
_GRID = 4096  # shares are multiples of 1 / _GRID: rounding errors would tell a node's own label
_LEAST_WEIGHT = 0.1  # of a column that every row has
_LEAST = 1e-12


class HopInputs(nn.Module):
    """The columns of nodes, (level 0, features) -> (last level, `columns`).

    hops: how often neighbours are averaged; 0: a node's own features alone
    components: columns that the features are projected to first; 0: none
    extremes: 1: with soft maxima and minima of the neighbours' features; 0: without
    spectral: columns of U; 0: none; outputs: columns that labels have; ranks: 1: with PageRank
    label_hops: 2: P Y and P P Y; 1: P Y alone; 0: no labels
    known: nodes of the graph that it was fitted on
    """

    propagation = "adjacency"
    weights: Tensor
    projection: Tensor
    centre: Tensor
    spread: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        in_features: int,
        outputs: int,
        *,
        hops: int,
        components: int = 0,
        extremes: int = 0,
        spectral: int = 0,
        ranks: int = 0,
        label_hops: int = 0,
        known: int = 0,
    ) -> None:
        super().__init__()
        self.hops, self.components, self.spectral = hops, components, spectral
        self.extremes, self.ranks = extremes, ranks
        self.label_hops, self.known = label_hops, known
        self.wide = outputs + 1
        # How many columns there are of each kind.
        self.sizes = [components or in_features] * (hops + 1) + [1] * bool(hops)
        self.sizes += [in_features] * 2 * extremes
        self.sizes += [self.wide] * label_hops + [spectral] * bool(spectral) + [1] * ranks
        self.columns = sum(self.sizes)
        if components:
            make_tensor(self, "weights", in_features)
            make_tensor(self, "projection", in_features, components)
        if extremes:
            make_tensor(self, "centre", in_features)
            make_tensor(self, "spread", in_features)
        make_tensor(self, "mean", self.columns)
        make_tensor(self, "scale", self.columns)
        # Labels, a mark of known ones; means of both over neighbours, 1 / degree; rows of U; shares
        # of PageRank.
        self.width = self.wide * label_hops + (label_hops == 2) + spectral + ranks
        if self.width:
            self.table = NodeTable(torch.zeros(known, self.width), learned=False)

    @property
    def arguments(self) -> dict[str, int]:
        """The arguments by which it is made again."""
        return {name: getattr(self, name) for name in INPUTS}

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        return (self.unscaled(x, propagate) - self.mean) * self.scale

    def unscaled(self, x: Tensor, propagate: Any) -> Tensor:
        blocks, degree, extremes = [self.narrow(x)], None, None
        for hop in range(self.hops):
            width = blocks[-1].shape[1]
            h = self._with_powers(blocks[-1]) if self.extremes and not hop else blocks[-1]
            mean, degree = mean_and_degree(h, propagate)
            if mean.shape[1] > width:
                mean, extremes = mean[:, :width], self._extremes(mean[:, width:], degree)
            blocks = [*(block[: len(mean)] for block in blocks), mean]
        if degree is not None:
            blocks.append(degree.log1p())
            if extremes is not None:
                blocks.append(extremes[: len(degree)])
            if self.width:
                blocks += self._of_tables(propagate, degree)
        return torch.cat(blocks, dim=1)

    def _with_powers(self, x: Tensor) -> Tensor:
        """[x, exp(b z), exp(-b z)]"""
        z = ((x - self.centre) * self.spread).clamp(-_FAR, _FAR) * _SHARPNESS
        return torch.cat([x, z.exp(), (-z).exp()], dim=1)

    def _extremes(self, means: Tensor, degree: Tensor) -> Tensor:
        """The soft maxima and minima, from means of powers: (rows, 2 features); 0 without
        neighbours."""
        sums = (means * degree).clamp(min=_LEAST).log() / _SHARPNESS
        high, low = sums.chunk(2, dim=1)
        return torch.where(degree > 0, torch.cat([high, -low], dim=1), 0)

    def narrow(self, x: Tensor) -> Tensor:
        """The features, dense and few: (rows, components)."""
        if not self.components:
            return x if is_dense(x) else x.to_dense()
        return times(x, self.projection) / row_lengths(x, self.weights)

    def _of_tables(self, propagate: Any, degree: Tensor) -> list[Tensor]:
        rows = self.table.rows.to(degree)
        sums, wide = propagate.table(rows), self.wide
        blocks = []
        if self.label_hops:
            blocks.append(_shares(sums[:, :wide]))
        if self.label_hops == 2:
            own = rows[propagate.nodes][:, :wide]
            back = sums[:, 2 * wide : 2 * wide + 1]  # of 1 / degree
            blocks.append(_shares(sums[:, wide : 2 * wide] - back * own))
        end = self.width - self.ranks
        if self.spectral:
            blocks.append(sums[:, end - self.spectral : end] * (1 + degree).rsqrt())
        if self.ranks:
            blocks.append((1 - _DAMPING + _DAMPING * sums[:, end:]).log())
        return blocks


def _shares(sums: Tensor) -> Tensor:
    """Means of labels, and how many there are, from sums of labels and of marks: (rows, width)."""
    count = sums[:, -1:].clamp(min=0)
    known = count > 1 / _GRID
    means = torch.where(known, sums[:, :-1] / count.clamp(min=_LEAST), 0)
    count = torch.where(known, count, 0).log1p()
    return (torch.cat([means, count], dim=1) * _GRID).round() / _GRID


def fit_inputs(problem: Problem, hops: int, *, tables: bool) -> tuple[HopInputs, Tensor]:
    """The columns of a problem, each block of them scaled by its training nodes, and their values:
    (nodes, columns).

    tables: with U and labels
    """
    return problem.once(("inputs", hops, tables), lambda: _fit(problem, hops, tables))


def _fit(problem: Problem, hops: int, tables: bool) -> tuple[HopInputs, Tensor]:
    graph = problem.graph
    wide = graph.num_features > WIDEST
    weights, projection = problem.once(
        ("projection", hops > 0), lambda: _projection(problem, hops) if wide else (None, None)
    )
    hops_of_labels = spectral = ranks = 0
    if tables and hops:
        ranks = 1
        hops_of_labels = _label_hops(problem)
        work = graph.num_edges * SPECTRAL * (2 * _ITERATIONS + 1)
        spectral = min(SPECTRAL, graph.num_nodes) if work <= _SPECTRAL_WORK else 0
    some = bool(hops_of_labels or spectral or ranks)
    few = graph.num_features <= _MOST_EXTREMES and is_dense(graph.features)
    inputs = HopInputs(
        graph.num_features,
        problem.outputs,
        hops=hops,
        components=0 if projection is None else projection.shape[1],
        extremes=int(tables and few and hops > 0 and graph.num_features > 0),
        spectral=spectral,
        ranks=ranks,
        label_hops=hops_of_labels,
        known=graph.num_nodes if some else 0,
    )
    if weights is not None and projection is not None:
        inputs.weights.data, inputs.projection.data = weights, projection
    if inputs.extremes:
        own = graph.features[graph.train].double()
        inputs.centre.data = own.mean(0).to(graph.dtype)
        inputs.spread.data = (1 / own.std(0, correction=0).clamp(min=1e-6)).to(graph.dtype)
    if some:
        inputs.table.set(_table(problem, hops_of_labels, spectral, ranks))
    with torch.no_grad():
        rows = inputs.unscaled(graph.features.to(graph.dtype), problem.propagate)
        train = rows[graph.train].double()
        mean = train.mean(0)
        # A block has one scale: its columns keep their sizes relative to each other.
        lengths = (train - mean).square().mean(0)
        scale = torch.cat(
            [
                part.mean().sqrt().clamp(min=1e-6).expand(len(part))
                for part in lengths.split(inputs.sizes)
            ]
        )
        inputs.mean.data, inputs.scale.data = mean.to(rows), (1 / scale).to(rows)
        return inputs, (rows - inputs.mean) * inputs.scale


def _label_hops(problem: Problem) -> int:
    """2 where the way back to a node's own label is known: edges in both directions, of weight 1.
    Elsewhere 1, and 0 for very many outputs."""
    A = problem.graph.adjacency
    if problem.outputs > _MOST_LABELS:
        return 0
    both = A.values is None or bool((A.values == 1).all())
    return 2 if both and is_symmetric(A) else 1


def _table(problem: Problem, label_hops: int, spectral: int, ranks: int) -> Tensor:
    graph = problem.graph
    parts = []
    if label_hops:
        columns = problem.task.columns_of(problem.labels, graph.num_classes).to(graph.dtype)
        known = torch.zeros(graph.num_nodes, problem.outputs + 1, dtype=graph.dtype)
        known[graph.train] = torch.cat([columns, columns.new_ones(len(columns), 1)], dim=1)
        parts.append(known)
        if label_hops == 2:
            means, degree = mean_and_degree(known, problem.propagate)
            parts += [means, torch.where(degree > 0, 1 / degree.clamp(min=_LEAST), 0)]
    if spectral:
        parts.append(problem.once(("spectral",), lambda: _spectral(problem, spectral)))
    if ranks:
        parts.append(page_rank_shares(problem))
    return torch.cat(parts, dim=1)


def page_rank_shares(problem: Problem) -> Tensor:
    """(nodes, 1): PageRank of each node, of mean about 1, over the number of nodes that have it as
    a neighbour: what each of them gets of it."""
    P = problem.propagate
    ones = torch.ones(problem.graph.num_nodes, 1, dtype=problem.graph.dtype)
    readers = P.others.transposed @ ones
    share, rank = torch.where(readers > 0, 1 / readers.clamp(min=_LEAST), 0), ones
    for _ in range(_RANK_STEPS):
        rank = 1 - _DAMPING + _DAMPING * P.table(rank * share)
    return rank * share


def _spectral(problem: Problem, count: int) -> Tensor:
    """(nodes, count): right singular vectors of D^-1/2 A D^-1/2, times D^-1/2."""
    graph = problem.graph
    P = build_propagation("gcn", graph)
    S = P.rows(torch.arange(graph.num_nodes))
    generator = torch.Generator().manual_seed(problem.seed)
    width = min(count + _SPARE, graph.num_nodes)
    basis = torch.randn(graph.num_nodes, width, generator=generator).to(graph.dtype)
    back = S.transposed
    for _ in range(_ITERATIONS):
        basis = back @ (S @ torch.linalg.qr(basis)[0])
    basis = torch.linalg.qr(basis)[0]
    vectors = torch.linalg.svd(S @ basis, full_matrices=False)[2]
    coordinates = basis @ vectors.t()[:, :count]
    right = 1.0 if P.right is None else P.right[:, None]
    return coordinates * right * graph.num_nodes**0.5


def _projection(problem: Problem, hops: int) -> tuple[Tensor, Tensor]:
    """(features,) weights of columns; (features, components) the first right singular vectors of
    P X, or of X without hops, by subspace iteration over all nodes. What neighbours share tells
    more than what is frequent."""
    graph = problem.graph
    x = graph.features.to(graph.dtype)
    weights = column_weights(x)
    lengths = row_lengths(x, weights)
    rows = CSR.from_torch(x) if is_sparse(x) else x
    components = min(COMPONENTS, *x.shape)
    generator = torch.Generator().manual_seed(problem.seed)
    width = min(components + _SPARE, x.shape[1])
    basis = torch.randn(x.shape[1], width, generator=generator).to(graph.dtype)

    def product(basis: Tensor) -> Tensor:
        own = times(rows, basis * weights[:, None]) / lengths
        return mean_and_degree(own, problem.propagate)[0] if hops else own

    for _ in range(_ITERATIONS):
        basis = torch.linalg.qr(basis)[0].requires_grad_()
        directions = product(basis)
        (basis,) = torch.autograd.grad(directions, basis, directions.detach())  # (P X)ᵀ P X basis
    with torch.no_grad():
        basis = torch.linalg.qr(basis)[0]
        vectors = torch.linalg.svd(product(basis), full_matrices=False)[2]
        directions = basis @ vectors.t()[:, :components]
        return weights, (directions * weights[:, None]).contiguous()


def column_weights(x: Tensor) -> Tensor:
    """(columns,): log(rows / rows with an entry) for columns of which many are rare; 1 for dense
    columns, be they beside sparse ones."""
    if is_dense(x) and not mostly_zero(x):
        return x.new_ones(x.shape[1])
    counts = _entries(x).to(x.dtype).clamp(min=1)
    weights = (x.shape[0] / counts).log().clamp(min=_LEAST_WEIGHT)
    if in_blocks(x):
        for block in x.blocks:
            if not block.sparse:
                weights[block.columns] = 1
    return weights


def mostly_zero(x: Tensor) -> bool:
    """Whether more than half of the numbers are 0."""
    return int(_entries(x).sum()) < x.shape[0] * x.shape[1] / 2


def _entries(x: Tensor) -> Tensor:
    """(columns,): how many rows have a number other than 0 there."""
    if in_blocks(x):
        counts = torch.zeros(x.shape[1], dtype=torch.int64)
        for block in x.blocks:
            counts[block.columns] += _entries(block.values)
        return counts
    if is_sparse(x):
        return torch.bincount(x.col_indices()[x.values() != 0].long(), minlength=x.shape[1])
    return (x != 0).sum(0)
