"""Tables of zeros, in memory or in a file."""

from __future__ import annotations

from pathlib import Path

import torch

from vrgcn.graph.mapped import zeros


def test_a_file_has_the_size_of_the_table_and_what_is_written_to_it(tmp_path: Path) -> None:
    file = tmp_path / "tables" / "0.bin"
    table = zeros((5, 3), torch.float16, file)
    assert file.stat().st_size == 5 * 3 * 2
    assert not table.any()
    table[2] = torch.tensor([1.0, 2.0, 3.0])
    held = torch.from_file(str(file), size=15, dtype=torch.float16).view(5, 3)
    assert torch.equal(held, table)


def test_a_file_that_was_there_reads_as_zeros(tmp_path: Path) -> None:
    file = tmp_path / "0.bin"
    file.write_bytes(b"\x7f" * 64)
    assert not zeros((4, 4), torch.float32, file).any()
