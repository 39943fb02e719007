"""Rows with a time of their own see what was known by then, and nothing is learned from later."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, load_graph, save_graph
from vrgcn.data.store import verify_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.data.tables.summary import ImportSummary
from vrgcn.graph.dated import Lookback, TimedRows

FILES = {
    "drivers.csv": "id,country\nd1,FI\nd2,DE\n",
    "teams.csv": "id,budget\nt1,10\nt2,20\n",
    "results.csv": "id,driver,team,date,points,car\n"
    "1,d1,t1,2020-01-10,9,red\n2,d2,t1,2020-01-10,1,red\n3,d1,t2,2020-02-10,5,blue\n"
    "4,d2,t1,2020-03-10,7,blue\n5,d1,t2,2020-06-10,100,green\n",
    "laps.csv": "id,result,seconds\n1,1,80\n2,3,70\n3,5,60\n",
    "dnf.csv": "driver,date,target,split\n"
    "d1,2020-01-05,0,train\nd1,2020-01-10,1,train\nd2,2020-02-20,0,train\n"
    "d1,2020-03-01,1,train\nd1,2020-05-01,0,val\nd2,2020-07-01,1,test\n",
}
NODES = ("driver=drivers.csv", "team=teams.csv", "result=results.csv", "lap=laps.csv")
EDGES = (
    "result-driver-driver=results.csv",
    "result-team-team=results.csv",
    "lap-result-result=laps.csv",
)
ROWS = {
    "nodes": NODES,
    "edges": EDGES,
    "dated": ("result.date",),
    "rows": ("driver=dnf.csv",),
    "at": "date",
    "label": ("target",),
    "known_after": "30d",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def imported(out: str = "graph", **options: object) -> tuple[Graph, ImportSummary]:
    summary = import_tables(ImportSpec(out=Path(out), **(ROWS | options)))  # type: ignore[arg-type]
    verify_graph(out)
    return load_graph(out), summary


def edges(graph: Graph, relation: str) -> set[tuple[str, str]]:
    """The edges of a relation by the ids of their ends."""
    part = graph.relations[relation]
    ends = []
    for kind, nodes in (
        (part.source, part.adjacency.indices),
        (part.target, part.adjacency.row_of_entry),
    ):
        ids = graph.names.ids_of(kind).to_pylist()
        ends.append([str(ids[int(n) - graph.kinds.range(kind).start]) for n in nodes])
    return set(zip(*ends, strict=True))


def features(graph: Graph, kind: str) -> dict[str, list[float]]:
    assert graph.names.features is not None
    own, columns = graph.kinds.range(kind), graph.kinds.columns(kind)
    x = graph.features.to_dense()[own.start : own.stop, columns.start : columns.stop]
    names = [graph.names.features[column].removeprefix(f"{kind}.") for column in columns]
    return {name: x[:, place].tolist() for place, name in enumerate(names)}


def test_rows_see_the_last_facts_of_their_time(files: Path) -> None:
    graph, _ = imported()
    assert graph.target == "dnf"
    assert edges(graph, "driver-of-dnf") == {
        *(("d1", row) for row in "1245"),
        *(("d2", row) for row in "36"),
    }
    last = {("1", "2"), ("2", "3"), ("3", "4"), ("3", "5"), ("4", "6")}
    assert edges(graph, "result-last-dnf") == last
    assert edges(graph, "result-last_5-dnf") == last | {("1", "4"), ("1", "5"), ("2", "6")}
    # The team of the driver's last result: its last result, of any driver.
    assert edges(graph, "result-last_by_team-dnf") == {
        *{("2", "2"), ("2", "3"), ("3", "4"), ("3", "5"), ("4", "6")}
    }
    counts = np.expm1(features(graph, "dnf")["result.log_count"])
    assert counts.round(4).tolist() == [0, 1, 1, 2, 2, 2]
    days = np.expm1(features(graph, "dnf")["result.log_days"])
    assert days.tolist() == pytest.approx([36525, 0, 41, 20, 81, 113], rel=1e-4)


def test_no_edge_leads_back_in_time_and_none_leaves_a_row(files: Path) -> None:
    graph, _ = imported()
    assert graph.dated is not None
    time = graph.dated.moments(graph)
    for relation in graph.relations.values():
        assert relation.one_way
        assert relation.source != "dnf"
        A = relation.adjacency
        assert bool((time[A.indices] <= time[A.row_of_entry]).all())
    assert edges(graph, "driver-driver-result") == {(f"d{1 + (n in '24')}", n) for n in "12345"}
    # Laps have no dates: they have those of the results that they name.
    # They are of one moment with them, so that either may tell the other.
    assert edges(graph, "result-result-lap") == {("1", "1"), ("3", "2"), ("5", "3")}
    assert edges(graph, "lap-result-result") == {("1", "1"), ("2", "3"), ("3", "5")}
    own = graph.kinds.range("lap")
    assert time[own.start : own.stop].tolist() == time[[4, 6, 8]].tolist()


def test_relations_among_tables_without_dates_keep_their_reverses(files: Path) -> None:
    (files / "drives.csv").write_text("driver,team,since\nd1,t1,2020-05-01\nd2,t1,2019-01-01\n")
    born = FILES["drivers.csv"].replace("country", "born")
    (files / "drivers.csv").write_text(born.replace("FI", "1990-01-01").replace("DE", "1991-02-02"))
    given = (*EDGES, "driver-for-team=drives.csv")
    with refused():  # all rows would see edges of any date
        imported(edges=given)
    graph, summary = imported(edges=given, drop=("for.since",))
    assert "driver (with dates: born)" in str(summary)
    assert "team-rev_for-driver" in graph.relations
    assert [name for name, part in graph.given.items() if not part.one_way] == ["driver-for-team"]


def test_past_targets_are_seen_once_they_are_known(files: Path) -> None:
    graph, _ = imported()
    # Row 2, of 10 January, is known on 9 February; row 4, of 1 March, on 31 March.
    assert edges(graph, "past_dnf-last-dnf") == {("2", "4"), ("4", "5"), ("3", "6")}
    assert features(graph, "past_dnf") == {"target": [0, 1, 0, 1, 0, 1]}
    plain, _ = imported("plain", known_after=None)
    assert "past_dnf" not in plain.kinds.names


def test_no_row_sees_the_target_of_a_later_split(files: Path) -> None:
    text = FILES["dnf.csv"].replace("d1,2020-01-10,1,train", "d1,2020-01-10,1,test")
    (files / "dnf.csv").write_text(text)
    graph, _ = imported()
    assert edges(graph, "past_dnf-last-dnf") == {("1", "4"), ("4", "5"), ("3", "6")}
    assert edges(graph, "past_dnf-last_5-dnf") == {
        *{("1", "4"), ("1", "5"), ("4", "5"), ("3", "6")}
    }


def test_targets_that_are_unknown_are_never_seen(files: Path) -> None:
    text = FILES["dnf.csv"].replace("d1,2020-03-01,1,train", "d1,2020-03-01,,train")
    (files / "dnf.csv").write_text(text)
    graph, _ = imported()
    assert edges(graph, "past_dnf-last-dnf") == {("2", "4"), ("2", "5"), ("3", "6")}
    assert graph.train.tolist() == [n + graph.kinds.range("dnf").start for n in range(3)]


def test_encoders_learn_only_from_what_the_last_training_row_could_know(files: Path) -> None:
    graph, summary = imported()
    results = features(graph, "result")
    assert [name for name in results if name.startswith("car")] == ["car=blue", "car=red"]
    assert results["car=blue"] == [0, 0, 1, 1, 0]  # green came later: of no known category
    assert any("'green'" in warning for warning in summary.warnings)


def later(files: Path, change: str) -> None:
    """Change everything that is dated after 1 March, the last training row."""
    results = pd.read_csv(files / "results.csv")
    rows = pd.read_csv(files / "dnf.csv")
    late = results.date > "2020-03-01"
    if change == "values":
        results.loc[late, "points"] = [-1_000_000, 30_000_000]
        results.loc[late, "car"] = ["violet", None]
    elif change == "keys":
        results.loc[late, "driver"] = ["d1", "d2"]
        results.loc[late, "team"] = ["t2", "t1"]
    elif change == "dates":
        results.loc[late, "date"] = ["2020-03-02", "2021-01-01"]
    elif change == "fewer":
        results = results[~late]
    elif change == "more":
        results = pd.concat([results, results[late].assign(id=[8, 9], car="violet")])
    rows.loc[rows.split != "train", "target"] = 1 - rows.target
    results.to_csv(files / "results.csv", index=False)
    rows.to_csv(files / "dnf.csv", index=False)
    laps = pd.read_csv(files / "laps.csv")
    laps.loc[laps.result == 5, "seconds"] = 1e9
    laps[laps.result.isin(results.id)].to_csv(files / "laps.csv", index=False)


@pytest.mark.parametrize("change", ["values", "keys", "dates", "fewer", "more"])
def test_what_is_later_changes_nothing_of_earlier_rows(files: Path, change: str) -> None:
    before, _ = imported("before")
    later(files, change)
    after, _ = imported("after")
    for name in before.relations:
        known = [{e for e in edges(g, name) if known_at(g, name, e)} for g in (before, after)]
        assert known[0] == known[1]
    for kind, count in (("dnf", 4), ("past_dnf", 4), ("result", 3), ("lap", 2)):
        one, other = (features(graph, kind) for graph in (before, after))
        assert list(one) == list(other)
        assert all(one[name][:count] == other[name][:count] for name in one)
    assert learned(files / "before") == learned(files / "after")


def known_at(graph: Graph, relation: str, edge: tuple[str, str]) -> bool:
    """Whether the target of an edge was known by 1 March."""
    assert graph.dated is not None
    kind = graph.relations[relation].target
    ids = list(map(str, graph.names.ids_of(kind).to_pylist()))
    node = graph.kinds.range(kind).start + ids.index(edge[1])
    return bool(graph.dated.moments(graph)[node] <= pd.Timestamp("2020-03-01").timestamp())


def learned(folder: Path) -> list[object]:
    """What the encoders of an import learned."""
    tables = json.loads((folder / "import.json").read_text())["tables"]
    return [table["columns"] for table in tables]


def test_whoever_asks_later_finds_the_same_facts(files: Path) -> None:
    graph, _ = imported(rows=("driver=dnf.csv",), known_after=None)
    assert graph.dated is not None
    rows, names = graph.kinds.range("dnf"), graph.names.ids_of("driver").to_pylist()
    drivers = pd.read_csv(files / "dnf.csv").driver.map(names.index).to_numpy()
    times = graph.kept["dnf"]["date"].values.numpy()
    asked = TimedRows(times, {"driver-of-dnf": drivers + graph.kinds.range("driver").start})
    lookback = Lookback.on(graph)
    for path in graph.dated.paths:
        seen = lookback.seen(path, asked)
        for relation, count in path.last.items():
            A = graph.relations[relation].adjacency
            found, facts = seen.last(count)
            order = np.lexsort((facts, found))
            assert (found + rows.start)[order].tolist() == A.row_of_entry.tolist()
            assert facts[order].tolist() == A.indices.tolist()
        own = features(graph, "dnf")
        assert seen.features.T.tolist() == [own[name] for name in path.features]


def test_tables_without_ids_are_numbered(files: Path) -> None:
    orders = "user,date,amount\nu1,2020-01-01,5\nu1,2020-01-01,7\nu2,2020-01-03,9\n"
    (files / "orders.csv").write_text(orders)
    (files / "buys.csv").write_text(
        "user,at,label,split\nu1,2020-01-02,1,train\nu2,2020-02-01,0,test\n"
    )
    graph, _ = imported(
        nodes=("order=orders.csv",),
        edges=("order-by-user=orders.csv",),
        dated=("order.date",),
        rows=("user=buys.csv",),
        at="at",
        label=(),
        known_after=None,
    )
    assert edges(graph, "user-by-order") == {("u1", "1"), ("u1", "2"), ("u2", "3")}
    assert set(features(graph, "order")) == {"amount"}  # a key is no feature, nor is the date
    assert set(features(graph, "buys")) == {"order.log_count", "order.log_days"}
    # If two orders have one moment, the later row of the table is the last one.
    assert edges(graph, "order-last-buys") == {("2", "1"), ("3", "2")}


def test_lines_of_orders_name_products_by_the_column_of_their_ids(files: Path) -> None:
    (files / "cars.csv").write_text("plate,power\np1,100\np2,200\n")
    (files / "used.csv").write_text("result,plate,share\n1,p1,3\n3,p2,1\n3,p1,2\n")
    graph, _ = imported(nodes=(*NODES, "car=cars.csv"), edges=(*EDGES, "result-with-car=used.csv"))
    # An edge to a fact of several cars: no mean over all of its edges becomes a feature.
    assert edges(graph, "car-with-result") == {("p1", "1"), ("p2", "3"), ("p1", "3")}
    assert set(features(graph, "car")) == {"power"}
    assert "result-last_by_car-dnf" not in graph.relations  # a result does not name one car


def test_a_row_may_be_of_two_entities(files: Path) -> None:
    ratings = "user,item,time,stars\n1,1,2020-01-01,5\n1,2,2020-01-05,3\n2,1,2020-01-06,4\n"
    (files / "ratings.csv").write_text(ratings)
    (files / "next.csv").write_text(
        "user,item,time,stars,split\n1,1,2020-01-05,2,train\n2,2,2020-01-07,4,test\n"
    )
    graph, _ = imported(
        nodes=None,
        edges=("user-rated-item=ratings.csv",),
        rows_as_nodes=("rated",),
        dated=("rated.time",),
        rows=("user=next.csv", "item=next.csv"),
        at="time",
        label=("stars",),
        task="regression",
        known_after=None,
    )
    assert edges(graph, "rated-last_of_user-next") == {("2", "1"), ("3", "2")}
    assert edges(graph, "rated-last_of_item-next") == {("1", "1"), ("2", "2")}
    assert [path.name for path in graph.dated.paths] == ["rated_of_user", "rated_of_item"]  # type: ignore[union-attr]


def test_targets_alone_are_facts_enough(files: Path) -> None:
    (files / "stars.csv").write_text(
        "user,item,time,stars,split\n1,1,2020-01-01,5,train\n1,2,2020-01-05,3,train\n"
        "2,2,2020-01-05,4,train\n2,1,2020-01-06,1,val\n1,1,2020-01-07,2,test\n"
    )
    graph, _ = imported(
        nodes=None,
        edges=(),
        dated=(),
        rows=("user=stars.csv", "item=stars.csv"),
        at="time",
        label=("stars",),
        task="regression",
        known_after="1s",
    )
    # No row sees its own target, nor one of its very moment.
    assert edges(graph, "past_stars-last_of_user-stars") == {("1", "2"), ("3", "4"), ("2", "5")}
    assert edges(graph, "past_stars-last_of_item-stars") == {("1", "4"), ("4", "5")}


def test_rows_are_split_by_when_their_targets_are_known(files: Path) -> None:
    graph, summary = imported(train_until="2020-03-15", val_until="2020-06")
    start = graph.kinds.range("dnf").start
    parts = [(graph.split(name) - start).tolist() for name in ("train", "val", "test")]
    # The target of row 3, of 20 February, is known on 21 March: in no split.
    assert parts == [[0, 1], [4], [5]]
    assert any("2 rows are in no split" in warning for warning in summary.warnings)
    plain, _ = imported("plain", train_until="2020-03-15", val_until="2020-06", known_after=None)
    assert (plain.train - plain.kinds.range("dnf").start).tolist() == [0, 1, 2, 3]


def test_facts_that_name_later_ones_are_left_out(files: Path) -> None:
    (files / "pits.csv").write_text(
        "id,result,when\n1,1,2020-01-09\n2,3,2020-02-10\n3,4,2020-04-01\n"
    )
    graph, summary = imported(
        nodes=(*NODES, "pit=pits.csv"),
        edges=(*EDGES, "pit-in-result=pits.csv"),
        dated=("result.date", "pit.when"),
    )
    assert edges(graph, "result-in-pit") == {("3", "2"), ("4", "3")}
    assert edges(graph, "pit-in-result") == {("1", "1"), ("2", "3")}
    assert "1 row left out that would lead back in time" in str(summary)


def test_facts_may_name_facts_of_their_own_kind(files: Path) -> None:
    lines = FILES["results.csv"].splitlines()
    named = ["after", "2", "", "1", "2", "3"]
    text = "\n".join(f"{line},{name}" for line, name in zip(lines, named, strict=True)) + "\n"
    (files / "results.csv").write_text(text)
    graph, _ = imported(
        edges=(*EDGES, "result-after-result=results.csv"), target=("result-after-result.after",)
    )
    forward = {("2", "1"), ("1", "3"), ("2", "4"), ("3", "5")}
    assert edges(graph, "result-after-result") == forward
    # Results 1 and 2 are of one moment.
    assert edges(graph, "result-rev_after-result") == {("1", "2")}


def test_the_summary_says_what_rows_see(files: Path) -> None:
    _, summary = imported()
    text = str(summary)
    assert "always known: driver, team" in text
    assert "dnf: train 2020-01-05 to 2020-03-01, val 2020-05-01 to 2020-05-01, test " in text
    lines = {line.split()[0]: line.split()[1:4] for line in summary.dated if line}
    assert lines["result-last_5-dnf"] == ["8", "1.33", "1"]
    assert lines["result"] == ["5", "2020-01-10", "2020-06-10"]


def test_data_frames_make_the_same_graph(files: Path) -> None:
    kinds = ("driver", "team", "result", "lap")
    frames = {kind: pd.read_csv(files / f"{kind}s.csv") for kind in kinds}
    graph = Graph.from_tables(
        frames,
        {
            ("result", "driver", "driver"): frames["result"],
            ("result", "team", "team"): frames["result"],
            ("lap", "result", "result"): frames["lap"],
        },
        dated={"result": "date"},
        rows=("driver", pd.read_csv(files / "dnf.csv"), "date"),
        label="target",
        known_after="30d",
    )
    expected, _ = imported()
    assert graph.target == "rows"
    for name, part in expected.relations.items():
        A = graph.relations[name.replace("dnf", "rows")].adjacency
        assert torch.equal(A.indices, part.adjacency.indices)
        assert torch.equal(A.indptr, part.adjacency.indptr)
    assert torch.equal(graph.features.to_dense(), expected.features.to_dense())


def test_a_saved_graph_knows_of_time(files: Path) -> None:
    graph, _ = imported()
    save_graph(graph, "copy")
    copy = load_graph("copy")
    assert copy.dated == graph.dated
    assert str(copy.dated) == (
        "dnf, by its column date: each sees the last 1 and 5 of result, past_dnf, result_by_team "
        "that were known by then"
    )
    assert [part.one_way for part in copy.given.values()] == [True] * len(copy.relations)


def test_tables_of_tomorrow_get_the_features_of_today(files: Path) -> None:
    before, _ = imported()
    more = "6,d1,t1,2020-08-01,3,pink\n"
    (files / "results.csv").write_text(FILES["results.csv"] + more)
    after, _ = imported("after", like=Path("graph"))
    assert after.names.features == before.names.features
    assert edges(after, "result-last-dnf") == edges(before, "result-last-dnf")
    assert features(after, "result")["car=red"] == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("unknown", ["skip", "add"])
def test_rows_of_unknown_entities_see_no_facts(unknown: str, files: Path) -> None:
    (files / "dnf.csv").write_text(FILES["dnf.csv"].replace("d2,2020-07", "d9,2020-07"))
    graph, _ = imported(unknown_nodes=unknown)
    assert {row for _, row in edges(graph, "result-last_5-dnf")} == {"2", "3", "4", "5"}
    assert ("d9", "6") in edges(graph, "driver-of-dnf") or unknown == "skip"


def test_times_of_parquet_are_compared_in_utc(files: Path) -> None:
    results = pd.read_csv(files / "results.csv", parse_dates=["date"])
    results["date"] = results.date.dt.tz_localize("Asia/Tokyo")
    results.to_parquet("results.parquet")
    own = tuple(word.replace("results.csv", "results.parquet") for word in (*NODES, *EDGES))
    graph, _ = imported(nodes=own[: len(NODES)], edges=own[len(NODES) :])
    time = graph.kept["result"]["date"].values[0]
    assert time == pd.Timestamp("2020-01-09 15:00").timestamp()
    assert len(edges(graph, "result-last-dnf")) == 5


def test_dates_are_read_in_the_format_that_most_of_them_have(files: Path) -> None:
    text = re.sub(r"(\d+)-(\d+)-(\d+)", r"\3.\2.\1", FILES["results.csv"])
    (files / "results.csv").write_text(text)
    graph, _ = imported()
    expected, _ = imported("other", dated=("result.date=date:%d.%m.%Y",))
    assert edges(graph, "result-last-dnf") == edges(expected, "result-last-dnf")
    assert len(edges(graph, "result-last-dnf")) == 5


def test_a_date_is_a_feature_only_if_it_is_asked_for(files: Path) -> None:
    graph, _ = imported()
    assert set(features(graph, "result")) == {"points", "car=blue", "car=red"}
    graph, _ = imported("asked", column=("result.date=date",))
    assert "date.seconds" in features(graph, "result")
