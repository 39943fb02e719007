"""Settings of training by several processes. Imports no torch: the command line reads them before
loading anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import at_least, declared

HaloMode = Literal["delayed", "exact"]


@dataclass(frozen=True)
class DistributedConfig:
    """How the processes of torchrun exchange their results, with --graph PARTS."""

    """Group machine."""
    halo: HaloMode = declared("delayed", resume="always")
    """When the histories that a step writes reach the processes that read them. exact: level by
    level inside the step, so that all processes act as one with the union of their minibatches;
    delayed: after the step, during the next one."""
    halo_every: int = declared(1, resume="always")
    """With --halo delayed: after this many steps, send what all of them wrote."""
    rank_timeout: float = declared(600.0, resume="always")
    """Seconds to wait for a process that does not answer before the run ends and names it."""

    def __post_init__(self) -> None:
        if self.halo not in get_args(HaloMode):
            raise InputError(f"halo {self.halo!r} is none of {', '.join(get_args(HaloMode))}")
        at_least(1, halo_every=self.halo_every)
        if not 0 < self.rank_timeout < float("inf"):
            raise InputError(f"rank_timeout must be positive, not {self.rank_timeout}")
        if self.halo == "exact" and self.halo_every > 1:
            raise InputError(
                f"halo_every is of {setting('halo', 'delayed')}: exact exchanges in every step"
            )
