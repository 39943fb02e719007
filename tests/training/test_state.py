"""The state of a run, taken between any two steps and put back, leads to the same bits."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from torch import nn

from tests.theory.problems import random_graph
from vrgcn import ESTIMATORS, GCN, Graph, GraphSAGE, TrainConfig, fit
from vrgcn.engine.planner import ENTRIES_AT_ONCE
from vrgcn.targets.opening import find_target
from vrgcn.training.state import TrainState
from vrgcn.training.trainer import Trainer

GRAPH = random_graph(90, 5)
EPOCHS, BATCH = 3, 8


def graph() -> Graph:
    """A third of the nodes are trained on, another third validated on."""
    edges, x, y = GRAPH.edge_index(), GRAPH.features.float(), GRAPH.labels
    third = torch.arange(30)
    return Graph(edges, x, y, train=third, val=third + 30, test=third + 60)


def trainer(**given: object) -> Trainer:
    usual = {"epochs": EPOCHS, "batch_size": BATCH, "estimator": "two-way"}
    settings = {**usual, "diagnostics": 0, "seed": 4, **given}
    shape = {"layers": settings.pop("layers", 2), "norm": settings.pop("norm", "auto")}
    torch.manual_seed(7)
    model = GraphSAGE(5, 8, 3, dropout=0.3, **shape)
    config = TrainConfig(**settings)
    return Trainer(model, graph(), config, find_target(graph(), config))


def finish(run: Trainer) -> list[torch.Tensor]:
    """Everything that a run leaves behind but its seconds."""
    result = run.run()
    state = run.state()
    points = [[p.loss, p.val, p.age, p.sampled, p.history_reads] for p in result.curve]
    numbers = torch.tensor([[torch.nan if v is None else v for v in point] for point in points])
    return [
        *result.weights.values(),
        *state.histories.values(),
        *state.random.values(),
        *(part for weight in state.optimizer["state"].values() for part in weight.values()),
        torch.nan_to_num(numbers),
    ]


def assert_same(one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
    assert len(one) == len(other)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def advance(run: Trainer, steps: int) -> None:
    for _ in range(steps):
        assert run.advance()


SETTINGS = {
    **{name: {"estimator": name} for name in ESTIMATORS},
    "three levels": {"estimator": "cvd", "layers": 3, "fanout": (2, 1, 2)},
    "composition": {"estimator": "uniform/corrected/none/residual"},
    "two-way, float16": {"estimator": "two-way", "history_dtype": "float16", "layers": 3},
    "two-way, training nodes": {"estimator": "two-way", "visit": "train", "fanout": (0,)},
    "two-way-cv, three levels": {"estimator": "two-way-cv", "layers": 3},
    "values corrected, gradients not": {"estimator": "few/corrected/history"},
    "gradients corrected, values not": {"estimator": "uniform/history/corrected/residual"},
    "float16": {"estimator": "cv", "history_dtype": "float16"},
    "bfloat16": {"estimator": "history", "history_dtype": "bfloat16"},
    "thinned histories": {"estimator": "cv", "history_cap": 2},
    "all nodes": {"estimator": "cvd", "visit": "all"},
    "refreshed": {"estimator": "cv", "refresh": "always", "history_cap": 2},
    "warm start": {"estimator": "cvd", "warm_start": True},
    "inductive": {"estimator": "cvd", "inductive": True},
    "without preprocessing": {"estimator": "cvd", "preprocess": False},
    "diagnostics": {"estimator": "cvd", "diagnostics": 1},
    "patience": {"estimator": "ns", "patience": 1},
    "momentum of sgd": {"estimator": "cv", "optimizer": "sgd"},
    "cosine, two-way": {"estimator": "two-way", "schedule": "cosine", "warmup": 1},
    "cosine, cvd": {"estimator": "cvd", "schedule": "cosine", "clip": 0.5},
    "plateau, two-way": {"estimator": "two-way", "schedule": "plateau", "clip": 0.1},
    "plateau, cvd": {"estimator": "cvd", "schedule": "plateau", "warmup": 1},
    "averaged weights": {"estimator": "two-way", "average_weights": True},
    "averaged weights, the last": {
        "estimator": "cvd",
        "average_weights": True,
        "select": "last",
    },
    "averaged statistics": {"estimator": "two-way", "norm": "batch", "average_weights": True},
    "weighted": {
        "estimator": "two-way",
        "class_weights": "balanced",
        "label_smoothing": 0.1,
    },
}


def test_a_run_with_visits_forward_only_is_put_back_to_the_same_bits() -> None:
    """With 3 training nodes in 90, gradients do not reach all nodes within two layers."""

    def start() -> Trainer:
        few = graph().replace(train=graph().train[:3])
        torch.manual_seed(7)
        config = TrainConfig(estimator="two-way", epochs=3, batch_size=8, diagnostics=0, seed=4)
        return Trainer(GraphSAGE(5, 8, 3, dropout=0.3), few, config, find_target(few, config))

    assert len(start().minibatches.visits.forward) > 8
    wanted = finish(start())
    for step in (3, 11):
        run = start()
        advance(run, step)
        other = start()
        other.restore(copy.deepcopy(run.state()))
        assert_same(finish(other), wanted)


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plateau of one evaluation halves the rate: these runs have three."""
    monkeypatch.setattr("vrgcn.training.optimizer.PATIENCE", 0)


