"""The unit of a model's outputs: applied last, kept with the weights, absent until it is set."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch

from tests.messages import refused
from vrgcn import MLP


def model(seed: int = 0) -> MLP:
    torch.manual_seed(seed)
    return MLP(3, 4, 1, dropout=0.0)


X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


def test_outputs_are_multiplied_and_moved():
    network = model()
    plain = network(X, None)
    assert plain.dtype == torch.float32
    assert set(network.state_dict()) == {name for name, _ in network.named_parameters()}
    network.set_output_scale(250_000, 40_000)
    assert torch.equal(network(X, None), plain.double() * 40_000 + 250_000)
    network.set_output_scale(1, 2)
    assert torch.equal(network(X, None), plain.double() * 2 + 1)


def test_the_scale_is_no_weight_and_gradients_pass_through_it():
    network = model()
    network(X, None).sum().backward()
    before = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    network.set_output_scale(5, 3)
    network(X, None).sum().backward()
    for p, grad in zip(network.parameters(), before, strict=True):
        torch.testing.assert_close(p.grad, 3 * grad)


def test_a_new_model_takes_the_scale_of_a_state_dict():
    network = model()
    network.set_output_scale(1.7e9, 0.5)
    other = model(seed=1)
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(X, None), network(X, None))
    other.set_output_scale(0, 1)  # a copy, not the same tensors
    assert network.output_scale.mean.item() == 1.7e9
    for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(twin(X, None), network(X, None))
        model().load_state_dict(twin.state_dict())


@pytest.mark.parametrize("scale", [(math.nan, 1), (math.inf, 1), (0, 0), (0, -1), (0, math.nan)])
def test_what_is_no_scale_is_refused(scale):
    with refused():
        model().set_output_scale(*scale)
