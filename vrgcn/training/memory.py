"""Training that does not fit into memory: what takes it, and what would take less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vrgcn.files.sizes import bytes_text
from vrgcn.graph.graph import Graph
from vrgcn.training.config import TrainConfig

# What allocators say, of the CPU, of numpy, of CUDA: PyTorch raises a plain RuntimeError.
_SAID = ("can't allocate memory", "not enough memory", "out of memory", "Cannot allocate memory")


@contextmanager
def memory_explained(graph: Graph, config: TrainConfig) -> Iterator[None]:
    """Turns an allocation that failed into an error that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError(advice(graph, config)) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, by type or by what PyTorch says."""
    return isinstance(error, MemoryError) or any(said in str(error) for said in _SAID)


def advice(graph: Graph, config: TrainConfig) -> str:
    """What takes memory in training, in the order in which it is easily lowered."""
    half = config.history_dtype == "float32"
    per_column = graph.num_nodes * (4 if half else 2)
    told = [
        f"there is not enough memory to train on {graph.num_nodes:,} nodes and "
        f"{graph.num_edges:,} edges. What takes less:",
        f"  --batch-size below {config.batch_size:,}: what a step computes grows with it",
        f"  --hidden smaller, or fewer --layers: each history takes {bytes_text(per_column)} per "
        "column of a hidden layer",
    ]
    if half:
        told.append("  --history-dtype float16: histories take half as much")
    if config.estimator not in ("exact", "ns", "is"):
        told.append("  --estimator ns: no histories at all")
    if config.preprocess is not False:
        told.append("  --no-preprocess: no second table as large as the features")
    told.append(
        "  --evaluate-every larger does not lower the peak: exact evaluation keeps a table for "
        "each hidden layer too"
    )
    return "\n".join(told)
