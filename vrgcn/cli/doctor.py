"""`vrgcn doctor`: says what is installed, what is missing, and what the machine has."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import ClassVar

from vrgcn import __version__
from vrgcn.cli.command import Options

# Extras for those who work on vrgcn itself.
_OF_THE_PROJECT = ("dev", "docs", "release")
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)[^;]*?(?:>=(?P<least>[\d.]+))?[^;]*(?:;(?P<marker>.*))?"
)
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")


@dataclass(frozen=True)
class DoctorOptions(Options):
    """Flags of `vrgcn doctor`."""

    only_prints: ClassVar[bool] = True


@dataclass(frozen=True)
class Needed:
    """A package that vrgcn, or one of its extras, needs.

    least: the oldest version that will do; "": any
    extra: "" for a package that is always needed
    """

    name: str
    least: str
    extra: str

    @property
    def version(self) -> str | None:
        """The installed version; None if there is none."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None

    @property
    def said(self) -> str:
        """The package and its version, and what is wrong with it."""
        version = self.version
        if version is None:
            return f"{self.name} is missing"
        old = _numbers(version) < _numbers(self.least)
        return f"{self.name} {version}" + (f" is older than {self.least}" if old else "")

    @property
    def there(self) -> bool:
        """True if it is installed, and new enough."""
        version = self.version
        return version is not None and _numbers(version) >= _numbers(self.least)


def run(options: DoctorOptions) -> None:
    """Print the versions, the machine, and a line for each extra."""
    print(f"vrgcn {__version__} on Python {platform.python_version()}, {platform.platform()}")
    packages = list(needed())
    print(", ".join(package.said for package in packages if not package.extra))
    print(machine())
    print()
    extras = list(dict.fromkeys(package.extra for package in packages if package.extra))
    width = max(map(len, extras))
    for extra in extras:
        own = [package for package in packages if package.extra == extra]
        said = ", ".join(package.said for package in own)
        advice = "" if all(p.there for p in own) else f": pip install 'vrgcn[{extra}]'"
        print(f"{extra:<{width}}  {said}{advice}")


def needed() -> Iterator[Needed]:
    """Yield what the package's own metadata requires, in its order."""
    for line in metadata.requires("vrgcn") or []:
        found = _REQUIREMENT.fullmatch(line)
        assert found is not None, line
        extra = _EXTRA.search(found["marker"] or "")
        if extra is None or extra[1] not in _OF_THE_PROJECT:
            yield Needed(found["name"], found["least"] or "", "" if extra is None else extra[1])


def machine() -> str:
    """Return the threads, the memory and the graphics processors that a training may use."""
    import torch

    from vrgcn.files.memory import UNLIMITED, free_memory

    free = free_memory()
    memory = "unknown memory" if free == UNLIMITED else f"{free / 1e9:.1f} GB of memory free"
    cards = torch.cuda.device_count()
    devices = "no GPU that PyTorch sees" if not cards else f"{cards} GPU, --device cuda"
    return f"{torch.get_num_threads()} threads for {os.cpu_count()} cores, {memory}, {devices}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
