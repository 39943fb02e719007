"""Costs of an epoch by each estimator on this graph, and the memory of a run; both in words, too.

Nothing is estimated from degrees: a few minibatches are planned as training would plan them, and
counted. So a new sampler, way or model needs no line here.

    nodes computed        activations of nodes in hidden layers and outputs, once for each pass
    neighbours averaged   rows that averages add up: sampled ones anew, the others from histories of
                          activations and of gradients
    entries read          of sparse features, and of their averages: each is a row of the first
                          weights to add up
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vrgcn.costs.order import averaged_entries, read_entries
from vrgcn.engine.averages import FULL
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Plan
from vrgcn.engine.setup import Setup
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import bytes_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import is_mapped
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.sparse import CSR, dense_width, is_dense, is_sparse, sparse_columns, stored
from vrgcn.targets.opening import find_target
from vrgcn.training.components import build_minibatches, look_at, refreshed_nodes
from vrgcn.training.config import TrainConfig
from vrgcn.training.target import Target

_PLANNED = 3  # minibatches that are planned: their sizes differ by a few percent
_STEP = 5_000_000  # entries of a plan: beyond them one minibatch is enough
_COPIES = 3  # copies of an activation in a step: its value, its gradient, and a layer's result
_WEIGHTS = 5  # copies of a weight: itself, its gradient, two moments, the best so far


# Both are read off the map. A step takes at least as long as this many nodes, however few it has.
# Exact training is not behind if it takes up to this many times as long by this count, because its
# epochs lead further.
_STEP_NODES = 500
HARDLY_MORE = 2.0
# Entries of sparse features that take as long as one node, forward and backward.
_ENTRIES_OF_NODE = 80


@dataclass(frozen=True)
class Cost:
    """The cost of an epoch.

    nodes, neighbours, entries: counts of an epoch, see above
    memory: bytes of a run by purpose
    files: bytes of tables that are in files instead, with `memory="disk"`
    mapped: bytes of the graph's own files, which are then read as needed
    steps: minibatches in an epoch
    backward, forward: nodes that an epoch visits with gradients, and forward only
    left_out: nodes that were to be visited but are left out because no node reads their rows
    """

    nodes: float
    neighbours: float
    memory: dict[str, int]
    steps: int = 0
    backward: int = 0
    forward: int = 0
    left_out: int = 0
    files: dict[str, int] = field(default_factory=dict)
    mapped: int = 0
    entries: float = 0

    @property
    def total_memory(self) -> int:
        return sum(self.memory.values())

    @property
    def disk(self) -> int:
        return sum(self.files.values())

    @property
    def computed(self) -> float:
        """The work of an epoch without what each step takes in any case."""
        return self.nodes + self.entries / _ENTRIES_OF_NODE

    @property
    def work(self) -> float:
        """The work of an epoch, in nodes that take as long."""
        return self.computed + _STEP_NODES * self.steps

    def hardly_more(self, other: Cost) -> bool:
        """Return True if exact training with this cost takes about as long as another estimator,
        and is therefore preferable."""
        return self.work <= HARDLY_MORE * other.work


def epoch_costs(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    estimators: Iterable[str],
    *,
    propagation: PropagationLike | None = None,
    target: Target | None = None,
    setup: Setup | None = None,
) -> dict[str, Cost]:
    """Return the cost of each estimator that can train this model on this graph as the config says.

    setup: the model on the graph, if it was inspected already
    """
    costs: dict[str, Cost] = {}
    try:
        setup = setup or look_at(model, graph, config, propagation)
        target = target or find_target(graph, config)
    except InputError:  # training raises it
        return costs
    rows = _Rows(setup)
    for name in estimators:
        try:
            named = replace(config, estimator=name)
            batches = build_minibatches(model, graph, named, target, setup=setup)
        except InputError:  # training raises it, if this estimator is asked for
            continue
        if _has_histories(batches):
            costs[name] = _cost(model, batches, config, rows)
    return costs


def _has_histories(batches: MiniBatches) -> bool:
    """Return True if the histories that the estimator needs exist: sparse features under dropout
    have none (see passes.py)."""
    estimator, setup = batches.estimator, batches.setup
    sparse = not is_dense(batches.graph.features) and setup.features_dropped
    return not (sparse and estimator.history and not estimator.dropout_residual)


class _Rows:
    """Counts entries in rows of sparse features and of P X; dense columns count as zero."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        sparse = sparse_columns(setup.graph.features)
        self.counts = None if sparse is None else sparse.counts

    @cached_property
    def averaged(self) -> list[float]:
        """Mean entries in a row of P X, for each relation."""
        features, levels = self.setup.graph.features, self.setup.evaluation.levels
        return [
            averaged_entries(features, P.adjacency, own=isinstance(P.own, Tensor) or P.own != 0)
            for P in (self.setup.P[over] for over in (levels[0] if levels else ()))
        ]

    def read(self, plan: Plan) -> float:
        """Return the entries that a pass over a plan reads."""
        if self.counts is None:
            return 0
        nodes = plan.levels[0].nodes
        averaged = sum(map(self._read_entries, self.averaged)) if self.setup.preprocess else 0
        return int(self.counts.index_select(0, nodes).sum()) + len(nodes) * averaged

    def _read_entries(self, averaged: float) -> float:
        return read_entries(averaged, self.setup.graph.num_features)

    def averaged_bytes(self) -> int:
        """Bytes of P X: of its sparse columns, places and values as CSR."""
        features = self.setup.graph.features
        if self.counts is None:
            return _tensor_bytes(features)
        return sum(map(self._averaged_bytes, self.averaged))

    def _averaged_bytes(self, averaged: float) -> int:
        features = self.setup.graph.features
        nodes, size = len(features), features.element_size()
        if is_sparse(features) and averaged > FULL * features.shape[1]:
            return nodes * features.shape[1] * size
        sparse = int(averaged * nodes) * (4 + size) + 4 * (nodes + 1)
        return sparse + int(dense_width(features) * nodes * size)


