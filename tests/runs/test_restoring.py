"""A state that makes no sense is refused before it is put into a trainer, whatever its checksum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.messages import refused
from tests.training.test_state import SETTINGS, advance, trainer
from vrgcn.engine.batch import Position
from vrgcn.runs.restoring import check_state
from vrgcn.training.state import TrainState


def taken(steps: int = 6, **settings: Any) -> TrainState:
    run = trainer(**({"estimator": "two-way", "history_dtype": "float16"} | settings))
    advance(run, steps)
    return run.state()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_state_of_a_run_makes_sense(name: str) -> None:
    fresh, run = trainer(**SETTINGS[name]), trainer(**SETTINGS[name])
    check_state(fresh, run.state())
    checked = 0
    while run.advance():
        check_state(fresh, run.state())
        checked += 1
    assert checked == run.state().position.step


def at(**position: Any) -> Callable[[TrainState], TrainState]:
    return lambda state: replace(state, position=replace(state.position, **position))


def progress(**values: Any) -> Callable[[TrainState], TrainState]:
    return lambda state: replace(state, progress=replace(state.progress, **values))


def with_entry(part: str, name: str, value: Any) -> Callable[[TrainState], TrainState]:
    return lambda state: replace(state, **{part: getattr(state, part) | {name: value}})


def moment(state: TrainState) -> TrainState:
    state.optimizer["state"][0]["exp_avg"] = torch.zeros(1, 1)
    return state


def no_moment(state: TrainState) -> TrainState:
    del state.optimizer["state"][0]["exp_avg_sq"]
    return state


def rate(value: Any) -> Callable[[TrainState], TrainState]:
    def change(state: TrainState) -> TrainState:
        state.optimizer["param_groups"][0]["lr"] = value
        return state

    return change


def settings(state: TrainState) -> TrainState:
    state.optimizer["param_groups"][0]["betas"] = (2.0, "x")
    return state


WRONG = {
    "a place beyond the epoch": at(place=99),
    "a place below zero": at(place=-1),
    "an epoch ahead": at(epoch=7),
    "a step that does not follow": at(step=2),
    "a text": at(step="6"),
    "a curve of texts": progress(sampled="3"),
    "a best epoch that was not": lambda s: _best(s, 9),
    "a best epoch without weights": lambda s: replace(s, best=None),
    "best weights of another shape": with_entry("best", "layers.0.weight", torch.ones(1)),
    "a weight more": with_entry("model", "other", torch.ones(1)),
    "weights of another type": lambda s: replace(
        s, model={k: v.double() for k, v in s.model.items()}
    ),
    "moments of another shape": moment,
    "a moment less": no_moment,
    "a rate below zero": rate(-1.0),
    "a schedule of which there is none": lambda s: replace(s, schedule={"plateau": {"step": 1}}),
    "a rate that is none": rate(math.nan),
    "settings of another kind": settings,
    "a table of one row": with_entry("histories", "1.h.values", torch.ones(1, 8).half()),
    "a table of another type": with_entry("histories", "1.h.values", torch.ones(90, 8)),
    "a table of no level": with_entry("histories", "a.h.values", torch.ones(90, 8)),
    "rows of the future": with_entry("histories", "1.h.written", torch.full((90,), 99)),
    "a generator of another size": with_entry(
        "random", "minibatches", torch.ones(3, dtype=torch.uint8)
    ),
}


def _best(state: TrainState, epoch: int) -> TrainState:
    assert state.progress.best is not None
    return progress(best=replace(state.progress.best, epoch=epoch))(state)


@pytest.mark.parametrize("what", WRONG)
def test_a_state_that_cannot_be_is_refused(what: str) -> None:
    change = WRONG[what]
    run = trainer(estimator="two-way", history_dtype="float16")
    steps = len(run.minibatches)
    state = taken(steps + 2)
    assert state.position == Position(2, 2, steps + 2)
    check_state(run, state)
    with refused():
        check_state(run, change(state))


def test_a_schedule_cannot_become_anything_else() -> None:
    run = trainer(schedule="plateau", warmup=1)
    state = run.state()
    check_state(run, state)
    for value in ("never", None, [1]):
        plateau = state.schedule["plateau"] | {"best": value}
        with refused():
            check_state(run, replace(state, schedule=state.schedule | {"plateau": plateau}))
