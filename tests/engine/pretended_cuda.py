"""A GPU that is not there: tensors that say they are on `cuda:0`, computed by the CPU.

    with pretended_cuda():
        fit(model, graph, TrainConfig(device="cuda"))

Whether a tensor is on the device is remembered with its storage. Every operation, those of autograd
and of the optimiser included, is stopped where a GPU would stop it: its tensors lie on two devices,
a generator is of the wrong one, or NumPy is given a tensor of the device. The values are real, so
shapes that depend on them are followed too.

As on a GPU:
- a tensor of the CPU without dimensions may take part in elementwise operations,
- indices on the CPU may index a tensor of the device, but not the other way round,
- the device has a default generator of its own,
- gradients are computed in another thread, which does not have the caller's thread-local values.

Only a GPU can show which kernels fail, the last bits of its numbers, memory and speed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)

_aten = torch.ops.aten
_COPIES = (_aten.copy_, _aten._foreach_copy_)
_WRITES_AT = (_aten.index_put, _aten.index_put_)
_INDEXES = (_aten.index, _aten._unsafe_index, *_WRITES_AT)
# The CPU waits for the result of these: how many numbers come out is decided on the device.
_WAITS = (
    _aten._local_scalar_dense,
    _aten.nonzero,
    _aten.masked_select,
    _aten._unique2,
    _aten.unique_consecutive,
    _aten.bincount,
    _aten.equal,
)


class PretendedCuda:
    """operations: how many ran on the device, by name and whether a tensor of theirs is sparse
    waits: how often the CPU waited for a number of the device
    copied: bytes that were copied from the device to the CPU
    """

    def __init__(self) -> None:
        self.operations: Counter[tuple[str, bool]] = Counter()
        self.waits = 0
        self.copied = 0
        self.default = torch.Generator().manual_seed(0).get_state()
        self.made_on: torch.device | None = None  # the device that a call names
        self.created_on = CPU  # device of tensors from operations without inputs
        # Weak references free the memory, and keep the address from being another storage's.
        self._there: dict[int, StorageWeakRef] = {}

    def device_of(self, tensor: Tensor) -> torch.device:
        with torch._C.DisableTorchFunction():
            if tensor.device.type != "cpu":  # meta
                return tensor.device
            return CUDA if _address(tensor) in self._there else CPU

    def put(self, tensor: Tensor, device: torch.device) -> None:
        """A tensor that was just made is on this device."""
        with torch._C.DisableTorchFunction():
            for part in _parts(tensor):
                storage = part.untyped_storage()
                if device == CUDA:
                    self._there.setdefault(storage._cdata, StorageWeakRef(storage))
                else:
                    self._there.pop(storage._cdata, None)

    def move(self, tensor: Tensor, device: torch.device) -> Tensor:
        """A copy on another device."""
        if device == CPU:
            self.copied += sum(part.nbytes for part in _parts(tensor))
        if tensor.requires_grad and torch.is_grad_enabled():
            return _Move.apply(tensor, device, self)
        moved = tensor.detach().clone()
        self.put(moved, device)
        return moved

    @contextmanager
    def creating(self, device: torch.device) -> Iterator[None]:
        """In here, operations that are given no tensor create theirs on this device."""
        before, self.created_on = self.created_on, device
        try:
            yield
        finally:
            self.created_on = before

    @contextmanager
    def modes(self) -> Iterator[None]:
        """In here, in this thread, operations are checked and calls know the device."""
        with _Operations(self), _Calls(self):
            yield


def _parts(tensor: Tensor) -> list[Tensor]:
    """The dense tensors that a tensor consists of."""
    if tensor.layout == torch.strided:
        return [tensor]
    with _disable_current_modes(), torch.no_grad():
        if tensor.layout == torch.sparse_csr:
            return [tensor.values(), tensor.crow_indices(), tensor.col_indices()]
        return [tensor._values(), tensor._indices()]


def _address(tensor: Tensor) -> int:
    return _parts(tensor)[0].untyped_storage()._cdata


def _tensors(values: Any) -> list[Tensor]:
    """All tensors of arguments or results."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, list | tuple):
        return []
    return [tensor for value in values for tensor in _tensors(value)]