def _cost(model: nn.Module, batches: MiniBatches, config: TrainConfig, rows: _Rows) -> Cost:
    generator = torch.Generator().manual_seed(config.seed)
    plans: list[Plan] = []
    while len(plans) < min(_PLANNED, len(batches)) and sum(map(_entries, plans)) < _STEP:
        order = torch.randperm(len(batches.nodes), generator=generator)
        nodes = batches.nodes[order[: batches.batch_size]]
        plans.append(batches.batch(nodes, generator).plan)
    times = batches.epoch_of(plans)
    setup, estimator = batches.setup, batches.estimator
    nodes_computed = times * sum(
        _passes(plan, setup, estimator) * _computed(plan, setup) for plan in plans
    )
    entries = times * sum(_passes(plan, setup, estimator) * rows.read(plan) for plan in plans)
    averaged = times * sum(_averaged(plan, setup, estimator) for plan in plans)
    refreshed = refreshed_nodes(batches, config.refresh)
    if refreshed is not None:
        nodes_computed += len(refreshed) * setup.evaluation.depth
        averaged += _degrees(setup, refreshed)
        if rows.counts is not None:
            entries += int(rows.counts.index_select(0, refreshed).sum())
    visits = batches.visits
    memory = _memory(model, batches, plans, rows)
    files, mapped = {}, 0
    if config.memory == "disk":
        files = _to_files(memory, batches)
        features = batches.graph.features
        if is_mapped(stored(features)[-1]):
            mapped = memory.pop("features") + memory.pop("edges", 0)
    return Cost(
        nodes_computed,
        averaged,
        memory,
        len(batches),
        len(visits.backward),
        len(visits.forward),
        len(batches.nodes) - visits.count,
        files,
        mapped,
        entries,
    )


def _entries(plan: Plan) -> int:
    return plan.sampled_edges + plan.history_reads


