"""`Average`: several saved models that predict together, as the first stage of a chain.

The outputs are those whose probabilities, or numbers, are the weighted mean of the members'. Each
member is a chain of its own, scales features and propagates in its own way. An average has no
layers of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from vrgcn.files.kinds import TEXT, Kind, check_kinds, or_null, shown
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.inference.saved import SavedModel
from vrgcn.inference.stages import (
    CHAIN,
    Source,
    read_chain,
    refuse_unknown,
    tensors_by_place,
    written_chain,
)
from vrgcn.inference.sweeps import ROWS, Outputs
from vrgcn.tasks import find_task


@dataclass(frozen=True)
class Average(SavedModel):
    """Several saved models that predict together.

    members: by name; weights: of each, above 0, their sum is 1
    best: the folder of the best single model, for errors; None if nobody knows

    `model` has the members' modules, so that they move to a device together.
    """

    name = "averaged"

    members: dict[str, SavedModel] = field(default_factory=dict)
    weights: tuple[float, ...] = ()
    best: str | None = None

    @staticmethod
    def of_members(
        members: dict[str, SavedModel], weights: dict[str, float], best: str | None = None
    ) -> Average:
        """weights: of some of the members, whole or broken numbers; the others are left out"""
        kept = {name: members[name] for name, weight in weights.items() if weight > 0}
        if not kept:
            raise InputError("an average needs a member whose weight is above 0")
        _check_alike(kept)
        first, total = next(iter(kept.values())), sum(weights[name] for name in kept)
        return Average(
            nn.ModuleList(member.model for member in kept.values()),
            multilabel=first.multilabel,
            classes=first.classes,
            features=first.features,
            regression=first.regression,
            own_task=first.own_task,
            members=kept,
            weights=tuple(weights[name] / total for name in kept),
            best=best,
        )

    @classmethod
    def of_chain(
        cls, where: str, settings: dict[str, Any], tensors: dict[str, Tensor], source: Source
    ) -> Average:
        check_kinds(where, settings, _KINDS)
        refuse_unknown(where, settings, _KINDS, "average")
        entries = settings["members"]
        for entry in entries:
            check_kinds(where, entry, _MEMBER)
            refuse_unknown(where, entry, _MEMBER, "member of an average")
        held = tensors_by_place(where, tensors, len(entries), "members of the average")
        members = {
            entry["name"]: read_chain(f"{where}: {entry['name']}", entry["stages"], own, source)
            for entry, own in zip(entries, held, strict=True)
        }
        weights = {entry["name"]: entry["weight"] for entry in entries}
        if len(weights) < len(entries):
            raise InputError(f"{where}: two members of the average have the same name")
        best = settings["best"]
        best = None if best is None else os.path.normpath(source.folder / best)
        try:
            average = Average.of_members(members, weights, best)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        # As they were written: dividing by a sum that is nearly 1 would change last bits.
        return replace(average, weights=tuple(weights.values()))

    def written(self, folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
        entries: list[dict[str, Any]] = []
        tensors: dict[str, Tensor] = {}
        for index, (name, (weight, member)) in enumerate(self.parts.items()):
            stages, held = written_chain(member, folder)
            entries.append({"name": name, "weight": weight, "stages": stages})
            tensors |= {f"{index}.{own}": tensor for own, tensor in held.items()}
        # Relative: both may be moved together.
        best = None if self.best is None else os.path.relpath(self.best, folder)
        return {"best": best, "members": entries}, tensors

    @property
    def parts(self) -> Mapping[str, tuple[float, SavedModel]]:
        pairs = zip(self.weights, self.members.values(), strict=True)
        return dict(zip(self.members, pairs, strict=True))

    @property
    def num_features(self) -> int | None:
        return self._any.num_features

    @property
    def num_classes(self) -> int | None:
        return self._any.num_classes

    @property
    def _any(self) -> SavedModel:
        """A member; all of them take the same columns and know the same classes."""
        return next(iter(self.members.values()))

    def prepare(self, graph: Graph, scaled: Path | None = None) -> Graph:
        """The graph as it is: each member has its own scaling."""
        return graph

    def check_single(self, why: str) -> NoReturn:
        one = "" if self.best is None else f", such as the best of them: {self.best}"
        raise InputError(f"an average of {len(self.weights)} models {why}{one}")

    def first(
        self,
        graph: Graph,
        propagation: PropagationLike | None,
        directory: Path | None,
        on_chunk: Callable[[int], None] | None,
    ) -> Outputs:
        if propagation is not None:
            raise InputError(
                "propagation=...: each model of an average propagates in its own way; give it to "
                "one"
            )
        return AveragedOutputs(self, graph, directory, on_chunk)


class AveragedOutputs(Outputs):
    """Outputs of the members, one after the other, and their mean. Memory is that of one member,
    and one table of outputs.

    graph: as it was given, before any member's scaling
    directory: in which each member has its own
    """

    file = "average.bin"

    def __init__(
        self,
        average: Average,
        graph: Graph,
        directory: Path | None,
        on_chunk: Callable[[int], None] | None,
    ) -> None:
        self.average = average
        self._graph = graph
        self.task = find_task(average.task)
        self.directory = directory
        self.on_chunk = on_chunk

    @property
    def graph(self) -> Graph:
        return self._graph

    def layers(self) -> int:
        self.average.check_single("has no layers of its own to embed nodes by; name a single model")

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        assert layer is None
        self.begin(nodes)
        mean: Tensor | None = None
        for sweeps, weight in zip(self._sweeps(), self.average.weights, strict=True):
            start = 0
            for chunk, outputs in sweeps.stream(nodes):
                shares = self.task.shares(outputs)
                if mean is None:
                    mean = self.empty(nodes, shares)
                mean[start : start + len(chunk)] += weight * shares
                start += len(chunk)
                self.done(len(chunk))
        assert mean is not None
        for part in mean.split(ROWS):
            part.copy_(self.task.from_shares(part))
        return mean

    def _sweeps(self) -> Iterator[Outputs]:
        """The sweeps of each member, when its turn comes."""
        for number, member in enumerate(self.average.members.values()):
            own = None if self.directory is None else self.directory / f"member-{number}"
            if own is not None:
                own.mkdir(exist_ok=True)
            yield member.sweeps(self.graph, directory=own)

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        outputs = self.outputs(nodes, layer)
        asked = torch.arange(self.graph.num_nodes) if nodes is None else nodes
        yield from zip(asked.split(ROWS), outputs.split(ROWS), strict=True)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        count = self.graph.num_nodes if nodes is None else len(nodes)
        return len(self.average.members) * count


def _check_alike(members: dict[str, SavedModel]) -> None:
    """Refuse members that predict, or take, something else than the first."""
    (first, one), *others = members.items()
    for name, other in others:
        for what in ("task", "classes", "features", "num_classes", "num_features"):
            mine, theirs = getattr(one, what), getattr(other, what)
            if mine != theirs:
                raise InputError(
                    f"{name} cannot be averaged with {first}: its {what} is {shown(theirs)}, and "
                    f"not {shown(mine)}"
                )


_KINDS = {"members": CHAIN, "best": or_null(TEXT)}
_MEMBER = {
    "name": TEXT,
    "weight": Kind(
        lambda value: type(value) in (int, float) and 0 < value <= 1, "above 0 and at most 1"
    ),
    "stages": CHAIN,
}
