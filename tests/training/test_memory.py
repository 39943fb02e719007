"""Too little memory is explained by what takes it; any other error is left as it is."""

from __future__ import annotations

import pytest
import torch

from vrgcn import Graph, TrainConfig
from vrgcn.training.memory import advice, memory_explained

GRAPH = Graph([[0, 1], [1, 2]], torch.zeros(1000, 25))
SAID = "[enforce fail at alloc_cpu.cpp:132] err == 0. DefaultCPUAllocator: can't allocate memory: "


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(SAID + "you tried to allocate 400000 bytes. Error code 12"),
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
)
def test_an_allocation_that_fails_becomes_advice(error: Exception) -> None:
    with pytest.raises(MemoryError, match="not enough memory to train on 1,000 nodes") as caught:
        raise_in(error)
    assert caught.value.__cause__ is error


def raise_in(error: Exception) -> None:
    with memory_explained(GRAPH, TrainConfig()):
        raise error


def test_other_errors_are_left_as_they_are() -> None:
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError) as caught:
        raise_in(error)
    assert caught.value is error


def test_the_advice_names_numbers_and_only_what_would_help() -> None:
    said = advice(GRAPH, TrainConfig(batch_size=100), SAID + "you tried to allocate 400000 bytes.")
    assert "400 kB more were asked for, the process has" in said
    assert "--batch-size 50:" in said
    assert "--history-dtype float16: histories take half as much, 2 kB less for each" in said
    assert "--no-preprocess: no averages of the features, 100 kB less" in said
    lean = TrainConfig(estimator="ns", batch_size=1, preprocess=False)
    said = advice(GRAPH, lean)
    for flag in ("--batch-size", "--history-dtype", "--estimator", "--no-preprocess"):
        assert flag not in said
    assert "--hidden" in said
