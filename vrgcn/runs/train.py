"""`train`: trains on a graph and writes the run to a folder; `vrgcn train` is this function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from vrgcn.graph.graph import Graph
from vrgcn.runs.folder import member_runs
from vrgcn.runs.run import Run, load_run
from vrgcn.runs.run_settings import TrainSettings, given_settings
from vrgcn.runs.training import run_training
from vrgcn.training.state import Epoch


def train(
    graph: Graph | str | Path | None = None,
    *,
    out: str | Path | None = None,
    name: str | None = None,
    resume: bool | str | Path = False,
    overwrite: bool = False,
    config: str | Path | None = None,
    verbose: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a graph and write the run to a folder. `vrgcn report`, `predict`, `evaluate`
    and `train --resume` accept it.

    graph: the folder that `vrgcn import` wrote, the name of a data set, or a `Graph` with unscaled
        features, which is kept in the folder of the run; None: the one of `config`, or of the run
        that is resumed
    out: the folder of the run; it must not exist yet. None: runs/NAME
    name: of the run; None: made of graph, model and estimator
    resume: continue the run in `out`, or in this folder, with its own settings and the given ones,
        to the same bits as without the interruption
    overwrite: start over if `out` already holds a run
    config: a TOML file with settings, such as config.toml of a run; the given ones override it
    verbose: print what `vrgcn train` prints, and show progress
    on_epoch: called with each point of the curve; it may raise StopTraining
    settings: any of `vrgcn train`, by name: hidden=64, epochs=20, scaling="row",
        ratio=(0.6, 0.2, 0.2), log="tensorboard". With seeds=3 three runs lie in folders of
        their own inside `out`, and the first of them is returned
    """
    own = isinstance(graph, Graph)
    named = {"out": out, "name": name, "overwrite": overwrite, "config": config}
    given = {name: value for name, value in named.items() if value} | settings
    asked = given_settings(TrainSettings, graph, given, resume=resume, kept=own)
    folder = run_training(
        asked, graph if isinstance(graph, Graph) else None, verbose=verbose, on_epoch=on_epoch
    )
    return load_run(next(iter(member_runs(folder)), folder))