class _Move(torch.autograd.Function):
    """The gradient goes back to the device that the tensor came from."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, device: torch.device, cuda: PretendedCuda) -> Tensor:
        ctx.source, ctx.cuda = cuda.device_of(tensor), cuda
        moved = tensor.clone()
        cuda.put(moved, device)
        return moved

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.cuda.move(grad, ctx.source), None, None


class _Operations(TorchDispatchMode):
    """Checks every operation, and remembers where its results are."""

    def __init__(self, cuda: PretendedCuda) -> None:
        super().__init__()
        self.cuda = cuda

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and asking for it loads the compiler: seconds

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():
            tensors = _tensors((args, kwargs))
            device = self.cuda.made_on or self._device(func, args, tensors)
            if device != CUDA:
                return func(*args, **kwargs)
            self._count(func, args, tensors)
            given = {_address(tensor) for tensor in tensors}
            results = self._run(func, args, kwargs)
            for tensor in _tensors(results):
                if _address(tensor) not in given:
                    self.cuda.put(tensor, CUDA)
            return results

    def _device(self, func: Any, args: tuple[Any, ...], tensors: list[Tensor]) -> torch.device:
        """Return the device of an operation; raise the error that a GPU would raise."""
        devices = [self.cuda.device_of(tensor) for tensor in tensors]
        if len(set(devices)) < 2:
            return devices[0] if devices else self.cuda.created_on
        packet = func.overloadpacket
        if packet in _COPIES:
            if devices[0] == CPU:
                self.cuda.copied += tensors[0].nbytes
            return devices[0]
        indices = _tensors(args[1]) if packet in _INDEXES and devices[0] == CUDA else []
        scalars = torch.Tag.pointwise in func.tags or packet in _WRITES_AT
        for tensor, device in zip(tensors, devices, strict=True):
            index = any(tensor is one for one in indices)
            if device != CUDA and not index and not (scalars and tensor.dim() == 0):
                found = zip(tensors, devices, strict=True)
                places = ", ".join(f"{tuple(t.shape)} on {place.type}" for t, place in found)
                raise RuntimeError(f"{func}: expected all tensors on the same device: {places}")
        return CUDA

    def _count(self, func: Any, args: tuple[Any, ...], tensors: list[Tensor]) -> None:
        sparse = any(tensor.layout != torch.strided for tensor in tensors)
        self.cuda.operations[func.name(), sparse] += 1
        packet = func.overloadpacket
        masks = packet in _INDEXES and any(t.dtype == torch.bool for t in _tensors(args[1]))
        self.cuda.waits += masks or packet in _WAITS

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operation; one that draws without a generator draws from the device's default."""
        given = any(isinstance(arg, torch._C.Generator) for arg in (*args, *kwargs.values()))
        if given or torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        of_cpu = torch.get_rng_state()
        torch.set_rng_state(self.cuda.default)
        try:
            return func(*args, **kwargs)
        finally:
            self.cuda.default = torch.get_rng_state()
            torch.set_rng_state(of_cpu)


class _Calls(TorchFunctionMode):
    """Answers calls that name a device, which PyTorch would take to a GPU."""

    def __init__(self, cuda: PretendedCuda) -> None:
        super().__init__()
        self.cuda = cuda

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _ANSWERS:
            return _ANSWERS[func](self.cuda, *args, **kwargs)
        if getattr(func, "__name__", None) == "__get__":  # shape, dtype, grad, ...
            return func(*args, **kwargs)
        device = kwargs.get("device")
        if device is not None and torch.device(device).type != "meta":
            results = self._make(func, args, kwargs, _find(device))
        else:
            results = self._call(func, args, kwargs)
        self._check_generator((*args, *kwargs.values()), results)
        return results

    def _make(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: torch.device
    ) -> Any:
        self.cuda.made_on = device
        try:
            made = func(*args, **{**kwargs, "device": CPU})
        finally:
            self.cuda.made_on = None
        self.cuda.put(made, device)
        return made

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = [self.cuda.device_of(arg) for arg in args if isinstance(arg, Tensor)]
        # PyTorch's own code creates tensors where those are that it was given.
        with self.cuda.creating(CUDA if CUDA in given else CPU):
            results = func(*args, **kwargs)
        if func in _BESIDE:
            self.cuda.put(results, given[0])
        return results

    def _check_generator(self, given: tuple[Any, ...], results: Any) -> None:
        for generator in given:
            if isinstance(generator, PretendedGenerator):
                device = self.cuda.device_of(results)
                if generator.device.type != device.type:
                    raise RuntimeError(
                        f"expected a {device.type!r} device type for generator but found "
                        f"{generator.device.type!r}"
                    )


