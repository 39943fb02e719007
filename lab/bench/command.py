"""`vrgcn bench`: training, inference and start-up, measured in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lab.bench.bench import Bench, scratch_folder
from lab.bench.run import run_sections
from lab.bench.scale import FULL, QUICK, QUICK_GRAPH
from lab.harness.graphs import scaled_graph
from vrgcn.data.synthetic import community_graph
from vrgcn.engine.devices import use_threads
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import printable
from vrgcn.files.writing import check_out
from vrgcn.graph.graph import Graph

_PLAIN_WIDTH = 120  # width of tables that are written to a file


def run_bench(
    *,
    sections: Sequence[str],
    dataset: str,
    data_root: Path | None,
    out: Path,
    quick: bool,
    threads: int,
    **sizes: object,
) -> bool:
    """Run `vrgcn bench` with the values of its flags: measure, print, write.

    sizes: fields of `Scale`; None for the usual size
    Returns False if a measured value misses its limit.
    """
    check_out(out, [".json"])
    use_threads(threads)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    graph = community_graph(QUICK_GRAPH) if quick else _opened(dataset, data_root)
    name = "quick" if quick else dataset
    console.print(f"{name}: {graph}", highlight=False, soft_wrap=True)
    about = {"dataset": name, "graph": repr(graph), "sections": list(sections)}
    given = {field: value for field, value in sizes.items() if value is not None}
    scale = replace(QUICK if quick else FULL, **given)  # type: ignore[arg-type]
    with scratch_folder() as folder:
        bench = Bench(graph, scale, threads, console, folder)
        verdicts = run_sections(bench, sections, out, about)
    if quick:
        console.print("note: a quick run shows that everything runs; its figures mean nothing")
    written = f"written to {printable(out)}"
    console.print(written, highlight=False, markup=False, soft_wrap=True)
    return all(verdict.met is not False for verdict in verdicts)


def _opened(dataset: str, data_root: Path | None) -> Graph:
    graph = scaled_graph(dataset, data_root)
    if not len(graph.train):
        raise InputError(f"--dataset: {dataset} has no training nodes")
    return graph
