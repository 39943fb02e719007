"""Runs on a hub: a local folder stands in for it, with the calls that the library has."""

from __future__ import annotations

import fnmatch
import inspect
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import vrgcn
from tests.messages import refused
from vrgcn import Graph, Run, load_run


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in place of the hub."""
    home = tmp_path / "hub"

    class HfApi:
        def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> None:
            assert exist_ok
            (home / repo_id).mkdir(parents=True, exist_ok=True)
            (home / repo_id / ".private").write_text(str(private))

        def upload_folder(
            self, *, repo_id: str, folder_path: str, ignore_patterns: list[str], **given: Any
        ) -> str:
            for path in sorted(Path(folder_path).rglob("*")):
                name = path.relative_to(folder_path).as_posix()
                if path.is_file() and not any(fnmatch.fnmatch(name, p) for p in ignore_patterns):
                    (home / repo_id / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, home / repo_id / name)
            return f"https://hub/{repo_id}/{given.get('commit_message', '')}"

        def upload_file(self, *, repo_id: str, path_or_fileobj: bytes, path_in_repo: str) -> None:
            (home / repo_id / path_in_repo).write_bytes(path_or_fileobj)

    def snapshot_download(repo_id: str, *, revision: str | None) -> str:
        return str(home / repo_id if revision is None else home / revision)

    module = ModuleType("huggingface_hub")
    vars(module).update(HfApi=HfApi, snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return home


@pytest.fixture
def run(tmp_path: Path) -> Run:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(20, (2, 60), generator=generator)
    x = torch.randn(20, 4, generator=generator)
    graph = Graph(edges, x, torch.arange(20) % 2, train=range(12), val=range(12, 20))
    return vrgcn.train(graph, out=tmp_path / "run", epochs=1, hidden=4, model="gcn")


def test_a_run_on_the_hub_is_the_run_without_its_graph_and_checkpoints(hub: Path, run: Run) -> None:
    assert run.push_to_hub("me/mine", commit_message="first") == "https://hub/me/mine/first"
    names = {path.name for path in (hub / "me/mine").iterdir()}
    assert {"config.toml", "model.safetensors", "result.json", "README.md"} <= names
    assert not {"graph", "checkpoints"} & names
    assert (hub / "me/mine/.private").read_text() == "True"
    card = (hub / "me/mine/README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: vrgcn\n")
    graph = vrgcn.load_graph(run.folder / "graph")
    again = load_run("hf://me/mine")
    assert torch.equal(again.saved.predict(graph), run.saved.predict(graph))


def test_the_graph_is_uploaded_if_it_is_asked_for(hub: Path, run: Run) -> None:
    run.push_to_hub("hf://me/mine", graph=True, private=False)
    assert (hub / "me/mine/graph/meta.json").is_file()
    assert (hub / "me/mine/.private").read_text() == "False"


def test_addresses_name_an_owner_a_model_and_perhaps_a_revision(hub: Path, run: Run) -> None:
    run.push_to_hub("v1/old")
    assert load_run("hf://me/mine@v1/old").config["hidden"] == 4
    for address in ("hf://mine", "hf://me/", "hf://a/b/c"):
        with refused():
            load_run(address)


def test_without_the_library_the_error_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install 'vrgcn\[hub\]'"):
        run.push_to_hub("me/mine")


def test_the_library_has_these_calls() -> None:
    library = pytest.importorskip("huggingface_hub")
    for call, names in (
        (library.HfApi.create_repo, ("repo_id", "private", "exist_ok")),
        (library.HfApi.upload_folder, ("repo_id", "folder_path", "ignore_patterns")),
        (library.HfApi.upload_file, ("repo_id", "path_or_fileobj", "path_in_repo")),
        (library.snapshot_download, ("repo_id", "revision")),
    ):
        assert set(names) <= set(inspect.signature(call).parameters), call