def _find(device: torch.device | str) -> torch.device:
    """`cuda` is its first device, as it is to PyTorch."""
    device = torch.device(device)
    return CUDA if device.type == "cuda" else device


def _to(cuda: PretendedCuda, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    given = [*args, *kwargs.values()]
    here = wanted = cuda.device_of(tensor)
    for arg in given:
        if isinstance(arg, Tensor):
            wanted = cuda.device_of(arg)
        elif isinstance(arg, torch.device | str):
            wanted = _find(arg)

    def on_cpu(arg: Any) -> Any:
        return CPU if isinstance(arg, torch.device | str) else arg

    cast = tensor.to(*map(on_cpu, args), **{name: on_cpu(arg) for name, arg in kwargs.items()})
    return cast if wanted == here else cuda.move(cast, wanted)


def _of_cpu_only(convert: Callable[..., Any]) -> Callable[..., Any]:
    def converted(cuda: PretendedCuda, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        if cuda.device_of(tensor) == CUDA:
            raise TypeError("can't convert cuda:0 device type tensor to numpy; use Tensor.cpu()")
        return convert(tensor, *args, **kwargs)

    return converted


_ANSWERS: dict[Any, Callable[..., Any]] = {
    Tensor.device.__get__: PretendedCuda.device_of,
    Tensor.is_cuda.__get__: lambda cuda, tensor: cuda.device_of(tensor) == CUDA,
    Tensor.is_cpu.__get__: lambda cuda, tensor: cuda.device_of(tensor) == CPU,
    Tensor.to: _to,
    Tensor.cuda: lambda cuda, tensor: _to(cuda, tensor, CUDA),
    Tensor.cpu: lambda cuda, tensor: _to(cuda, tensor, CPU),
    Tensor.tolist: lambda cuda, tensor: _to(cuda, tensor, CPU).tolist(),
    Tensor.numpy: _of_cpu_only(Tensor.numpy),
    Tensor.__array__: _of_cpu_only(Tensor.__array__),
}
# These make a tensor of bytes or of Python's numbers, where their first argument is.
_BESIDE = (Tensor.__deepcopy__, Tensor.new_tensor)


class PretendedGenerator(torch.Generator):
    """A generator of the device that was asked for."""

    def __new__(cls, device: torch.device | str = "cpu") -> PretendedGenerator:
        return super().__new__(cls)

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self._device = _find(device)

    @property
    def device(self) -> torch.device:
        return self._device


@contextmanager
def pretended_cuda() -> Iterator[PretendedCuda]:
    """In here there is a device `cuda:0`, for this thread and for the gradients it asks for."""
    cuda = PretendedCuda()
    with ExitStack() as stack:
        for owner, name, replacement in _replacements(cuda):
            stack.enter_context(mock.patch.object(owner, name, replacement))
        stack.enter_context(cuda.modes())
        yield cuda


def _replacements(cuda: PretendedCuda) -> list[tuple[Any, str, Any]]:
    """Functions of PyTorch that no mode can answer."""
    run_backward = torch.autograd._engine_run_backward
    group = torch._C._group_tensors_by_device_and_dtype

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        def run() -> Any:
            with cuda.modes():
                return run_backward(tensors, *args, **kwargs)

        with ThreadPoolExecutor(1) as thread, cuda.creating(cuda.device_of(tensors[0])):
            return thread.submit(run).result()

    def grouped(tensors: Any, *args: Any) -> Any:
        """All weights of a model are on one device here; PyTorch looks at where their memory is."""
        groups = group(tensors, *args).items()
        return {
            (cuda.device_of(lists[0][0]), dtype): (lists, i) for (_, dtype), (lists, i) in groups
        }

    def set_state(state: Tensor, device: Any = CUDA) -> None:
        cuda.default = state.clone()

    def seed(number: int) -> None:
        cuda.default = torch.Generator().manual_seed(number).get_state()

    return [
        (torch, "Generator", PretendedGenerator),
        (torch.autograd, "_engine_run_backward", backward),
        (torch._C, "_group_tensors_by_device_and_dtype", grouped),
        (torch.cuda, "get_rng_state", lambda device=CUDA: cuda.default.clone()),
        (torch.cuda, "set_rng_state", set_state),
        (torch.cuda, "manual_seed_all", seed),
    ]
