"""Rows of copies: which are written, and which are looked at."""

from __future__ import annotations

import torch

from vrgcn.distributed.halo import _some, pack, unpack
from vrgcn.engine.history import History


def table(rows: int, written: list[int]) -> History:
    return History(torch.arange(2.0 * rows).view(rows, 2), torch.tensor(written))


def test_rows_that_came_do_not_replace_newer_ones_of_our_own() -> None:
    theirs, ours = table(3, [4, 7, 9]), History(torch.zeros(3, 2), torch.tensor([5, 7, -1]))
    nodes = torch.arange(3)
    packed = pack([theirs], nodes, None)
    unpack([ours], nodes, packed, start=0, newer=True)
    assert ours.written.tolist() == [5, 7, 9]
    assert torch.equal(ours.values, theirs.values * torch.tensor([[0.0], [1.0], [1.0]]))
    unpack([ours], nodes, packed, start=0)
    assert ours.written.tolist() == [4, 7, 9]
    assert torch.equal(ours.values, theirs.values)


def test_rows_to_look_at_are_rows_that_there_are() -> None:
    for count in (1, 5, 2**24 + 4, 2**25 + 4, 2**31 + 7):
        some = _some(count, 256)
        assert int(some[-1]) == count - 1
        assert len(torch.unique(some)) == min(count, 256)
