"""A model and a training loop of your own: python examples/own_loop.py"""

import torch
import torch.nn.functional as F
from torch import nn

from vrgcn import MiniBatches, embeddings, load_dataset, predict


class Residual(nn.Module):
    """Ordinary PyTorch; `propagate(h)` stands where the textbook writes P @ h."""

    propagation = "mean"

    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(2))
        self.last = nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x, propagate):
        h = torch.relu(self.first(x))
        for layer in self.layers:
            h = propagate.own(h) + torch.relu(layer(self.dropout(propagate(h))))
        return self.last(h)


torch.manual_seed(0)
graph = load_dataset("communities")
model = Residual(graph.num_features, 64, graph.num_classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches = MiniBatches(model, graph, estimator="cvd", fanout=1, batch_size=512, seed=0)
for epoch in range(1, 7):
    for batch in batches:
        loss = F.cross_entropy(batch.run(model), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch.commit()  # what was computed becomes the history of these nodes
    right = predict(model, graph, graph.val).argmax(1) == graph.labels[graph.val]
    print(f"epoch {epoch}: validation accuracy {right.double().mean():.3f}, exact")

model.eval()
right = predict(model, graph, graph.test).argmax(1) == graph.labels[graph.test]
print(f"test accuracy {right.double().mean():.3f}")
some = embeddings(model, graph, nodes=[3, 14])  # what the last `propagate` averages
print(f"embeddings of two nodes: {tuple(some.shape)}")
