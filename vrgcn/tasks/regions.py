"""Prediction sets and intervals: the labels that are not too strange for a model's outputs.

A task says how strange a label is for outputs (`Task.strangeness`). Labels up to a limit are in the
region. Split conformal prediction takes the limit from nodes that the model has not learned from:
with the k-th smallest strangeness of n of them, k = ceil((n + 1) c), the region of one more node
that is exchangeable with them holds its label with probability at least c.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError

SEPARATOR = "|"  # between classes

# From outputs (nodes, width) to regions, see `Task.region`.
Region = Callable[[Tensor], Tensor]


def limit_of(scores: Tensor, coverage: float) -> float:
    """The limit of strangeness for a promised coverage.

    scores: (nodes,) of nodes that the model has not learned from
    """
    if not 0 < coverage < 1:
        raise InputError(f"a coverage lies between 0 and 1, not {coverage:g}")
    place = math.ceil((len(scores) + 1) * coverage - 1e-9)
    if place > len(scores):
        needed = math.ceil(coverage / (1 - coverage) - 1e-9)
        raise InputError(
            f"a coverage of {coverage:g} needs at least {needed} nodes to calibrate on, and there "
            f"are {len(scores)}: ask for less, or train with more validation nodes"
        )
    return float(scores.sort().values[place - 1])


class SetColumn:
    """The column `set`: the classes of the prediction set, joined by "|"; as a list in JSON where a
    class has "|" in its name, or an empty one."""

    def __init__(self, region: Region, classes: Sequence[str]) -> None:
        self._region = region
        self._classes = pa.array(classes, type=pa.string())
        self.fields = [("set", pa.string())]

    def arrays(self, outputs: Tensor) -> list[pa.Array]:
        return [joined_names(self._region(outputs), self._classes)]


class IntervalColumns:
    """The columns `low` and `high`."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self.fields = [("low", pa.float64()), ("high", pa.float64())]

    def arrays(self, outputs: Tensor) -> list[pa.Array]:
        return [pa.array(end.contiguous().numpy()) for end in self._region(outputs).t()]


def joined_names(chosen: Tensor, classes: pa.Array) -> pa.Array:
    """The names of the chosen classes of each node, (nodes,) texts.

    chosen: (nodes, classes) bool
    """
    values = classes.take(pa.array(chosen.nonzero()[:, 1].contiguous().numpy()))
    starts = torch.zeros(len(chosen) + 1, dtype=torch.int32)
    starts[1:] = chosen.sum(1).cumsum(0)
    lists = pa.ListArray.from_arrays(pa.array(starts.numpy()), values)
    # Otherwise the class a|b could not be told from the classes a and b, nor "" from no class.
    odd = pc.or_(pc.match_substring(classes, SEPARATOR), pc.equal(classes, ""))
    if not pc.any(odd).as_py():
        return pc.binary_join(lists, SEPARATOR)
    texts = [json.dumps(row, ensure_ascii=False) for row in lists.to_pylist()]
    return pa.array(texts, pa.string())
