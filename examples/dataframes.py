"""From two DataFrames to predictions under your own ids: python examples/dataframes.py"""

import numpy as np
import pandas as pd
import torch

from vrgcn import Graph, GraphSAGE, TrainConfig, fit, predictions, scale_graph

# People and who knows whom. Whether somebody likes tea shows in their friends, not in their age.
rng = np.random.default_rng(0)
drink = rng.choice(["tea", "coffee"], 600)
people = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 600),
        "town": np.where(rng.random(600) < 0.6, np.where(drink == "tea", "York", "Rome"), "Oslo"),
        "drink": np.where(rng.random(600) < 0.5, drink, None),  # half of them were not asked
    },
    index=[f"person-{i}" for i in range(600)],
)
friends = [(i, rng.choice(np.flatnonzero(drink == drink[i]))) for i in range(600) for _ in range(5)]
knows = pd.DataFrame(friends, columns=["source", "target"]).map(lambda i: people.index[i])

graph = Graph.from_pandas(people, knows, label="drink", ratio=(0.6, 0.2, 0.2))
graph, _ = scale_graph(graph, "standard")
torch.manual_seed(0)
model = GraphSAGE(graph.num_features, hidden=32, classes=graph.num_classes)
print(fit(model, graph, TrainConfig(epochs=20)))

table = people.join(predictions(model, graph).to_pandas())
unasked = table[people["drink"].isna()]
print(unasked.head())
right = (unasked["label"] == drink[people["drink"].isna()]).mean()
print(f"of {len(unasked)} people who were not asked, {right:.3f} are predicted rightly")
