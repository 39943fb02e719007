"""`vrgcn info`: prints the columns of the paper's Table 1, and more, for any graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import DataRoot, Dataset, GraphFolder, GraphOrDataset, with_graph
from vrgcn.data import find_dataset
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import bytes_text, print_note, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table
    from torch import nn

    from vrgcn.data.statistics import SampledMean, Statistics
    from vrgcn.graph.graph import Graph

RELATIONS_SHOWN = 20


@dataclass(frozen=True)
class InfoOptions(Options):
    """Flags of `vrgcn info`."""

    graph_or_dataset: GraphOrDataset = None
    dataset: Dataset = None
    graph: GraphFolder = None
    data_root: DataRoot = None
    verify: bool = False
    """Read all files of a graph on disk first and compare their checksums: one or two seconds per
    gigabyte."""

    only_prints: ClassVar[bool] = True

    def checked(self) -> Self:
        """Resolve the graph."""
        return with_graph(self)


def run(options: InfoOptions) -> None:
    """Print the facts about a graph that matter before training on it."""
    from vrgcn.data.opening import open_graph
    from vrgcn.data.statistics import statistics
    from vrgcn.pages.terminal import print_table

    opened = open_graph(options.dataset, options.graph, options.data_root, verify=options.verify)
    counted = statistics(opened.graph)
    if options.dataset is not None:
        print(f"{options.dataset}: {find_dataset(options.dataset).description}")
    print_note(opened.note)
    for table in _kinds(opened.graph):
        print_table(table)
    print_table(_table_1(counted))
    lines = _lines(counted, opened.scaling)
    if opened.graph.kinds.named:
        del lines["entries"]
        lines["edges"] = _edges_of_relations(opened.graph, counted)
    if opened.graph.dated is not None:
        lines["rows with a time"] = str(opened.graph.dated)
    width = max(map(len, lines))
    for heading, text in lines.items():
        print(f"{heading:<{width}}  {text}")
    if opened.graph.labels is not None and len(opened.graph.train):
        _print_costs(opened.graph)


def _print_costs(graph: Graph) -> None:
    """Print what an epoch of each estimator computes and reads, with the default options of `vrgcn
    train`."""
    from vrgcn.costs.choice import choice_by
    from vrgcn.costs.epoch_cost import COST_COLUMNS, cost_rows, epoch_costs
    from vrgcn.costs.order import build_for
    from vrgcn.engine.estimators import ESTIMATORS
    from vrgcn.models.config import ModelConfig
    from vrgcn.pages.terminal import print_table, text_table
    from vrgcn.training.config import TrainConfig
    from vrgcn.training.objective import build_objective

    model, config = ModelConfig(), TrainConfig()
    outputs = build_objective(graph, config).outputs
    built = build_for(model, graph, outputs, config.seed)
    costs = epoch_costs(built, graph, config, ESTIMATORS)
    if not costs:
        _print_refusal(built, graph)
        return
    title = f"an epoch by each estimator: {model.model}, {model.layers} layers of {model.hidden}"
    print_table(text_table(title, COST_COLUMNS, cost_rows(costs)))
    choice = choice_by(costs)
    print(f"vrgcn train takes {choice.estimator} here: {choice.reason}")


def _print_refusal(model: nn.Module, graph: Graph) -> None:
    """Print why no estimator can train here, for example because of negative weights; the graph is
    described anyway."""
    from vrgcn.graph.propagation import build_propagation

    try:
        build_propagation(str(model.propagation), graph)
    except InputError as error:
        print(f"vrgcn train cannot train here: {printable(str(error))}")


def _kinds(graph: Graph) -> Iterator[Table]:
    """Yield the tables of kinds and of relations, in a graph of several kinds."""
    from vrgcn.graph.relations import reverses_of
    from vrgcn.pages.terminal import text_table

    kinds = graph.kinds
    if not kinds.named:
        return
    known = {name: int(graph.labelled[kinds.nodes(name)].sum()) for name in kinds.names}
    rows = [
        (printable(name), f"{size:,}", f"{kinds.widths.get(name, 0):,}", f"{known[name]:,}")
        for name, size in kinds.sizes.items()
    ]
    yield text_table("kinds of nodes", ("kind", "nodes", "features", "labelled"), rows)
    given = list(graph.given.values())
    shown = sorted(given, key=lambda each: -each.num_edges)[:RELATIONS_SHOWN]
    rows = [
        (
            printable(each.name) + (", weighted" if each.weighted else ""),
            f"{each.num_edges:,}",
            f"{each.num_edges / kinds.sizes[each.source]:.1f}",
            f"{each.num_edges / kinds.sizes[each.target]:.1f}",
        )
        for each in (given if len(given) <= RELATIONS_SHOWN else shown)
    ]
    title = f"{len(given):,} relations, {reverses_of(given)}"
    if len(given) > RELATIONS_SHOWN:
        title += f"; the largest {RELATIONS_SHOWN}"
    yield text_table(title, ("relation", "edges", "per source", "per target"), rows)


def _edges_of_relations(graph: Graph, statistics: Statistics) -> str:
    return (
        f"{graph.num_edges:,} of {len(graph.edges):,} relations; E counts pairs of nodes that any "
        f"relation joins, in both directions; {statistics.isolated:,} nodes without any"
    )


def _table_1(statistics: Statistics) -> Table:
    """Format a number with the rounding of the paper's Table 1: see `vrgcn.data.statistics`."""
    from vrgcn.pages.terminal import text_table

    averages = (statistics.degree, statistics.two_hop)
    rounded = [f"{a.rounded():,}" if a.error == 0 else f"≈ {a.rounded():,}" for a in averages]
    row = (f"{statistics.nodes:,}", f"{statistics.edges:,}", *rounded)
    return text_table("as in the paper's Table 1", ("V", "E", "Degree", "Degree 2"), [row], names=0)


