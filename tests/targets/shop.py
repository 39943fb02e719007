"""A shop in tables: what the tests of targets train on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from vrgcn import Graph
from vrgcn.pages.compared import MODEL

LIKED = "user-liked-item"
STARS = f"{LIKED}.stars"
USERS, ITEMS = 60, 12
WORDS = np.array(["train", "train", "train", "val", "test"])


def tables(garbage: str = "") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Users with a label and the day they came; each likes four items, on days of their own.

    garbage: labels, links or values, which are others in the rows of the test split
    """
    draw = np.random.default_rng(0)
    days = np.datetime64("2026-01-15") + 30 * (np.arange(USERS) % 6)
    users = pd.DataFrame({"id": range(USERS), "age": draw.normal(size=USERS), "came": days})
    users["split"] = np.roll(WORDS, 1)[np.arange(USERS) % 5]
    wrong = (garbage == "labels") & (users["split"] == "test").to_numpy()
    users["churned"] = np.where((np.arange(USERS) + wrong) % 2, "yes", "no")
    edges = np.arange(4 * USERS)
    part = WORDS[edges * 3 % 5]
    wrong = [(garbage == what) & (part == "test") for what in ("links", "values")]
    liked = (edges // 4 + edges % 4 * 5 + wrong[0]) % ITEMS
    likes = pd.DataFrame({"user": edges // 4, "item": liked})
    likes["stars"] = (edges * 7 % 5 + draw.normal(size=len(edges)) + 9 * wrong[1]).round(2)
    likes["time"] = np.datetime64("2026-01-10") + 30 * (edges * 5 % 6)
    likes["part"] = part
    return users, likes


def save(
    folder: Path, split: str | None = "split", garbage: str = "", task: str | None = None
) -> Path:
    """Write the shop as a graph.

    split: column of the users' split; None for no split
    task: of four ordered classes in place of two
    """
    users, likes = tables(garbage)
    if task is not None:
        level = 2 * (users["age"] > 0) + (users["churned"] == "yes")
        users["churned"] = level.map("abcd".__getitem__)
    Graph.from_tables(
        {"user": users, "item": pd.DataFrame({"id": range(ITEMS)})},
        {("user", "liked", "item"): likes},
        label="user.churned",
        task="auto" if task is None else task,
        split=None if split is None else f"user.{split}",
        drop=() if split else "user.split",
        keep=["user.came=date", "liked.stars", "liked.time=date", "liked.part=split"],
        out=folder,
    )
    return folder


def evaluated(run: Path, metric: str) -> float:
    """The test score that `vrgcn evaluate` wrote."""
    found = json.loads((run / "evaluation-test.json").read_text())
    if "metric" in found:
        return float(found["scores"]["test"])
    return float(found["scores"][MODEL][metric.lower()])
