"""A model's forward pass: `model(x, propagate)`, or what an adapter makes of a model that is called
otherwise.

`vrgcn/__init__.py` offers the adapters of libraries, `MODEL_ADAPTERS`; each is imported when its
library is.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, cast

from torch import Tensor, nn

from vrgcn.engine import MODEL_ADAPTERS


class ModelAdapter(Protocol):
    """A module that runs the models of a library. Their layers propagate over relations that make
    their own matrix when they are called with a graph."""

    def has_layers(self, model: nn.Module) -> bool:
        """Whether a model has layers of the library."""

    def check_model(self, model: nn.Module) -> None:
        """Raise for a model that histories cannot train."""

    def run_model(self, model: nn.Module, x: Tensor, propagate: Any) -> Tensor:
        """The model's outputs for the minibatch."""


def find_adapter(model: nn.Module) -> ModelAdapter | None:
    """The adapter that runs a model; None for a model that takes `propagate`."""
    if not _takes_propagate(type(model).forward):
        for library, module in MODEL_ADAPTERS.items():
            if library in sys.modules:
                adapter = cast(ModelAdapter, import_module(module))
                if adapter.has_layers(model):
                    return adapter
    return None


def run_forward(model: nn.Module, x: Tensor, propagate: Any) -> Tensor:
    """The model's outputs for the minibatch, by its adapter if it has one."""
    adapter = find_adapter(model)
    if adapter is not None:
        return adapter.run_model(model, x, propagate)
    outputs: Tensor = model(x, propagate)
    return outputs


@lru_cache(maxsize=256)
def _takes_propagate(forward: Callable[..., Any]) -> bool:
    try:
        return "propagate" in inspect.signature(forward).parameters
    except (TypeError, ValueError):  # a forward without a signature belongs to no library
        return True
