"""Studies that open quickly."""

from __future__ import annotations

import pytest

_head: list[str] = []  # of the schema: the same for all studies of a process


@pytest.fixture(autouse=True)
def one_look_at_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optuna imports all of its migrations whenever a study is opened, half of a search's time."""
    optuna = pytest.importorskip("optuna")
    manager = optuna.storages._rdb.storage._VersionManager
    plain = manager.get_head_version

    def once(self) -> str:
        _head or _head.append(plain(self))
        return _head[0]

    monkeypatch.setattr(manager, "get_head_version", once)
