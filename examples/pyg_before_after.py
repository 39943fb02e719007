"""A script of PyTorch Geometric, before and after: python examples/pyg_before_after.py"""

import time

import torch
import torch.nn.functional as F
from torch_geometric.nn import GraphSAGE

import vrgcn

graph = vrgcn.load_dataset("communities")
data = graph.to_pyg()  # yours: data = dataset[0]


def score(model: torch.nn.Module) -> float:
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1) == data.y
    return right[data.test_mask].double().mean().item()


# Before: each step computes all 20,000 nodes, with the gradients of all.
torch.manual_seed(0)
model = GraphSAGE(data.num_features, 64, num_layers=2, out_channels=graph.num_classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
start = time.perf_counter()
for _ in range(20):
    model.train()
    loss = F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"before: 20 steps, test accuracy {score(model):.3f}, {time.perf_counter() - start:.1f} s")

# After: the same class; a step computes 512 nodes and reads their neighbours from tables.
torch.manual_seed(0)
model = GraphSAGE(data.num_features, 64, num_layers=2, out_channels=graph.num_classes)
start = time.perf_counter()
vrgcn.fit(model, vrgcn.Graph.from_pyg(data), vrgcn.TrainConfig(epochs=3))
print(f"after: 3 epochs, test accuracy {score(model):.3f}, {time.perf_counter() - start:.1f} s")
