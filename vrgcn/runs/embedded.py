"""The exact embeddings of a run that predicts edges, to score any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrgcn.inference.predict import check_all_outputs
from vrgcn.inference.sweeps import Outputs
from vrgcn.pairs.model import PairModel
from vrgcn.targets.scored import ScoredEdges, scored_edges

if TYPE_CHECKING:
    from torch import Tensor

    from vrgcn.graph.graph import Graph
    from vrgcn.pairs.decoders import Decoder


@dataclass(frozen=True)
class Embedded:
    """graph: with the edges that messages use; edges: the predicted ones, all that are known;
    decoder: of the model; embeddings: of all nodes, (nodes, width)"""

    graph: Graph
    edges: ScoredEdges
    decoder: Decoder
    embeddings: Tensor


def embed_run(
    model: PairModel, graph: Graph, sweeps: Outputs, on_chunk: Callable[[int], None] | None = None
) -> Embedded:
    """Compute the exact embeddings of all nodes.

    graph: as `open_run_graph` returns it; sweeps: of the model on it
    on_chunk: called with the work of each chunk
    """
    edges = scored_edges(graph)
    assert edges is not None
    if on_chunk is not None:
        sweeps.on_chunk = on_chunk
    embeddings = sweeps.outputs(None)
    check_all_outputs(sweeps, None, embeddings, "embedding")
    return Embedded(graph, edges, model.decoder.cpu(), embeddings)
