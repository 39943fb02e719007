"""A run's random numbers are its own, whatever else draws in the process."""

from __future__ import annotations

import threading

import pytest
import torch

from vrgcn.graph.randomness import RandomNumbers, default_generator, drawing_from, own_generator
from vrgcn.models.dense import Dropout

CPU = torch.device("cpu")


def test_dropout_draws_from_the_threads_generator_and_leaves_the_default_one_alone() -> None:
    before, x = torch.get_rng_state(), torch.ones(1000)
    with drawing_from(torch.Generator().manual_seed(3)):
        one = Dropout(0.5)(x)
    with drawing_from(torch.Generator().manual_seed(3)):
        assert torch.equal(Dropout(0.5)(x), one)
        assert not torch.equal(Dropout(0.5)(x), one)
    assert torch.equal(torch.get_rng_state(), before)
    with default_generator(CPU, 3):  # the same stream as that of the seed anywhere else
        assert torch.equal(Dropout(0.5)(x), one)


def test_a_generator_is_of_its_thread_alone() -> None:
    seen: list[object] = []
    with drawing_from(torch.Generator()):
        thread = threading.Thread(target=lambda: seen.append(own_generator(CPU)))
        thread.start()
        thread.join()
        assert own_generator(CPU) is not None
    assert seen == [None]
    assert own_generator(CPU) is None


@pytest.mark.parametrize("default", [False, True])
def test_numbers_go_on_where_they_were_left_whatever_is_drawn_between(default: bool) -> None:
    def draw(numbers: RandomNumbers, between: bool) -> list[torch.Tensor]:
        drawn = []
        for _ in range(3):
            with numbers.drawn():
                ours = torch.rand(4) if default else torch.empty(0)
                drawn += [torch.rand(4, generator=own_generator(CPU)), ours]
            if between:
                torch.rand(3)
        return drawn

    quiet = draw(RandomNumbers(5, CPU, default=default), between=False)
    loud = draw(RandomNumbers(5, CPU, default=default), between=True)
    seeded = draw(RandomNumbers(6, CPU, default=default), between=False)
    assert all(torch.equal(a, b) for a, b in zip(quiet, loud, strict=True))
    drawn = [(a, b) for a, b in zip(quiet, seeded, strict=True) if len(a)]
    assert not any(torch.equal(a, b) for a, b in drawn)
    numbers = RandomNumbers(5, CPU, default=default)
    draw(numbers, between=False)
    state = {name: value.clone() for name, value in numbers.state_dict().items()}
    wanted = draw(numbers, between=False)
    other = RandomNumbers(6, CPU, default=default)
    other.load_state_dict(state)
    assert all(torch.equal(a, b) for a, b in zip(draw(other, between=True), wanted, strict=True))


def test_the_default_generator_is_as_before_even_after_an_error() -> None:
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), default_generator(CPU, 1):
        print(torch.rand(1) / (1 // 0))
    assert torch.equal(torch.get_rng_state(), before)
