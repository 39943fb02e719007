"""Seconds of baselines, counted from the sizes of a problem: the cheap ones are fitted first.

The numbers are those of one core of one machine; what counts is their order, which is always the
same for the same graph.
"""

from __future__ import annotations

from collections.abc import Iterable

from vrgcn.baselines.hop_inputs import COMPONENTS, SPECTRAL, WIDEST
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import empty_inputs, reads_relations
from vrgcn.baselines.solving import compared_in_full
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_dense, num_entries

_PASSES, _SPREADS = 300, 30  # over all inputs, by a linear fit; along all edges, by labels
_FORMS, _COMPARED = 4, 1.5  # forms of inputs, and what to compare them costs, where each takes long
_EPOCHS, _ROUNDS = 40, 100
_PRODUCTS, _DENSE, _SPLITS = 4e9, 1.5e10, 1.2e8  # multiplications or looked-at numbers in a second
_LATER = 3.0  # trees of own features are seldom the best
_STEP = 1e-3  # seconds of a small step


def fit_seconds(name: str, problem: Problem) -> float:
    """Return about how long a recipe takes; infinity for one that is not known."""
    graph, outputs = problem.graph, problem.outputs
    train, entries, edges = len(graph.train), num_entries(graph.features), graph.num_edges
    columns = _columns(graph)
    more = columns + SPECTRAL + 2 * outputs
    smooth = _SPREADS * 5 * edges * outputs / _PRODUCTS

    def solved(work: float, speed: float) -> float:
        fits = _FORMS if compared_in_full(_FORMS, work, outputs) else _COMPARED
        return fits * _PASSES * outputs * work / speed

    def linear(hops: int) -> float:
        if reads_relations(graph):
            return solved(train * (columns if hops else columns // 3), _DENSE)
        if is_dense(graph.features):  # [X, P X, P P X] of the training nodes is kept
            return solved((hops + 1) * entries * train / graph.num_nodes, _DENSE)
        return solved((hops + 1) * entries + hops * edges, _PRODUCTS)

    def perceptron(width: int) -> float:
        return _EPOCHS * train * (3 * 256 * width / _DENSE + _STEP / min(256, max(16, train // 8)))

    def trees(width: int) -> float:
        per_round = max(1, outputs if outputs > 2 else 1)
        return _ROUNDS * per_round * (train * min(width, 100) / _SPLITS + _STEP)

    known = {
        "labels": _SPREADS * edges * outputs / _PRODUCTS,
        "linear": linear(0),
        "linear-2": linear(2),
        "link": solved(edges * train / graph.num_nodes, _PRODUCTS),
        "mlp-2": perceptron(columns),
        "mlp-tables": perceptron(more),
        "trees": _LATER * trees(columns // 3),
        "trees-2": trees(columns),
        "trees-tables": trees(more),
    }
    inner = {"smoothed": "linear-2", "smoothed-mlp": "mlp-2", "smoothed-trees": "trees-2"}
    if name in inner:
        return known[inner[name]] + smooth
    return known.get(name, float("inf"))


def _columns(graph: Graph) -> int:
    """Return how many columns a baseline of two hops reads."""
    if reads_relations(graph):
        return empty_inputs(graph, 2).columns
    return 3 * (COMPONENTS if graph.num_features > WIDEST else graph.num_features) + 1


def cheap_first(names: Iterable[str], problem: Problem) -> list[str]:
    """Return recipes in the order in which they are fitted."""
    return sorted(names, key=lambda name: fit_seconds(name, problem))
