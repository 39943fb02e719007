"""A knowledge graph from a table of triples to scores: the commands, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import torch

from vrgcn.cli import main
from vrgcn.runs.run import load_run

SETTINGS = ["--embedding", "16", "--epochs", "20", "--batch-size", "64", "--negatives", "40"]


def write_triples(path: Path) -> None:
    """Sixty people of three towns, each in a country; people know others of their town. `lives` and
    `home_of` are each other's reverse."""
    generator = torch.Generator().manual_seed(0)
    rows = [("head", "relation", "tail", "split")]
    for person in range(60):
        town = f"t{person % 3}"
        split = ("train", "train", "train", "valid", "test")[person % 5]
        rows.append((f"p{person}", "lives", town, split))
        rows.append((town, "home_of", f"p{person}", "train"))
        for other in torch.randint(20, (3,), generator=generator).tolist():
            rows.append((f"p{person}", "knows", f"p{3 * other + person % 3}", "train"))
    rows += [(f"t{town}", "in", f"c{town % 2}", "train") for town in range(3)]
    path.write_text("".join(",".join(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triples")
    write_triples(folder / "triples.csv")
    graph, out = str(folder / "graph"), str(folder / "run")
    columns = ["--relation-column", "relation", "--source", "head", "--target", "tail"]
    table = ["--edges", str(folder / "triples.csv"), *columns, "--keep", "split"]
    main(["import", *table, "--out", graph])
    main(["train", graph, "--predict", "relations", "--out", out, *SETTINGS])
    return folder / "run"


def test_the_split_of_the_table_is_taken_and_messages_have_its_training_triples(run: Path) -> None:
    graph = load_run(run).graph()
    assert graph.triples is not None
    assert len(graph.triples.val) == len(graph.triples.test) == 12
    lives = graph.triples.find("lives")
    assert set(graph.triples.test[:, 1].tolist()) == {lives}
    assert graph.relations["node-lives-node"].num_edges == 36


def test_evaluate_shows_that_a_reverse_relation_gives_the_answers_away(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["evaluate", str(run)])
    told = capsys.readouterr().out
    assert "12 test triples, heads and tails, filtered" in told
    assert "no leaks: validation and test triples and their reverses carry no messages" in told
    scores = json.loads((run / "evaluation-test.json").read_text())["scores"]
    assert scores["other relations"]["hits@1"] == 1.0
    assert scores["the model"]["mrr"] > scores["frequent targets"]["mrr"]
    assert load_run(run).result["test"] == pytest.approx(scores["the model"]["mrr"], abs=1e-6)  # type: ignore[index]


def test_triples_of_a_file_are_scored_under_their_own_names(run: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked.csv"
    asked.write_text("head,relation,tail\np3,lives,t0\np3,lives,t1\nt0,rev_lives,p3\n")
    main(["predict", str(run), "--pairs", str(asked), "--out", str(tmp_path / "scored.csv")])
    rows = pc.read_csv(tmp_path / "scored.csv").to_pylist()
    assert [*rows[0]] == ["source", "relation", "target", "score"]
    assert [(row["source"], row["target"]) for row in rows] == [
        ("p3", "t0"),
        ("p3", "t1"),
        ("t0", "p3"),
    ]
    assert rows[0]["relation"] == "node-lives-node"
    assert rows[0]["score"] > rows[1]["score"]


def test_recommend_names_new_targets_of_one_relation(run: Path, tmp_path: Path) -> None:
    people, out = tmp_path / "people.txt", tmp_path / "top.parquet"
    people.write_text("p3\np4\n")
    asked = ["--relation", "knows", "--top", "5", "--for", str(people)]
    main(["recommend", str(run), *asked, "--out", str(out)])
    rows = pq.read_table(out).to_pylist()
    assert [*rows[0]] == ["source", "target", "rank", "score"]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5] * 2
    graph = load_run(run).graph()
    assert graph.triples is not None
    ids = graph.names.ids_of("node").to_pylist()
    knows = graph.triples.find("knows")
    known = {(ids[h], ids[t]) for h, r, t in graph.triples.train.tolist() if r == knows}
    assert not known & {(row["source"], row["target"]) for row in rows}


def test_embeddings_are_written(run: Path, tmp_path: Path) -> None:
    main(["embed", str(run), "--out", str(tmp_path / "e.parquet")])
    table = pq.read_table(tmp_path / "e.parquet")
    assert table.num_rows == 65
    assert "e_15" in table.column_names


def test_mistakes_are_named(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked, out = tmp_path / "asked.csv", str(tmp_path / "out.csv")

    def refused(*words: str) -> str:
        with pytest.raises(SystemExit):
            main([*words, "--out", out])
        return capsys.readouterr().err

    asked.write_text("head,relation,tail\np3,lives,t0\np3,life,t1\n")
    told = refused("predict", str(run), "--pairs", str(asked))
    assert "column 'relation', row 2: there is no relation 'life'" in told
    asked.write_text("head,tail\np3,t0\n")
    assert "three columns" in refused("predict", str(run), "--pairs", str(asked))
    assert "--relation NAME" in refused("recommend", str(run))
    with pytest.raises(SystemExit):
        main(["evaluate", str(run), "--negatives", str(asked)])
    told = capsys.readouterr().err
    assert "asked.csv: negatives are given for the pairs of one relation" in told
    assert "did you mean 'lives'" in refused("recommend", str(run), "--relation", "lifes")
    graph = str(run.parent / "graph")
    for words, wanted in (
        (["--estimator", "two-way", "--layers", "1"], "use the estimator exact, ns, cv or cvd"),
        (["--split-column", "fold"], "vrgcn import --keep fold=split"),
    ):
        assert wanted in refused("train", graph, "--predict", "relations", *words)
