"""A shop's database to recommendations, simple rules beside: python examples/recommendations.py"""

import sqlite3
import tempfile
from pathlib import Path

import numpy as np

from vrgcn import train
from vrgcn.data.tables import ImportSpec, import_tables

KINDS = ("tea", "coffee", "cups", "books")
# Customers like one of four categories, and a few products sell best.
rng = np.random.default_rng(0)
taste, category = rng.integers(4, size=300), rng.integers(4, size=80)
fame = rng.random(80) ** 2
folder = Path(tempfile.mkdtemp())
with sqlite3.connect(folder / "shop.db") as shop:
    shop.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, born INTEGER)")
    shop.execute("CREATE TABLE products (id INTEGER PRIMARY KEY, category TEXT, price REAL)")
    shop.execute("CREATE TABLE purchases (customer INTEGER, product INTEGER, at TIMESTAMP)")
    for i in range(300):
        shop.execute("INSERT INTO customers VALUES (?, ?)", (i, int(rng.integers(1950, 2005))))
        liked = fame * np.where(category == taste[i], 8, 1)
        for j in rng.choice(80, int(rng.integers(5, 20)), replace=False, p=liked / liked.sum()):
            day = f"2025-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
            shop.execute("INSERT INTO purchases VALUES (?, ?, ?)", (i, int(j), day))
    for j in range(80):
        row = (j, KINDS[category[j]], float(rng.integers(2, 60)))
        shop.execute("INSERT INTO products VALUES (?, ?, ?)", row)

address = f"sqlite:///{folder}/shop.db"
summary = import_tables(
    ImportSpec(
        nodes=(f"customer={address}#customers", f"product={address}#products"),
        edges=(f"customer-bought-product={address}#purchases",),
        keep=("bought.at=date",),
        out=folder / "graph",
    )
)
print(f"{summary.nodes} nodes, {summary.edges:,} purchases")
# The past trains the model, October chooses its best epoch, November and December test it.
run = train(
    folder / "graph",
    out=folder / "run",
    predict="customer-bought-product",
    train_until="2025-09",
    val_until="2025-10",
)
for name, scores in run.evaluate()["scores"].items():
    print(f"{name:<22} NDCG@20 {scores['ndcg@20']:.3f}")
print(run.recommend([3, 14], top=3).to_pandas())
