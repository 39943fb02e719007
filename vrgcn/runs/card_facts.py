"""What the card of a run says about its data: sentences about a graph and its split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrgcn.files.printable import printable, shortened
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import layout_word
from vrgcn.targets.predicted import kind_of
from vrgcn.targets.scored import scored_edges
from vrgcn.tasks import find_task

_SPLITS = ("train", "val", "test")
_SHOWN = 12  # names of classes, kinds or relations
_LONGEST = 200  # characters of a name


@dataclass(frozen=True)
class Facts:
    """Sentences about a graph.

    size: how large it is and what its nodes have
    split: which nodes or pairs are for training, validation and test, and what prevents leaks
    """

    size: tuple[str, ...]
    split: tuple[str, ...]


def facts_of(graph: Graph) -> Facts:
    """Return the sentences about a graph that a run was trained on."""
    return Facts((_size(graph), *_kinds(graph), *_labels(graph)), tuple(_split(graph)))


def source_text(config: Mapping[str, Any]) -> str:
    """Return where the graph of a run comes from."""
    if "dataset" in config:
        return f"data set {code(config['dataset'])}"
    if "graph" in config:
        return f"graph {code(Path(config['graph']).name)} ({code(config['graph'])})"
    return "a graph that was given from Python"


def split_text(config: Mapping[str, Any]) -> str:
    """Return how the split of a run came about."""
    seed = f"with seed {config.get('split_seed', 0)}"
    if config.get("train_until") is not None:
        until = f"training until {config['train_until']}"
        if config.get("val_until") is not None:
            until += f", validation until {config['val_until']}"
        return f"by time: {until}; the rest is for the test"
    if config.get("split_column") is not None:
        return f"by the column {code(config['split_column'])}"
    if config.get("leave_one_out"):
        return f"one pair of each source for the test and one for the validation, {seed}"
    ratio = config.get("ratio")
    if ratio:
        return f"drawn at random {seed}: shares {' / '.join(f'{share:g}' for share in ratio)}"
    if kind_of(config.get("predict")) == "relations":
        return f"as a column of the edges says; without one drawn at random {seed}"
    return "as the graph has it"


def code(text: object) -> str:
    """Return a name of the user's as code in Markdown, on one line and not too long for it."""
    name = printable(shortened(str(text), _LONGEST))
    return f"`{name.replace('`', chr(39)).replace('|', chr(0x2223))}`"


def listed(names: Sequence[object]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(code(name) for name in names[:_SHOWN]) + more


def _size(graph: Graph) -> str:
    layout = layout_word(graph.features).strip()
    return (
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} entries of the adjacency matrix, "
        f"{graph.num_features:,} feature columns{layout and f' ({layout})'}"
    )


def _kinds(graph: Graph) -> list[str]:
    if not graph.kinds.named:
        return []
    sizes = [f"{name} ({size:,})" for name, size in graph.kinds.sizes.items()]
    return [f"kinds of nodes: {listed(sizes)}", f"relations: {listed(list(graph.edges))}"]


def _labels(graph: Graph) -> list[str]:
    if graph.labels is None:
        return []
    task = find_task(graph.task)
    known = f"known for {int(graph.labelled.sum()):,} nodes"
    if not task.has_classes:
        return [f"labels: {task.label}, {known}"]
    names = graph.names.classes or range(graph.num_classes)
    return [f"labels: {task.label}, {known}; {graph.num_classes:,} classes: {listed(list(names))}"]


def _split(graph: Graph) -> list[str]:
    edges = scored_edges(graph)
    if edges is not None:
        what, rules = edges.word, edges.predicted.rules
        counts = {name: len(edges.predicted.split(name)) for name in _SPLITS}
    else:
        what = "nodes"
        counts = {name: len(graph.split(name)) for name in _SPLITS}
        rules = () if graph.visible is None else graph.visible.rules
    sizes = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    return [f"{what}: {sizes}", *(f"against leaks: {rule}" for rule in rules)]
