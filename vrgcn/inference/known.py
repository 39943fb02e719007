"""`KnownModel`: a saved model whose outputs for all nodes of a graph have been computed, so that
stages after it are chosen, and scored, without predicting again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.inference.saved import SavedModel
from vrgcn.inference.sweeps import KnownOutputs, Outputs


@dataclass(frozen=True)
class KnownModel(SavedModel):
    """known: (nodes, width) outputs of the whole chain of another model, of all nodes of the graph
    that is asked for; the stages are those that come after it"""

    known: Tensor | None = None

    @staticmethod
    def like(saved: SavedModel, known: Tensor) -> KnownModel:
        """Return a model of these outputs with the meaning of `saved`."""
        own = {field.name: getattr(saved, field.name) for field in fields(SavedModel)}
        return KnownModel(**own | {"stages": ()}, known=known)

    def first(
        self,
        graph: Graph,
        propagation: PropagationLike | None,
        directory: Path | None,
        on_chunk: Callable[[int], None] | None,
    ) -> Outputs:
        assert self.known is not None
        return KnownOutputs(graph, self.known)
