"""`Baseline`: what the modules of all baselines share; and what they compute of neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vrgcn.files.kinds import Kind
from vrgcn.graph.sparse import CSR, product
from vrgcn.models.dense import OutputScale


class Baseline(nn.Module):
    """A fitted model. Its arguments decide the shapes of its tensors; the tensors come from a fit
    or a file.

    kinds: what a file may say of each argument
    arguments: by which it is made again; `in_features` and `classes`, its outputs, among them
    """

    propagation = "adjacency"  # sums: of a column of ones they are the degrees
    kinds: ClassVar[Mapping[str, Kind]]

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self.arguments = arguments
        self.output_scale = OutputScale()

    def set_output_scale(self, mean: float, deviation: float) -> None:
        """From now on the outputs are multiplied by `deviation` and moved by `mean`."""
        self.output_scale.set(mean, deviation, torch.device("cpu"))

    def check_tensors(self) -> None:
        """Refuse tensors, of a file, that the module cannot compute with."""

    def make(self, name: str, *shape: int) -> None:
        """A floating-point tensor of the module, which is not trained."""
        make_tensor(self, name, *shape)

    def fill(self, name: str, values: Tensor) -> None:
        """Give a tensor that `make` made its values, in their precision."""
        getattr(self, name).data = values.detach().clone()


def make_tensor(module: nn.Module, name: str, *shape: int) -> None:
    """Give a module a floating-point tensor that is not trained."""
    setattr(module, name, nn.Parameter(torch.zeros(shape), requires_grad=False))


def times(x: Tensor | CSR, weights: Tensor) -> Tensor:
    """x @ weights for x of any layout. A CSR that is kept remembers what gradients need of it."""
    return product(x, weights) if isinstance(x, Tensor) else x @ weights


def mean_and_degree(h: Tensor, propagate: Any) -> tuple[Tensor, Tensor]:
    """The mean of h over the neighbours of the next level's nodes, (next level, width), 0 where
    there are none; and their degree, the sum of their edges' weights, (next level, 1).

    propagate: sums over neighbours, see `Baseline.propagation`
    """
    sums = propagate(torch.cat([h, h.new_ones(len(h), 1)], dim=1))
    degree = sums[:, -1:]
    return sums[:, :-1] / torch.where(degree > 0, degree, 1), degree


def beside_means(x: Tensor, propagate: Any, hops: int) -> Tensor:
    """[x, P x, P P x, log(1 + degree)] for `hops` 2, where P is the mean over the neighbours; x
    alone for 0: (level 0, width) -> (last level, columns)."""
    blocks, degree = [x], None
    for _ in range(hops):
        mean, degree = mean_and_degree(blocks[-1], propagate)
        blocks = [*(block[: len(mean)] for block in blocks), mean]
    return blocks[0] if degree is None else torch.cat([*blocks, degree.log1p()], dim=1)
