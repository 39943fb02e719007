"""Training and exact prediction of a graph on disk under a hard limit of the process's own memory.

    python benchmarks/past_memory.py STORE --limit 3.3 --steps 500 --out result.json

--limit is RLIMIT_DATA in gigabytes: heap, stacks and every private mapping that can be written to.
Mapped files are not in it; their pages belong to the system, which takes them back as it needs.
Before it trains, the script makes a copy of what it maps and expects to be refused: a limit that
lets a copy pass proves nothing. --memory ram measures a graph that fits, without a limit.

Where the time goes: `plan` draws minibatches and reads the adjacency, `gather` copies rows of
features, averages and histories and averages them, `compute` is everything else. What of it waited
for the disk shows in the pages that had to be read (major faults) and the bytes read.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from vrgcn import TrainConfig, load_graph, scale_graph
from vrgcn.engine.batch import Batch
from vrgcn.engine.history import History
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.setup import Setup
from vrgcn.files.memory import is_out_of_memory
from vrgcn.files.scratch import table_folder
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.models.models import GraphSAGE
from vrgcn.training.objectives import build_objective
from vrgcn.training.trainer import Trainer

MADV_DONTNEED = 4
SECONDS: defaultdict[str, float] = defaultdict(float)


def timed(owner: type, name: str, what: str) -> None:
    """Count the time of a method."""
    method = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            SECONDS[what] += time.perf_counter() - start

    setattr(owner, name, wrapped)


def timed_batches() -> None:
    """Count the time in which minibatches are planned."""
    method = MiniBatches.rest_of_epoch

    def wrapped(self: MiniBatches) -> Iterator[Batch]:
        batches = method(self)
        while True:
            start = time.perf_counter()
            batch = next(batches, None)
            SECONDS["plan"] += time.perf_counter() - start
            if batch is None:
                return
            yield batch

    MiniBatches.rest_of_epoch = wrapped  # type: ignore[method-assign]


def drop_pages(*folders: Path) -> None:
    """Ask the system to forget the pages of some folders' files, so that they are read again."""
    libc = ctypes.CDLL(None, use_errno=True)
    roots = tuple(str(folder.resolve()) for folder in folders)
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, *_, name = line.split(maxsplit=5)
        if name.startswith(roots):  # pages that a process has mapped are not forgotten
            start, end = (int(x, 16) for x in place.split("-"))
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_DONTNEED)
    for file in (file for folder in folders for file in folder.rglob("*") if file.is_file()):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def counters() -> dict[str, float]:
    """Major faults and bytes read from the disk since the process began."""
    lines = Path("/proc/self/io").read_text().split("\n")
    io = dict(line.split(": ") for line in lines if line)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    return {"major_faults": faults, "gigabytes_read": int(io["read_bytes"]) / 1e9}


def since(before: dict[str, float]) -> dict[str, float]:
    return {name: round(value - before[name], 3) for name, value in counters().items()}


def own_memory() -> float:
    """Peak of the process's own memory as far as it was seen, gigabytes: without mapped files."""
    status = Path("/proc/self/status").read_text()
    kilobytes = {
        line.split(":")[0]: line.split()[1] for line in status.splitlines() if "kB" in line
    }
    return int(kilobytes["RssAnon"]) * 1024 / 1e9


