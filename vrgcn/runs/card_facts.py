"""What the card of a run says about its data: sentences about a graph and its split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vrgcn.files.printable import printable, shortened
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import layout_word
from vrgcn.graph.validation import SPLITS
from vrgcn.targets.scored import scored_edges
from vrgcn.tasks import find_task

Facts = Mapping[str, Sequence[str]]  # sentences by the heading that they stand under
_SHOWN = 12  # names of classes, kinds or relations
_LONGEST = 200  # characters of a name


def facts_of(graph: Graph) -> Facts:
    """Return how large a graph is and what its nodes have; its split, and what prevents leaks."""
    layout = layout_word(graph.features).strip()
    data = [
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} entries of the adjacency matrix, "
        f"{graph.num_features:,} feature columns{layout and f' ({layout})'}"
    ]
    if graph.kinds.named:
        sizes = [f"{name} ({size:,})" for name, size in graph.kinds.sizes.items()]
        data += [f"kinds of nodes: {listed(sizes)}", f"relations: {listed(list(graph.edges))}"]
    if graph.labels is not None:
        task = find_task(graph.task)
        names = graph.names.classes or range(graph.num_classes)
        classes = f"; {graph.num_classes:,} classes: {listed(names)}" if task.has_classes else ""
        known = f"known for {int(graph.labelled.sum()):,} nodes"
        data.append(f"labels: {task.label}, {known}{classes}")
    return {"Data": data, "Split": _split(graph)}


def _split(graph: Graph) -> list[str]:
    edges = scored_edges(graph)
    if edges is not None:
        what, rules = edges.word, edges.predicted.rules
        counts = {name: len(edges.predicted.split(name)) for name in SPLITS}
    else:
        what = "nodes"
        counts = {name: len(graph.split(name)) for name in SPLITS}
        rules = () if graph.visible is None else graph.visible.rules
    sizes = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    return [f"{what}: {sizes}", *(f"against leaks: {rule}" for rule in rules)]


def code(text: object) -> str:
    """Return a name of the user's as code in Markdown, on one line and not too long for it."""
    name = printable(shortened(str(text), _LONGEST))
    return f"`{name.replace('`', chr(39)).replace('|', chr(0x2223))}`"


def listed(names: Sequence[object]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(code(name) for name in names[:_SHOWN]) + more