def _lines(statistics: Statistics, scaling: str) -> dict[str, str]:
    kind = "directed" if statistics.directed else "undirected"
    kind += ", weighted" if statistics.weighted else ""
    two = "one for an edge" if statistics.directed else "two for an edge, one for a self-loop"
    label, labels = "classes", f"{statistics.classes:,}"
    if statistics.several:
        labels += ", several per node"
    if statistics.numbers is not None:
        label, labels = "numbers", f"from {statistics.numbers}"
    sparse = f", {statistics.sparse:,} of them sparse" if statistics.sparse else ""
    lines = {
        "nodes within one hop": f"{statistics.degree.value:.3f} on average, with the node itself",
        "nodes within two hops": _average(statistics.two_hop),
        "neighbours": f"median {statistics.median_degree:,}, at most {statistics.max_degree:,}",
        "edges": f"{statistics.pairs:,}, {kind}; {statistics.self_loops:,} self-loops; "
        f"{statistics.isolated:,} nodes without any",
        "entries": f"{statistics.entries:,} in the matrix, {two}; E also counts each node's own",
        "features": f"{statistics.features:,}{sparse}, {statistics.density:.2%} not zero; "
        f"`vrgcn train` scales: {scaling}",
        label: f"{labels}; known for {statistics.labelled:,} nodes",
        "splits": ", ".join(f"{name} {count:,}" for name, count in statistics.splits.items()),
    }
    if statistics.homophily is not None:
        lines["homophily"] = f"{statistics.homophily:.1%} of edges join nodes of the same class"
    for name, size in statistics.memory.items():
        lines[f"memory: {name}"] = bytes_text(size)
    return lines


def _average(average: SampledMean) -> str:
    if average.error == 0:
        return f"{average.value:,.3f} on average"
    return (
        f"about {average.value:,.0f} ± {average.error:,.0f} (standard error) on average, "
        f"from {average.nodes:,} random nodes"
    )
