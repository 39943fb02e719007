"""`vrgcn import`, as a user runs it, and the example of the documentation."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vrgcn.data.store import load_graph

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "tables.md"
NODES = "id,x,y,label\n" + "".join(
    f"n{i},{i},7,{'rare' if i == 0 else 'common'}\n" for i in range(40)
)


def without_seconds(text: str) -> list[str]:
    text = re.sub(r"in [\d.]+ s\n", "in SECONDS\n", text)
    return [line.rstrip() for line in text.splitlines()]


def test_the_example_of_the_documentation_runs_and_prints_what_it_says(vrgcn, tmp_path):
    text = DOCS.read_text(encoding="utf-8")
    files = re.findall(r"^`(\w+\.csv)`:\n\n```csv\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in files] == ["papers.csv", "cites.csv"]
    for name, content in files:
        (tmp_path / name).write_text(content)
    commands = re.findall(
        r"^vrgcn (.*)$", "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S)), re.M
    )
    outputs = []
    for command in commands:
        code, out, err = vrgcn(*command.split())
        assert code == 0, err
        outputs.append(out)
    expected = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
    assert without_seconds(outputs[0]) == without_seconds(expected)
    # Predictions come back under the user's own ids and class names.
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    assert [line.rsplit(",", 3)[0].strip('"') for line in lines[1:]] == [
        *("knuth74", "hoare78", "dijkstra68", "codd70", "gray81", "chen, 76", "stonebraker76")
    ]
    assert {line.rsplit(",", 3)[1].strip('"') for line in lines[1:]} <= {"databases", "languages"}


def test_every_flag_is_in_the_documentation(vrgcn):
    _, out, _ = vrgcn("import", "--help", "all")
    pages = DOCS.parents[1].rglob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    flags = set(re.findall(r"--[a-z][a-z-]*", out)) - {"--help"}
    assert len(flags) >= 20
    assert {flag for flag in flags if flag not in text} == set()


def test_what_is_suspicious_is_said(vrgcn, tmp_path):
    (tmp_path / "n.csv").write_text(NODES)
    loops = "".join(f"n{i},n{i}\n" for i in range(20))
    (tmp_path / "e.csv").write_text(f"source,target\n{loops}n0,n1\n")
    code, out, _ = vrgcn("import", "--nodes", "n.csv", "--edges", "e.csv", "--out", "g")
    assert code == 0
    warnings = [line for line in out.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        "warning: 95% of the edges are self-loops; are the source and the target column right?",
        "warning: 95% of the nodes are isolated",
        "warning: 1 feature column is the same for all nodes: y",
        "warning: 97.5% of the labelled nodes are of class 'common'",
        "warning: no nodes are set apart for training; give --split COLUMN or --ratio 0.6 0.2 0.2",
    ]


def test_a_class_that_may_mean_unknown_can_be_declared_missing(vrgcn, tmp_path):
    (tmp_path / "n.csv").write_text("id,x,label\na,1,-1\nb,2,0\nc,3,1\nd,4,?\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    flags = ("--nodes", "n.csv", "--edges", "e.csv")
    _, out, _ = vrgcn("import", *flags, "--out", "one")
    assert "there is a class '-1'; if that means unknown, give --missing=-1" in out
    code, out, _ = vrgcn("import", *flags, "--out", "two", "--missing=-1", "?")
    assert code == 0, out
    assert load_graph(tmp_path / "two").labels.tolist() == [-1, 0, 1, -1]


@pytest.mark.parametrize(
    ("flags", "edges"),
    [((), 4), (("--undirected",), 4), (("--directed",), 2)],
)
def test_edges_count_in_both_directions_unless_directed(vrgcn, tmp_path, flags, edges):
    (tmp_path / "e.tsv").write_text("a\tb\nb\tc\n")
    code, out, err = vrgcn("import", "--edges", "e.tsv", "--headerless", "--out", "g", *flags)
    assert code == 0, err
    assert load_graph(tmp_path / "g").num_edges == edges
    assert ("undirected" in out) == (edges == 4)


def test_weights_that_are_listed_twice_are_summed_with_a_warning(vrgcn, tmp_path):
    (tmp_path / "e.csv").write_text("source,target,weight\na,b,2\nb,a,2\nb,c,-1\nc,d,0\nd,e,0\n")
    code, out, _ = vrgcn("import", "--edges", "e.csv", "--out", "g")
    assert code == 0
    assert "1 edge is listed in both directions, with the weights summed; if the file" in out
    assert "warning: 2 edges have a weight of 0\n" in out
    assert (
        "warning: 1 edge has a negative weight; the built-in propagations gcn and mean cannot "
        "train on negative weights\n"
    ) in out
    assert load_graph(tmp_path / "g").adjacency.values.tolist() == [4, 4, -1, -1, 0, 0, 0, 0]


def test_features_and_ratios_are_flags(vrgcn, tmp_path):
    rows = "".join(f"{i},{i},{2 * i},text,{i % 2}\n" for i in range(20))
    (tmp_path / "n.csv").write_text("key,f_1,f_2,note,y\n" + rows)
    (tmp_path / "e.csv").write_text("source,target\n0,1\n")
    code, out, err = vrgcn(
        "import", "--nodes", "n.csv", "--edges", "e.csv", "--out", "g", "--id", "key",
        "--features", "f_2", "f_1", "--label", "y", "--ratio", 0.5, 0.25, 0.25, "--split-seed", 1,
    )  # fmt: skip
    assert code == 0, err
    graph = load_graph(tmp_path / "g")
    assert graph.names.features == ["f_2", "f_1"]
    assert [len(graph.train), len(graph.val), len(graph.test)] == [10, 5, 5]
    assert "split     train 10, val 5, test 5" in out


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (("--edges", "e.csv", "--out", "g", "--directed", "--undirected"), 2, "give one of them"),
        (
            ("--edges", "e.csv", "--out", "g", "--like", "h", "--undirected"),
            2,
            "--undirected and --like: give one of them; --like decides it",
        ),
        (("--edges", "e.csv", "--out", "e.csv"), 1, "e.csv exists already"),
        (("--edges", "no.csv", "--out", "g"), 1, "--edges: there is no file no.csv"),
        (("--edges", "e.csv", "--out", "g", "--nodes", "no.csv"), 1, "--nodes: there is no file"),
        (("--edges", "e.csv", "--out", "g", "--sorce", "a"), 2, "--source"),
        (("--out", "g"), 2, "--edges"),
        (
            ("--edges", "e.csv", "--nodes", "e.csv", "--out", "g", "--ratio", 0.6, 0.2),
            2,
            "--ratio takes three numbers: train, val, test; not 0.6 0.2",
        ),
        (("--edges", "e.csv", "--out", "g", "--drop", "taget"), 1, "did you mean 'target'?"),
        (
            ("--edges", "e.csv", "--nodes", "e.csv", "--out", "g", "--split-seed", 3),
            2,
            "--split-seed 3: is the seed of --ratio, and without --ratio no split is drawn",
        ),
    ],
)
def test_bad_flags_are_named_without_a_traceback(vrgcn, tmp_path, flags, code, message):
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    exit_code, out, err = vrgcn("import", *flags)
    assert exit_code == code
    assert message in " ".join(err.split())
    assert "Traceback" not in out + err
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


def test_errors_of_tables_reach_the_user(vrgcn, tmp_path):
    (tmp_path / "n.csv").write_text("id,x\na,1\nb,two\nc,3\nd,4\ne,5\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    code, _, err = vrgcn("import", "--nodes", "n.csv", "--edges", "e.csv", "--out", "g")
    assert code == 1
    assert err.startswith("vrgcn: error: n.csv: column 'x' holds text where numbers should be")
    assert not (tmp_path / "g").exists()


MESSY = "id;age;city;joined;bio;topic\n" + "".join(
    f"{i};{'' if i % 9 == 0 else 20 + i % 7};{('Rome', 'Oslo')[i % 2]};{1 + i % 28:02}.03.2024;"
    f"{('a song of the band', 'the goal of a team')[i % 2]} number {i};"
    f"{('music', 'sport')[i % 2]}\n"
    for i in range(60)
)


def test_from_messy_tables_to_predictions_on_those_of_tomorrow(vrgcn, tmp_path):
    (tmp_path / "n.csv").write_text(MESSY)
    ring = "".join(f"{i}.0,{(i + 2) % 60}\n" for i in range(60))
    (tmp_path / "e.csv").write_text(f"who,whom\n{ring}3,gone\n")
    code, out, err = vrgcn(
        "import", "--nodes", "n.csv", "--edges", "e.csv", "--label", "topic", "--ratio", 0.6, 0.2,
        0.2, "--unknown-nodes", "skip", "--tidy-ids", "decimal", "--column", "bio=text:4",
        "--column", "city=category", "--fill", "age=median+mark", "--out", "mine",
    )  # fmt: skip
    assert code == 0, err
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    assert ["age", "numbers, 20 to 26; 7 missing", "2 features; missing: the median,"] in rows
    assert "warning: e.csv: skipped 1 of 61 rows (1.6%)" in out
    code, _, err = vrgcn("train", "--graph", "mine", "--epochs", 3, "--out", "run")
    assert code == 0, err
    new = "bio;city;age;joined;id\na song of tomorrow;Lima;;05.03.2024;x\nthe team;Oslo;25;;y\n"
    (tmp_path / "n2.csv").write_text(new)
    (tmp_path / "e2.csv").write_text("who,whom\nx,y\n")
    code, out, err = vrgcn(
        "import", "--like", "mine", "--nodes", "n2.csv", "--edges", "e2.csv", "--out", "tomorrow"
    )
    assert code == 0, err
    assert "1 value of categories that were not there before count as none: 'Lima'" in out
    code, _, err = vrgcn("predict", "run", "--graph", "tomorrow", "--out", "p.csv")
    assert code == 0, err
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == '"id","label","p_music","p_sport"'
    assert [line.split(",")[0] for line in lines[1:]] == ['"x"', '"y"']


def test_predictions_and_embeddings_come_under_the_ids_that_the_tables_write(vrgcn, tmp_path):
    rows = "".join(f"Node{i},{i % 5},{'pq'[i % 2]}\n" for i in range(20))
    ring = "".join(f"NODE{i},node{(i + 2) % 20}\n" for i in range(20))
    with gzip.open(tmp_path / "n.csv.gz", "wt") as file:
        file.write("id,x,topic\n" + rows)
    (tmp_path / "e.csv").write_text("source,target\n" + ring)
    code, _, err = vrgcn(
        "import", "--nodes", "n.csv.gz", "--edges", "e.csv", "--label", "topic", "--ratio", 0.6,
        0.2, 0.2, "--tidy-ids", "case", "--out", "mine",
    )  # fmt: skip
    assert code == 0, err
    assert vrgcn("train", "--graph", "mine", "--epochs", 1, "--out", "run")[0] == 0
    own = [f"Node{i}" for i in range(20)]
    for command in ("predict", "embed"):
        code, _, err = vrgcn(command, "run", "--out", f"{command}.parquet")
        assert code == 0, err
        assert pq.read_table(tmp_path / f"{command}.parquet")["id"].to_pylist() == own
    (tmp_path / "ids.txt").write_text("Node7\nNode3\n")
    code, _, err = vrgcn("predict", "run", "--nodes", "ids.txt", "--out", "two.parquet")
    assert code == 0, err
    assert pq.read_table(tmp_path / "two.parquet")["id"].to_pylist() == ["Node7", "Node3"]
    pq.write_table(pa.table({"id": ["Ada", "BOB"], "x": [1, 2]}), tmp_path / "n2.parquet")
    pq.write_table(pa.table({"source": ["ADA"], "target": ["bob"]}), tmp_path / "e2.parquet")
    flags = ("--nodes", "n2.parquet", "--edges", "e2.parquet", "--out", "tomorrow")
    code, _, err = vrgcn("import", "--like", "mine", *flags)
    assert code == 0, err
    code, _, err = vrgcn("predict", "run", "--graph", "tomorrow", "--out", "p.parquet")
    assert code == 0, err
    assert pq.read_table(tmp_path / "p.parquet")["id"].to_pylist() == ["Ada", "BOB"]
