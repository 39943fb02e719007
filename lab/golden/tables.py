"""Tables of nodes and edges, always the same, and the graphs that are imported from them.

papers   300 nodes, one class each, few neighbours, weighted edges, a column `split`
crowd    240 nodes, one class each, 30 neighbours and more: `auto` is two-way there
towns    200 nodes with a number each, directed edges, a split that is drawn
genes    200 nodes, several classes each
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from lab.golden.workspace import Workspace

COLOURS = ("amber", "blue", "cyan")

# How each graph is imported; the tables are NAME-nodes.csv and NAME-edges.csv.
IMPORTS = {
    "papers": ("--label", "kind"),
    "crowd": ("--label", "kind"),
    "towns": ("--label", "price", "--task", "regression", "--directed", "--ratio", 0.6, 0.2, 0.2),
    "genes": ("--label", "kinds", "--label-delimiter", "|"),
}


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a CSV file; cells must need no quotes."""
    lines = [",".join(map(str, row)) for row in (header, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_tables(folder: Path) -> None:
    """Write the tables of all graphs."""
    _papers(folder, "papers", nodes=300, degree=4, spread=1.5, seed=1)
    _papers(folder, "crowd", nodes=240, degree=18, spread=0.7, seed=2)
    _towns(folder)
    _genes(folder)


def graph(work: Workspace, name: str) -> Path:
    """Return the folder of an imported graph in the working folder, imported on first use."""
    folder = work.folder / name
    if not folder.exists():
        if not (work.folder / f"{name}-nodes.csv").exists():
            write_tables(work.folder)
        files = ("--nodes", f"{name}-nodes.csv", "--edges", f"{name}-edges.csv")
        work.run("import", *files, *IMPORTS[name], "--out", name)
    return folder


def _edges(draw: random.Random, nodes: int, degree: int, classes: int) -> list[tuple[int, int]]:
    """Return edges of which four in five join nodes of one class; some nodes have few edges."""
    found = []
    for node in range(nodes):
        for _ in range(degree if node % 7 else 1):
            near = (node + classes * draw.randint(1, 20)) % nodes
            found.append((node, near if draw.random() < 0.8 else draw.randrange(nodes)))
    return found


def _split(draw: random.Random) -> str:
    return draw.choices(["train", "val", "test", ""], [5, 2, 2, 1])[0]


def _papers(folder: Path, name: str, nodes: int, degree: int, spread: float, seed: int) -> None:
    draw = random.Random(seed)
    rows = []
    for node in range(nodes):
        numbers = [draw.gauss(spread * (node % 3 == place), 1) for place in range(6)]
        kind = "" if node % 41 == 5 else COLOURS[node % 3]
        split = _split(draw) if kind else ""
        rows.append([f"n{node}", *(f"{number:.4f}" for number in numbers), kind, split])
    header = ["id", *(f"f{place}" for place in range(6)), "kind", "split"]
    write_table(folder / f"{name}-nodes.csv", header, rows)
    edges = _edges(draw, nodes, degree, 3)
    weighted = [(f"n{source}", f"n{target}", draw.randint(1, 5)) for source, target in edges]
    write_table(folder / f"{name}-edges.csv", ["source", "target", "weight"], weighted)


def _towns(folder: Path) -> None:
    draw, nodes = random.Random(3), 200
    sizes = [draw.gauss(0, 1) for _ in range(nodes)]
    rows = []
    for node, size in enumerate(sizes):
        price = "" if node % 23 == 4 else f"{1000 + 80 * size + draw.gauss(0, 10):.2f}"
        coast = draw.choice(["yes", "no"])
        rows.append([1000 + node, f"{size:.4f}", f"{draw.uniform(0, 9):.3f}", coast, price])
    write_table(folder / "towns-nodes.csv", ["id", "size", "age", "coast", "price"], rows)
    edges = [(1000 + source, 1000 + target) for source, target in _edges(draw, nodes, 6, 1)]
    write_table(folder / "towns-edges.csv", ["from", "to"], edges)


def _genes(folder: Path) -> None:
    draw, nodes = random.Random(4), 200
    names = ("bone", "eye", "heart", "lung")
    rows = []
    for node in range(nodes):
        numbers = [draw.gauss(0, 1) for _ in range(5)]
        kinds = [kind for kind, number in zip(names, numbers, strict=False) if number > 0.3]
        cell = "" if node % 31 == 7 else "|".join(kinds) or "|"
        split = _split(draw) if cell else ""
        rows.append([f"g-{node}", *(f"{number:.4f}" for number in numbers), cell, split])
    header = ["id", *(f"x{place}" for place in range(5)), "kinds", "split"]
    write_table(folder / "genes-nodes.csv", header, rows)
    edges = [(f"g-{source}", f"g-{target}") for source, target in _edges(draw, nodes, 8, 1)]
    write_table(folder / "genes-edges.csv", ["source", "target"], edges)
