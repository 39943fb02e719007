"""Devices by name."""

from __future__ import annotations

import pytest
import torch

from vrgcn.engine.devices import find_device, use_threads


def test_a_device_is_tried_out_before_anything_depends_on_it() -> None:
    assert find_device("cpu") == torch.device("cpu")
    for name in ("nowhere", "meta"):  # of the second, tensors hold no numbers
        with pytest.raises(ValueError, match=f"device '{name}' cannot be used on this machine"):
            find_device(name)


def test_threads_are_set_only_where_some_are_asked_for() -> None:
    use_threads(2)
    use_threads(None)
    assert torch.get_num_threads() == 2