def _computed(plan: Plan, setup: Setup) -> int:
    """Return the nodes computed for a plan; only the minibatch for a model without neighbours."""
    given = setup.training.features_first or setup.features_dropped or setup.training.depth == 0
    return sum(plan.sizes[1 if given else 0 :]) or len(plan.nodes)


def _passes(plan: Plan, setup: Setup, estimator: Estimator) -> int:
    """Return the number of passes: cvd runs twice, unless there is no dropout, or none that meets
    an estimate."""
    return 2 if estimator.dropout_residual and setup.training.random and plan.hops else 1


def _averaged(plan: Plan, setup: Setup, estimator: Estimator) -> int:
    back = sum(rows.rows.num_entries for rows in plan.back.values())
    tables = setup.training.depth - setup.training.first_table
    passes = _passes(plan, setup, estimator)
    return passes * plan.sampled_edges + plan.history_reads + back * tables


def _degrees(setup: Setup, nodes: Tensor) -> int:
    """Return the number of neighbours that a sweep over some nodes reads from tables."""
    levels = setup.evaluation.levels[setup.evaluation.first_table :]
    return sum(int(setup.P[over].degrees(nodes).sum()) for level in levels for over in level)


def _memory(
    model: nn.Module, batches: MiniBatches, plans: list[Plan], rows: _Rows
) -> dict[str, int]:
    """Return the bytes that a run holds, by purpose. The entry "a minibatch" covers the temporary
    tensors of a step."""
    setup, graph = batches.setup, batches.graph
    nodes, widths = graph.num_nodes, setup.training.widths
    first, later = setup.training.first_table, setup.evaluation.first_table
    features = _tensor_bytes(graph.features)
    wide = graph.features.element_size()
    kept = sum(width * batches.histories.dtype.itemsize + 8 for width in widths[first:])
    estimator = batches.estimator
    widest = max(_step_bytes(plan, setup, rows) for plan in plans)
    memory = {
        "edges": sum(map(_matrix_bytes, _matrices(graph))),
        "features": features,
        "averaged features": rows.averaged_bytes() if later else 0,
        "histories": nodes * kept if estimator.history else 0,
        "histories of gradients": _gradient_bytes(batches) if estimator.gradient_history else 0,
        "exact evaluation": nodes * sum(width * wide + 8 for width in widths[later:]),
        "weights": _WEIGHTS * sum(_tensor_bytes(weight) for weight in model.parameters()),
        "a minibatch": _COPIES * _passes(plans[0], setup, estimator) * widest,
    }
    return {name: size for name, size in memory.items() if size}


def _matrices(graph: Graph) -> list[CSR]:
    """Return the matrices that hold the edges: one, or one for each relation and its reverse."""
    return [relation.adjacency for relation in graph.relations.values()]


def _matrix_bytes(A: CSR) -> int:
    return sum(_tensor_bytes(x) for x in (A.indptr, A.indices, A.values) if x is not None)


def _gradient_bytes(batches: MiniBatches) -> int:
    """Return the bytes of the tables of gradients: one for each level and relation, of the nodes
    that the relation can end in."""
    setup, first = batches.setup, batches.setup.training.first_table
    size = 0
    for level, width in enumerate(setup.training.widths[first:], start=first):
        row = width * batches.histories.dtype.itemsize + 8
        for over in setup.training.levels[level]:
            spans = setup.P[over].spans
            size += row * (batches.graph.num_nodes if spans is None else len(spans[0]))
    return size


def _step_bytes(plan: Plan, setup: Setup, rows: _Rows) -> int:
    """Return the bytes that a pass over a plan propagates, and of the sparse rows that it starts
    from."""
    wide = setup.graph.features.element_size()
    widths: list[float] = [*setup.training.widths, 0]
    sizes = plan.sizes
    if rows.counts is None:
        return int(wide * sum(size * width for size, width in zip(sizes, widths, strict=False)))
    if setup.training.features_first or setup.features_dropped:
        widths[0] = dense_width(setup.graph.features)  # sparse rows are counted below
    dense = wide * sum(size * width for size, width in zip(sizes, widths, strict=False))
    return int(dense) + int(rows.read(plan)) * (8 + wide)


