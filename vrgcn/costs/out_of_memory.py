"""Training that does not fit into memory: reports what takes it, and what would have fit."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import nn

from vrgcn.costs.epoch_cost import Cost, epoch_costs
from vrgcn.engine.estimators import find_estimator
from vrgcn.files.memory import free_addresses, free_memory, is_out_of_memory, taken_memory
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import AUTO
from vrgcn.files.wording import bytes_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_dense
from vrgcn.training.config import TrainConfig

_THERE = ("edges", "features")  # entries of a cost that are read, or mapped, before training begins


@contextmanager
def memory_explained(
    graph: Graph, config: TrainConfig, model: nn.Module | None = None
) -> Iterator[None]:
    """Turn a failed allocation into an error that says what to lower.

    model: used to compute what would have fit
    """
    free, addresses = free_memory(), free_addresses()
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        missing = _missing(str(error), 0 if on_gpu else taken_memory())
        # The memory of the failed run must be free before another one can be planned.
        traceback.clear_frames(error.__traceback__)
        if on_gpu:
            raise MemoryError(advice(graph, config, missing, on_gpu=True)) from error
        raise MemoryError(advice(graph, config, missing, model, free, addresses)) from error


def advice(
    graph: Graph,
    config: TrainConfig,
    missing: str = "",
    model: nn.Module | None = None,
    free: int | None = None,
    addresses: int | None = None,
    *,
    on_gpu: bool = False,
) -> str:
    """Return advice on how to train in less memory, easy changes first.

    missing: the allocation that failed, in brackets
    free: bytes that were free before training; None if unknown
    addresses: bytes that could be mapped, including files; None without a limit
    on_gpu: True if the memory of the config's device is full, not that of the machine
    """
    if config.estimator == AUTO:  # the estimator it stands for has histories, or takes less
        config = replace(config, estimator="two-way")
    estimator = find_estimator(config.estimator)
    wide = config.history_dtype == "float32"
    column = graph.num_nodes * (4 if wide else 2)
    needs = Needs(graph, model, free, addresses)
    where = f" on {config.device}" if on_gpu else ""
    told = [
        f"there is not enough memory{where} to train on {graph.num_nodes:,} nodes and "
        f"{graph.num_edges:,} edges{missing}{needs.text(config)}. What takes less:"
    ]
    if config.memory == "ram":
        told.append(
            f"  {setting('memory', 'disk')}: histories, averaged features and evaluation in files, "
            f"read as needed{needs.on_disk(replace(config, memory='disk'))}"
        )
    if config.batch_size > 1:
        smaller = needs.largest_batch(config)
        told.append(
            f"  {setting('batch_size', smaller.batch_size)}: a step of half the nodes takes about "
            f"half as much{needs.then(smaller)}"
        )
    if estimator.history and wide:
        told.append(
            f"  {setting('history_dtype', 'float16')}: histories take half as much, "
            f"{bytes_text(column / 2)} less for each column of a hidden layer"
            f"{needs.then(replace(config, history_dtype='float16'))}"
        )
    if estimator.history:
        told.append(
            f"  {setting('estimator', 'ns')}: no histories at all, {bytes_text(column)} less for "
            f"each column{needs.then(replace(config, estimator='ns', fanout=None))}"
        )
    # Averages of the features stay on the CPU, with the features.
    if config.preprocess is not False and is_dense(graph.features) and not on_gpu:
        size = graph.features.numel() * graph.features.element_size()
        told.append(
            f"  {setting('preprocess', False)}: no averages of the features, {bytes_text(size)} "
            f"less{needs.then(replace(config, preprocess=False))}"
        )
    averages = needs.averages(config)
    if averages and not is_dense(graph.features) and not on_gpu:
        told.append(
            f"  {setting('transform_first', 'always')}: features are multiplied before they are "
            f"propagated, no averages of them, {bytes_text(averages)} less"
        )
    told.append(f"  {setting('hidden')}: weights, histories, steps and evaluation grow with it")
    return "\n".join(told)


class Needs:
    """Memory that a run would take with other settings, compared with the memory that was free.

    The texts are empty if there is no model to compute it from, or not even the memory to plan a
    step.
    """

    def __init__(
        self,
        graph: Graph,
        model: nn.Module | None,
        free: int | None,
        addresses: int | None = None,
    ) -> None:
        self.graph, self.model, self.free, self.addresses = graph, model, free, addresses

    def text(self, config: TrainConfig) -> str:
        """Return the memory of the run with its present settings."""
        cost = self._cost(config)
        if cost is None or self.free is None:
            return ""
        parts = sorted(
            ((size, name) for name, size in cost.memory.items() if name not in _THERE), reverse=True
        )
        most = ", ".join(f"{name} {bytes_text(size)}" for size, name in parts[:3])
        size = bytes_text(_size(cost))
        return f". It takes about {size} ({most}), and {bytes_text(self.free)} were free"

    def then(self, config: TrainConfig) -> str:
        """Return the memory with changed settings."""
        cost = self._cost(config)
        if cost is None or self.free is None:
            return ""
        fits = "which would have fit" if _size(cost) < self.free else "not enough by itself"
        return f"; about {bytes_text(_size(cost))} in all, {fits}"

    def on_disk(self, config: TrainConfig) -> str:
        """Return the memory with tables in files. Files are mapped, which a limit of addresses
        counts too."""
        cost = self._cost(config)
        if cost is None or self.free is None:
            return ""
        told = f"; about {bytes_text(cost.disk)} of disk and {bytes_text(_size(cost))} of memory"
        if _size(cost) >= self.free:
            return f"{told}, not enough by itself"
        if self.addresses is not None and _size(cost) + cost.disk >= self.addresses:
            return f"{told}, but the limit of addresses (ulimit -v) counts files too"
        return f"{told}, which would have fit"

    def averages(self, config: TrainConfig) -> int:
        """Return the bytes of P X if the run keeps it."""
        cost = self._cost(config)
        return 0 if cost is None else cost.memory.get("averaged features", 0)

    def largest_batch(self, config: TrainConfig) -> TrainConfig:
        """Return half the batch size, or less if a smaller batch fits and half does not."""
        half = smaller = replace(config, batch_size=max(1, config.batch_size // 2))
        while self.free is not None and smaller.batch_size > 1:
            cost = self._cost(smaller)
            if cost is None or _size(cost) < self.free:
                return half if cost is None else smaller
            smaller = replace(smaller, batch_size=smaller.batch_size // 2)
        return half

    def _cost(self, config: TrainConfig) -> Cost | None:
        if self.model is None:
            return None
        try:
            return epoch_costs(self.model, self.graph, config, [config.estimator]).get(
                config.estimator
            )
        except (MemoryError, RuntimeError, OSError):
            return None


def _size(cost: Cost) -> int:
    return sum(size for name, size in cost.memory.items() if name not in _THERE)


def _missing(said: str, taken: int = 0) -> str:
    """Return the bytes that the allocator was asked for and that the process has, as far as known.

    taken: bytes that the process has; 0 if unknown or meaningless
    """
    asked = re.search(r"(?:allocate|a table of) ([\d.,]+) ?(bytes|[KMG]iB)", said)
    parts = [] if asked is None else [f"{_asked(*asked.groups())} more were asked for"]
    if taken:
        parts.append(f"the process has {bytes_text(taken)}")
    return f" ({', '.join(parts)})" if parts else ""


def _asked(number: str, unit: str) -> str:
    factor = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    return bytes_text(float(number.replace(",", "")) * factor)
