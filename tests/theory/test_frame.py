"""Tables in a moving frame: what all rows have in common is no error, and frames come to rest.

Everything is float64. The mean over the minibatches of an epoch is taken with frozen tables: each
minibatch is discarded.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from tests.theory.full_batch import (
    arbitrary_tables,
    batch_gradient,
    epoch_gradient,
    exact_gradients,
    full_gradient,
    undirected,
)
from tests.theory.problems import (
    RAW,
    double_minibatches,
    error,
    exact_pass,
    gcn,
    graphsage,
    random_graph,
)
from vrgcn.engine.frame import Frame
from vrgcn.engine.history import NEVER, History
from vrgcn.engine.minibatches import MiniBatches

ROUNDING, WRONG = 1e-12, 1e-2
MODELS = {"gcn": gcn, "graphsage": graphsage}
GRAPHS = {"directed, weighted": random_graph(), "undirected": undirected(40, 200)}
BATCH = 8


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def move_apart(model: nn.Module, batches: MiniBatches) -> None:
    """Make every row of each table older by one vector: what it stands for is exact less that."""
    arbitrary_tables(model, batches)  # with any D
    exact = {(level, "h"): h for level, h in enumerate(exact_pass(model, batches.graph))}
    exact |= {(level, "g"): g for level, g in enumerate(exact_gradients(model, batches.graph))}
    nodes = torch.arange(batches.graph.num_nodes)
    for number, (key, table) in enumerate(batches.histories.tables.items()):
        move = normal(table.values.shape[1], seed=number)
        frames, old = batches.histories.frames, move.expand_as(table.values)
        if key[1] == "g" and frames is not None:
            old = frames.share(key[0], 0)[:, None] * move
        table.write(nodes, exact[key] - old, 0)


def frozen_mean(model: nn.Module, batches: MiniBatches) -> Tensor:
    """The mean of an epoch's gradients, all from the same tables."""
    total = torch.zeros(())
    for nodes in torch.arange(batches.graph.num_nodes).split(BATCH):
        batch = batches.batch(nodes)
        total = total + batch_gradient(model, batch) * len(nodes) / batches.graph.num_nodes
        batch.discard()
    return total


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", GRAPHS)
def test_if_all_rows_moved_by_one_vector_answers_and_gradients_are_exact(
    kind: str, name: str, layers: int
) -> None:
    model, graph = MODELS[name](layers), GRAPHS[kind]
    wanted, outputs = full_gradient(model, graph), exact_pass(model, graph)[-1]
    found = {}
    for estimator in ("two-way", RAW):
        batches = double_minibatches(model, graph, estimator=estimator, fanout=0, batch_size=BATCH)
        move_apart(model, batches)
        batch = batches.batch(torch.arange(5, 13))
        found[estimator] = error(batch.run(model), outputs[5:13])
        batch.discard()
        off = error(frozen_mean(model, batches), wanted)
        assert off < ROUNDING if estimator == "two-way" else off > WRONG
    assert found["two-way"] < ROUNDING
    assert found[RAW] > WRONG


def test_with_few_neighbours_some_rows_are_raw_and_the_others_move() -> None:
    """Rows of nodes with few neighbours are exact here, for they have no frame to be corrected by;
    those of the others moved by one vector."""
    model, graph = graphsage(3), undirected(40, 90)
    batches = double_minibatches(model, graph, estimator="two-way", fanout=3, batch_size=BATCH)
    move_apart(model, batches)
    frames = batches.histories.frames
    assert frames is not None
    raw = frames.share(1, 0) == 0
    assert 0 < raw.sum() < len(raw)
    assert torch.equal(raw, graph.adjacency.counts <= 3)
    assert error(frozen_mean(model, batches), full_gradient(model, graph)) < ROUNDING


def table_of(values: Tensor) -> History:
    rows, width = values.shape
    table = History(
        torch.zeros_like(values), torch.full((rows,), NEVER), Frame(values.new_zeros(1, width))
    )
    table.write(torch.arange(rows), values, 0)
    return table


def spread(x: Tensor) -> float:
    """Mean squared distance from the mean: x (rows, width)."""
    return float((x - x.mean(0)).square().sum(1).mean())


@pytest.mark.parametrize("size", [2, 6, 15])
def test_an_epoch_shrinks_what_frames_are_apart_by_the_rate_of_a_mean_of_rows(size: int) -> None:
    """N rows that do not change, minibatches of b in random order. Rows differ from what they stand
    for by the D since they were written; D becomes the mean of that of its b rows, drawn without
    replacement: so the mean square apart shrinks by (N - b) / (b (N - 1)) an epoch, on average."""
    rows, runs = 30, 400
    generator = torch.Generator().manual_seed(size)
    before = after = 0.0
    for _ in range(runs):
        exact = torch.randn(rows, 2, generator=generator, dtype=torch.float64)
        table = table_of(torch.randn(rows, 2, generator=generator, dtype=torch.float64))
        for epoch in range(3):
            moves = []
            for nodes in torch.randperm(rows, generator=generator).split(size):
                table.replace(nodes, exact[nodes], 1)
                assert table.frame is not None
                moves.append(table.frame.move[0])
            if epoch == 1:
                before += spread(torch.stack(moves)) / runs
        after += spread(torch.stack(moves)) / runs
    rate = (rows - size) / (size * (rows - 1))
    assert after / before == pytest.approx(rate, rel=0.15)


def test_all_rows_at_once_are_exact_and_single_rows_are_kept_raw() -> None:
    exact, nodes = normal(12, 3, seed=1), torch.arange(12)
    table = table_of(normal(12, 3, seed=2))
    table.replace(nodes, exact, 1)
    assert error(table.read(nodes, torch.float64), exact) < ROUNDING
    single = table_of(normal(12, 3, seed=2))
    for node in nodes:
        single.replace(node[None], exact[node][None], 1)
    assert torch.equal(single.values, exact)


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", GRAPHS)
def test_with_fixed_weights_tables_and_gradients_become_exact_geometrically(
    kind: str, layers: int
) -> None:
    """In place of "exact after so many epochs": from one look to the next, errors shrink by far."""
    model, graph = graphsage(layers), GRAPHS[kind]
    batches = double_minibatches(model, graph, estimator="two-way", fanout=0, batch_size=BATCH)
    wanted, activations = full_gradient(model, graph), exact_pass(model, graph)
    nodes = torch.arange(graph.num_nodes)
    errors = []
    for _ in range(4):
        for _ in range(8):
            found = epoch_gradient(model, batches)
        tables = [
            error(table.read(nodes, torch.float64), activations[level])
            for (level, which), table in batches.histories.tables.items()
            if which == "h"
        ]
        errors.append(max([error(found, wanted), *tables]))
    assert all(after < before / 50 for before, after in pairwise(errors))
    assert errors[-1] < 1e-9
