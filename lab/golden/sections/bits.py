"""Bits: weights, predictions and histories of every estimator, unbroken and resumed.

Each case is an estimator, a seed, and histories in memory or in files. By the command line it is
trained at once, and in two halves. From Python it is trained at once, and stopped twice inside an
epoch: by SIGINT, after which a checkpoint is written, and by an error, after which none is.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lab.golden.contents import array_line, describe
from lab.golden.public import public
from lab.golden.tables import graph
from lab.golden.workspace import Workspace

ESTIMATORS = (
    *("auto", "exact", "ns", "is", "cv", "cvd", "history", "two-way", "two-way-cv"),
    *("gradient-only", "uniform/corrected/none"),
)
SEEDS = (0, 1)
FLAGS = ("--hidden", 8, "--batch-size", 40, "--sample-size", 40, "--checkpoint-every", 1)


def record(work: Workspace) -> None:
    """Record every case, a text each."""
    vrgcn = public()
    graph(work, "crowd")
    more = [name for name in vrgcn.ESTIMATORS if name not in ESTIMATORS]
    for estimator in (*ESTIMATORS, *more):
        for seed in SEEDS:
            ram, disk = (_case(work, estimator, seed, memory) for memory in ("ram", "disk"))
            work.write(f"{_title(estimator, seed)}, ram and disk", _verdict(ram, disk))


def _title(estimator: str, seed: int) -> str:
    return f"{estimator.replace('/', '-')}, seed {seed}"


def _case(work: Workspace, estimator: str, seed: int, memory: str) -> str:
    """Record one case; return the ending of the run by the command line."""
    name = f"{_title(estimator, seed)}, {memory}"
    home = Path(name)
    (work.folder / home).mkdir()
    flags = ("--estimator", estimator, "--seed", seed, "--memory", memory, *FLAGS)
    whole, halves = home / "whole", home / "halves"
    work.command(f"{name}/whole", "train", "crowd", *flags, "--epochs", 4, "--out", whole)
    work.command(f"{name}/half", "train", "crowd", *flags, "--epochs", 2, "--out", halves)
    work.command(f"{name}/other half", "train", "--resume", halves, "--epochs", 4)
    work.run("predict", whole, "--memory", memory, "--out", home / "whole.npy")
    work.run("predict", halves, "--memory", memory, "--out", home / "halves.npy")
    once, again = ("\n".join(_ending(work, home, part)) for part in ("whole", "halves"))
    work.write(f"{name}/command line", f"{once}\nresumed: {_verdict(once, again)}")
    work.function(f"{name}/python", partial(_python, home, estimator, seed, memory))
    return once


def _ending(work: Workspace, home: Path, part: str) -> Iterator[str]:
    """Yield the ending of a run: model, curve, newest checkpoint, predictions."""
    run = work.folder / home / part
    for file in ("model.safetensors", "metrics.jsonl", "result.json"):
        yield f"{file}\n{describe(run / file, work.masks)}"
    for checkpoint in sorted((run / "checkpoints").iterdir())[-1:]:
        for file in ("weights.safetensors", "histories.safetensors"):
            yield f"{checkpoint.name} {file}\n{describe(checkpoint / file, work.masks)}"
    yield f"predictions\n{describe(work.folder / home / f'{part}.npy', work.masks)}"


def _verdict(once: str, again: str) -> str:
    return "the same bits" if once == again else f"OTHER BITS\n{again}"


def _python(home: Path, estimator: str, seed: int, memory: str) -> None:
    vrgcn = public()
    opened = vrgcn.load_graph("crowd", memory=memory)
    scaled, _ = vrgcn.scale_graph(opened, "standard")
    config = vrgcn.TrainConfig(
        **{"estimator": estimator, "seed": seed, "memory": memory, "sample_size": 40},
        **{"epochs": 3, "batch_size": 16},
    )
    train = partial(_train, scaled, config, seed)
    once = train(checkpoints=home / "once", checkpoint_every=1)
    print(once)
    broken = home / "broken"
    train(checkpoints=broken, checkpoint_every=1, on_step=_at(11, _interrupt))
    train(resume=broken, checkpoint_every=1, on_step=_at(9, _fail))
    again = train(resume=broken, checkpoint_every=1)
    print("resumed:", _verdict(once, again))


def _train(graph: Any, config: Any, seed: int, **options: Any) -> str:
    """Train a fresh model; return weights, curve and predictions, or the reason if it failed."""
    import torch

    vrgcn = public()
    torch.manual_seed(seed)
    model = vrgcn.GraphSAGE(graph.num_features, hidden=8, classes=graph.num_classes, dropout=0.3)
    try:
        result = vrgcn.fit(model, graph, config, **options)
    except BaseException as error:
        print(f"broken off by {type(error).__name__}: {error}")
        return "broken"
    lines = [f"{name}: {array_line(value)}" for name, value in model.state_dict().items()]
    lines += [f"epoch {point.epoch}: {point.loss!r} {point.val!r}" for point in result.curve]
    lines.append(f"kept {result.epoch}: {result.val!r} {result.test!r}, {result.stopped}")
    lines.append(f"predictions: {array_line(vrgcn.predict(model, graph))}")
    return "\n".join(lines)


def _at(count: int, function: Callable[[], None]) -> Callable[[int, int], None]:
    """Return a callback of steps that calls a function at one of them."""
    seen = []

    def step(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == count:
            print(f"after step {done} of {total}")
            function()

    return step


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _fail() -> None:
    raise RuntimeError("as if it were killed")
