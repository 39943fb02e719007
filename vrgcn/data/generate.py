"""Community graphs of any size, written to disk in pieces: for trying what is larger than memory.

They are like those of `synthetic.py`, but with many small communities, of one class each, as large
graphs have them: an edge stays inside a community with probability `homophily`, both ends drawn in
proportion to heavy-tailed weights. Communities are runs of places, and a random order of the nodes
hides them, so that numbers of nodes say nothing, unless the order of places is asked for.

Memory holds a few numbers for each node, and a piece of edges or of features. Every piece has
random numbers of its own, so the graph depends on its description and seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.store import write_array, write_meta
from vrgcn.data.store_format import BlockPlace, RelationPlace
from vrgcn.data.synthetic import COMMUNITIES, CommunitySpec, degree_weights, feature_centres
from vrgcn.data.tables.adjacency import EdgeFile, write_adjacency
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.files.writing import new_folder
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.names import Names
from vrgcn.graph.relations import ONLY
from vrgcn.graph.validation import SPLITS

PIECE = 1 << 22  # pairs of nodes, and numbers of features, that are drawn at a time
_ORDER, _GROUPS, _WEIGHTS, _CENTRES, _SPLIT, _PAIRS, _FEATURES = range(7)  # random streams

Int64s = NDArray[np.int64]


def generate_graph(
    spec: GenerateSpec, path: str | Path, on_piece: Callable[[float], None] | None = None
) -> int:
    """Write the graph to the new folder `path`; gives the number of its directed edges.

    on_piece: told the share of the work that is done, 0 to 1
    """
    tell = on_piece or (lambda done: None)
    with new_folder(path) as folder:
        order = np.arange(spec.nodes)  # place -> node
        if spec.order == "random":
            order = _random(spec, _ORDER).permutation(spec.nodes)
        pairs = EdgeFile("generated edges", folder, spec.nodes, weighted=False)
        for done, (source, target) in _pairs(spec):
            pairs.append(order[source], order[target], None)
            tell(0.3 * done)
        edges = write_adjacency(pairs, directed=False).entries
        tell(0.7)
        labels = np.empty(spec.nodes, np.int64)
        labels[order] = _place_labels(spec)
        del order
        write_array(folder, "labels", labels)
        block = BlockPlace(0, 0, spec.nodes, spec.features, None)
        [name], row = block.files(0), (spec.features,)
        with GrowingArray(folder / f"{name}.npy", spec.feature_dtype, row) as features:
            for rows in _features(spec, labels):
                features.append(rows)
                tell(0.7 + 0.2 * features.rows / spec.nodes)
        for name, ids in zip(SPLITS, _splits(spec), strict=True):
            write_array(folder, name, ids)
        write_meta(
            *(folder, Kinds.one(spec.nodes, spec.features), Names()),
            *([RelationPlace(*ONLY, edges, weighted=False, undirected=True)], [block]),
            num_classes=spec.classes,
            task="classes",
        )
        tell(1.0)
    return edges


def _place_labels(spec: GenerateSpec) -> Int64s:
    """(nodes,) the class of the community that each place is in."""
    groups = -(-spec.nodes // spec.community)
    return (
        _random(spec, _GROUPS)
        .integers(spec.classes, size=groups)
        .repeat(spec.community)[: spec.nodes]
    )


def _pairs(spec: GenerateSpec) -> Iterator[tuple[float, tuple[Int64s, Int64s]]]:
    """Pieces of edges between places, each with the share of them that is done."""
    total = np.concatenate([[0.0], np.cumsum(degree_weights(_like(spec), _random(spec, _WEIGHTS)))])
    count = _like(spec).pairs
    for piece, start in enumerate(range(0, count, PIECE)):
        end = min(start + PIECE, count)
        yield end / count, _piece(spec, total, end - start, _random(spec, _PAIRS, piece))


def _piece(
    spec: GenerateSpec, total: NDArray[np.float64], count: int, rng: np.random.Generator
) -> tuple[Int64s, Int64s]:
    """Sources and targets, (count,) each but for the loops that were drawn.

    total: (nodes + 1,) sums of the weights of the places before each
    """
    # Points are looked up in order: in a table larger than the processor's cache, 10 times as fast.
    source = _places(total, np.sort(rng.random(count)) * total[-1])
    target = np.empty_like(source)
    inside = rng.random(count) < spec.homophily
    low = source[inside] // spec.community * spec.community
    high = np.minimum(low + spec.community, spec.nodes)
    point = total[low] + rng.random(len(low)) * (total[high] - total[low])
    target[inside] = np.clip(_places(total, point), low, high - 1)
    outside = _places(total, np.sort(rng.random(count - len(low))) * total[-1])
    target[~inside] = rng.permutation(outside)
    other = source != target
    return source[other], target[other]


def _places(total: NDArray[np.float64], point: NDArray[np.float64]) -> Int64s:
    return np.minimum(np.searchsorted(total, point, side="right") - 1, len(total) - 2)


def _features(spec: GenerateSpec, labels: Int64s) -> Iterator[NDArray[np.float32]]:
    """Pieces of the features, (rows, width): noise around one of a class's two centres."""
    centres = feature_centres(_like(spec), _random(spec, _CENTRES))
    rows = max(1, PIECE // spec.features)
    for piece, start in enumerate(range(0, spec.nodes, rows)):
        some = labels[start : start + rows]
        rng = _random(spec, _FEATURES, piece)
        side = rng.integers(2, size=len(some))
        x = rng.standard_normal((len(some), spec.features), dtype=np.float32)
        x += centres[some + spec.classes * side]
        yield x


def _splits(spec: GenerateSpec) -> list[Int64s]:
    """Node numbers of each split, ascending."""
    ends = np.cumsum([0.0, spec.train, spec.val, spec.test])
    drawn = _random(spec, _SPLIT).random(spec.nodes)
    return [np.flatnonzero((drawn >= low) & (drawn < high)) for low, high in pairwise(ends)]


def _like(spec: GenerateSpec) -> CommunitySpec:
    """The parts of the small graphs' description that stay: features and degrees."""
    return CommunitySpec(
        nodes=spec.nodes,
        pairs=round(spec.nodes * spec.degree / 2),
        classes=spec.classes,
        width=spec.features,
        train=0,
        val=0,
        test=0,
        homophily=spec.homophily,
        signal=COMMUNITIES.signal,
        contrast=COMMUNITIES.contrast,
        tail=COMMUNITIES.tail,
        spread=COMMUNITIES.spread,
    )


def _random(spec: GenerateSpec, *what: int) -> np.random.Generator:
    """Random numbers of one purpose, or of one piece of it."""
    return np.random.default_rng((spec.seed, *what))
