"""Too little memory is explained by what takes it; any other error is left as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, GraphSAGE, MiniBatches, TrainConfig
from vrgcn.costs.epoch_cost import epoch_costs
from vrgcn.costs.out_of_memory import Needs, advice, memory_explained
from vrgcn.files.wording import bytes_text
from vrgcn.graph.mapped import zeros

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
    with refused(MemoryError) as caught:
        raise_in(error)
    assert caught.value.__cause__ is error


def raise_in(error: Exception, **settings: int) -> None:
    with memory_explained(GRAPH, TrainConfig(**settings)):
        raise error


def test_other_errors_are_left_as_they_are() -> None:
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError) as caught:
        raise_in(error)
    assert caught.value is error


def test_a_full_gpu_is_not_taken_for_a_full_machine() -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
    config = TrainConfig(device="cuda", estimator="two-way")
    with (
        pytest.raises(MemoryError) as caught,
        memory_explained(GRAPH, config, GraphSAGE(25, 8, 2)),
    ):
        raise error
    said = str(caught.value)
    assert (
        "not enough memory on cuda to train on 1,000 nodes and 2 edges (2.15 GB more were" in said
    )
    assert 'memory="disk"' in said
    for what_the_machine_has in ("the process has", "were free", "have fit", "preprocess=False"):
        assert what_the_machine_has not in said


def test_the_advice_names_numbers_and_only_what_would_help() -> None:
    with pytest.raises(MemoryError) as caught:
        raise_in(RuntimeError(SAID + "you tried to allocate 400000 bytes."), batch_size=100)
    said = str(caught.value)
    assert "400 kB more were asked for, the process has" in said
    assert "batch_size=50:" in said
    assert 'history_dtype="float16": histories take half as much, 2 kB less for each' in said
    assert "preprocess=False: no averages of the features, 100 kB less" in said
    lean = TrainConfig(estimator="ns", batch_size=1, preprocess=False)
    said = advice(GRAPH, lean)
    for flag in ("batch_size=", "history_dtype=", "estimator=", "preprocess=False"):
        assert flag not in said
    assert "hidden=" in said


def large() -> Graph:
    """A step of all nodes takes most of what training takes."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(20_000, (2, 40_000), generator=generator)
    return Graph(edges, torch.zeros(20_000, 25), torch.arange(20_000) % 3, train=range(20_000))


def test_what_would_have_fit_is_said_of_each_way() -> None:
    graph, model = large(), GraphSAGE(25, 64, 3)
    config = TrainConfig(estimator="cv", batch_size=20_000, fanout=1)

    def lines(free: int) -> dict[str, str]:
        said = advice(graph, config, "", model, free).splitlines()
        return {line.split(":")[0].strip(): line for line in said[1:]}

    cost = Needs(graph, model, 0)._cost(config)
    assert cost is not None
    step = cost.memory.pop("a minibatch")
    free = sum(cost.memory.values()) + step // 5
    head = advice(graph, config, "", model, free).splitlines()[0]
    assert "It takes about " in head
    assert "a minibatch " in head
    assert f"and {bytes_text(free)} were free" in head
    tight = lines(free - cost.memory["edges"] - cost.memory["features"])
    batch = next(way for way in tight if way.startswith("batch_size="))
    assert int(batch.split("=")[1]) < 10_000  # half of it would not have been enough
    assert tight[batch].endswith("which would have fit")
    assert tight['history_dtype="float16"'].endswith("in all, not enough by itself")
    assert lines(10**9)["batch_size=10000"].endswith("which would have fit")
    none = lines(1000)
    assert none["batch_size=10000"].endswith("not enough by itself")
    assert not any("would have fit" in line for line in none.values())


def test_tables_on_disk_are_told_with_the_room_that_they_take() -> None:
    graph, model = large(), GraphSAGE(25, 64, 3)
    config = TrainConfig(estimator="cv", batch_size=100, fanout=1)
    cost = epoch_costs(model, graph, replace(config, memory="disk"), ["cv"])["cv"]
    assert cost.disk > 20_000 * (64 + 25) * 4  # histories, and averages of the features
    rest = cost.total_memory - cost.memory["edges"] - cost.memory["features"]

    def line(free: int, addresses: int | None = None) -> str:
        said = advice(graph, config, "", model, free, addresses).splitlines()
        return next(line for line in said if line.startswith('  memory="disk"'))

    sizes = f"; about {bytes_text(cost.disk)} of disk and {bytes_text(rest)} of memory"
    assert line(rest + 1).endswith(f"{sizes}, which would have fit")
    assert line(rest).endswith(f"{sizes}, not enough by itself")
    both = rest + cost.disk
    assert line(both + 1, both + 1).endswith("which would have fit")
    assert line(both, both).endswith("but the limit of addresses (ulimit -v) counts files too")
    assert advice(graph, config).splitlines()[1].endswith("in files, read as needed")
    assert 'memory="disk"' not in advice(graph, replace(config, memory="disk"), "", model, 1000)


def test_a_table_that_could_not_be_had_is_told_with_its_size() -> None:
    with pytest.raises(MemoryError) as real:
        zeros((1 << 42, 16), torch.float32)  # 256 TiB: more addresses than a process has
    with refused(MemoryError):
        raise_in(real.value)


def test_the_size_that_is_named_is_about_what_training_takes() -> None:
    """Half of a batch's memory is saved by half the batch."""
    graph, model = large(), GraphSAGE(25, 64, 3)
    needs = [
        Needs(graph, model, 0)._cost(TrainConfig(estimator="ns", fanout=1, batch_size=size))
        for size in (4000, 8000)
    ]
    small, double = (cost.memory["a minibatch"] for cost in needs if cost is not None)
    assert 1.6 < double / small < 2.1


def test_the_other_order_of_the_first_product_is_advised_where_averages_are_kept() -> None:
    features = (torch.rand(60, 40) * (torch.rand(60, 40) < 0.05)).to_sparse_csr()
    edges = torch.stack([torch.arange(60), (torch.arange(60) * 7 + 1) % 60])
    graph = Graph(edges, features, torch.arange(60) % 3, train=range(60), undirected=True)
    config = TrainConfig(estimator="cv", batch_size=20)
    kept = MiniBatches(GraphSAGE(40, 8, 3), graph, estimator="cv").setup.averages[None].table
    size = kept.values().nbytes + kept.col_indices().nbytes + kept.crow_indices().nbytes
    usual = advice(graph, config, "", GraphSAGE(40, 8, 3), 10**9)
    assert 'transform_first="always": features are multiplied before they are' in usual
    assert f"averages of them, {bytes_text(size)} less" in usual
    other = advice(graph, config, "", GraphSAGE(40, 8, 3, transform_first=True), 10**9)
    assert "transform_first=" not in other
