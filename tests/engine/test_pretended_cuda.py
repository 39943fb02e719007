"""The pretended GPU stops what a GPU would stop, and nothing else."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.engine.pretended_cuda import CPU, CUDA, pretended_cuda
from tests.messages import refused

HERE = torch.arange(6.0).view(3, 2)
ROWS = torch.tensor([2, 0])


def there(tensor: Tensor) -> Tensor:
    return tensor.to("cuda")


def test_a_tensor_is_where_it_was_moved_or_made_and_so_is_what_comes_of_it() -> None:
    with pretended_cuda():
        x = there(HERE)
        assert x.device == CUDA
        assert (x.is_cuda, x.is_cpu) == (True, False)
        for one in (x + 1, x.t(), x[ROWS], x.new_zeros(2), x.new_tensor([1.0]), x.double()):
            assert one.device == CUDA
        for one in (copy.deepcopy(x), x.data, torch.zeros(2, device="cuda:0"), x.to_sparse_csr()):
            assert one.device == CUDA
        assert torch.zeros_like(x, device="cpu").device == CPU
        assert (HERE.device, x.cpu().device, HERE.to(x).device) == (CPU, CPU, CUDA)
        assert x.to("cuda") is x
        assert torch.equal(x.cpu(), HERE)
    assert HERE.device == CPU


@pytest.mark.parametrize(
    "mixed",
    [
        lambda x: x + HERE,
        lambda x: x @ HERE.t(),
        lambda x: torch.cat([x, HERE]),
        lambda x: x.index_select(0, ROWS),
        lambda x: HERE[there(ROWS)],
        lambda x: x.index_add_(0, ROWS, x[:2]),
        lambda x: torch.nn.functional.embedding_bag(ROWS, x, torch.tensor([0])),
        lambda x: torch.stack([x.sum(), torch.tensor(1.0)]),  # one number, but not elementwise
        nn.Linear(2, 2),
    ],
)
def test_tensors_on_two_devices_are_refused_by_operation_and_place(mixed) -> None:
    with pretended_cuda():
        x = there(HERE)
        with refused(RuntimeError) as caught:
            mixed(x)
    assert " on cpu" in str(caught.value)


def test_numbers_and_indices_on_the_cpu_are_taken_as_on_a_gpu() -> None:
    with pretended_cuda():
        x = there(HERE)
        assert (x * torch.tensor(2.0)).device == CUDA
        x[ROWS] = torch.tensor(7.0)
        assert x[ROWS].tolist() == [[7.0, 7.0], [7.0, 7.0]]
        target = torch.zeros(3, 2)
        target.copy_(x)
        assert target.device == CPU


def test_numpy_takes_no_tensor_of_the_device() -> None:
    with pretended_cuda():
        for convert in (Tensor.numpy, np.asarray):
            with refused(TypeError):
                convert(there(HERE))
            assert convert(there(HERE).cpu()).tolist() == HERE.tolist()


def test_a_generator_draws_on_its_own_device() -> None:
    with pretended_cuda():
        own = torch.Generator("cuda").manual_seed(3)
        assert own.device == CUDA
        assert torch.rand(2, device="cuda", generator=own).device == CUDA
        there(HERE).random_(generator=own)
        with refused(RuntimeError):
            torch.randperm(3, generator=own)
        with refused(RuntimeError):
            there(HERE).random_(generator=torch.Generator())


def test_the_device_has_a_default_generator_of_its_own() -> None:
    with pretended_cuda(), torch.random.fork_rng([CUDA]):
        torch.manual_seed(5)
        of_cpu, of_cuda = torch.get_rng_state(), torch.cuda.get_rng_state()
        drawn = torch.rand(3, device="cuda")
        assert torch.equal(torch.get_rng_state(), of_cpu)
        assert not torch.equal(torch.cuda.get_rng_state(), of_cuda)
        torch.cuda.set_rng_state(of_cuda)
        assert torch.equal(torch.rand(3, device="cuda"), drawn)


def test_gradients_go_back_to_where_tensors_came_from_in_a_thread_of_their_own() -> None:
    threads = []
    with pretended_cuda():
        x = HERE.clone().requires_grad_()
        y = there(x) * 3
        y.register_hook(lambda grad: threads.append((threading.get_ident(), grad.device)))
        y.square().sum().backward()
        assert x.grad is not None
        assert x.grad.device == CPU
        assert torch.equal(x.grad, 18 * HERE)
        (found,) = torch.autograd.grad((there(x) * 3).sum(), [x])
        assert found.device == CPU
    assert [device for _, device in threads] == [CUDA]
    assert threads[0][0] != threading.get_ident()


def test_a_gradient_that_mixes_devices_is_refused_in_its_thread_too() -> None:
    class Forgetful(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx, grad: Tensor) -> Tensor:
            return grad * torch.ones(3, 2)

    with pretended_cuda(), refused(RuntimeError):
        Forgetful.apply(there(HERE).requires_grad_()).sum().backward()


def test_waits_copies_and_operations_are_counted() -> None:
    with pretended_cuda() as cuda:
        x = there(HERE)
        assert (cuda.waits, cuda.copied) == (0, 0)
        float(x.sum())
        x[x > 2]
        x.cpu()
        assert (cuda.waits, cuda.copied) == (2, HERE.nbytes)
        x.to_sparse_csr().values()
        assert cuda.operations["aten::sum", False] == 1
        assert cuda.operations["aten::values", True] == 1


def test_an_address_that_is_used_again_is_no_tensor_of_the_device() -> None:
    with pretended_cuda():
        for _ in range(200):  # each is freed at once, and the next would have its place
            there(HERE)
            assert torch.from_numpy(np.zeros((3, 2), dtype=np.float32)).device == CPU
