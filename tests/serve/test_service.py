"""A start of the service, its folds, and the thread of its writer."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.messages import refused
from tests.serve.damage import flips, truncations
from tests.waiting import LONG
from vrgcn.live.saving import verified_description
from vrgcn.runs.run import load_run
from vrgcn.serve.app import build_app
from vrgcn.serve.bodies import Limits
from vrgcn.serve.head import DamagedError
from vrgcn.serve.service import Service

EDGE = {"source": "p0", "target": "p1", "weight": 1}
CHANGE = [{"change": "add_edges", "rows": [EDGE], "relation": None}]
Open = Callable[..., Service]


@pytest.fixture
def folder(open_service: Open) -> Path:
    """The folder of a service with four changes, of which three are in a state."""
    service = open_service()
    for number in range(4):
        service.change(CHANGE, key=f"key-{number}")
        if number == 2:
            service.fold()
    return service.journal.folder


def _prediction(service: Service) -> Any:
    found = service.read("p0", None, 0)
    assert found is not None
    return found["change"], found["probabilities"]


def _refused(open_service: Open, *words: str) -> None:
    with pytest.raises(DamagedError) as found:
        open_service()
    for word in (*words, "another state folder"):
        assert word in str(found.value)


def test_a_journal_that_is_put_back_has_everything(open_service: Open, folder: Path) -> None:
    wanted = _prediction(open_service())
    for path in sorted(folder.glob("journal*")):
        data = path.read_bytes()
        for damage in (lambda p: p.write_bytes(b""), Path.unlink):
            damage(path)
            _refused(open_service, path.name)
            assert (folder / "state-3").is_dir()
        path.write_bytes(data)
    assert _prediction(open_service()) == wanted


def test_states_are_checked_byte_by_byte(open_service: Open, folder: Path, papers: Path) -> None:
    saved, state = load_run(papers).saved, folder / "state-3"
    verified_description(state, saved)
    for file in sorted(path for path in state.rglob("*") if path.is_file()):
        data = file.read_bytes()
        places = range(0, len(data), max(len(data) // 3, 1))
        for what, damaged in [*flips(data, places), *truncations(data, places)]:
            file.write_bytes(damaged)
            with pytest.raises((ValueError, OSError)) as found:
                verified_description(state, saved)
            assert str(file) in str(found.value), what
        file.unlink()
        with refused((ValueError, OSError)):
            verified_description(state, saved)
        file.write_bytes(data)
    for name in ("outputs.npy", "live.json"):
        data = (state / name).read_bytes()
        (state / name).write_bytes(data[:-1])
        _refused(open_service, f"state-3/{name} is")
        (state / name).write_bytes(data)
    assert open_service().number == 4


def test_a_state_of_another_journal_is_refused_and_kept(open_service: Open, folder: Path) -> None:
    open_service()
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    shutil.rmtree(folder)
    service = open_service()
    service.change(CHANGE)
    shutil.copytree(other / "state-3", folder / "state-3")
    _refused(open_service, "state-3 belongs to another journal")
    assert (folder / "state-3").is_dir()
    shutil.rmtree(folder / "state-3")
    assert open_service().number == 1
    shutil.rmtree(other)


def test_a_state_that_is_newer_than_the_journal_is_refused_and_kept(
    open_service: Open, folder: Path
) -> None:
    service = open_service()
    before = {path: path.read_bytes() for path in folder.glob("journal*")}
    old = folder.parent / "old-state"
    shutil.copytree(folder / "state-3", old)
    service.change(CHANGE)
    service.fold()
    open_service()
    for path in folder.glob("journal*"):
        path.unlink()
    for path, data in before.items():
        path.write_bytes(data)
    shutil.move(old, folder / "state-3")
    _refused(open_service, "state-5 has changes up to 5")
    assert (folder / "state-5").is_dir()


def test_a_missing_state_is_named(open_service: Open, folder: Path) -> None:
    shutil.move(folder / "state-3", folder.parent / "away")
    _refused(open_service, "state-3")
    shutil.move(folder.parent / "away", folder / "state-3")
    assert open_service().number == 4


def test_a_fold_is_verified_before_anything_is_removed(
    open_service: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = open_service()
    save = service.live.save

    def damaging(path: Path, note: Any) -> None:
        save(path, note)
        (path / "outputs.npy").write_bytes(b"")

    with monkeypatch.context() as patched:
        patched.setattr(service.live, "save", damaging)
        with refused():
            service.fold()
    assert [path.name for path in folder.glob("state-*")] == ["state-3"]
    assert service.journal.head.state == "state-3"
    service.fold()
    assert [path.name for path in folder.glob("state-*")] == ["state-4"]
    assert open_service().number == 4


def test_what_a_killed_fold_left_is_removed_by_the_next_start(
    open_service: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = open_service()
    with monkeypatch.context() as patched:
        patched.setattr(service.journal, "fold", lambda _: None)
        patched.setattr("vrgcn.serve.service.remove_superseded", lambda _: None)
        service.fold()
    assert (folder / "state-4").is_dir()
    assert open_service().number == 4
    assert [path.name for path in folder.glob("state-*")] == ["state-3"]


def test_a_change_that_cannot_be_applied_again_is_named(open_service: Open) -> None:
    open_service().journal.append('[{"change":"remove_nodes","ids":["nobody"]}]')
    with refused():
        open_service()


async def _two_threads() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))


def test_changes_do_not_wait_for_the_threads_of_reads(open_service: Open) -> None:
    """All threads of the reads are taken by explanations that never end."""
    service, over = open_service(), threading.Event()
    begun = threading.Semaphore(0)

    def endless(*_: Any) -> dict[str, Any]:
        begun.release()
        over.wait(LONG)
        return {}

    service.explain = endless  # type: ignore[method-assign]
    app = build_app(service, Limits(seconds=LONG), None, loopback=True)
    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor(4) as pool:
        assert client.portal is not None
        client.portal.call(_two_threads)
        asked = [pool.submit(client.get, "/explain/p0") for _ in range(3)]
        try:
            for _ in range(2):
                begun.acquire()
            changed = pool.submit(client.post, "/edges", json={"edges": [EDGE]}).result(LONG)
            assert changed.status_code == 201
        finally:
            over.set()
        assert [each.result().status_code for each in asked] == [200] * 3


def test_a_change_waits_for_a_computation_no_longer_than_it_may(open_service: Open) -> None:
    service = open_service()
    app = build_app(service, Limits(seconds=0.01), None, loopback=True)
    with TestClient(app, base_url="http://localhost") as client, service.live._turns:
        answer = client.post("/edges", json={"edges": [EDGE]})
        assert answer.status_code == 503
        assert "nothing was changed" in answer.json()["error"]["message"]
        assert answer.headers["retry-after"]
        assert service.number == 0
