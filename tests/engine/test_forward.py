"""Forward passes of models that are called otherwise than `model(x, propagate)`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vrgcn.engine import MODEL_ADAPTERS
from vrgcn.engine.forward import find_adapter, run_forward


class Doubling(nn.Module):
    def forward(self, x: Tensor, edges: object) -> Tensor:
        return 2 * x


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> str:
    """An adapter that is offered for a library of which `Doubling` is."""
    adapter: Any = ModuleType("doubling_adapter")
    adapter.has_layers = lambda model: isinstance(model, Doubling)
    adapter.run_model = lambda model, x, propagate: propagate(model(x, "its edges"))
    monkeypatch.setitem(sys.modules, adapter.__name__, adapter)
    monkeypatch.setitem(MODEL_ADAPTERS, "doubling", adapter.__name__)
    return "doubling"


def test_an_offered_adapter_runs_the_models_of_its_library(library, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, library, ModuleType(library))
    x = torch.ones(2, 3)
    assert run_forward(Doubling(), x, lambda h: h + 1).equal(2 * x + 1)
    assert find_adapter(nn.Linear(3, 3)) is None


def test_an_adapter_is_not_asked_before_its_library_is_imported(library) -> None:
    assert find_adapter(Doubling()) is None
