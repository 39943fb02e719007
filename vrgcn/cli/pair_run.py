"""Code that `predict --pairs` and `recommend` share: a run that predicts pairs, its graph, a scorer
with the exact embeddings of all nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrgcn.cli.exact_run import ALL, ExactOptions, opened_sweeps, shown
from vrgcn.files.mistakes import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from vrgcn.graph.graph import Graph
    from vrgcn.graph.pairs import Pairs
    from vrgcn.pairs.model import PairModel
    from vrgcn.pairs.ranking import Scorer


@dataclass(frozen=True)
class OpenedPairs:
    """graph: with the edges that messages use; pairs: all that are known; scorer: of any pairs"""

    graph: Graph
    pairs: Pairs
    scorer: Scorer


@dataclass(frozen=True)
class Embedded:
    """graph: with the edges that messages use; model: with its decoder; embeddings: of all nodes,
    (nodes, width)"""

    graph: Graph
    model: PairModel
    embeddings: Tensor


@contextmanager
def opened_pairs(options: ExactOptions, relation: str | None = None) -> Iterator[OpenedPairs]:
    """Yield a run's graph and a scorer; temporary files are deleted afterwards.

    relation: which one, where a run predicts the edges of all relations
    """
    from vrgcn.pairs.ranking import EmbeddedPairs
    from vrgcn.pairs.values import EmbeddedValues
    from vrgcn.triples.ranking import EmbeddedTriples, OneDirection

    with embedded(options) as found:
        graph, decoder, triples = found.graph, found.model.decoder, found.graph.triples
        if triples is not None:
            assert relation is not None
            try:
                direction = triples.find(relation)
            except ValueError as error:
                raise InputError(f"--relation: {error}") from None
            of_all = EmbeddedTriples(decoder, found.embeddings)
            pairs = triples.pairs_of(direction)
            yield OpenedPairs(graph, pairs, OneDirection(of_all, triples, direction))
            return
        assert graph.pairs is not None
        kind = EmbeddedPairs if graph.pairs.target is None else EmbeddedValues
        scorer = kind(decoder, found.embeddings, graph.pairs.targets)
        yield OpenedPairs(graph, graph.pairs, scorer)


@contextmanager
def embedded(options: ExactOptions) -> Iterator[Embedded]:
    """Yield a run's graph, model and exact embeddings; temporary files are deleted afterwards."""
    from dataclasses import replace

    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.inference.predict import check_all_outputs
    from vrgcn.pairs.model import PairModel
    from vrgcn.runs.run import open_run

    use_threads(options.threads)
    run = open_run(options.run, find_device(options.device))
    with opened_sweeps(run, replace(options, nodes=None), ALL) as opened:
        graph, sweeps = opened.graph, opened.sweeps
        model = run.saved.model
        assert isinstance(model, PairModel)
        with shown("embedding", sweeps.work(None)) as advance:
            sweeps.on_chunk = advance
            embeddings = sweeps.outputs(None)
        check_all_outputs(sweeps, None, embeddings, "embedding")
        model.decoder.cpu()
        yield Embedded(graph, model, embeddings)
