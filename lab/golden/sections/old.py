"""Files of earlier versions, read by the present code: graphs, models, runs and checkpoints.

version_1   in the tests: a graph and a run of classes
version_2   fixtures: a graph and a run of numbers
version_3   fixtures: graphs of each task, runs with checkpoints, seeds, a search, parts, and
            checkpoints of `fit` that was stopped inside an epoch
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from lab.golden.contents import array_line
from lab.golden.public import public
from lab.golden.workspace import Workspace

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
_LAUNCH = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "-m", "vrgcn")


def record(work: Workspace) -> None:
    """Record how the present code reads each."""
    (first,) = (work.tool / "tests").rglob("version_1")
    for source in (first, FIXTURES / "version_2", FIXTURES / "version_3"):
        shutil.copytree(source, work.folder / source.name)
    for name in ("version_1", "version_2"):
        _used(work, name, "graph", "run")
        again = ("train", "--config", "run/config.toml", "--out", "again")
        _do(work, name, "trained again", *again)
        work.files(f"{name}/trained again files", f"{name}/again")
    home = "version_3"
    for graph, run in (("graph", "two-way"), ("numbers", "cvd"), ("several", "history")):
        _used(work, home, graph, run)
    _made_longer(work, home)
    for name, function in _PYTHON.items():
        work.function(f"{home}/{name}", _inside(home, function))


def _do(work: Workspace, home: str, name: str, *arguments: object) -> None:
    """Run a command in the folder of a version."""
    work.command(f"{home}/{name}", *arguments, folder=work.folder / home)


def _used(work: Workspace, home: str, graph: str, run: str) -> None:
    """Record a graph that is described, and a run that predicts, embeds, is scored and shown."""
    _do(work, home, f"{graph} info", "info", graph, "--verify")
    for command, file in (("predict", "p.csv"), ("embed", "e.npy")):
        out = f"{run}-{file}"
        _do(work, home, f"{run} {command}", command, run, "--out", out)
        work.file(f"{home}/{run} {command} file", f"{home}/{out}")
    _do(work, home, f"{run} evaluate", "evaluate", run, "--out", f"{run}.png")
    work.file(f"{home}/{run} evaluation", f"{home}/evaluation-{run}.json")
    _do(work, home, f"{run} report", "report", run, "--out", f"{run}.html")
    work.file(f"{home}/{run} report page", f"{home}/{run}.html")


def _made_longer(work: Workspace, home: str) -> None:
    """Record runs that resume from their old checkpoints."""
    for run in ("two-way", "cvd"):
        _do(work, home, f"{run} longer", "train", "--resume", run, "--epochs", 5)
        work.files(f"{home}/{run} longer files", f"{home}/{run}")
    (work.folder / home / "history" / "result.json").unlink()
    _do(work, home, "history resumed", "train", "--resume", "history")
    work.files(f"{home}/history resumed files", f"{home}/history")
    _do(work, home, "seeds longer", "train", "--resume", "seeds", "--seeds", 3)
    work.files(f"{home}/seeds longer files", f"{home}/seeds")
    _do(work, home, "tuned longer", "tune", "--resume", "tuned", "--trials", 4)
    work.files(f"{home}/tuned longer files", f"{home}/tuned")
    longer = ("train", "--resume", "parts-run", "--epochs", 4)
    work.program(f"{home}/parts longer", *_LAUNCH, *longer, folder=work.folder / home)
    work.files(f"{home}/parts longer files", f"{home}/parts-run")


def _inside(home: str, function: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        os.chdir(home)
        function()

    return run


def _resumed_inside_an_epoch() -> None:
    import torch

    vrgcn = public()
    graph, _ = vrgcn.scale_graph(vrgcn.load_graph("graph"), "standard")
    config = vrgcn.TrainConfig(epochs=3, batch_size=8, estimator="two-way-cv")
    torch.manual_seed(0)
    model = vrgcn.GraphSAGE(graph.num_features, hidden=4, classes=graph.num_classes)
    vrgcn.fit(model, graph, config, resume="inside", checkpoint_every=1)
    for name, value in model.state_dict().items():
        print(f"{name}: {array_line(value)}")
    print(array_line(vrgcn.predict(model, graph)))


def _own_model() -> None:
    from lab.golden.sections.models import Residual

    vrgcn = public()
    saved = vrgcn.load_model("own.safetensors", model=Residual)
    print(saved.model)
    print(array_line(saved.predict(vrgcn.load_graph("graph"))))


_PYTHON = {
    "resumed inside an epoch": _resumed_inside_an_epoch,
    "own model": _own_model,
}