def refused(copy: Callable[[], object]) -> bool:
    """Whether there is no memory for a copy."""
    try:
        copy()
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            return True
        raise
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--memory", choices=("ram", "disk"), default="disk")
    parser.add_argument("--limit", type=float, help="gigabytes of RLIMIT_DATA")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=240, help="of training, at most")
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--batches", choices=("random", "blocks"), default="random")
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--cold", action="store_true", help="forget all pages before training")
    parser.add_argument("--predict", action="store_true", help="then predict all nodes exactly")
    parser.add_argument("--scratch", type=Path, default=Path("past-memory-scratch"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    files = sum(f.stat().st_size for f in options.store.glob("*") if f.is_file())
    result: dict[str, Any] = {"options": vars(options), "store_gigabytes": files / 1e9}
    if options.limit is not None:
        limit = int(options.limit * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    result["threads"] = torch.get_num_threads()
    start = time.perf_counter()
    before = counters()
    graph = load_graph(options.store, memory=options.memory)
    result["open"] = {"seconds": time.perf_counter() - start, **since(before)}
    print(graph, flush=True)
    if options.limit is not None:
        result["copies_refused"] = {
            "features in float32": refused(graph.features.float),
            "edges twice": refused(graph.edge_index),
        }
        print(f"refused under the limit: {result['copies_refused']}", flush=True)
    start, before = time.perf_counter(), counters()
    graph, _ = scale_graph(graph, "standard")
    result["scale"] = {"seconds": time.perf_counter() - start, **since(before)}
    print(f"scaled: {result['scale']}", flush=True)
    with table_folder(options.memory, options.scratch) as directory:
        run(options, graph, directory, result)
    result["derived_gigabytes"] = (
        sum(f.stat().st_size for f in options.store.glob("derived/*")) / 1e9
    )
    text = json.dumps(result, indent=1, default=str)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n")


def run(options: Any, graph: Any, directory: Path | None, result: dict[str, Any]) -> None:
    config = TrainConfig(
        estimator="two-way",
        fanout=(0,),
        batch_size=options.batch_size,
        batches=options.batches,
        block=options.block,
        history_dtype="float16",
        learning_rate=0.005,
        memory=options.memory,
        diagnostics=0,
        epochs=1,
    )
    torch.manual_seed(0)
    outputs = build_objective(graph, config).outputs
    model = GraphSAGE(graph.num_features, options.hidden, outputs, layers=2, dropout=0.1)
    start, before = time.perf_counter(), counters()
    trainer = Trainer(model, graph, config, directory=directory)
    result["prepare"] = {"seconds": time.perf_counter() - start, **since(before)}
    print(f"P X and visits: {result['prepare']}", flush=True)
    timed_batches()
    # Tables are made at the first step, which is not counted.
    trainer.advance()
    if options.cold:
        drop_pages(options.store, *([] if directory is None else [directory]))
    for owner, name in ((Setup, "inputs"), (History, "average"), (History, "read")):
        timed(owner, name, "gather")
    timed(History, "replace", "gather")
    steps = min(options.steps, len(trainer.minibatches) - 2)  # the last one evaluates too
    result["train"] = train(trainer, steps, options.seconds)
    result["own_gigabytes"] = own_memory()
    if directory is not None:
        sizes = [f.stat().st_size for f in directory.rglob("*") if f.is_file()]
        result["scratch_gigabytes"] = sum(sizes) / 1e9
    if options.predict:
        result["predict"] = predict_all(trainer, graph, directory)
        result["own_gigabytes_predicting"] = own_memory()


def train(trainer: Trainer, steps: int, most: float) -> dict[str, Any]:
    """Nodes per second of some steps, and where their time goes. most: seconds"""
    SECONDS.clear()
    before, start, told = counters(), time.perf_counter(), time.perf_counter()
    for step in range(1, steps + 1):
        trainer.advance()
        now = time.perf_counter()
        if now - told > 20:
            told = now
            left = (now - start) / step * (steps - step)
            print(f"step {step} of {steps}, about {left:.0f} s left", flush=True)
        if now - start > most:
            break
    seconds = time.perf_counter() - start
    nodes = trainer.minibatches.batch_size * step
    shares = {what: round(spent / seconds, 3) for what, spent in SECONDS.items()}
    return {
        "steps": step,
        "of_an_epoch": round(step / len(trainer.minibatches), 3),
        "seconds": round(seconds, 2),
        "nodes_per_second": round(nodes / seconds),
        "shares": shares,
        "loss": trainer.progress.loss,
        **since(before),
    }


def predict_all(trainer: Trainer, graph: Any, directory: Path | None) -> dict[str, Any]:
    """Exact outputs of all nodes, and their accuracy on the test nodes."""
    before, start = counters(), time.perf_counter()
    done, told = 0, start
    sweeps = ExactSweeps(
        trainer.model,
        trainer.minibatches.setup,
        directory=None if directory is None else directory / "predict",
    )
    work = sweeps.work()

    def on_chunk(nodes: int) -> None:
        nonlocal done, told
        done += nodes
        now = time.perf_counter()
        if now - told > 20:
            told = now
            left = (now - start) / done * (work - done)
            print(f"predicted {done / work:.0%}, about {left:.0f} s left", flush=True)

    sweeps.on_chunk = on_chunk
    test = torch.zeros(graph.num_nodes, dtype=torch.bool)
    test[graph.test] = True
    right = 0
    for nodes, outputs in sweeps.stream():
        right += int(((outputs.argmax(1) == graph.labels[nodes]) & test[nodes]).sum())
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 2),
        "nodes_per_second": round(graph.num_nodes / seconds),
        "test_accuracy": right / max(len(graph.test), 1),
        **since(before),
    }


if __name__ == "__main__":
    main()
