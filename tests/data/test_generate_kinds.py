"""A generated store of three kinds and four relations, as a graph and as tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn import load_graph
from vrgcn.data import generate_kinds as module
from vrgcn.data.generate_kinds import RELATIONS, generate_kinds
from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.store import verify_graph

SPEC = GenerateSpec(nodes=1000, degree=20, features=6, classes=3, community=100, kinds=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "graph"
    generate_kinds(SPEC, path)
    return path


def test_it_has_three_kinds_and_four_relations_of_the_sizes_asked_for(folder: Path) -> None:
    assert verify_graph(folder) is None
    graph = load_graph(folder)
    assert dict(graph.kinds.sizes) == {"user": 600, "item": 350, "shop": 50}
    assert dict(graph.kinds.widths) == {"user": 6, "item": 3, "shop": 0}
    assert list(graph.relations)[::2] == [f"{s}-{name}-{t}" for s, name, t, _ in RELATIONS]
    assert 9000 < graph.num_edges <= 10_000  # some pairs are drawn twice
    assert graph.target == "user"
    assert int(graph.labelled.sum()) == 600
    assert len(graph.train) == pytest.approx(360, abs=50)


def test_users_follow_users_of_their_class(folder: Path) -> None:
    graph = load_graph(folder)
    assert graph.labels is not None
    A = graph.relations["user-follows-user"].adjacency
    same = graph.labels[A.row_of_entry] == graph.labels[A.indices]
    assert float(same.double().mean()) == pytest.approx(0.8 + 0.2 / 3, abs=0.05)


def test_the_size_of_pieces_is_all_that_a_larger_store_adds(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate_kinds(SPEC, tmp_path / "same")
    assert _sums(tmp_path / "same") == _sums(folder)
    monkeypatch.setattr(module, "PIECE", 500)
    edges = generate_kinds(SPEC, tmp_path / "pieces")
    assert edges == load_graph(tmp_path / "pieces").num_edges
    assert verify_graph(tmp_path / "pieces") is None


def _sums(folder: Path) -> dict[str, str]:
    sums: dict[str, str] = json.loads((folder / "meta.json").read_text())["checksums"]
    return sums


@pytest.mark.parametrize(
    "given",
    [
        {"kinds": False, "tables": "csv"},
        {"kinds": True, "nodes": 10},
        {"kinds": True, "feature_dtype": "float16"},
    ],
)
def test_wrong_settings_are_told(given: dict[str, object]) -> None:
    with refused():
        GenerateSpec(**({"nodes": 100, "degree": 4} | given))  # type: ignore[arg-type]
