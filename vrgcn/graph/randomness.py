"""Random numbers that belong to one run, whatever else draws in the same process.

PyTorch has one default generator for all threads. Two runs that draw from it at the same time take
each other's numbers. So vrgcn's dropout draws from a generator of its run, which is the thread's
during a step; code that needs the default generator, such as a model with `torch.nn.Dropout`, holds
it exclusively for that time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor

_of_thread = threading.local()
_default = threading.RLock()


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Make `own_generator` return `generator` in this thread, inside this context."""
    before = getattr(_of_thread, "generator", None)
    _of_thread.generator = generator
    try:
        yield
    finally:
        _of_thread.generator = before


def own_generator(device: torch.device) -> torch.Generator | None:
    """The thread's generator, if it is one of this device; None stands for PyTorch's default."""
    generator: torch.Generator | None = getattr(_of_thread, "generator", None)
    if generator is None or generator.device.type != device.type:
        return None
    return generator


@contextmanager
def default_generator(device: torch.device, seed: int | None = None) -> Iterator[None]:
    """The default generators of the CPU and `device`, alone, and afterwards as they were before.

    Others that come this way wait; code that draws without asking is not kept out.
    """
    with _default, torch.random.fork_rng([device] if device.type == "cuda" else []):
        if seed is not None:
            torch.manual_seed(seed)
        yield


def default_state(device: torch.device) -> Tensor:
    """The states of the default generators of the CPU and `device`, one after the other: uint8."""
    if device.type == "cuda":
        return torch.cat([torch.get_rng_state(), torch.cuda.get_rng_state(device)])
    return torch.get_rng_state()


class RandomNumbers:
    """Random numbers of one run: a generator, and states of PyTorch's default ones if needed.

    default: whether it does, as one with `torch.nn.Dropout` does
    """

    def __init__(self, seed: int, device: torch.device, *, default: bool) -> None:
        self.device = device
        self.generator = torch.Generator(device).manual_seed(seed)
        self.default: Tensor | None = None
        if default:
            with default_generator(device, seed):
                self.default = default_state(device)

    @contextmanager
    def drawn(self) -> Iterator[None]:
        """Draw all random numbers inside this context from the run's own generators, which continue
        where they were left."""
        shared = nullcontext() if self.default is None else self._default_drawn()
        with drawing_from(self.generator), shared:
            yield

    def state_dict(self) -> dict[str, Tensor]:
        state = {"dropout": self.generator.get_state()}
        return state if self.default is None else state | {"default": self.default}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.generator.set_state(state["dropout"])
        self.default = state.get("default")

    @contextmanager
    def _default_drawn(self) -> Iterator[None]:
        with default_generator(self.device):
            assert self.default is not None
            _set_default_state(self.device, self.default)
            try:
                yield
            finally:
                self.default = default_state(self.device)


def _set_default_state(device: torch.device, state: Tensor) -> None:
    size = len(torch.get_rng_state())
    torch.set_rng_state(state[:size])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state[size:], device)
