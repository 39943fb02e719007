"""Imports of tables with every encoder: the output, and each file of the graph."""

from __future__ import annotations

import csv
import gzip
import random
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from lab.golden.workspace import Workspace

_NODES = 80
_WORDS = (
    *("graph", "neural", "network", "paper", "history", "variance", "control", "average", "node"),
    *("edge", "layer", "weight", "batch", "model", "proof", "bound", "sample", "train", "noise"),
)

# The imports, by name; the files are those of `_write`.
IMPORTS = {
    "seen": "--nodes all.csv --edges edges.csv --label topic",
    "told": "--nodes all.csv --edges edges.csv --label topic --max-categories 3 --text-seed 5 "
    "--column bio=text:4 --column city=category:2 --column tags=categories:| --column name=drop "
    "--column born=date:%Y-%m-%d --column vector=numbers --column member=boolean "
    "--column height=number:lenient --fill median+mark --fill age=0",
    "names as text": "--nodes all.csv --edges edges.csv --label topic --features name bio "
    "--column name=text:3 --column bio=text:5",
    "names as categories": "--nodes all.csv --edges edges.csv --label topic --features name "
    "--column name=category",
    "chosen": "--nodes all.csv --edges edges.csv --label topic --features age 'x_*' --drop x_2",
    "parquet": "--nodes all.parquet --edges edges.parquet --label topic",
    "semicolons": "--nodes semicolons.csv --edges edges.csv --label topic",
    "decimal comma": "--nodes semicolons.csv --edges edges.csv --label topic --decimal ,",
    "tsv, gzipped": "--nodes all.tsv.gz --edges edges.csv --label topic",
    "weighted": "--nodes all.csv --edges weighted.csv --label topic --features age",
    "directed": "--nodes all.csv --edges weighted.csv --label topic --features age --directed",
    "no weights": "--nodes all.csv --edges weighted.csv --label topic --features age --drop weight",
    "ratio": "--nodes all.csv --edges edges.csv --label topic --features age --drop split "
    "--ratio 0.5 0.25 0.25 --split-seed 3",
    "numbers": "--nodes all.csv --edges edges.csv --label age --task regression --features x_1 "
    "--missing NA --drop split --ratio 0.5 0.2 0.3",
    "several classes": "--nodes all.csv --edges edges.csv --label tags --label-delimiter | "
    "--features age",
    "columns of classes": "--nodes all.csv --edges edges.csv --label 'is_*' --features age",
    "edges alone": "--edges edges.csv",
    "edges alone, directed": "--edges weighted.csv --directed",
    "without header": "--edges snap.txt --headerless",
    "array": "--nodes all.csv --edges edges.csv --label topic --features-file x.npy",
    "array, edges alone": "--edges numbers.csv --features-file x.npy",
    "unknown skipped": "--nodes all.csv --edges unknown.csv --label topic --features age city "
    "--unknown-nodes skip",
    "unknown added": "--nodes all.csv --edges unknown.csv --label topic --features age city "
    "--unknown-nodes add",
    "tidy ids": "--nodes untidy.csv --edges edges.csv --label topic --tidy-ids space decimal case",
    "no header": "--nodes plain.csv --edges edges.csv --headerless-nodes --id 1 --label 3",
    "like": "--like seen --nodes tomorrow.csv --edges edges.csv",
    "like, told": "--like told --nodes tomorrow.csv --edges edges.csv --unknown-nodes skip",
}


def record(work: Workspace) -> None:
    """Record the imports, the output of `info` for some, and a prediction on a graph made by
    --like."""
    _write(work.folder)
    for name, line in IMPORTS.items():
        work.command(f"{name}/output", "import", *shlex.split(line), "--out", name)
        if (work.folder / name).is_dir():
            work.files(f"{name}/files", name)
    for name in ("seen", "numbers", "several classes", "edges alone", "directed"):
        work.command(f"{name}/info", "info", name, "--verify")
    flags = ("--hidden", 4, "--epochs", 2, "--seed", 3)
    work.command("predict like/train", "train", "seen", *flags, "--out", "run")
    work.command("predict like/output", "predict", "run", "--graph", "like", "--out", "p.csv")
    work.file("predict like/predictions", "p.csv")


