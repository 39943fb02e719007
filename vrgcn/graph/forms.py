"""Forms of features: as they are given, whether they are there (0 or 1), or rows of length 1."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from vrgcn.graph.sparse import in_blocks, is_sparse, product, scale_rows, with_values

Form = Literal["given", "binary", "length"]
FORMS: tuple[Form, ...] = ("given", "binary", "length")
_LEAST = 1e-12


def formed(x: Tensor, form: Form) -> Tensor:
    """X in a form. Of dense columns beside sparse ones, "binary" changes nothing."""
    if form == "binary":
        return _binary(x, everywhere=True)
    if form == "length":
        ones = torch.ones(x.shape[1], dtype=x.dtype, device=x.device)
        return scale_rows(1 / row_lengths(x, ones)[:, 0], x)
    return x


def _binary(x: Tensor, *, everywhere: bool) -> Tensor:
    if in_blocks(x):
        return x.map(lambda values: _binary(values, everywhere=False))
    if is_sparse(x):
        return with_values(x, (x.values() != 0).to(x.values()))
    return (x != 0).to(x) if everywhere else x


def row_lengths(x: Tensor, weights: Tensor) -> Tensor:
    """(rows, 1): lengths of the rows of x diag(weights), 1 where they are 0."""
    squares = product(_squared(x), weights.square()[:, None])
    return torch.where(squares > _LEAST**2, squares, 1).sqrt()


def _squared(x: Tensor) -> Tensor:
    if in_blocks(x):
        return x.map(_squared)
    return with_values(x, x.values().square()) if is_sparse(x) else x.square()
