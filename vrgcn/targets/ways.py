"""Ways to split pairs: the number of each pair's split, 0 train, 1 val, 2 test, 3 for none.

    ratio           shares, at random
    leave one out   of each source with at least three pairs one for the test and one for the
                    validation: the last ones where pairs have times, else drawn
    column          what a kept column says
    time            until a first moment for training, until a second one for validation

A pair of the number 3 carries no messages either, and still is no negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import counted
from vrgcn.graph.kept import Column, Columns
from vrgcn.graph.until import Until, check_order, short, time_of
from vrgcn.targets.spec import PAIR_RATIO, TargetSpec

NONE = 3


@dataclass
class Listed:
    """The pairs to be split.

    relation: its name
    sources: (pairs,) of each
    columns: kept columns with a value for each pair
    said: what was done, a sentence each, for the run to print
    """

    relation: str
    sources: Tensor
    columns: Columns
    said: list[str] = field(default_factory=list)


def way_of(spec: TargetSpec) -> str | None:
    """Return the setting that says how pairs are split; None for shares."""
    given = [name for name in WAYS if getattr(spec, name, None) not in (None, False)]
    if len(given) > 1:
        raise InputError(f"{' and '.join(map(setting, given))}: give one of them")
    return given[0] if given else None


def assigned(pairs: Listed, spec: TargetSpec, generator: torch.Generator) -> Tensor:
    """(pairs,) the number of each pair's split."""
    way = way_of(spec)
    if way is not None:
        return WAYS[way](pairs, spec, generator)
    return drawn_parts(len(pairs.sources), spec.ratio or PAIR_RATIO, generator)


def per_pair(columns: Columns, place: Tensor, count: int) -> dict[str, Column]:
    """Columns of entries as columns of pairs, of which each may have several entries: the smallest
    value, so the earliest time and the earliest split; unknown if none is known.

    place: (entries,) the pair of each
    """
    found: dict[str, Column] = {}
    for name, column in columns.items():
        values = column.values
        if values.is_floating_point():
            lifted = values.nan_to_num(torch.inf)
            least = torch.full((count,), torch.inf, dtype=values.dtype)
            least.scatter_reduce_(0, place, lifted, "amin")
            least[least.isinf()] = torch.nan
        else:
            most = torch.iinfo(values.dtype).max
            lifted = torch.where(values < 0, most, values)
            least = torch.full((count,), most, dtype=values.dtype)
            least.scatter_reduce_(0, place, lifted, "amin")
            least[least == most] = -1
        found[name] = Column(column.kind, least, column.classes)
    return found


def _by_column(pairs: Listed, spec: TargetSpec, generator: torch.Generator) -> Tensor:
    name = str(spec.split_column)
    column = find_column(pairs.columns, pairs.relation, "split_column", name)
    if column.kind != "split":
        want = Placeholder(f"{short(pairs.relation)}.{name}=split")
        raise InputError(
            f"{setting('split_column', name)}: {pairs.relation}.{name} is kept as a {column.kind}; "
            f"import it with {setting('keep', want)}"
        )
    codes = torch.where(column.values < 0, NONE, column.values)
    _check_train(codes, f"{setting('split_column', name)} says train of no pair")
    pairs.said.append(f"pairs are split by the column {name}")
    return _with_validation(codes, pairs, spec, generator)


def _by_time(pairs: Listed, spec: TargetSpec, generator: torch.Generator) -> Tensor:
    train = Until(str(spec.train_until), "train_until")
    times = time_of(pairs.columns, pairs.relation, spec.time_column, needed=True)
    assert times is not None
    val = None if spec.val_until is None else Until(spec.val_until, "val_until")
    check_order(train, val, times)
    codes = torch.where(times.known, 2, NONE)
    if val is not None:
        codes[val.not_later(times)] = 1
    codes[train.not_later(times)] = 0
    _check_train(codes, f"{setting('train_until', str(train))}: no pair is that early")
    unknown = int((~times.known).sum())
    if unknown:
        pairs.said.append(
            f"{counted(unknown, 'pair')} without a time: in no split, and without messages"
        )
    if val is None:
        return _with_validation(codes, pairs, spec, generator)
    return codes


def _with_validation(
    codes: Tensor, pairs: Listed, spec: TargetSpec, generator: torch.Generator
) -> Tensor:
    """The same split; without validation pairs, some training pairs are drawn to be these."""
    share = (spec.ratio or PAIR_RATIO)[1]
    if (codes == 1).any() or not share:
        return codes
    train = (codes == 0).nonzero()[:, 0]
    count = min(int(share * len(train)), len(train) - 1)
    if count < 1:
        return codes
    chosen = train[torch.randperm(len(train), generator=generator)[:count]]
    codes[chosen] = 1
    pairs.said.append(
        f"no validation pairs are given: {counted(count, 'training pair')} ({share:.0%}) drawn to "
        f"be these ({setting('ratio')})"
    )
    return codes


def _check_train(codes: Tensor, what: str) -> None:
    if not (codes == 0).any():
        raise InputError(f"{what}: there is nothing to train on")


def find_column(columns: Mapping[str, Column], owner: str, name: str, column: str) -> Column:
    """A kept column of a relation; the error of one that is not there says how to keep it.

    name: the setting that asks for it
    """
    if column in columns:
        return columns[column]
    have = ", ".join(f"{each} ({c.kind})" for each, c in columns.items()) or "no columns"
    want = Placeholder(f"{short(owner)}.{column}" if "-" in owner else column)
    raise InputError(
        f"{setting(name, column)}: the graph keeps {have} of {owner}; import it again with "
        f"{setting('keep', want, command='import')}"
    )


def _one_out(pairs: Listed, spec: TargetSpec, generator: torch.Generator) -> Tensor:
    """Split each source with at least three pairs: its last is a test pair, the one before it a
    validation pair. Pairs of the same time, or all without times, are in random order."""
    sources = pairs.sources
    order = torch.randperm(len(sources), generator=generator)
    times = time_of(pairs.columns, pairs.relation, spec.time_column, needed=bool(spec.time_column))
    if times is not None:
        known = times.values.nan_to_num(-torch.inf)  # unknown times come first
        order = order[known[order].argsort(stable=True)]
        pairs.said.append("the last pair of each source is a test pair, the one before validation")
    order = order[sources[order].argsort(stable=True)]
    _, counts = torch.unique_consecutive(sources[order], return_counts=True)
    ends = counts.cumsum(0)
    found = torch.zeros(len(sources), dtype=torch.int64)
    enough = counts >= 3
    found[order[ends[enough] - 1]] = 2
    found[order[ends[enough] - 2]] = 1
    return found


def drawn_parts(count: int, ratio: Sequence[float], generator: torch.Generator) -> Tensor:
    """(count,) numbers in the shares of the ratio, in random order."""
    val, test = int(ratio[1] * count), int(ratio[2] * count)
    train = int(ratio[0] * count) if sum(ratio) < 1 - 1e-9 else count - val - test
    if train < 1:
        raise InputError(
            f"{setting('ratio', tuple(ratio))} leaves none of {count} edges to train on"
        )
    found = torch.full((count,), NONE)
    order = torch.randperm(count, generator=generator)
    for number, part in enumerate(order[: train + val + test].split([train, val, test])):
        found[part] = number
    return found


# By the setting that asks for it, how each pair gets the number of its split.
WAYS: dict[str, Callable[[Listed, TargetSpec, torch.Generator], Tensor]] = {
    "leave_one_out": _one_out,
    "split_column": _by_column,
    "train_until": _by_time,
}
