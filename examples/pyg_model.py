"""A model of PyTorch Geometric, unchanged, trained with histories: python examples/pyg_model.py"""

import torch
from torch_geometric.nn import GraphSAGE

import vrgcn
from vrgcn import TrainConfig, load_dataset

torch.manual_seed(0)
graph = load_dataset("communities")  # your own: Graph.from_pyg(data)
model = GraphSAGE(
    graph.num_features, 64, num_layers=2, out_channels=graph.num_classes, jk="cat", norm="batch"
)
result = vrgcn.fit(model, graph, TrainConfig(epochs=6))
print(result)

# The model is the same object, and PyG computes with it what vrgcn predicts.
data = graph.to_pyg()
with torch.no_grad():
    full = model(data.x, data.edge_index)
difference = (full - vrgcn.predict(model, graph)).abs().max()
print(f"PyG's forward and vrgcn's prediction differ by {difference:.1e}")

plain = GraphSAGE(
    graph.num_features, 64, num_layers=2, out_channels=graph.num_classes, jk="cat", norm="batch"
)
plain.load_state_dict(model.state_dict())
print(f"{type(plain).__module__}.{type(plain).__name__} has loaded the weights")
