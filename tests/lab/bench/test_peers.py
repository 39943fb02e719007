"""The peer is the same model on the same data."""

from __future__ import annotations

import pytest
import torch

from lab.bench import peers, pyg
from lab.bench.pyg import FullBatchTraining, LoaderTraining, can_sample, training_graph
from lab.harness.algorithms import Architecture
from vrgcn.inference.predict import predict

SMALL = Architecture(hidden=8, batch=64)
samples = pytest.mark.skipif(not can_sample(), reason="needs torch-sparse or pyg-lib")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using 'NeighborSampler'"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks"),
]


def test_with_our_weights_the_peer_gives_our_outputs(graph):
    ours = SMALL.model(graph).eval()
    peer = pyg.SAGE(graph, SMALL).eval()
    with torch.no_grad():
        for conv, linear, dense in zip(peer.convs, peer.linears, ours.layers, strict=True):
            own, averaged = dense.linears[0].weight.chunk(2, dim=1)
            conv.lin_r.weight.copy_(own)
            conv.lin_l.weight.copy_(averaged)
            linear.weight.copy_(dense.linears[1].weight)
        outputs = peer(graph.features, pyg.adjacency(graph))
    torch.testing.assert_close(outputs, predict(ours, graph), rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(
            peer(graph.features, graph.edge_index()), outputs, rtol=1e-4, atol=1e-4
        )


def test_the_peer_trains_on_the_training_nodes_and_the_edges_among_them(graph):
    training = training_graph(graph)
    assert training.num_nodes == len(training.train) == len(graph.train)
    assert training.num_edges == graph.among(graph.train).num_edges
    assert torch.equal(training.labels, graph.labels[graph.train])
    assert torch.equal(training.features, graph.features[graph.train])


def test_the_full_batch_learns(graph):
    training = FullBatchTraining(training_graph(graph), SMALL)
    before = [p.detach().clone() for p in training.model.parameters()]
    assert training.milliseconds() > 0
    changed = zip(before, training.model.parameters(), strict=True)
    assert all(not torch.equal(a, b) for a, b in changed)


@samples
def test_the_loader_learns_from_batches_of_the_same_size(graph):
    training = LoaderTraining(training_graph(graph), SMALL, (25, 10))
    assert training.steps_per_epoch == 10
    before = [p.detach().clone() for p in training.model.parameters()]
    assert training.milliseconds(2) > 0
    changed = zip(before, training.model.parameters(), strict=True)
    assert all(not torch.equal(a, b) for a, b in changed)


@samples
def test_the_section_has_every_fan_out(bench):
    section = peers.run(bench)
    names = ["PyG NeighborLoader [25, 10]", "PyG NeighborLoader [10, 10]"]
    assert set(names) < set(section.results["peers"])
    peer = section.results["peers"][names[0]]
    assert peer["epoch_seconds"]["median"] == pytest.approx(peer["step_ms"]["median"] / 100)


def test_without_a_sampler_the_section_says_how_to_get_one(bench, monkeypatch):
    monkeypatch.setattr(peers, "can_sample", lambda: False)
    section = peers.run(bench)
    assert set(section.results["peers"]) == {"CVD+PP", "PyG full batch"}
    assert section.results["peers"]["CVD+PP"]["ratio_to_cvd"]["median"] == 1
    assert any("pip install pyg-lib" in note for note in section.notes)
