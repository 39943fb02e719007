"""From PyG's Planetoid to exact predictions: python examples/planetoid.py [ROOT]"""

import sys

import torch
from torch_geometric.datasets import Planetoid
from torch_geometric.transforms import NormalizeFeatures

from vrgcn import GCN, Graph, TrainConfig, fit, predict

root = sys.argv[1] if len(sys.argv) > 1 else "data/planetoid"
graph = Graph.from_pyg(Planetoid(root, "Cora", transform=NormalizeFeatures())[0])
torch.manual_seed(0)
model = GCN(graph.num_features, 32, graph.num_classes, dropout=0.5, layer_norm=False)
config = TrainConfig(estimator="cvd", fanout=1, epochs=100, batch_size=1000, weight_decay=5e-4)
result = fit(model, graph, config)
classes = predict(model, graph).argmax(1)
print(f"test accuracy {result.test:.3f}; the first ten nodes: {classes[:10].tolist()}")
