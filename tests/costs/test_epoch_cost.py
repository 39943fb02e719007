"""The predicted cost of an epoch equals the work that the epoch does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.theory.problems import random_graph
from vrgcn import (
    ESTIMATORS,
    GCN,
    MLP,
    Batch,
    Graph,
    GraphSAGE,
    TrainConfig,
    fit,
    load_graph,
    save_graph,
)
from vrgcn.costs.epoch_cost import cost_line, epoch_costs
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.propagation import mean
from vrgcn.graph.sparse import CSR, stored
from vrgcn.targets.opening import find_target
from vrgcn.training.components import build_minibatches

GRAPH = random_graph().with_features(random_graph().features.float())
CONFIG = TrainConfig(batch_size=16, refresh="never", fanout=2, sample_size=20)


def model(layers: int = 3) -> GraphSAGE:
    torch.manual_seed(0)
    return GraphSAGE(GRAPH.num_features, 16, GRAPH.num_classes, layers=layers, dropout=0.2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_epoch_touches_what_was_told(name: str) -> None:
    config = TrainConfig(**(vars(CONFIG) | {"estimator": name, "epochs": 6}))
    nodes = averaged = 0
    passes = 2 if ESTIMATORS[name].dropout_residual else 1

    def count(batch: Batch) -> None:
        nonlocal nodes, averaged
        plan = batch.plan
        nodes += passes * sum(plan.sizes[1:])
        averaged += passes * plan.sampled_edges + plan.history_reads
        averaged += 2 * sum(back.rows.num_entries for back in plan.back.values())

    fit(model(), GRAPH, config, on_batch=count)
    cost = epoch_costs(model(), GRAPH, config, [name])[name]
    assert cost.nodes == pytest.approx(nodes / 6, rel=0.1)
    assert cost.neighbours == pytest.approx(averaged / 6, rel=0.15)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_histories_take_the_bytes_that_were_told(name: str) -> None:
    config = TrainConfig(**(vars(CONFIG) | {"estimator": name, "history_dtype": "float16"}))
    net = model()
    batches = build_minibatches(net, GRAPH, config, find_target(GRAPH, config))
    for batch in batches:
        loss = batch.run(net).sum()
        loss.backward()
        batch.commit()
    tables = batches.histories.tables.values()
    held = sum(t.values.nbytes + t.written.nbytes for t in tables)
    memory = epoch_costs(net, GRAPH, config, [name])[name].memory
    told = memory.get("histories", 0) + memory.get("histories of gradients", 0)
    assert told == held
    assert memory["averaged features"] == memory["features"] == GRAPH.features.nbytes


def test_nodes_that_are_refreshed_before_each_epoch_count() -> None:
    few = Graph(
        GRAPH.edge_index(), GRAPH.features, GRAPH.labels, train=GRAPH.train[:10], undirected=True
    )
    never, always = (
        epoch_costs(model(), few, TrainConfig(estimator="history", refresh=refresh), ["history"])
        for refresh in ("never", "always")
    )
    assert always["history"].nodes > 3 * never["history"].nodes
    assert always["history"].neighbours > 3 * never["history"].neighbours


def test_a_model_without_neighbours_averages_none() -> None:
    mlp = MLP(GRAPH.num_features, 16, GRAPH.num_classes)
    cost = epoch_costs(mlp, GRAPH, CONFIG, ["cvd"])["cvd"]
    assert (cost.nodes, cost.neighbours) == (len(GRAPH.train), 0)


def test_estimators_that_cannot_train_the_model_are_left_out_and_nothing_is_changed() -> None:
    sparse = GRAPH.with_features(GRAPH.features.to_sparse_csr())
    gcn = GCN(GRAPH.num_features, 16, GRAPH.num_classes)
    before = torch.random.get_rng_state()
    costs = epoch_costs(gcn, sparse, CONFIG, ["cvd", "importance/history/none", "exact"])
    assert list(costs) == ["cvd", "exact"]
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("name", ["two-way", "cvd", "exact"])
def test_tables_on_disk_take_the_bytes_that_were_told(name: str, tmp_path: Path) -> None:
    """Beside the outputs of the nodes that are scored."""
    held: dict[str, int] = {}

    def look(*_: object) -> None:
        files = tmp_path.rglob(".scratch-*/**/*.bin")
        held.update({str(f): f.stat().st_size for f in files if f.name != "outputs.bin"})

    graph = GRAPH.with_splits({"train": GRAPH.train[:40], "val": GRAPH.train[40:]})
    config = replace(CONFIG, estimator=name, epochs=2, memory="disk")
    fit(model(), graph, config, checkpoints=tmp_path, on_step=look, on_epoch=look)
    told = epoch_costs(model(), graph, config, [name])[name]
    assert told.disk == sum(held.values())
    inside = epoch_costs(model(), graph, replace(config, memory="ram"), [name])[name]
    assert inside.files == {}
    assert told.total_memory + told.disk == inside.total_memory


def test_a_graph_on_disk_takes_no_memory(tmp_path: Path) -> None:
    save_graph(GRAPH, tmp_path / "graph")
    config = replace(CONFIG, estimator="two-way", memory="disk")
    there = epoch_costs(model(), load_graph(tmp_path / "graph", memory="disk"), config, ["two-way"])
    here = epoch_costs(model(), GRAPH, config, ["two-way"])
    ours, theirs = there["two-way"], here["two-way"]
    assert ours.mapped == theirs.memory["features"] + theirs.memory["edges"] > 0
    assert ours.total_memory + ours.mapped == theirs.total_memory
    assert "are read from disk as needed" in cost_line("two-way", ours)
    assert "as needed" not in cost_line("two-way", theirs)


# Sparse features whose averages are not.
DENSE = GRAPH.with_features((GRAPH.features * (GRAPH.features > 0.5)).to_sparse_csr())


def spread(times: int = 40) -> Tensor:
    """The same entries, each node's in one of `times` ranges of columns."""
    nodes, width = GRAPH.features.shape
    features = torch.zeros(nodes, times, width, dtype=GRAPH.features.dtype)
    features[torch.arange(nodes), torch.arange(nodes) % times] = DENSE.features.to_dense()
    return features.flatten(1).to_sparse_csr()


