"""The device and the threads that a run was asked to use."""

from __future__ import annotations

import torch

from vrgcn.files.mistakes import InputError


def find_device(name: str) -> torch.device:
    """A device by name, tried out before anything depends on it."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device).add_(1).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device {name!r} cannot be used on this machine ({reason}); use 'cpu'"
        ) from None
    return device


def use_threads(threads: int | None) -> None:
    """CPU threads for all that follows in this process; None leaves PyTorch's choice."""
    if threads is None:
        return
    if threads < 1:
        raise InputError(f"threads must be at least 1, not {threads}")
    torch.set_num_threads(threads)
