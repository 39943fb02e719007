"""Exact outputs of a model, divided by its temperature."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.sweeps import Outputs


class CalibratedSweeps(Outputs):
    """The same as the sweeps inside, with outputs divided by a temperature.

    inner: sweeps of the model without its calibration
    """

    def __init__(self, inner: Outputs, calibration: Calibration) -> None:
        self.inner = inner
        self.calibration = calibration
        self.on_chunk, inner.on_chunk = inner.on_chunk, self.done

    @property
    def graph(self) -> Graph:
        return self.inner.graph

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        self.inner.on_begin = self.on_begin
        found = self.inner.outputs(nodes, layer)
        return found if layer is not None else found.div_(self.calibration.temperature)

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        self.inner.on_begin = self.on_begin
        for chunk, outputs in self.inner.stream(nodes, layer):
            yield chunk, outputs if layer is not None else self.calibration.outputs(outputs)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        return self.inner.work(nodes, layer)
