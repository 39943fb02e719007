"""Learning rates over a run, step by step, against the formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.messages import refused
from tests.training.test_state import advance, graph, trainer
from vrgcn import Graph, GraphSAGE, TrainConfig, fit
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.runs.interrupts import StopRequest
from vrgcn.targets.opening import find_target
from vrgcn.training.divergence import DivergedError
from vrgcn.training.optimizer import Schedule
from vrgcn.training.trainer import Trainer

RATE, STEPS = 0.4, 4


def rates(run: Trainer) -> list[float]:
    """Return the rates of each step of a run."""
    found = []
    while not run.finished:
        (rate,) = {group["lr"] for group in run.optimizer.param_groups}
        found.append(rate)
        assert run.advance()
    return found


def scheduled(**given: object) -> Trainer:
    return trainer(learning_rate=RATE, epochs=5, estimator="cv", **given)


def test_without_a_schedule_the_rate_stays() -> None:
    assert rates(scheduled()) == [RATE] * 20
    assert scheduled().state().schedule == {}


def test_a_cosine_goes_down_to_the_planned_end() -> None:
    wanted = [RATE * (1 + math.cos(math.pi * t / 20)) / 2 for t in range(20)]
    assert rates(scheduled(schedule="cosine")) == pytest.approx(wanted)


@pytest.mark.parametrize("schedule", ["none", "plateau"])
def test_a_warm_up_rises_step_by_step(schedule: str) -> None:
    wanted = [RATE * min(1, (t + 1) / 8) for t in range(20)]
    assert rates(scheduled(schedule=schedule, warmup=2)) == pytest.approx(wanted)


def test_a_cosine_begins_where_the_warm_up_ends() -> None:
    rising = [RATE * (t + 1) / 4 for t in range(4)]
    falling = [RATE * (1 + math.cos(math.pi * t / 16)) / 2 for t in range(16)]
    assert rates(scheduled(schedule="cosine", warmup=1)) == pytest.approx(rising + falling)


def halvings(scores: list[float], *, larger: bool, warmup: int = 0) -> list[float]:
    """The rate after each evaluation, one per epoch of 2 steps."""
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1.0)
    config = TrainConfig(schedule="plateau", learning_rate=1.0, warmup=warmup)
    schedule, found = Schedule(optimizer, config, 2, larger=larger), []
    for epoch, score in enumerate(scores):
        for step in (1, 2):
            optimizer.step()
            schedule.updated(2 * epoch + step)
        schedule.evaluated(score)
        found.append(optimizer.param_groups[0]["lr"])
    return found


def test_a_plateau_halves_the_rate_after_five_evaluations_that_were_no_better() -> None:
    better = [0.1, 0.2, 0.3]
    assert halvings([*better, *[0.3] * 5], larger=True) == [1.0] * 8
    assert halvings([*better, *[0.3] * 6], larger=True) == [1.0] * 8 + [0.5]
    assert halvings([0.5] * 13, larger=True) == [1.0] * 6 + [0.5] * 6 + [0.25]
    errors = [9.0, 8.0, *[8.5] * 6]
    assert halvings(errors, larger=False) == [1.0] * 7 + [0.5]
    assert halvings(errors, larger=True) == [1.0] * 6 + [0.5] * 2


def test_what_is_no_better_while_the_rate_rises_is_no_plateau() -> None:
    assert halvings([0.5] * 10, larger=True, warmup=3)[3:] == [1.0] * 5 + [0.5] * 2


def test_a_rate_that_a_plateau_halved_stays_so_in_a_run_that_goes_on() -> None:
    config = TrainConfig(schedule="plateau", learning_rate=1.0, warmup=1)

    def made() -> tuple[torch.optim.Optimizer, Schedule]:
        optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1.0)
        return optimizer, Schedule(optimizer, config, 2, larger=True)

    (optimizer, schedule), (other, resumed) = made(), made()
    for epoch in range(8):
        for step in (1, 2):
            optimizer.step()
            schedule.updated(2 * epoch + step)
        schedule.evaluated(0.5)
    assert optimizer.param_groups[0]["lr"] == 0.5
    other.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    other.step()
    resumed.updated(17)
    assert other.param_groups[0]["lr"] == 0.5  # not begun again at the warm-up's end


def test_minibatches_that_move_no_weights_count_as_steps_of_the_schedule() -> None:
    """Few labels: most minibatches of such an epoch only refresh histories."""
    edges, x, y = graph().edge_index(), graph().features, graph().labels
    few = Graph(edges, x, y, train=[3, 40], val=range(50, 90))
    settings = {"epochs": 4, "batch_size": 8, "schedule": "cosine", "visit": "all"}
    config = TrainConfig(estimator="two-way", learning_rate=RATE, diagnostics=0, **settings)
    torch.manual_seed(0)
    run = Trainer(GraphSAGE(5, 8, 3), few, config, find_target(few, config))
    total = 4 * len(run.minibatches)
    for done in range(1, total + 1):
        before = run.state().schedule["done"]
        assert run.advance()
        updated = run.state().schedule["done"]
        assert updated in (before, done)
        share = updated / total
        (rate,) = {group["lr"] for group in run.optimizer.param_groups}
        assert rate == pytest.approx(RATE * (1 + math.cos(math.pi * share)) / 2)
    assert updated >= total - len(run.minibatches)


@pytest.mark.parametrize("schedule", ["none", "cosine", "plateau"])
def test_a_rate_that_was_halved_by_a_rollback_stays_so(schedule: str, tmp_path) -> None:
    given = {"schedule": schedule, "warmup": 2, "on_nan": "rollback"}
    wanted = rates(scheduled(**given))
    run = scheduled(**given)
    kept = Checkpoints(run, tmp_path)
    advance(run, 3)
    kept.write()
    advance(run, 4)
    kept.on_note = lambda note: None
    kept._roll_back(DivergedError("the loss became nan", ""))
    assert rates(run) == pytest.approx([rate / 2 for rate in wanted[3:]])
    again = scheduled(**given)  # the halved rate is in the next checkpoint too
    advance(run := scheduled(**given), 3)
    run.schedule.scale(0.5)
    again.restore(run.state())
    assert rates(again) == pytest.approx([rate / 2 for rate in wanted[3:]])


def test_a_plateau_needs_validation_nodes() -> None:
    edges, x, y = graph().edge_index(), graph().features, graph().labels
    with refused():
        fit(
            GraphSAGE(5, 8, 3),
            Graph(edges, x, y, train=range(30)),
            TrainConfig(schedule="plateau"),
        )


def test_epochs_along_a_cosine_cannot_be_changed_on_the_way(tmp_path) -> None:
    run = scheduled(schedule="cosine", checkpoint_every="1")
    Checkpoints(run, tmp_path).run(StopRequest())
    longer = trainer(learning_rate=RATE, epochs=6, estimator="cv", schedule="cosine")
    with refused():
        Checkpoints(longer, tmp_path).resume()


@pytest.mark.parametrize("clip", [None, 1e-3])
def test_gradients_are_clipped_by_their_norm(clip: float | None) -> None:
    """With plain SGD at rate 1 the step is the gradient."""
    run = trainer(estimator="exact", optimizer="sgd", learning_rate=1.0, clip=clip)
    before = [p.detach().clone() for p in run.model.parameters()]
    advance(run, 1)
    moved = [a - b for a, b in zip(run.model.parameters(), before, strict=True)]
    norm = torch.cat([m.flatten() for m in moved]).norm().item()
    assert norm > 0.01 if clip is None else norm == pytest.approx(clip, rel=1e-2)


@pytest.mark.parametrize(
    "given",
    [
        {"schedule": "linear"},
        {"warmup": -1},
        {"warmup": 31},
        {"clip": 0.0},
        {"label_smoothing": 1.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict) -> None:
    with refused():
        TrainConfig(**given)
