"""Rows of mapped tables are asked for before they are touched."""

from __future__ import annotations

import mmap
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from vrgcn.graph import bags
from vrgcn.graph import mapped as module
from vrgcn.graph.mapped import gather, is_mapped, read_ahead, zeros
from vrgcn.graph.sparse import CSR, offsets, select_rows

PAGE = mmap.PAGESIZE


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    """Addresses of other tests' tables are not taken for those of these."""
    monkeypatch.setattr(module, "_mapped", {})
    monkeypatch.setattr(module, "_reading", {"blocks": -1, "calls": 0})


def asked(monkeypatch) -> list[list[list[int]]]:
    """Record the pages that are requested from now on."""
    calls: list[list[list[int]]] = []
    monkeypatch.setattr(module, "_advise", lambda ranges: calls.append(ranges.tolist()))
    return calls


@pytest.mark.parametrize(
    ("rows", "size", "pages"),
    [
        ([0], 64, [(0, 1)]),
        ([5, 3, 4], 64, [(0, 1)]),
        ([64, 0], 64, [(0, 2)]),  # pages that follow each other
        ([128, 0], 64, [(0, 3)]),  # and one between two
        ([192, 0], 64, [(0, 1), (3, 1)]),
        ([1], PAGE - 8, [(0, 2)]),  # a row across two pages
        ([1, 0], 3 * PAGE, [(0, 6)]),
        ([0, 9, 9, 0], PAGE, [(0, 1), (9, 1)]),
    ],
)
def test_pages_of_rows_are_named_once_in_their_order(rows, size, pages):
    start = 7 * PAGE
    found = module._ranges(start, size, np.array(rows))
    assert found.tolist() == [[start + first * PAGE, count * PAGE] for first, count in pages]


def test_a_table_that_begins_inside_a_page_has_rows_across_pages():
    found = module._ranges(7 * PAGE + 128, PAGE // 2, np.array([1, 9]))
    assert found.tolist() == [[7 * PAGE, 2 * PAGE], [11 * PAGE, 2 * PAGE]]


def test_pages_of_named_rows_are_asked_for_and_others_are_not_read_with_them(tmp_path, monkeypatch):
    calls, expected = asked(monkeypatch), []
    monkeypatch.setattr(module, "_expect", lambda start, size, order: expected.append(order))
    table = zeros((512, PAGE // 4), torch.float32, tmp_path / "table.bin")
    with read_ahead(table, torch.tensor([300, 17, 301])):
        start = table.data_ptr()
        assert calls == [[[start + 17 * PAGE, PAGE], [start + 300 * PAGE, 2 * PAGE]]]
        assert expected == [module._RANDOM]
    assert expected == [module._RANDOM, module._NORMAL]


def test_nothing_is_asked_for_of_tables_in_memory(monkeypatch):
    calls = asked(monkeypatch)
    table = torch.randn(100, 8)
    assert not is_mapped(table)
    with read_ahead(table, torch.tensor([1, 2])):
        pass
    assert torch.equal(gather(table, torch.tensor([1, 2])), table[1:3])
    assert not calls


def test_it_is_left_off_while_nothing_comes_from_the_disk_and_begins_again(tmp_path, monkeypatch):
    calls = asked(monkeypatch)
    blocks = 5
    used = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_inblock=blocks))
    monkeypatch.setattr(module, "resource", used)
    table, rows = zeros((100, 8), torch.float32, tmp_path / "0.bin"), torch.tensor([1])
    for _ in range(100):
        gather(table, rows)
    assert len(calls) == module._CALLS
    blocks = 6
    gather(table, rows)
    assert len(calls) == module._CALLS + 1


def test_rows_of_a_mapped_table_come_in_pieces_and_are_the_same(tmp_path, monkeypatch):
    calls = asked(monkeypatch)
    monkeypatch.setattr(module, "ENTRIES", 7)
    table = zeros((40, 3), torch.float32, tmp_path / "0.bin")
    table.copy_(torch.randn(40, 3))
    rows = torch.randint(40, (30,))
    assert torch.equal(gather(table, rows), table.clone()[rows])
    assert torch.equal(select_rows(table, rows), table.clone()[rows])
    assert len(calls) == 2 * 5
    assert gather(table, rows[:0]).shape == (0, 3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_product_with_a_mapped_table_has_the_bits_of_one_in_memory(
    dtype, weighted, tmp_path, monkeypatch
):
    calls = asked(monkeypatch)
    monkeypatch.setattr(bags, "ENTRIES", 50)
    counts = torch.randint(20, (60,))
    counts[7], counts[30:40] = 200, 0  # a row of more than a piece, and empty ones
    total = int(counts.sum())
    values = torch.rand(total) if weighted else None
    matrix = CSR(offsets(counts), torch.randint(300, (total,)), values, 300, torch.rand(60))
    table = zeros((300, 16), dtype, tmp_path / "0.bin")
    table.copy_(torch.randn(300, 16))
    assert torch.equal(matrix @ table, matrix @ table.clone())
    assert len(calls) > 5
    empty = CSR(torch.zeros(1, dtype=torch.int64), torch.empty(0, dtype=torch.int64), None, 300)
    assert (empty @ table).shape == (0, 16)


@pytest.mark.parametrize("missing", ["the call", "the handle", "the counts"])
def test_where_the_system_does_not_know_how_rows_are_read_when_touched(
    missing, tmp_path, monkeypatch
):
    if missing == "the call":
        library = SimpleNamespace(madvise=lambda *_: -1)
        monkeypatch.setattr(module, "_library", lambda: library)
    elif missing == "the handle":
        monkeypatch.delattr(os, "pidfd_open")
    else:
        monkeypatch.setattr(module, "resource", None)
    module._system.cache_clear()
    table = zeros((40, 3), torch.float32, tmp_path / "0.bin")
    assert torch.equal(gather(table, torch.tensor([3, 5])), torch.zeros(2, 3))
    module._system.cache_clear()
