"""Samplers: which neighbours of some target nodes are computed anew, and how they are weighted.

A sampler looks at P alone, never at activations. It answers for each target with some entries of
its row of P and with a scale R, such that

    own * h_u + R * sum over sampled v of P[u, v] h_v

has the mean (P h)_u. The own edge is exact and R is kept apart from the entries, because the
control variate for dropout needs both R and its square root.

A sampler of one's own is any object with the members of `Sampler`, given to an estimator in place
of a name: `Estimator(Mine(), forward="corrected")`. A plug-in of the group `vrgcn.samplers` is a
class with such members and `build(fanouts)`, which returns one; it may name settings that `build`
takes too, `settings = ("sample_size",)`. One of ours is a file here and a line in
SAMPLERS, which names the settings of `TrainConfig` that it is built with. This file imports no
torch: the command line reads the names.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import SAMPLERS as PLUGINS
from vrgcn.files.plugins import check_own, is_plugin, known_names, load_plugin, plugin_package
from vrgcn.files.setting_names import setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from vrgcn.graph.propagation import Propagation
    from vrgcn.graph.sparse import CSR

# name: module, class, and settings besides the fan-out that its `build` takes
SAMPLERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "full": ("full", "Full", ()),
    "uniform": ("uniform", "Uniform", ()),
    "few": ("few", "Few", ()),
    "importance": ("importance", "Importance", ("sample_size",)),
    "none": ("none", "Nothing", ()),
}
# The settings of all samplers besides the fan-out.
SETTINGS = tuple(dict.fromkeys(name for *_, names in SAMPLERS.values() for name in names))


@dataclass(frozen=True)
class Sample:
    """own: (targets,) or one number, the weight of each target's own activation
    edges: (targets, nodes) CSR, the sampled entries of P
    scale: (targets,), R of each row
    """

    own: Tensor | float
    edges: CSR
    scale: Tensor


class Sampler(Protocol):
    """random: whether two draws for the same targets may differ
    shared: whether one draw serves all targets of a minibatch, so that each needs its own
    draws_own: whether own edges are drawn like any others; else they are exact, which is what
        histories rely on

    It may also say:

    usual_fanout: the fan-out where none is asked for; 1 if it does not say
    passes_over: whether some neighbours are never computed, so that histories of nodes that are not
        visited have to be refreshed; False if it does not say
    computes_of: a method of a level and (nodes,) numbers of neighbours: (nodes,) bool, whether any
        of so many may be computed; of all nodes if it does not say
    size_setting: what decides how many neighbours are computed, in words for advice, such as
        "sample size"; "" if it does not say
    """

    random: bool
    shared: bool
    draws_own: bool

    def computes_neighbours(self, level: int) -> bool:
        """Whether anything but the targets themselves is ever computed for a hop."""

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        """Neighbours of the targets, which may be those of several minibatches.

        level: of the activations that are averaged; 0 are the features
        """


def sampler_class(name: str) -> Any:
    """The class of a sampler by name."""
    check_sampler(name)
    if name not in SAMPLERS:
        return load_plugin(PLUGINS, name)
    check_own(PLUGINS, name)
    module, kind, _ = SAMPLERS[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), kind)


def check_sampler(name: str) -> None:
    """Raise if no sampler of vrgcn's own or of another package has this name."""
    if name not in SAMPLERS and not is_plugin(PLUGINS, name):
        raise InputError(f"sampler {name!r} is none of {known_names(PLUGINS, SAMPLERS)}")


def build_sampler(
    sampler: str | Sampler, fanouts: Sequence[int], settings: Mapping[str, Any]
) -> Sampler:
    """A sampler by name, or one's own as it is.

    fanouts: neighbours to sample per node, for each level from the input up
    settings: values of SETTINGS by name
    """
    if not isinstance(sampler, str):
        return sampler
    kind = sampler_class(sampler)
    if sampler not in SAMPLERS and not callable(getattr(kind, "build", None)):
        raise InputError(
            f"the sampler {sampler!r} of {plugin_package(PLUGINS, sampler)} has no "
            "`build(fanouts)`, which returns a sampler"
        )
    names = SAMPLERS[sampler][2] if sampler in SAMPLERS else getattr(kind, "settings", ())
    built: Sampler = kind.build(fanouts, **{name: settings[name] for name in names})
    return built


def passes_over(sampler: str | Sampler) -> bool:
    """Whether a sampler never computes some neighbours."""
    kind = sampler_class(sampler) if isinstance(sampler, str) else sampler
    return bool(getattr(kind, "passes_over", False))


def size_of(sampler: str | Sampler) -> str:
    """The setting that decides how many neighbours a sampler computes; "" for all or none."""
    kind = sampler_class(sampler) if isinstance(sampler, str) else sampler
    words = str(getattr(kind, "size_setting", ""))
    name = words.replace(" ", "_")
    return f"{words} ({setting(name)})" if name in SETTINGS else words


def usual_fanout(sampler: str | Sampler) -> int:
    """The fan-out of a sampler where none is asked for."""
    kind = sampler_class(sampler) if isinstance(sampler, str) else sampler
    return int(getattr(kind, "usual_fanout", 1))


def fanout_per_level(fanout: int | Sequence[int], levels: int) -> list[int]:
    """One fan-out for each level that a model propagates, from the input up."""
    if levels == 0:  # an MLP samples nothing, whatever the others of a comparison sample
        return []
    fanouts = [fanout] * levels if isinstance(fanout, int) else [int(f) for f in fanout]
    if len(fanouts) == 1:
        fanouts = fanouts * levels
    if len(fanouts) != levels:
        raise InputError(
            f"{setting('fanout', python='fanout')} has {len(fanouts)} entries but the model "
            f"propagates {levels} times; "
            "give one number, or one for each"
        )
    if any(f < 0 for f in fanouts):
        raise InputError(f"fanout must not be negative: {fanouts}")
    return fanouts
