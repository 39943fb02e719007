"""The row `tune`: a whole search under a time limit, as `vrgcn tune --time-limit` makes it.

The average is the search's answer. What lies in the folder of the search is scored too, after the
search has ended: its best single model, its best network and its best baseline, each by its
validation score.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.league.real_graphs import Entry
from vrgcn import tune
from vrgcn.inference import MODEL
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model
from vrgcn.runs.folder import BASELINES, TRIAL, TRIALS
from vrgcn.runs.settings import USUAL_TRAIN
from vrgcn.training.clock import Clock
from vrgcn.tuning.study import Tried


@contextmanager
def processor_time() -> Iterator[None]:
    """Time limits count processor seconds inside this context: one thread that has a core of its
    own gets as many seconds, and other processes of a busy machine take none of them."""
    usual = Clock.now
    Clock.now = staticmethod(time.process_time)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Clock.now = staticmethod(usual)  # type: ignore[method-assign]


def run_search(entry: Entry, limit: str | None, trials: int | None = None) -> dict[str, Any]:
    """Search on a graph with one thread; return the scores of the average and of what it is made
    from.

    limit: processor time of all of it, such as "3m"; trials: networks at most
    """
    config = replace(USUAL_TRAIN, metric=entry.asked, threads=1)
    with tempfile.TemporaryDirectory() as home, processor_time():
        folder = Path(home)
        found = tune(
            entry.graph,
            config=config,
            time_limit=limit,
            trials=trials,
            folder=folder,
            on_note=lambda _: None,
        )
        average = found.average_result
        assert found.average is not None
        assert average is not None
        members = found.average.members
        return {
            "val": average.val,
            "test": average.test,
            "limit": limit,
            "single": {
                "name": found.best.name,
                "val": found.result.val,
                "test": found.result.test,
            },
            "network": _best(found.trials, entry, folder),
            "baseline": _best(found.baselines, entry, folder),
            "trials": len(found.trials),
            "completed": sum(trial.state == "complete" for trial in found.trials),
            "baselines": len(found.baselines),
            "weights": dict(zip(members, found.average.weights, strict=True)),
        }


def _best(tried: Sequence[Tried], entry: Entry, folder: Path) -> dict[str, Any] | None:
    """Return name, settings and scores of the one with the best validation score; None if none has
    a model."""
    best: Tried | None = None
    for each in tried:
        if each.val is None or each.state != "complete":
            continue
        if best is None or best.val is None or entry.metric.better(each.val, best.val):
            best = each
    if best is None:
        return None
    place = folder / TRIALS / f"{TRIAL}{best.number:03d}"
    if best.baseline is not None:
        place = folder / BASELINES / best.baseline
    outputs = predict(load_model(place / MODEL), entry.graph)
    return {
        "name": best.name,
        "val": best.val,
        "test": entry.scored(outputs, "test"),
        "settings": best.values,
    }
