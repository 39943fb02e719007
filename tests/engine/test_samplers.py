"""Samplers: what each says of itself is so, and a new one is a file and a line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import pytest
import torch

from tests.messages import refused
from tests.theory.graphs import seeded
from tests.theory.problems import random_graph
from vrgcn import Estimator, GraphSAGE, MiniBatches, TrainConfig, fit
from vrgcn.engine import samplers
from vrgcn.engine.samplers import SAMPLERS, Sample, Sampler, build_sampler, fanout_per_level
from vrgcn.engine.samplers.few import Few
from vrgcn.engine.samplers.full import Full
from vrgcn.graph.propagation import build_propagation
from vrgcn.training.components import refreshed_nodes

P = build_propagation("gcn", random_graph())
TARGETS = torch.tensor([40, 3, 59, 17, 8])
NAMES = sorted(SAMPLERS)


def built(name: str, fanout: int = 4) -> Sampler:
    return build_sampler(name, [fanout, fanout], {"sample_size": 20})


def rows(sample: Sample) -> torch.Tensor:
    """(targets, nodes), R P̂ with the own edges."""
    dense = sample.scale[:, None] * sample.edges.to_torch(P.dtype).to_dense()
    own = torch.as_tensor(sample.own, dtype=P.dtype).expand(len(TARGETS))
    return dense.index_put((torch.arange(len(TARGETS)), TARGETS), own, accumulate=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_generator_gives_the_same_draw(name: str) -> None:
    one, other = (rows(built(name).sample(P, TARGETS, 1, seeded(3))) for _ in range(2))
    assert torch.equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_draws_differ_where_a_sampler_is_random_and_nowhere_else(name: str) -> None:
    sampler = built(name)
    draws = [rows(sampler.sample(P, TARGETS, 1, seeded(seed))) for seed in range(20)]
    assert sampler.random == any(not torch.equal(draw, draws[0]) for draw in draws)


@pytest.mark.parametrize("name", NAMES)
def test_own_edges_are_exact_unless_a_sampler_draws_them(name: str) -> None:
    sampler = built(name)
    sample = sampler.sample(P, TARGETS, 1, seeded(3))
    exact = torch.equal(torch.as_tensor(sample.own), torch.as_tensor(P.own_rows(TARGETS)))
    assert exact != sampler.draws_own
    drawn = (sample.edges.indices == sample.edges.spread(TARGETS)).any()
    assert bool(drawn) <= sampler.draws_own


@pytest.mark.parametrize("fanout", [0, 4])
@pytest.mark.parametrize("name", NAMES)
def test_neighbours_are_sampled_where_a_sampler_computes_any(name: str, fanout: int) -> None:
    sampler = built(name, fanout)
    everyone = torch.arange(P.num_nodes)
    sample = sampler.sample(P, everyone, 1, seeded(3))
    assert sampler.computes_neighbours(1) == (sample.edges.num_entries > 0)


def test_importance_draws_once_for_all_targets_of_a_minibatch() -> None:
    sampler = built("importance")
    assert sampler.shared
    sample = sampler.sample(P, torch.arange(P.num_nodes), 1, seeded(3))
    assert len(sample.edges.indices.unique()) <= 20


def test_a_new_sampler_is_a_file_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a name that nothing else knows, trained with by composition and by `fit`."""
    levels: list[int] = []

    class Noted(Full):
        @classmethod
        def build(cls, fanouts: Sequence[int], sample_size: int) -> Noted:
            assert (list(fanouts), sample_size) == ([3, 3], 7)
            return cls()

        def sample(self, P, targets, level, generator):  # type: ignore[no-untyped-def]
            levels.append(level)
            return super().sample(P, targets, level, generator)

    file = ModuleType("noted")
    file.Noted = Noted  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vrgcn.engine.samplers.noted", file)
    monkeypatch.setitem(samplers.SAMPLERS, "noted", ("noted", "Noted", ("sample_size",)))

    graph = random_graph()
    graph = graph.with_features(graph.features.float())
    settings = {"epochs": 2, "fanout": 3, "sample_size": 7, "preprocess": False, "batch_size": 16}
    results = []
    for sampler in ("noted", "full"):
        torch.manual_seed(0)
        config = TrainConfig(estimator=f"{sampler}/corrected/sampled", **settings)
        results.append(fit(GraphSAGE(5, 8, 3, dropout=0.0), graph, config))
    assert set(levels) == {0, 1}
    assert [p.loss for p in results[0].curve] == [p.loss for p in results[1].curve]


def test_a_sampler_of_ones_own_that_passes_over_neighbours_has_their_histories_refreshed() -> None:
    """The sampler declares it as `few` does; no code tests its name."""

    class Some(Few):
        passes_over = False

    graph = random_graph()
    graph = graph.with_features(graph.features.float())
    refreshed = {}
    for kind in (Few, Some):
        estimator = Estimator(kind([3, 3]), "corrected", "corrected")
        batches = MiniBatches(GraphSAGE(5, 8, 3), graph, estimator=estimator, nodes=[0, 1, 2])
        refreshed[kind] = refreshed_nodes(batches, "auto")
    assert refreshed[Few] is not None
    assert refreshed[Some] is None


def test_one_fan_out_is_for_every_level_and_an_mlp_needs_none() -> None:
    assert fanout_per_level(2, 3) == fanout_per_level([2], 3) == [2, 2, 2]
    assert fanout_per_level((10, 25), 2) == [10, 25]
    assert fanout_per_level((1, 2, 3), 0) == []
    with refused():
        fanout_per_level(-1, 2)
