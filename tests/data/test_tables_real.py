"""Real tables of several kinds and relations: their published counts come out of the import."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrgcn import load_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.data.tables.summary import ImportSummary


@pytest.fixture
def tables(real_data: Path, request: pytest.FixtureRequest) -> Path:
    folder = real_data / request.param
    if not folder.is_dir():
        pytest.skip(f"there is no folder {folder}")
    return Path(folder)


def imported(out: Path, **options: object) -> ImportSummary:
    return import_tables(ImportSpec(out=out, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("tables", ["ml100k"], indirect=True)
def test_movielens_has_943_users_and_1682_items(tables: Path, tmp_path: Path) -> None:
    summary = imported(
        tmp_path / "graph",
        nodes=(f"user={tables}/users.parquet", f"item={tables}/items.parquet"),
        edges=(f"user-rated-item={tables}/edges.parquet",),
        label=("user.occupation",),
        ratio=(0.6, 0.2, 0.2),
        drop=("user.zip", "rated.split_u1"),
    )
    assert [(kind.name, kind.nodes) for kind in summary.kinds] == [("user", 943), ("item", 1682)]
    assert [(each.name, each.edges) for each in summary.relations] == [("user-rated-item", 100_000)]
    assert summary.classes is not None
    assert len(summary.classes) == 21
    graph = load_graph(tmp_path / "graph")
    assert graph.names.features is not None
    column = graph.names.features.index("item.rated.rating")
    ratings = graph.features.to_dense()[943:, column]
    assert float(ratings[49]) == pytest.approx(4.358, abs=0.001)  # item 50, Star Wars


@pytest.mark.parametrize("tables", ["ml100k"], indirect=True)
def test_movielens_as_one_table_is_warned_about(tables: Path, tmp_path: Path) -> None:
    spec = ImportSpec(
        edges=tables / "edges.parquet", source="user", target="item", out=tmp_path / "graph"
    )
    [warning] = [w for w in import_tables(spec).warnings if "different kinds" in w]
    assert f'edges="user-NAME-item={tables}/edges.parquet"' in warning


@pytest.mark.parametrize("tables", ["aifb"], indirect=True)
def test_aifb_has_45_relations(tables: Path, tmp_path: Path) -> None:
    summary = imported(
        tmp_path / "graph",
        nodes=tables / "nodes.parquet",
        edges=tables / "edges.parquet",
        relation_column="rel",
        missing=("-1", "none"),
        drop=("name",),
    )
    assert (summary.nodes, summary.edges, len(summary.relations)) == (8285, 29_043, 45)
    assert summary.splits == {"train": 140, "val": 0, "test": 36}
    assert summary.labelled == 176
