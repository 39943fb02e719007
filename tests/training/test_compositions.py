"""Every estimator that can be written down trains, or is refused in words."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F

from tests.messages import refused
from tests.theory.full_batch import undirected
from vrgcn import Graph, GraphSAGE, MiniBatches
from vrgcn.engine.estimators import Backward, Forward
from vrgcn.engine.samplers import SAMPLERS

COMPOSITIONS = [
    "/".join(parts) + residual
    for *parts, residual in product(
        sorted(SAMPLERS), get_args(Forward), get_args(Backward), ["", "/residual"]
    )
]


def graph() -> Graph:
    made = undirected(20, 40)
    return made.with_features(made.features.float())


def steps(estimator: str, count: int = 2, scale: float = 1.0, **settings: Any) -> Any:
    """The weights' gradients of the last of `count` minibatches, and the minibatches."""
    torch.manual_seed(0)
    model = GraphSAGE(5, 8, 3, layers=3, dropout=0.2)
    batches = MiniBatches(model, graph(), estimator=estimator, batch_size=5, seed=1, **settings)
    for _, batch in zip(range(count), batches, strict=False):
        losses = F.cross_entropy(batch.run(model), batch.labels, reduction="none")
        model.zero_grad()
        (scale * batch.mean(losses)).backward()
        batch.commit()
    return torch.cat([p.grad.flatten() for p in model.parameters()]), batches


@pytest.mark.parametrize("estimator", COMPOSITIONS)
def test_a_composition_takes_two_steps_or_is_refused_in_words(estimator: str) -> None:
    sampler, forward, backward = estimator.split("/")[:3]
    only_sampled = forward == "sampled" and backward in ("sampled", "none")
    if (estimator.endswith("/residual") and forward == "sampled") or (
        sampler == "importance" and not only_sampled
    ):
        with refused():
            steps(estimator)
        return
    gradient, batches = steps(estimator)
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0
    kinds = {kind for _, kind in batches.histories.tables}
    wanted = {"h"} if forward != "sampled" else set()
    assert kinds == wanted | ({"g"} if backward in ("history", "corrected") else set())


@pytest.mark.parametrize("estimator", ["two-way", "two-way-cv"])
def test_tables_of_gradients_in_files_are_those_in_memory(estimator: str, tmp_path: Path) -> None:
    (one, _), (other, batches) = (steps(estimator, 4, directory=d) for d in (None, tmp_path))
    assert torch.equal(one, other)
    assert (tmp_path / "history-1-g.bin").stat().st_size == 20 * 8 * 4
    assert batches.histories.tables[1, "g"].values.abs().max() > 0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_half_precision_neither_overflows_nor_vanishes(scale: float) -> None:
    """bfloat16 has 8 bits: directions agree to within that, whatever the size of the loss."""
    wide, _ = steps("two-way", 4, scale)
    half, batches = steps("two-way", 4, scale, history_dtype="float16")
    assert batches.histories.tables[1, "g"].values.dtype == torch.bfloat16
    assert batches.histories.tables[1, "h"].values.dtype == torch.float16
    assert F.cosine_similarity(wide / scale, half / scale, dim=0) > 0.9999
    assert half.norm() / wide.norm() == pytest.approx(1, abs=0.01)


def test_ages_of_gradients_are_those_of_the_minibatches_that_wrote_them() -> None:
    _, batches = steps("two-way", 3, fanout=0)
    table = batches.histories.tables[1, "g"]
    assert sorted(table.age(batches.step).tolist()) == [1] * 5 + [2] * 5 + [3] * 5
    assert (table.written == -1).sum() == 5
