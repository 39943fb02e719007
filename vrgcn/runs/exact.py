"""Exact outputs of a run's model: a graph, some of its nodes, sweeps over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from vrgcn.data.id_columns import IdColumns
from vrgcn.data.node_lists import listed_nodes
from vrgcn.data.sources import find_source
from vrgcn.files.mistakes import InputError
from vrgcn.files.scratch import table_folder
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import print_note
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import asked_nodes, exact_sweeps
from vrgcn.inference.sweeps import Outputs
from vrgcn.runs.run import Run, open_run_graph
from vrgcn.training.progress import filling_bars, progress_bar

ALL = "all"  # in place of a kind: nodes of all kinds


@dataclass(frozen=True)
class Sweeping:
    """graph: as the model takes it; nodes: those asked for, None for all; count: of them
    ids: the columns that name them in a file
    """

    graph: Graph
    nodes: Tensor | None
    ids: IdColumns
    sweeps: Outputs

    @property
    def count(self) -> int:
        return self.graph.num_nodes if self.nodes is None else len(self.nodes)


@contextmanager
def opened_sweeps(
    run: Run,
    nodes: Any,
    kind: str | None,
    *,
    beside: Path,
    graph: Graph | str | Path | None = None,
    dataset: str | None = None,
    data_root: str | Path | None = None,
    memory: Literal["ram", "disk"] = "ram",
    scored: bool = False,
    verbose: bool = False,
) -> Iterator[Sweeping]:
    """Yield sweeps of a run's model; temporary files are deleted afterwards.

    nodes: the path of a text file with an id in each line, or numbers as `predict` takes them;
        None: all nodes
    kind: of the nodes, or ALL; None: the kind that has labels, in a graph of several kinds
    beside: the folder of the output, for temporary files
    graph, dataset: in place of the run's own; data_root: folder of raw files
    scored: True if the splits are used, so that notes on them matter
    verbose: print notes and show progress
    """
    with table_folder(memory, beside) as folder:
        if not isinstance(graph, Graph):
            path = None if graph is None else Path(graph)
            find_source(dataset, path, needed=False)
            root = None if data_root is None else Path(data_root)
            on_fill = filling_bars() if verbose else None
            opened = open_run_graph(run, dataset, path, root, folder, on_fill, scored=scored)
            graph = opened.graph
            if verbose:
                print_note(opened.note)
        asked, of = _asked(graph, nodes, kind)
        sweeps = exact_sweeps(run.saved, graph, directory=folder)
        yield Sweeping(graph, asked, IdColumns(graph.names, of), sweeps)


def _asked(graph: Graph, nodes: Any, kind: str | None) -> tuple[Tensor | None, str | None]:
    """Return the nodes that are asked for, None for all, and their kind, None for several."""
    of = asked_kind(graph, kind)
    if not isinstance(nodes, Path):
        return asked_nodes(graph, nodes, kind if of is None else of), of
    if of is None and graph.kinds.named:
        named = setting("of", python="kind=")
        raise InputError(
            f"{setting('nodes')}: ids belong to a kind; say which with {named}, one of "
            f"{', '.join(graph.kinds.names)}"
        )
    return listed_nodes(nodes, graph.names, graph.num_nodes, of), of


def asked_kind(graph: Graph, kind: str | None) -> str | None:
    """Return the kind of nodes that is asked for; None for nodes of all kinds."""
    name = setting("of", Placeholder(kind or ""), python=f'kind="{kind}"')
    if not graph.kinds.named:
        if kind not in (None, ALL):
            raise InputError(f"{name}: the graph has no kinds of nodes; leave it out")
        return None
    if kind == ALL and ALL not in graph.kinds.names:
        return None
    try:
        graph.kinds.check(kind or graph.kinds.target or "")
    except InputError as error:
        raise InputError(f"{setting('of', python='kind=')}: {error}") from None
    return kind or graph.kinds.target


@contextmanager
def shown(what: str, total: int, verbose: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that advances a progress bar on the terminal; None if not verbose."""
    if not verbose:
        yield None
        return
    with progress_bar() as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)
