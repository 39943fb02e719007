"""Large tables in memory, or in files that are mapped into it."""

from __future__ import annotations

from math import prod
from pathlib import Path

import torch
from torch import Tensor


def zeros(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    file: Path | None = None,
    device: torch.device | str = "cpu",
) -> Tensor:
    """A table of zeros; in a new file where one is named, which is then on the CPU."""
    if file is None:
        return torch.zeros(shape, dtype=dtype, device=device)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # a new file reads as zeros, an old one as what it held
    return torch.from_file(str(file), shared=True, size=prod(shape), dtype=dtype).view(shape)