def _rows(seed: int) -> list[dict[str, Any]]:
    """Return rows with a column of every kind, each with gaps."""
    draw = random.Random(seed)
    start = datetime(1980, 1, 1, tzinfo=UTC)
    rows = []
    for node in range(_NODES):
        moment = start + timedelta(hours=draw.randrange(200_000))
        tags = draw.sample(["red", "green", "blue", "grey"], draw.randint(1, 3))
        numbers = [round(draw.gauss(0, 1), 3) for _ in range(3)]
        row = {
            "id": str(node),
            "age": draw.randint(18, 90),
            "height": round(draw.gauss(1.7, 0.1), 2),
            "x_1": numbers[0],
            "x_2": numbers[1],
            "member": draw.choice(["yes", "no"]),
            "city": draw.choice(["Rome", "Oslo", "Lima", "Bonn, old", 'the "Hague"']),
            "tags": "|".join(tags),
            "vector": f"[{numbers[0]}, {numbers[1]}, {numbers[2]}]",
            "born": moment.date().isoformat(),
            "seen": moment.isoformat(sep=" ", timespec="seconds")[:19],
            "german": moment.strftime("%d.%m.%Y"),
            "bio": " ".join(draw.choices(_WORDS, k=draw.randint(5, 12))),
            "name": f"person {draw.randrange(10**9)}",
            "code": 10**17 + draw.randrange(1000),
            "always": 1,
            "is_big": draw.randint(0, 1),
            "is_old": draw.randint(0, 1),
            "topic": draw.choice(["maths", "physics", "biology"]),
            "split": draw.choices(["train", "val", "test"], [3, 1, 1])[0],
        }
        for column in ("age", "city", "tags", "born", "vector", "topic", "height"):
            if draw.random() < 0.06:
                row[column] = ""
        rows.append(row if row["topic"] else row | {"split": ""})
    return rows


def _edges(seed: int) -> list[tuple[str, str]]:
    """Return edges with repeats, self-loops and reversed ones; nodes 70 and above have none."""
    draw = random.Random(seed)
    edges = [(str(draw.randrange(70)), str(draw.randrange(70))) for _ in range(200)]
    return [*edges, edges[0], edges[1][::-1], ("5", "5")]


def _write(folder: Path) -> None:
    rows, edges = _rows(1), _edges(2)
    draw = random.Random(3)
    names = list(rows[0])
    table = [[row[name] for name in names] for row in rows]
    _csv(folder / "all.csv", [names, *table])
    with gzip.GzipFile(folder / "all.tsv.gz", "wb", mtime=0) as file:
        lines = ["\t".join(str(cell).replace('"', "") for cell in row) for row in (names, *table)]
        file.write(("\n".join(lines) + "\n").encode())
    german = [[str(cell).replace(".", ",") for cell in row[:5]] + row[-2:] for row in table]
    _csv(folder / "semicolons.csv", [[*names[:5], *names[-2:]], *german], delimiter=";")
    tomorrow = [{**row, "id": row["id"], "city": row["city"] or "Paris"} for row in _rows(9)]
    _csv(folder / "tomorrow.csv", [names, *([row[name] for name in names] for row in tomorrow)])
    untidy = [[f" {row['id']}.0", row["age"] or 40, row["topic"]] for row in rows]
    _csv(folder / "untidy.csv", [["id", "age", "topic"], *untidy])
    plain = [[row["id"], row["x_1"], row["topic"]] for row in rows]
    _csv(folder / "plain.csv", plain)
    _csv(folder / "edges.csv", [["source", "target"], *edges])
    weighted = [(*edge, round(draw.uniform(0.1, 3), 2)) for edge in edges]
    _csv(folder / "weighted.csv", [["from", "to", "weight"], *weighted])
    _csv(folder / "unknown.csv", [["source", "target"], *edges, ("3", "x-1"), ("x-2", "4")])
    _csv(folder / "numbers.csv", [["source", "target"], *edges])
    snap = "\n".join(f"{source}\t{target}" for source, target in edges)
    (folder / "snap.txt").write_text(f"# a graph\n# of numbers\n{snap}\n", encoding="utf-8")
    array = np.array([[draw.gauss(0, 1) for _ in range(3)] for _ in range(_NODES)], np.float64)
    np.save(folder / "x.npy", array)
    _parquet(folder, rows, edges)


def _csv(path: Path, rows: Sequence[Sequence[Any]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)


def _parquet(folder: Path, rows: list[dict[str, Any]], edges: list[tuple[str, str]]) -> None:
    """Write the same tables in types of Parquet: integers, lists, dates, timestamps."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text)

    table = pa.table(
        {
            "id": pa.array([int(row["id"]) for row in rows], pa.int64()),
            "age": pa.array([row["age"] if row["age"] != "" else None for row in rows], pa.int32()),
            "member": pa.array([row["member"] == "yes" for row in rows]),
            "city": pa.array([row["city"] or None for row in rows]).dictionary_encode(),
            "tags": pa.array([row["tags"].split("|") if row["tags"] else None for row in rows]),
            "vector": pa.array([[row["x_1"], row["x_2"]] for row in rows], pa.list_(pa.float32())),
            "born": pa.array([moment(row["seen"]).date() for row in rows]),
            "seen": pa.array([moment(row["seen"]) for row in rows], pa.timestamp("us")),
            "topic": pa.array([row["topic"] or None for row in rows]),
            "split": pa.array([row["split"] or None for row in rows]),
        }
    )
    pq.write_table(table, folder / "all.parquet")
    ends = [[int(edge[place]) for edge in edges] for place in (0, 1)]
    pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), folder / "edges.parquet")
