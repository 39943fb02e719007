"""Training that does not fit into memory: what takes it, and what would take less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vrgcn.engine.estimators import find_estimator
from vrgcn.files.memory import is_out_of_memory
from vrgcn.files.sizes import bytes_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_sparse
from vrgcn.training.config import AUTO, TrainConfig


@contextmanager
def memory_explained(graph: Graph, config: TrainConfig) -> Iterator[None]:
    """Turns an allocation that failed into an error that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError(advice(graph, config, str(error))) from error


def advice(graph: Graph, config: TrainConfig, said: str = "") -> str:
    """What takes memory in training, what is easily lowered first.

    said: by the allocator, which may name the bytes that it was asked for
    """
    # What auto stands for has histories, or takes less.
    estimator = find_estimator("two-way" if config.estimator == AUTO else config.estimator)
    wide = config.history_dtype == "float32"
    column = graph.num_nodes * (4 if wide else 2)
    told = [
        f"there is not enough memory to train on {graph.num_nodes:,} nodes and "
        f"{graph.num_edges:,} edges{_missing(said)}. What takes less:"
    ]
    if config.batch_size > 1:
        half = config.batch_size // 2
        told.append(f"  --batch-size {half}: a step of half the nodes takes about half as much")
    if estimator.history and wide:
        told.append(
            "  --history-dtype float16: histories take half as much, "
            f"{bytes_text(column / 2)} less for each column of a hidden layer"
        )
    if estimator.history:
        told.append(
            f"  --estimator ns: no histories at all, {bytes_text(column)} less for each column"
        )
    if config.preprocess is not False and not is_sparse(graph.features):
        size = graph.features.numel() * graph.features.element_size()
        told.append(f"  --no-preprocess: no averages of the features, {bytes_text(size)} less")
    told.append("  --hidden: weights, histories, steps and evaluation grow with it")
    return "\n".join(told)


def _missing(said: str) -> str:
    """What the allocator was asked for, and what the process has, as far as that is known."""
    asked = re.search(r"allocate ([\d.]+) ?(bytes|[KMG]iB)", said)
    parts = [] if asked is None else [f"{_size(*asked.groups())} more were asked for"]
    status = Path("/proc/self/status")
    used = re.search(r"VmSize:\s*(\d+) kB", status.read_text()) if status.exists() else None
    if used is not None:
        parts.append(f"the process has {bytes_text(1024 * int(used[1]))}")
    return f" ({', '.join(parts)})" if parts else ""


def _size(number: str, unit: str) -> str:
    factor = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    return bytes_text(float(number) * factor)
