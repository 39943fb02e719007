"""The `vrgcn` that is recorded."""

from __future__ import annotations

import importlib
from typing import Any


def public() -> Any:
    """Return the package, without types: the same tool records any commit, whatever its types
    are."""
    return importlib.import_module("vrgcn")
