"""Dropout from random bytes has the statistics and the gradient of ordinary dropout."""

from __future__ import annotations

import math

import pytest
import torch

from vrgcn import Dropout

RATES = [0.001, 0.1, 0.2, 0.5, 0.9]
SIZE = 1 << 20


def dropped(p: float, x: torch.Tensor, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(p)(x)


@pytest.mark.parametrize("p", RATES)
def test_rate_is_p_to_one_percent_and_binomial_tolerance(p):
    zeros = int((dropped(p, torch.ones(SIZE)) == 0).sum())
    # 5 standard deviations: fails by chance once in two million; a rate off by 3% would be seen
    # from p = 0.1 on, and one off by 20% at p = 0.001.
    assert abs(zeros / SIZE - p) < 0.01 * p + 5 * math.sqrt(p * (1 - p) / SIZE)


@pytest.mark.parametrize("p", RATES)
def test_kept_elements_are_scaled_so_that_the_mean_is_preserved(p):
    x = torch.full((SIZE,), 3.0)
    y = dropped(p, x)
    scale = y.max().item() / 3
    assert set(y.unique().tolist()) == {0.0, y.max().item()}
    assert scale == pytest.approx(1 / (1 - p), rel=0.011)
    assert y.mean().item() == pytest.approx(3.0, abs=5 * 3 * math.sqrt(p / (1 - p) / SIZE))


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9, 0.999, 0.0001])
def test_scale_is_exactly_that_of_the_probability_used(p):
    dropout = Dropout(p)
    used = dropout.threshold / (1 << dropout.bits)
    assert used == pytest.approx(p, rel=0.25 if p < 0.001 else 0.01)
    assert 1 - used == pytest.approx(1 - p, rel=0.01)
    y = dropped(p, torch.ones(SIZE))
    assert y.max().item() == pytest.approx(1 / (1 - used), rel=1e-6)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_gradient_is_the_mask_times_the_scale(p):
    x = torch.randn(50, 40, generator=torch.Generator().manual_seed(1)).requires_grad_()
    y = dropped(p, x)
    upstream = torch.randn(50, 40, generator=torch.Generator().manual_seed(2))
    y.backward(upstream)
    keep = y.detach() != 0
    scale = (y.detach()[keep] / x.detach()[keep]).mean()
    torch.testing.assert_close(x.grad, upstream * keep * scale)


@pytest.mark.parametrize("layout", ["transposed", "expanded", "strided"])
def test_any_memory_order_gets_the_mask_of_its_shape(layout):
    base = torch.rand(6, 8, generator=torch.Generator().manual_seed(0)) + 1
    x = {"transposed": base.t(), "expanded": base[:1].expand(6, 8), "strided": base[:, ::2]}[layout]
    torch.testing.assert_close(dropped(0.5, x), dropped(0.5, x.contiguous()))


def test_evaluation_and_p_zero_return_the_very_input_and_draw_nothing():
    x = torch.randn(4, 4)
    state = torch.get_rng_state()
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert torch.equal(torch.get_rng_state(), state)


def test_same_seed_same_mask_and_different_seed_another():
    x = torch.ones(100, 10)
    assert torch.equal(dropped(0.5, x, seed=7), dropped(0.5, x, seed=7))
    assert not torch.equal(dropped(0.5, x, seed=7), dropped(0.5, x, seed=8))


def test_masks_of_successive_calls_are_independent():
    torch.manual_seed(0)
    dropout, x = Dropout(0.5), torch.ones(SIZE)
    first, second = dropout(x) == 0, dropout(x) == 0
    both = (first & second).double().mean().item()
    assert abs(both - 0.25) < 5 * math.sqrt(0.25 * 0.75 / SIZE)
    neighbours = (first[1:] & first[:-1]).double().mean().item()
    # Pairs overlap, which at most doubles the variance or so; 8 standard deviations then.
    assert abs(neighbours - 0.25) < 8 * math.sqrt(0.25 * 0.75 / SIZE)


@pytest.mark.parametrize("shape", [(0, 3), (1,), (3, 5, 7), (1, 13)])
@pytest.mark.parametrize("p", [0.2, 0.001])
def test_any_shape(shape, p):
    assert dropped(p, torch.ones(shape)).shape == shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_dtype_is_kept(dtype):
    y = dropped(0.5, torch.ones(1000, dtype=dtype))
    assert y.dtype == dtype
    assert set(y.tolist()) == {0.0, 2.0}


def test_of_a_sparse_tensor_the_stored_values_are_dropped():
    dense = (torch.rand(300, 200, generator=torch.Generator().manual_seed(0)) < 0.2).float()
    x = dense.to_sparse_csr()
    y = dropped(0.5, x)
    assert y.layout == torch.sparse_csr
    assert torch.equal(y.col_indices(), x.col_indices())
    count = len(x.values())
    zeros = int((y.values() == 0).sum())
    assert abs(zeros / count - 0.5) < 5 * math.sqrt(0.25 / count)
    assert set(y.values().tolist()) == {0.0, 2.0}
    assert torch.equal(y.to_dense()[dense == 0], torch.zeros(int((dense == 0).sum())))
    assert torch.equal(x.values(), torch.ones(count))


def test_printed_form_tells_p():
    assert repr(Dropout(0.25)) == "Dropout(p=0.25)"
