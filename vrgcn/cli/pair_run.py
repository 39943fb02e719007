"""Code that `predict --pairs` and `recommend` share: a run that predicts edges, its graph, and the
exact embeddings of all nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrgcn.cli.exact_run import ALL, ExactOptions, opened_sweeps, shown

if TYPE_CHECKING:
    from torch import Tensor

    from vrgcn.graph.graph import Graph
    from vrgcn.pairs.decoders import Decoder
    from vrgcn.targets.scored import ScoredEdges


@dataclass(frozen=True)
class Embedded:
    """graph: with the edges that messages use; edges: the predicted ones, all that are known;
    decoder: of the model; embeddings: of all nodes, (nodes, width)"""

    graph: Graph
    edges: ScoredEdges
    decoder: Decoder
    embeddings: Tensor


@contextmanager
def embedded(options: ExactOptions) -> Iterator[Embedded]:
    """Yield a run's graph, decoder and exact embeddings; temporary files are deleted afterwards."""
    from dataclasses import replace

    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.inference.predict import check_all_outputs
    from vrgcn.pairs.model import PairModel
    from vrgcn.runs.run import open_run
    from vrgcn.targets.scored import scored_edges

    use_threads(options.threads)
    run = open_run(options.run, find_device(options.device))
    with opened_sweeps(run, replace(options, nodes=None), ALL) as opened:
        graph, sweeps = opened.graph, opened.sweeps
        model, edges = run.saved.model, scored_edges(graph)
        assert isinstance(model, PairModel)
        assert edges is not None
        with shown("embedding", sweeps.work(None)) as advance:
            sweeps.on_chunk = advance
            embeddings = sweeps.outputs(None)
        check_all_outputs(sweeps, None, embeddings, "embedding")
        yield Embedded(graph, edges, model.decoder.cpu(), embeddings)
