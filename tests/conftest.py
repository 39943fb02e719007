"""One thread: the tests' tensors are so small that sharing them out costs more than it gains."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
