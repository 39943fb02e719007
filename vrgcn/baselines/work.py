"""Seconds of baselines, counted from the sizes of a problem: the cheap ones are fitted first.

The numbers are those of one core of one machine. Their order is always the same for the same graph;
how long a counted second takes here is read off the baselines that were fitted (`speed`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

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
FIXED = 0.3  # seconds of any baseline beside its fit: its predictions and files
_BELIEVED = 1.0  # counted seconds that are believed to take as long here, before any is measured


def fit_seconds(name: str, problem: Problem, fitted: Collection[str] = ()) -> float:
    """Return about how long a recipe takes; infinity for one that is not known.

    fitted: recipes that were fitted to this problem before, and are not fitted again
    """
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
        return smooth + (0.0 if inner[name] in fitted else known[inner[name]])
    return known.get(name, float("inf"))


def _columns(graph: Graph) -> int:
    """Return how many columns a baseline of two hops reads."""
    if reads_relations(graph):
        return empty_inputs(graph, 2).columns
    return 3 * (COMPONENTS if graph.num_features > WIDEST else graph.num_features) + 1


def speed(taken: Mapping[str, float], problem: Problem) -> float:
    """Return how many seconds a counted one takes here: the median of the fitted baselines, each of
    which weighs as much as its counted seconds. One that took long for another reason, such as
    imports or the first product, makes no other dearer.

    taken: seconds of the fitted baselines by name; those that are not counted tell nothing
    """
    counted = {name: fit_seconds(name, problem, taken) for name in taken}
    ratios = [(1.0, _BELIEVED)]
    ratios += [
        (max(0.0, taken[name] - FIXED) / seconds, seconds)
        for name, seconds in counted.items()
        if 0 < seconds < float("inf")
    ]
    half, passed = sum(weight for _, weight in ratios) / 2, 0.0
    for ratio, weight in sorted(ratios):
        passed += weight
        if passed >= half:
            return ratio
    return 1.0


def cheap_first(names: Iterable[str], problem: Problem) -> list[str]:
    """Return recipes in the order in which they are fitted."""
    return sorted(names, key=lambda name: fit_seconds(name, problem))
