"""Splits of a relation's edges into training, validation and test pairs, without leaks.

A graph that `split_pairs` returns has `pairs`, and its edges are those that messages may use:
validation and test pairs are in it in neither direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column
from vrgcn.graph.pairs import EDGES, Pairs, PairTarget
from vrgcn.graph.propagation import is_symmetric
from vrgcn.graph.relations import Relation, kept_entries
from vrgcn.graph.until import Until
from vrgcn.graph.visible import until_then
from vrgcn.pairs.negatives import drawn_negatives
from vrgcn.targets.degree_features import degree_features, has_degree_features
from vrgcn.targets.mean_features import features_of_visible
from vrgcn.targets.spec import PAIR_RATIO, TargetSpec
from vrgcn.targets.visible import named_nodes, rules_until, to_predict
from vrgcn.targets.ways import Listed, assigned, find_column, per_pair, way_of

RULES = (
    "validation and test pairs and their reverses carry no messages",
    "negatives contain no pair of their split or an earlier one",
)
RULE_OF_DEGREES = "features made of degrees count only training pairs"
RULE_OF_KINDS = (
    "means over the predicted relation's edges are made of training edges, where the graph keeps "
    "single values, and set to zero elsewhere"
)


def split_pairs(
    graph: Graph,
    relation: str = EDGES,
    ratio: Sequence[float] = PAIR_RATIO,
    seed: int = 0,
    *,
    leave_one_out: bool = False,
    split_column: str | None = None,
    train_until: str | None = None,
    val_until: str | None = None,
    time_column: str | None = None,
) -> Graph:
    """Return the graph whose edges are to be predicted: messages use only its training pairs.

    relation: "edges", the one relation of a graph without kinds; or the name of a relation between
        kinds, such as "user-bought-item"; with a kept column of it, "user-rated-item.rating", the
        column is predicted
    ratio: shares of training, validation and test pairs, drawn at random; both directions of an
        edge are in one of them
    seed: of the split and of the negatives that scores compare with
    leave_one_out: in place of the ratio, one pair of each source with at least three is a test pair
        and another one a validation pair: the last ones where the graph keeps times
    split_column: in place of the ratio, a kept column that says train, val or test
    train_until, val_until: in place of the ratio, the last moments of training and of validation,
        such as "2026-06" for the end of June; later edges of any relation carry no messages
    time_column: the kept column of times; None for the only one of dates

    Where a split has no validation pairs, the second share of the ratio is drawn from the training
    pairs. The graph has no labels, and all nodes are training nodes: features of all nodes are
    known; until a moment, nodes that an edge names by then. Features that the import made of the
    predicted relation's edges are made again of training edges, or set to zero.
    """
    return pairs_split(
        graph,
        TargetSpec(
            predict=relation,
            ratio=tuple(ratio),
            split_seed=seed,
            leave_one_out=leave_one_out,
            split_column=split_column,
            train_until=train_until,
            val_until=val_until,
            time_column=time_column,
        ),
    )


def pairs_split(graph: Graph, spec: TargetSpec) -> Graph:
    """The graph that `split_pairs` returns, by settings."""
    way_of(spec)
    until = None if spec.train_until is None else Until(spec.train_until, "train_until")
    name, column = named_target(graph, str(spec.predict))
    found = _find(graph, name)
    generator = torch.Generator().manual_seed(spec.split_seed)
    A = found.adjacency
    targets, sources = A.row_of_entry, A.indices
    directed = found.source != found.target or not is_symmetric(A)
    one, other = torch.minimum(sources, targets), torch.maximum(sources, targets)
    key, place = torch.unique(one * graph.num_nodes + other, return_inverse=True)
    loop = torch.div(key, graph.num_nodes, rounding_mode="floor") == key % graph.num_nodes
    kept = per_pair(graph.kept.get(name, {}), place, len(key))
    free = (~loop).nonzero()[:, 0]
    listed = Listed(
        name,
        _sources(sources, place, len(key))[free],
        {each: values.take(free) for each, values in kept.items()},
    )
    drawn = torch.zeros(len(key), dtype=torch.int64)  # loops stay
    drawn[free] = assigned(listed, spec, generator)
    of_entry = drawn[place]
    counted = sources != targets
    if not directed:
        counted &= sources < targets
    entries = [(counted & (of_entry == number)).nonzero()[:, 0] for number in range(4)]
    ends = torch.stack([sources, targets], dim=1)
    train, val, test, aside = (ends[places] for places in entries)
    pairs = Pairs(
        name,
        directed,
        graph.kinds.range(found.source),
        graph.kinds.range(found.target),
        train,
        val,
        test,
        kinds=(found.source, found.target),
        rules=_rules(graph, until),
        said=tuple(listed.said),
        aside=aside,
    )
    if column is not None:
        pairs = with_values(pairs, graph.kept[name][column], column, entries)
    else:
        negatives = {
            part: drawn_negatives(pairs, len(pairs.split(part)), generator, known)
            for part, known in (("val", pairs.known_until_val), ("test", pairs.known))
            if len(pairs.split(part))
        }
        pairs = replace(pairs, negatives=negatives)
    visible = {name: of_entry == 0}
    if until is not None:
        visible = until_then(graph, until, spec.time_column) | visible
    return visible_graph(graph, pairs, visible, only_named=until is not None)


def named_target(graph: Graph, predict: str) -> tuple[str, str | None]:
    """The relation that a text names, and the column of it that is predicted, or None."""
    if predict in graph.relations:
        return predict, None
    for relation in sorted(graph.relations, key=len, reverse=True):
        if predict.startswith(f"{relation}."):
            column = predict[len(relation) + 1 :]
            find_column(graph.kept.get(relation, {}), relation, "predict", column)
            return relation, column
    return predict, None


def with_values(pairs: Pairs, column: Column, name: str, entries: Sequence[Tensor]) -> Pairs:
    """The pairs whose value in a column is known, with these values; the others are in no split.

    entries: the places of the pairs of each split
    """
    if column.kind not in ("number", "class"):
        raise InputError(
            f"{setting('predict', f'{pairs.relation}.{name}')}: a {column.kind} cannot be "
            "predicted; a number or a class can"
        )
    parts: dict[str, Tensor] = {}
    values: dict[str, Tensor] = {}
    aside = [] if pairs.aside is None else [pairs.aside]
    for split, places in zip(("train", "val", "test"), entries, strict=False):
        own = column.take(places)
        parts[split] = pairs.split(split)[own.known]
        values[split] = own.values[own.known]
        aside.append(pairs.split(split)[~own.known])
    if not len(parts["train"]):
        raise InputError(
            f"{setting('predict', f'{pairs.relation}.{name}')}: no training pair has a value"
        )
    unknown = sum(len(pairs.split(split)) - len(part) for split, part in parts.items())
    said = (f"{counted(unknown, 'pair')} without a {name}: in no split",) if unknown else ()
    target = PairTarget(name, column.classes)
    return replace(
        pairs,
        train=parts["train"],
        val=parts["val"],
        test=parts["test"],
        target=target,
        values=values,
        said=(*pairs.said, *said),
        aside=torch.cat(aside),
    )


def _rules(graph: Graph, until: Until | None) -> tuple[str, ...]:
    """What is done against leaks in a graph, a sentence each."""
    degrees = (RULE_OF_DEGREES,) if has_degree_features(graph) else ()
    times = () if until is None else rules_until(graph, until)
    return (*RULES, *((RULE_OF_KINDS,) if graph.kinds.named else degrees), *times)


def visible_graph(
    graph: Graph, pairs: Pairs, visible: Mapping[str, Tensor], *, only_named: bool = False
) -> Graph:
    """The same nodes with the edges that messages may use, and pairs in place of labels.

    visible: (entries,) bool of each relation that loses edges
    only_named: learn the features' scaling from nodes that a visible edge names
    """
    hidden = () if pairs.target is None else (pairs.target.name,)
    edges = {name: kept_entries(graph.edges[name], keep) for name, keep in visible.items()}
    if graph.kinds.named:
        features = features_of_visible(graph, visible, hidden)
    elif has_degree_features(graph):
        features = degree_features(graph, edges[EDGES])
    else:
        features = graph.features
    nodes = torch.arange(graph.num_nodes)
    if only_named:
        nodes = named_nodes({**graph.edges, **edges}.values(), graph.num_nodes)
    return to_predict(graph, edges, features, nodes).replace(pairs=pairs)


def _find(graph: Graph, relation: str) -> Relation:
    if relation not in graph.edges and not graph.kinds.named:
        raise InputError(
            f"{setting('predict', relation)}: a graph of one kind has one relation, "
            f"{setting('predict', EDGES)}"
        )
    if relation not in graph.edges:
        near = get_close_matches(relation, graph.edges, n=1)
        hint = f"; did you mean {setting('predict', near[0])}?" if near else ""
        raise InputError(
            f"{setting('predict', relation)}: the graph has the relations "
            f"{', '.join(graph.edges)}{hint}"
        )
    if not graph.relations[relation].num_edges:
        raise InputError(f"{setting('predict', relation)}: the graph has no edges")
    return graph.relations[relation]


def _sources(sources: Tensor, place: Tensor, count: int) -> Tensor:
    """(count,) the source of each pair; of one without a direction, either end."""
    found = torch.empty(count, dtype=torch.int64)
    found[place] = sources
    return found
