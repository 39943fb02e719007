"""Turns of threads at a live model."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.waiting import wait_for
from vrgcn.live.turns import Turns


def _begun(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _waiting(turns: Turns) -> int:
    return len(turns._free._waiters)  # type: ignore[attr-defined]


def test_a_change_comes_before_computations_that_waited_longer() -> None:
    turns, order = Turns(), []

    def compute() -> None:
        with turns:
            order.append("computed")

    def change() -> None:
        with turns.changing():
            order.append("changed")

    with turns:
        threads = [_begun(compute) for _ in range(9)]
        wait_for(lambda: _waiting(turns) == 9, "the computations")
        threads.append(_begun(change))
        wait_for(lambda: _waiting(turns) == 10, "the change")
    for thread in threads:
        thread.join()
    assert order == ["changed", *["computed"] * 9]


def test_a_change_waits_no_longer_than_it_may_and_others_go_on_then() -> None:
    turns, order = Turns(), []
    with turns:

        def change() -> None:
            try:
                with turns.changing(0):
                    order.append("changed")
            except TimeoutError as error:
                order.append(str(error))

        _begun(change).join()
    with turns:
        order.append("computed")
    assert order == ["the model was busy for 0 seconds; nothing was changed", "computed"]


def test_the_owner_may_take_its_turn_again() -> None:
    turns = Turns()
    with turns.changing(0), turns, turns.changing(0):
        pass
    with pytest.raises(RuntimeError), turns:
        raise RuntimeError
    with turns.changing(0):
        pass
