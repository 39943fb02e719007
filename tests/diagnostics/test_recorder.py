"""A recorder notes the calls of a model and changes nothing about it."""

from __future__ import annotations

import torch

from tests.theory.problems import double_minibatches, gcn, random_graph
from vrgcn.diagnostics.staleness import Recorder
from vrgcn.training.gradients import frozen

GRAPH = random_graph()
NODES = torch.arange(3, 15)


def test_inputs_and_answers_are_those_of_the_calls_and_outputs_those_of_the_model():
    model = gcn(2).eval()
    batches = double_minibatches(model, GRAPH, estimator="exact", preprocess=False)
    recorder = Recorder(model)
    with torch.no_grad(), frozen(recorder, 0, dropout=False):
        outputs = batches.batch(NODES).run(recorder)
        plain = batches.batch(NODES).run(model)
    (calls,) = recorder.passes
    assert torch.equal(outputs, plain)
    assert len(calls.inputs) == len(calls.answers) == 2
    assert torch.equal(calls.inputs[1], model.layers[0](calls.answers[0]))
    assert torch.equal(outputs, model.layers[1](calls.answers[1]))


def test_each_pass_has_an_entry_of_its_own():
    model = gcn(2, dropout=0.5).train()
    recorder = Recorder(model)
    batches = double_minibatches(model, GRAPH, estimator="cvd")
    batches.batch(NODES).run(recorder)
    assert len(recorder.passes) == 2  # without dropout, then with it
