"""Exact outputs of a model, divided by its temperature."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.inference.average_sweeps import AverageSweeps
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.smoothed_sweeps import SmoothedSweeps
from vrgcn.inference.sweeps import ExactSweeps


class CalibratedSweeps:
    """The same as the sweeps inside, with outputs divided by a temperature.

    inner: sweeps of the model without its calibration
    """

    def __init__(
        self, inner: ExactSweeps | AverageSweeps | SmoothedSweeps, calibration: Calibration
    ) -> None:
        self.inner = inner
        self.calibration = calibration

    @property
    def graph(self) -> Graph:
        """The graph that the sweeps are of."""
        return self.inner.graph

    @property
    def on_chunk(self) -> Callable[[int], None] | None:
        return self.inner.on_chunk

    @on_chunk.setter
    def on_chunk(self, on_chunk: Callable[[int], None] | None) -> None:
        self.inner.on_chunk = on_chunk

    @property
    def on_begin(self) -> Callable[[int], None] | None:
        return self.inner.on_begin

    @on_begin.setter
    def on_begin(self, on_begin: Callable[[int], None] | None) -> None:
        self.inner.on_begin = on_begin

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        """(nodes, classes); what the model propagates at a layer stays as it is."""
        found = self.inner.outputs(nodes, layer)
        return found if layer is not None else found.div_(self.calibration.temperature)

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The same, a chunk at a time."""
        for chunk, outputs in self.inner.stream(nodes, layer):
            yield chunk, outputs if layer is not None else self.calibration.outputs(outputs)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        """How many nodes all sweeps visit together, for showing progress."""
        return self.inner.work(nodes, layer)
