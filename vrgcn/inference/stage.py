"""`Stage`: one link of the chain by which a saved model makes its outputs.

The first stage computes outputs: `exact` of one model, `averaged` of several. Each later one takes
the outputs of the stage before it: a `RowStage` changes each node's row by itself, any other
`Stage` may read the rows of other nodes, and so needs the whole graph in one process. `stages.py`
has their names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from torch import Tensor

from vrgcn.files.kinds import Kind
from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ROWS, Outputs
from vrgcn.tasks.task import Task

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel


class Stage(ABC):
    """A stage after the first.

    name: in model files; title: for people
    words: what predictions are by it, for people
    of_nodes: True if it holds rows of single nodes
    kinds: of its settings, which are attributes, in a file
    """

    name: ClassVar[str]
    title: ClassVar[str]
    words: ClassVar[str]
    of_nodes: ClassVar[bool] = False
    kinds: ClassVar[Mapping[str, Kind]] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The entries that a file describes it by."""
        return {name: getattr(self, name) for name in self.kinds}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a file keeps."""
        return {}

    @classmethod
    def of_file(
        cls,
        where: str,
        settings: Mapping[str, Any],
        tensors: dict[str, Tensor],
        before: SavedModel,
    ) -> Self:
        """Build from the entries of a file, of the right kinds, and its tensors; raise if they do
        not agree.

        where: the file, for errors; before: the chain of the stages before this one
        """
        return cls(**settings)

    @abstractmethod
    def on(self, inner: Outputs, task: Task, directory: Path | None) -> Outputs:
        """Outputs of this stage, from those of the stage before it.

        directory: keep tables in files there instead of in memory
        """

    @property
    def described(self) -> tuple[str, ...]:
        """Sentences of a model's card."""
        return (f"predictions are {self.words}",)

    @property
    def caution(self) -> str | None:
        """What scores of such predictions do not say; None: nothing special."""
        return None


class RowStage(Stage):
    """A stage that changes the outputs of each node by themselves, and keeps their width."""

    @abstractmethod
    def rows(self, outputs: Tensor, task: Task) -> Tensor:
        """Changed outputs (nodes, width)."""

    def on(self, inner: Outputs, task: Task, directory: Path | None) -> Outputs:
        return RowOutputs(inner, self, task)


class StagedOutputs(Outputs):
    """Outputs that are made of those of `inner`, whose layers are inside."""

    def __init__(self, inner: Outputs, directory: Path | None = None) -> None:
        self.inner = inner
        self.directory = directory
        self.on_chunk, inner.on_chunk = inner.on_chunk, self.done

    @property
    def graph(self) -> Graph:
        return self.inner.graph

    def layers(self) -> int:
        return self.inner.layers()


class RowOutputs(StagedOutputs):
    """Outputs of a `RowStage`."""

    def __init__(self, inner: Outputs, stage: RowStage, task: Task) -> None:
        super().__init__(inner)
        self.stage = stage
        self.task = task

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        self.inner.on_begin = self.on_begin
        outputs = self.inner.outputs(nodes, layer)
        for part in outputs.split(ROWS) if layer is None else ():
            part.copy_(self.stage.rows(part, self.task))
        return outputs

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        self.inner.on_begin = self.on_begin
        for chunk, outputs in self.inner.stream(nodes, layer):
            yield chunk, outputs if layer is not None else self.stage.rows(outputs, self.task)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        return self.inner.work(nodes, layer)
