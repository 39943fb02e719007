"""Which operations PyTorch has for a GPU, by the list that it is built from.

A PyTorch for the CPU has no kernels for a GPU, but its package has the list of all kernels. Types
are not in the list: that a kernel takes float16 is not shown here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

_LIST = files("torchgen") / "packaged" / "ATen" / "native" / "native_functions.yaml"
_DENSE, _SPARSE = {"CUDA"}, {"SparseCUDA", "SparseCsrCUDA"}


def without_cuda_kernel(operations: Iterable[tuple[str, bool]]) -> list[str]:
    """The operations that PyTorch cannot run on a GPU.

    operations: names such as "aten::add.Tensor", and whether a tensor of theirs is sparse
    """
    return sorted(name for name, sparse in operations if not _has_kernel(name, sparse))


def _has_kernel(name: str, sparse: bool) -> bool:
    backends = _backends(name.removeprefix("aten::"))
    composed = any(backend.startswith("Composite") for backend in backends)  # of other operations
    return composed or bool(backends & (_SPARSE if sparse else _DENSE))


def _backends(name: str) -> set[str]:
    """Backends that an operation has a kernel for; none of an operation that is not in the list."""
    entry = _entries().get(name)
    if entry is None:
        return set()
    found = {
        backend.strip()
        for line in re.findall(r"^    (\w+(?:, \w+)*): \w+", entry, flags=re.MULTILINE)
        for backend in line.split(",")
    }
    delegate = re.search(r"structured_delegate: (\S+)", entry)
    if delegate is not None:
        found |= _backends(delegate[1])
    if "ufunc_inner_loop:" in entry:
        found |= _DENSE
    return found or {"CompositeImplicitAutograd"}


@cache
def _entries() -> dict[str, str]:
    """The list's entries, by name and overload."""
    entries = _LIST.read_text(encoding="utf-8").split("\n- func: ")[1:]
    return {entry[: entry.index("(")]: entry for entry in entries}
