"""Linear models that take some seconds at most."""

from __future__ import annotations

import pytest

from tests.baselines.problems import small
from vrgcn.baselines import quick
from vrgcn.baselines.quick import is_quick


def test_a_fit_that_would_take_long_is_not_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small(classes=2)
    own = quick._work(graph, 0, 2)
    monkeypatch.setattr(quick, "_WORK", own)
    assert is_quick(graph, 0, 2)
    assert not is_quick(graph, 2, 2)
