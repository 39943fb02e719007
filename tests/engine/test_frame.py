"""Tables in a moving frame: what is written is read, averaged, undone, and kept with a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from vrgcn import Graph, MiniBatches, predict
from vrgcn.engine.frame import Frame
from vrgcn.engine.history import NEVER, History
from vrgcn.graph.propagation import build_propagation
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model

ROWS, WIDTH = 12, 3
NODES = torch.arange(ROWS)


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator)


def table(dtype: torch.dtype = torch.float32, share: Tensor | None = None) -> History:
    return History(
        torch.zeros(ROWS, WIDTH, dtype=dtype),
        torch.full((ROWS,), NEVER),
        Frame(torch.zeros(1, WIDTH), share),
    )


SHARE = torch.tensor([0.0, 0.5, 2.0]).repeat(4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("share", [None, SHARE])
def test_rows_are_read_as_they_were_written_and_then_move_with_the_frame(
    share: Tensor | None, dtype: torch.dtype
) -> None:
    held, x = table(dtype, share), normal(ROWS, WIDTH)
    held.replace(NODES[:8], x[:8], 1)
    precise = {"atol": 2 ** (-6 if dtype == torch.bfloat16 else -9), "rtol": 0.0}
    if dtype == torch.float32:
        precise["atol"] = 1e-6
    torch.testing.assert_close(held.read(NODES[:8], torch.float32), x[:8], **precise)
    moved = x + (1 if share is None else share[:, None]) * torch.tensor([3.0, -1.0, 0.0])
    held.replace(NODES[:6], moved[:6], 2)
    torch.testing.assert_close(held.read(NODES[:8], torch.float32), moved[:8], **precise)


def test_rows_that_were_never_written_read_as_the_frame() -> None:
    held, x = table(share=SHARE), normal(ROWS, WIDTH)
    held.replace(NODES[:6], x[:6], 1)
    assert held.frame is not None
    mean = (x[[1, 2, 4, 5]] / SHARE[[1, 2, 4, 5], None]).mean(0)
    torch.testing.assert_close(held.frame.move[0], mean)
    torch.testing.assert_close(held.read(NODES[6:], torch.float32), SHARE[6:, None] * mean)
    assert not held.values[6:].any()


@pytest.mark.parametrize("share", [None, SHARE])
def test_averages_are_those_of_the_rows_that_are_read(share: Tensor | None) -> None:
    held = table(share=share)
    held.replace(NODES[:9], normal(9, WIDTH), 1)
    edges = torch.randint(ROWS, (2, 40), generator=torch.Generator().manual_seed(2))
    P = build_propagation("gcn", Graph(edges, normal(ROWS, 1), undirected=True)).rows(NODES)
    dense = P.to_torch(torch.float32).to_dense()
    wanted = dense @ held.read(NODES, torch.float32)
    torch.testing.assert_close(held.average(P, torch.float32), wanted)
    weights = dense @ (torch.ones(ROWS, 1) if share is None else share[:, None])
    torch.testing.assert_close(held.average(P, torch.float32, weights), wanted)


def test_a_write_that_is_undone_leaves_the_same_bits() -> None:
    held = table(torch.float16, SHARE)
    held.replace(NODES, normal(ROWS, WIDTH), 1)
    assert held.frame is not None
    values, move = held.values.clone(), held.frame.move.clone()
    before = held.replace(NODES[3:7], normal(4, WIDTH, seed=5), 2)
    assert not torch.equal(held.frame.move, move)
    held.put_back(before)
    assert torch.equal(held.values, values)
    assert torch.equal(held.frame.move, move)


def test_rows_written_by_themselves_do_not_move_the_frame() -> None:
    held = table()
    held.write(NODES, normal(ROWS, WIDTH), 1)
    held.replace(NODES[:1], normal(1, WIDTH, seed=3), 2)
    held.replace(NODES[:0], normal(0, WIDTH), 3)
    assert held.frame is not None
    assert not held.frame.move.any()


def batches_of(estimator: str, **settings: Any) -> tuple[Any, MiniBatches]:
    """(model, minibatches) on a graph where some nodes have few neighbours."""
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(30, (2, 70), generator=generator)
    graph = Graph(
        edges, normal(30, 4), torch.arange(30) % 2, train=torch.arange(30), undirected=True
    )
    model = build_model(ModelConfig(model="gcn", hidden=5, dropout=0.0, layers=3), 4, 2, 0)
    return model, MiniBatches(model, graph, estimator=estimator, batch_size=10, **settings)


def step(model: Any, batches: MiniBatches, nodes: Tensor) -> None:
    batch = batches.batch(nodes)
    assert batch.labels is not None
    batch.mean(torch.nn.functional.cross_entropy(batch.run(model), batch.labels)).backward()
    batch.commit()


def moves(batches: MiniBatches) -> dict[str, bool]:
    """Whether a table of each kind has a frame that moved."""
    tables = batches.histories.tables.items()
    return {k: t.frame is not None and bool(t.frame.move.any()) for (_, k), t in tables}


@pytest.mark.parametrize(
    ("estimator", "activations", "gradients"),
    [
        ("two-way", True, True),
        ("none/history/history", True, True),
        ("two-way-cv", True, False),  # all rows are corrected by samples
        ("few/corrected/corrected/raw", False, False),
    ],
)
def test_which_tables_move(estimator: str, activations: bool, gradients: bool) -> None:
    model, batches = batches_of(estimator)
    step(model, batches, torch.arange(10))
    assert moves(batches) == {"h": activations, "g": gradients}


def test_gradients_of_nodes_whose_neighbours_are_computed_stay_raw() -> None:
    model, batches = batches_of("two-way", fanout=3)
    step(model, batches, torch.arange(10))
    (P,) = batches.setup.P.values()
    few = P.degrees(torch.arange(30)) <= 3
    frame = batches.histories.tables[1, "g"].frame
    assert frame is not None
    assert frame.share is not None
    assert 0 < few.sum() < 30
    assert P.left is not None
    torch.testing.assert_close(frame.share, P.left.masked_fill(few, 0))


def test_frames_are_part_of_the_state() -> None:
    model, batches = batches_of("two-way")
    step(model, batches, torch.arange(10))
    kept = {name: value.clone() for name, value in batches.histories.state_dict().items()}
    assert kept["1.g.move"].shape == (1, 5)
    other_model, other = batches_of("two-way")
    other_model.load_state_dict(model.state_dict())
    other.histories.load_state_dict(kept)
    other.position = batches.position
    for one, its in ((batches, model), (other, other_model)):
        step(its, one, torch.arange(5, 15))
    for name, value in batches.histories.state_dict().items():
        assert torch.equal(value, other.histories.state_dict()[name]), name
    kept["1.g.move"].fill_(7.0)  # a copy: what was kept is not the table's own
    assert not (other.histories.state_dict()["1.g.move"] == 7.0).any()


def test_the_weights_of_frames_are_computed_once() -> None:
    model, batches = batches_of("two-way", fanout=3)
    step(model, batches, torch.arange(10))
    frames = batches.histories.frames
    assert frames is not None
    known = frames.forward(1, None)
    assert frames.forward(2, None) is known
    assert frames.backward(2, None) is frames.backward(1, None)
    (P,) = batches.setup.P.values()
    others = P.to_dense() - torch.diag(P.to_dense().diag())
    torch.testing.assert_close(known[:, 0], others.sum(1))
    f = P.degrees(torch.arange(30)) > 3
    torch.testing.assert_close(frames.backward(1, None)[:, 0], others.T @ f.float())


@pytest.mark.parametrize("cap", [None, 1])
def test_what_all_rows_share_is_averaged_exactly_under_a_cap_too(cap: int | None) -> None:
    """All nodes alike: rows that were never written read as the frame, which is their value."""
    ring = torch.arange(30)
    ends = torch.stack([ring.repeat(3), torch.cat([ring.roll(k) for k in (1, 2, 5)])])
    graph = Graph(ends, torch.ones(30, 4), ring % 2, train=ring, undirected=True)
    model = build_model(ModelConfig(model="graphsage", hidden=5, layers=3, dropout=0.0), 4, 2, 0)
    exact = predict(model, graph)
    for estimator, same in (("none/history/history", True), ("none/history/history/raw", False)):
        batches = MiniBatches(
            model, graph, estimator=estimator, batch_size=10, history_cap=cap, seed=1
        )
        (first, *_) = batches
        assert torch.allclose(first.run(model), exact[first.nodes], atol=1e-5) == same
