"""A run that predicts edges, its graph, and the exact embeddings of all nodes, for `predict
--pairs`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vrgcn.cli.exact_run import ALL, ExactOptions, opened_sweeps, shown

if TYPE_CHECKING:
    from vrgcn.runs.embedded import Embedded


@contextmanager
def embedded(options: ExactOptions) -> Iterator[Embedded]:
    """Yield a run's graph, decoder and exact embeddings; temporary files are deleted afterwards."""
    from dataclasses import replace

    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.pairs.model import PairModel
    from vrgcn.runs.embedded import embed_run
    from vrgcn.runs.run import open_run

    use_threads(options.threads)
    run = open_run(options.run, find_device(options.device))
    with opened_sweeps(run, replace(options, nodes=None), ALL) as opened:
        model = run.saved.model
        assert isinstance(model, PairModel)
        with shown("embedding", opened.sweeps.work(None)) as advance:
            found = embed_run(model, opened.graph, opened.sweeps, advance)
        yield found
