"""From three DataFrames, users, items and orders, to predictions of users:
python examples/several_tables.py"""

import tempfile

import numpy as np
import pandas as pd

from vrgcn import Graph, predictions, train

# Who leaves a shop shows in what they buy, hardly in their age. Users and items both count from 1.
rng = np.random.default_rng(0)
leaves, cheap = rng.random(600) < 0.4, rng.random(120) < 0.5
users = pd.DataFrame(
    {
        "id": np.arange(1, 601),
        "age": rng.integers(18, 70, 600) + 5 * leaves,
        "churned": np.where(rng.random(600) < 0.7, np.where(leaves, "yes", "no"), None),
    }
)
items = pd.DataFrame(
    {"id": np.arange(1, 121), "price": np.where(cheap, 10.0, 30.0) + rng.normal(0, 8, 120)}
)
buyer = rng.integers(600, size=6000)
bargain = rng.random(6000) < np.where(leaves[buyer], 0.75, 0.25)
bought = np.where(
    bargain, rng.choice(np.flatnonzero(cheap), 6000), rng.choice(np.flatnonzero(~cheap), 6000)
)
orders = pd.DataFrame({"user": buyer + 1, "item": bought + 1, "stars": rng.integers(1, 6, 6000)})

graph = Graph.from_tables(
    nodes={"user": users, "item": items},
    edges={("user", "bought", "item"): orders},
    label="user.churned",
    ratio=(0.6, 0.2, 0.2),
    verbose=True,
)
with tempfile.TemporaryDirectory() as folder:
    run = train(graph, out=f"{folder}/run", hidden=32, epochs=10)
    table = users.set_index("id").join(predictions(run.saved, graph).to_pandas())

unknown = table[table["churned"].isna()]
print(unknown.head())
right = (unknown["label"] == np.where(leaves, "yes", "no")[unknown.index - 1]).mean()
print(f"of {len(unknown)} users of whom it is not known, {right:.3f} are predicted rightly")