def _to_files(memory: dict[str, int], batches: MiniBatches) -> dict[str, int]:
    """Move the tables that lie in files out of `memory`. The steps at which rows were written stay
    there."""
    setup = batches.setup
    first, later = setup.training.first_table, setup.evaluation.first_table
    averages = (setup.averages[over] for level in setup.evaluation.levels[:later] for over in level)
    dense = all(average.dense for average in averages)  # sparse averages stay in memory
    tables = {
        **({"averaged features": 0} if dense else {}),
        "histories": len(setup.training.levels[first:]),
        "histories of gradients": sum(map(len, setup.training.levels[first:])),
        "exact evaluation": len(setup.evaluation.levels[later:]),
    }
    files, ages = {}, 0
    for name, count in tables.items():
        if name in memory:
            written = 8 * batches.graph.num_nodes * count
            files[name] = memory.pop(name) - written
            ages += written
    memory["ages of rows"] = ages
    return files


def _tensor_bytes(x: Tensor) -> int:
    return sum(part.numel() * part.element_size() for part in stored(x))


def counted(count: float) -> str:
    """Format a number of nodes to three digits: plans are drawn at random."""
    digits = max(len(str(int(count))) - 3, 0)
    return f"{round(count / 10**digits) * 10**digits:,}"


COST_COLUMNS = ("estimator", "nodes computed", "neighbours averaged", "memory")


class Advice(NamedTuple):
    """One piece of advice.

    action: what to do; reason: what was measured. Both lack a capital at the start and a full stop,
        so that they fit on a line of their own or into a sentence.
    """

    action: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.action}"


def cost_rows(costs: Mapping[str, Cost]) -> list[Sequence[str]]:
    """Return a row under COST_COLUMNS for each estimator."""
    return [
        (name, counted(cost.nodes), counted(cost.neighbours), bytes_text(cost.total_memory))
        for name, cost in costs.items()
    ]


def cost_line(used: str, cost: Cost) -> str:
    """Describe the cost of a run in a line."""
    largest = sorted(cost.memory, key=cost.memory.__getitem__, reverse=True)[:2]
    most = ", ".join(f"{name} {bytes_text(cost.memory[name])}" for name in largest)
    by, neighbours = "", "looks at no neighbours"
    if cost.neighbours:
        by, neighbours = f" by {used}", f"averages {counted(cost.neighbours)} neighbours"
    saved = ""
    if cost.forward or cost.left_out:
        saved = (
            f"; of the nodes it visits, gradients reach {cost.backward:,}, {cost.forward:,} are "
            f"visited forward only, and {cost.left_out:,} that nobody reads are left out"
        )
    files = f", and {bytes_text(cost.disk)} of disk for tables" if cost.files else ""
    if cost.mapped:
        files += f"; {bytes_text(cost.mapped)} of features and edges are read from disk as needed"
    return (
        f"an epoch{by} computes about {counted(cost.nodes)} nodes and {neighbours}{saved}; the run "
        f"takes about "
        f"{bytes_text(cost.total_memory)} of memory ({most}) besides Python and PyTorch{files}"
    )


def exact_advice(used: str, costs: Mapping[str, Cost], reference: str) -> Advice | None:
    """Return advice for when exact training computes hardly more than the estimator that is
    used."""
    if used == reference or used not in costs or reference not in costs:
        return None
    exact, mine = costs[reference], costs[used]
    if not exact.hardly_more(mine) or not exact.neighbours:
        return None
    more = "no more" if exact.nodes <= mine.nodes else "hardly more"
    return Advice(
        f"try {setting('estimator', reference)}, which costs {more} and has no noise",
        f"on this graph {reference} training computes {counted(exact.nodes)} nodes an epoch, "
        f"{used} {counted(mine.nodes)}",
    )