SPARSE = GRAPH.with_features(spread())


def sparse_model(*, transform_first: bool) -> GraphSAGE:
    torch.manual_seed(0)
    return GraphSAGE(
        SPARSE.num_features, 16, GRAPH.num_classes, dropout=0.2, transform_first=transform_first
    )


@pytest.mark.parametrize("name", ["exact", "cvd", "two-way"])
@pytest.mark.parametrize("transform_first", [True, False])
def test_entries_of_sparse_features_and_of_their_averages_are_counted(
    transform_first: bool, name: str
) -> None:
    config = TrainConfig(**(vars(CONFIG) | {"estimator": name, "epochs": 6}))
    counts = CSR.from_torch(SPARSE.features).counts
    averaged = CSR.from_torch(mean(SPARSE) @ SPARSE.features).counts
    entries = nodes = 0

    def count(batch: Batch) -> None:
        nonlocal entries, nodes
        plan = batch.plan
        read = counts[plan.levels[0].nodes].sum()
        if not transform_first:
            read = read + averaged.double().mean() * len(plan.levels[0].nodes)
        passes = 2 if name == "cvd" else 1
        entries += passes * float(read)
        # The product of each node of level 0 is an activation of its own.
        nodes += passes * sum(plan.sizes[0 if transform_first else 1 :])

    fit(sparse_model(transform_first=transform_first), SPARSE, config, on_batch=count)
    net = sparse_model(transform_first=transform_first)
    cost = epoch_costs(net, SPARSE, config, [name])[name]
    assert cost.entries == pytest.approx(entries / 6, rel=0.15)
    assert cost.nodes == pytest.approx(nodes / 6, rel=0.1)
    assert epoch_costs(model(), GRAPH, config, [name])[name].entries == 0


def test_averages_of_sparse_features_take_the_bytes_that_were_told() -> None:
    net = sparse_model(transform_first=False)
    batches = build_minibatches(
        net, SPARSE, replace(CONFIG, estimator="cv"), find_target(SPARSE, CONFIG)
    )
    size = sum(part.nbytes for part in stored(batches.setup.averages[None].table))
    for memory in ("ram", "disk"):  # there they are in memory too
        cost = epoch_costs(net, SPARSE, replace(CONFIG, memory=memory), ["cv"])["cv"]
        assert cost.memory["averaged features"] == size
        assert "averaged features" not in cost.files
    other = epoch_costs(sparse_model(transform_first=True), SPARSE, CONFIG, ["cv"])["cv"]
    assert "averaged features" not in other.memory


def test_dense_averages_of_sparse_features_take_their_bytes_and_a_third_of_their_entries() -> None:
    net = GraphSAGE(DENSE.num_features, 16, GRAPH.num_classes)
    config = replace(CONFIG, estimator="cv")
    table = (
        build_minibatches(net, DENSE, config, find_target(DENSE, config)).setup.averages[None].table
    )
    cost = epoch_costs(net, DENSE, config, ["cv"])["cv"]
    assert cost.memory["averaged features"] == table.nbytes
    on_disk = epoch_costs(net, DENSE, replace(config, memory="disk"), ["cv"])["cv"]
    assert on_disk.files["averaged features"] == table.nbytes
    own = float(CSR.from_torch(DENSE.features).counts.double().mean())
    shallow = GraphSAGE(DENSE.num_features, 16, GRAPH.num_classes, layers=1)
    one = epoch_costs(shallow, DENSE, CONFIG, ["exact"])["exact"]  # a row for each node
    assert one.entries == pytest.approx(one.nodes * (own + DENSE.num_features / 3), rel=0.1)


def test_a_minibatch_of_wide_sparse_rows_takes_the_memory_of_their_entries() -> None:
    rows = torch.arange(GRAPH.num_nodes)
    one_each = CSR(torch.arange(len(rows) + 1), rows * 50, torch.ones(len(rows)), 10_000)
    wide = GRAPH.with_features(one_each.to_torch())
    for transform_first in (True, False):
        net = GraphSAGE(10_000, 16, GRAPH.num_classes, transform_first=transform_first)
        cost = epoch_costs(net, wide, CONFIG, ["exact"])["exact"]
        assert cost.memory["a minibatch"] < 60 * 10_000  # dense rows would take 50 times as much


def test_several_minibatches_are_counted_unless_one_has_millions_of_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned, batch = [], MiniBatches.batch
    monkeypatch.setattr(
        MiniBatches, "batch", lambda self, *given: planned.append(given) or batch(self, *given)
    )
    ends = torch.randint(200, (2, 4000), generator=torch.Generator().manual_seed(0))
    labels = torch.arange(200) % 2
    dense = Graph(ends, torch.ones(200, 3), labels, train=range(100), val=range(100, 200))
    net = GraphSAGE(3, 4, 2, layers=3)
    cost = epoch_costs(net, dense, TrainConfig(batch_size=20), ["exact"])["exact"]
    assert cost.neighbours / cost.steps > 500
    assert len(planned) > 1
