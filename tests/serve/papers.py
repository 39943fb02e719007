"""A small run of imported tables: twelve papers in two communities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vrgcn
from vrgcn.cli import main

TOPICS = ("art", "law")
SPLITS = ("train", "train", "val", "test")


def write_papers(folder: Path) -> Path:
    """Write tables, import and train; return the folder of the run."""
    rows = ["id,topic,year,field,split"]
    for i in range(12):
        rows.append(f"p{i},{TOPICS[i % 2]},{1990 + i},{'xyz'[i % 3]},{SPLITS[i // 2 % 4]}")
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    edges = [f"p{i},p{(i + step) % 12},{step / 4}" for i in range(12) for step in (2, 4)]
    (folder / "edges.csv").write_text("source,target,weight\n" + "\n".join(edges) + "\n")
    tables = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]
    main(["import", *tables, "--label", "topic", "--out", str(folder / "graph")])
    settings: dict[str, Any] = {"epochs": 3, "smooth": "never", "learned_rows": False}
    vrgcn.train(folder / "graph", out=folder / "run", **settings)
    return folder / "run"
