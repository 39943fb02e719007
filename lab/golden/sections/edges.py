"""Predicted edges: links of one kind and between kinds, columns of links, all relations.

Each case is trained, evaluated, asked for the best partners and for scores of a table's edges.
"""

from __future__ import annotations

import random
from pathlib import Path

from lab.golden.tables import graph, write_table
from lab.golden.workspace import Workspace

LIKED, KNOWS = "user-liked-item", "user-knows-user"
SMALL = ("--epochs", 4, "--hidden", 8, "--embedding", 8, "--batch-size", 64)
SHOP = {
    "liked": ("--predict", LIKED, "--model", "graphsage"),
    "liked, shared negatives": (
        *("--predict", LIKED, "--model", "lightgcn", "--decoder", "lift", "--loss", "softmax"),
        *("--negative-sampling", "shared", "--negatives", 16),
    ),
    "liked, one out": ("--predict", LIKED, "--model", "gcn", "--leave-one-out", "--loss", "bpr"),
    "liked, given negatives": (
        *("--predict", LIKED, "--model", "gcn", "--split-column", "part"),
        *("--val-negatives", "no-likes.csv", "--test-negatives", "no-likes.csv"),
    ),
    "liked, by time": ("--predict", LIKED, "--train-until", "2026-04", "--model", "auto"),
    "knows": ("--predict", KNOWS, "--own-edges", "redraw", "--pair-batches", "nodes"),
    "knows, excluded": ("--predict", KNOWS, "--own-edges", "exclude", "--pair-batches", "pairs"),
    "stars": ("--predict", f"{LIKED}.stars"),
    "mood": ("--predict", f"{LIKED}.mood"),
    "relations": ("--predict", "relations"),
    "relations, redrawn": (
        *("--predict", "relations", "--own-edges", "redraw", "--negatives", 20),
        *("--negative-sampling", "degree", "--decoder", "complex", "--layers", 1),
    ),
    "relations, logistic": ("--predict", "relations", "--loss", "logistic", "--decoder", "mlp"),
}
CROWD = {
    "edges": ("--predict", "edges"),
    "edges of nodes": ("--predict", "edges", "--model", "gcn", "--negative-sampling", "degree"),
    "edges, shared negatives": (
        *("--predict", "edges", "--model", "gcn", "--negative-sampling", "shared"),
        *("--loss", "softmax", "--decoder", "cosine", "--pair-batches", "nodes"),
    ),
}


def record(work: Workspace) -> None:
    """Record every case."""
    graph(work, "crowd")
    _shop(work.folder)
    files = ("--nodes", "user=users.csv", "item=items.csv")
    edges = ("--edges", f"{LIKED}=likes.csv", f"{KNOWS}=knows.csv")
    keep = ("--keep", "liked.stars", "liked.mood=class", "liked.time=date", "liked.part=split")
    work.command("import", "import", *files, *edges, *keep, "--out", "shop")
    for name, flags in SHOP.items():
        _case(work, "shop", name, flags)
    for name, flags in CROWD.items():
        _case(work, "crowd", name, flags)
    work.command("tuned/tune", *("tune", "shop", *SHOP["liked"], *SMALL, "--trials", 2))


def _case(work: Workspace, folder: str, name: str, flags: tuple[object, ...]) -> None:
    run = Path("runs") / name
    work.command(f"{name}/train", "train", folder, *flags, *SMALL, "--out", run)
    for file in ("model.safetensors", "metrics.jsonl", "result.json"):
        work.file(f"{name}/{file}", run / file)
    for split in ("val", "test"):
        work.command(f"{name}/evaluate {split}", "evaluate", run, "--split", split)
        work.file(f"{name}/evaluation {split}", run / f"evaluation-{split}.json")
    several = "relations" in flags
    for relation in (LIKED, "item-rev_liked-user", KNOWS) if several else (None,):
        which = ("--relation", relation) if relation else ()
        best = f"{name} {relation}.csv"
        work.command(f"{name}/best {relation}", "recommend", run, *which, "--top", 3, "--out", best)
        work.file(f"{name}/best partners {relation}", best)
    ends = "crowd" if folder == "crowd" else _ends(flags)
    asked = "asked-triples.csv" if several else f"asked-{ends}.csv"
    scored = f"{name} scored.csv"
    work.command(f"{name}/scores", "predict", run, "--pairs", asked, "--out", scored)
    work.file(f"{name}/scored", scored)


def _ends(flags: tuple[object, ...]) -> str:
    return "items" if str(flags[1]).startswith(LIKED) else "nodes"


def _shop(folder: Path) -> None:
    """Write the tables of the shop, and those of edges to be scored."""
    draw = random.Random(5)
    users, items = range(60), range(18)
    write_table(folder / "users.csv", ("id", "age"), [(u, draw.randint(18, 80)) for u in users])
    write_table(folder / "items.csv", ("id", "price"), [(i, draw.randint(1, 90)) for i in items])
    likes: list[tuple[object, ...]] = []
    rest: list[tuple[int, int]] = []
    for user in users:
        mine = {(3 * user + draw.choice((0, 1, 2, 7))) % 18 for _ in range(6)}
        rest += [(user, item) for item in items if item not in mine]
        for item in sorted(mine):
            stars = round(1 + (user + item) % 4 + draw.random(), 2)
            mood = ("calm", "glad", "sad")[(user * item + draw.randrange(2)) % 3]
            part = draw.choice(("train", "train", "train", "val", "test"))
            time = f"2026-0{draw.randint(1, 6)}-{draw.randint(10, 28)}"
            likes.append((user, item, stars, mood, time, part))
    header = ("user", "item", "stars", "mood", "time", "part")
    write_table(folder / "likes.csv", header, likes)
    knows = {(u, (u + draw.choice((1, 2, 5, 10))) % 60) for u in users for _ in range(4)}
    write_table(folder / "knows.csv", ("source", "target"), sorted(knows))
    write_table(folder / "no-likes.csv", ("user", "item"), draw.sample(rest, 40))
    asked = [(user, user % 18) for user in range(20)]
    write_table(folder / "asked-items.csv", ("user", "item"), asked)
    for name, prefix in (("nodes", ""), ("crowd", "n")):
        pairs = [(f"{prefix}{one}", f"{prefix}{other}") for one, other in ((1, 2), (4, 9), (3, 3))]
        write_table(folder / f"asked-{name}.csv", ("source", "target"), pairs)
    triples = [(user, LIKED, item) for user, item in asked] + [(1, KNOWS, 2), (5, "knows", 2)]
    write_table(folder / "asked-triples.csv", ("head", "relation", "tail"), triples)