ALONE = ("cvd", "is", "two-way", "three levels", "all nodes")


@pytest.mark.parametrize(
    ("name", "together"), [*((name, True) for name in SETTINGS), *((name, False) for name in ALONE)]
)
def test_a_run_put_back_to_any_step_ends_in_the_same_bits(
    name: str, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", ENTRIES_AT_ONCE if together else 1)
    settings = SETTINGS[name]
    wanted = finish(trainer(**settings))
    run = trainer(**settings)
    steps = len(run.minibatches)
    draw = random.Random(name)
    at = sorted(draw.sample(range(1, steps * EPOCHS), 2)) if name != "patience" else [1]
    states: list[TrainState] = []
    for before, step in zip([0, *at], at, strict=False):
        advance(run, step - before)
        states.append(run.state())
    assert_same(finish(run), wanted)
    for state in states[::-1]:  # in the same trainer, after it has gone on
        run.restore(state)
        assert_same(finish(run), wanted)
    fresh = trainer(**settings)  # and in one that knows nothing but the state
    torch.manual_seed(123)
    fresh.restore(states[len(states) // 2])
    assert_same(finish(fresh), wanted)


def test_a_state_does_not_change_while_training_goes_on() -> None:
    run = trainer(estimator="cvd")
    advance(run, 3)
    state = run.state()
    kept = copy.deepcopy(state)
    advance(run, 4)
    for part in ("model", "histories", "random"):
        now, then = getattr(state, part), getattr(kept, part)
        assert now.keys() == then.keys()
        assert all(torch.equal(now[name], then[name]) for name in now)
    assert state.progress == kept.progress
    assert state.position == kept.position
    live = run.state(copied=False)
    assert live.histories["1.h.values"] is run.minibatches.histories.tables[1, "h"].values


def test_a_state_that_lacks_something_leads_elsewhere() -> None:
    # Every part of the state matters; otherwise the test above could miss its loss.
    settings = {"estimator": "cv", "schedule": "cosine", "warmup": 1}
    wanted = finish(trainer(**settings))
    run = trainer(**settings)
    advance(run, 5)
    state = run.state()
    broken = {
        "histories": {k: torch.zeros_like(v) for k, v in state.histories.items()},
        "random": state.random | {"dropout": torch.Generator().manual_seed(9).get_state()},
        "position": type(state.position)(2, 0, state.position.step),
        "optimizer": state.optimizer | {"state": {}},
        "schedule": {"by_step": state.schedule["by_step"] | {"base_lrs": [0.02, 0.02]}},
    }
    for part, value in broken.items():
        other = trainer(**settings)
        values = {f: getattr(state, f) for f in state.__dataclass_fields__} | {part: value}
        other.restore(TrainState(**values))
        ends = finish(other)
        assert len(ends) != len(wanted) or not all(
            torch.equal(a, b) for a, b in zip(ends, wanted, strict=True)
        ), part


def test_stepping_a_trainer_is_what_fit_does() -> None:
    config = TrainConfig(epochs=EPOCHS, batch_size=BATCH, seed=4, estimator="cvd", diagnostics=0)

    def model() -> nn.Module:
        torch.manual_seed(7)
        return GCN(5, 8, 3, dropout=0.3)

    fitted = fit(model(), graph(), config)
    run, steps = Trainer(model(), graph(), config, find_target(graph(), config)), 0
    torch.manual_seed(config.seed)
    while run.advance():
        steps += 1
    result = run.run()
    assert steps == EPOCHS * len(run.minibatches)
    assert [p.loss for p in result.curve] == [p.loss for p in fitted.curve]
    assert all(torch.equal(v, fitted.weights[k]) for k, v in result.weights.items())
