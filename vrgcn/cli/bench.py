"""`vrgcn bench`: training, inference and start-up, measured in one run."""

from __future__ import annotations

import sys
from dataclasses import replace

from rich.console import Console

from lab.bench.bench import Bench, scratch_folder
from lab.bench.run import run_sections
from lab.bench.scale import FULL, QUICK, QUICK_GRAPH, Scale
from vrgcn.cli.options import BenchOptions
from vrgcn.data.opening import open_graph
from vrgcn.data.synthetic import community_graph
from vrgcn.engine.devices import use_threads
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import scale_graph
from vrgcn.pages.destination import check_out

_PLAIN_WIDTH = 120  # of tables that go to a file


def run_bench(options: BenchOptions) -> None:
    """Measure, print, write; with --check, exit with 1 if a limit was missed."""
    check_out(options.out, [".json"])
    use_threads(options.threads)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    graph = _graph(options)
    name = "quick" if options.quick else options.dataset
    console.print(f"{name}: {graph}", highlight=False, soft_wrap=True)
    about = {"dataset": name, "graph": repr(graph), "sections": list(options.sections)}
    with scratch_folder() as folder:
        bench = Bench(graph, _scale(options), options.threads, console, folder)
        verdicts = run_sections(bench, options.sections, options.out, about)
    if options.quick:
        console.print("note: a quick run shows that everything runs; its figures mean nothing")
    console.print(f"written to {options.out}", highlight=False, markup=False, soft_wrap=True)
    if options.check and any(verdict.met is False for verdict in verdicts):
        sys.exit(1)


def _graph(options: BenchOptions) -> Graph:
    if options.quick:
        return community_graph(QUICK_GRAPH)
    opened = open_graph(options.dataset, data_root=options.data_root)
    if not len(opened.graph.train):
        raise ValueError(f"--dataset: {options.dataset} has no training nodes")
    return scale_graph(opened.graph, opened.scaling)[0]


def _scale(options: BenchOptions) -> Scale:
    """The real thing or the tiny one, with what was asked for in its place."""
    asked = {
        "turns": options.turns,
        "runs": options.runs,
        "target": options.target,
        "epochs": options.epochs,
        "slow_epochs": options.slow_epochs,
        "evaluations": options.evaluations,
        "seeds": options.seeds,
        "history_dtype": options.history_dtype,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    return replace(QUICK if options.quick else FULL, **given)  # type: ignore[arg-type]
