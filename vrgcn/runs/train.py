"""`train`: trains on a graph and writes the run to a folder, as `vrgcn train` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from vrgcn.data.sources import find_source
from vrgcn.data.store import save_graph
from vrgcn.graph.edge_means import averaged_columns, cannot_follow
from vrgcn.graph.graph import Graph
from vrgcn.leaks import quick_audit
from vrgcn.runs.config_file import build, check_known, read_values, setting_types
from vrgcn.runs.folder import CONFIG, GRAPH, chosen_estimator, claimed, read_config
from vrgcn.runs.job import Job
from vrgcn.runs.resume import described, refuse_changes
from vrgcn.runs.run import Run, load_run
from vrgcn.runs.settings import NOTED, OF_COMMAND, Settings
from vrgcn.targets.usual import with_usual
from vrgcn.training.listener import Callbacks
from vrgcn.training.state import Epoch

_SOURCE = ("dataset", "graph")  # settings that the argument `graph` replaces


def train(
    graph: Graph | str | Path,
    *,
    out: str | Path,
    resume: bool = False,
    overwrite: bool = False,
    verbose: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a graph and write the run to a folder. `vrgcn report`, `predict`, `evaluate`
    and `train --resume` accept it.

    graph: the folder that `vrgcn import` wrote, the name of a data set, or a `Graph` with unscaled
        features; a `Graph` is kept in the folder of the run
    out: the folder of the run; it must not exist yet
    resume: continue the run in `out` with its own settings and the given ones, to the same bits as
        without the interruption
    overwrite: start over if `out` already holds a run
    verbose: show progress
    on_epoch: called with each point of the curve; it may raise StopTraining
    settings: any of `ModelConfig`, `TrainConfig` and `vrgcn train`, by name: hidden=64, epochs=20,
        scaling="row", ratio=(0.6, 0.2, 0.2)
    """
    if not isinstance(graph, Graph | str | Path):
        raise TypeError(
            "graph takes a Graph, the folder that `vrgcn import` wrote, or the name of a data set, "
            f"not {type(graph).__name__}; Graph.from_pyg, from_pandas and from_tables make a Graph"
        )
    folder = Path(out)
    types = {k: v for k, v in setting_types(Settings).items() if k not in _SOURCE}
    for name in settings:
        check_known(name, types)
    with claimed(folder, resume=resume, overwrite=overwrite):
        before = read_config(folder) if resume else {}
        if resume:
            left_out = (*NOTED, *OF_COMMAND, *_SOURCE)
            settings = read_values(folder / CONFIG, Settings, left_out) | settings
        else:
            settings = with_usual(settings)
        found = build(Settings, settings | _source(graph, folder))
        if resume:
            refuse_changes(found, folder)
        opened = found.open_graph()
        found = found.settled(opened.graph, print if verbose else None)
        job = found.prepare(opened.graph, chosen_estimator(folder) if resume else None)
        if verbose:
            _print(opened.graph, opened.note, job)
            for finding in [] if resume else quick_audit(opened.graph):
                print(f"warning: possible leak: {finding}")
        values = {**before, **described(found, opened.checksum)}
        job.run(
            folder,
            values,
            Callbacks(on_epoch=on_epoch),
            resume=resume,
            verbose=verbose,
            smooth=found.smooth,
            calibrate=found.calibrate,
        )
    return load_run(folder)


def _source(graph: Graph | str | Path, folder: Path) -> dict[str, Any]:
    """Return the settings that name a graph; a `Graph` is written to the folder of the run."""
    if not isinstance(graph, Graph):
        return find_source(None, None, str(graph))._asdict()
    if not (folder / GRAPH).is_dir():
        save_graph(graph, folder / GRAPH)
    return {"dataset": None, "graph": folder / GRAPH}


def _print(graph: Graph, note: str | None, job: Job) -> None:
    print(graph)
    for said in (note, cannot_follow(averaged_columns(graph))):
        if said is not None:
            print(f"note: {said}")
    if job.choice is not None:
        print(f"estimator {job.choice.estimator}: {job.choice.reason}")
