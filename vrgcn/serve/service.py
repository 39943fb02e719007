"""The service of a run: one writer, many readers, and a journal between them.

A change is computed first, written to the journal second, and seen by readers last. What a client
was told is on the disk, and what is on the disk was not refused.

    FOLDER/journal.sqlite    changes since the newest state
    FOLDER/state-17/         graph and tables with all changes up to the 17th (`Live.save`)
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from vrgcn.files.writing import remove_partial
from vrgcn.live.live import Live, UnknownNodeError
from vrgcn.live.saving import fingerprint
from vrgcn.runs.lock import locked
from vrgcn.runs.run import load_run
from vrgcn.serve.answers import ProblemError
from vrgcn.serve.journal import Journal, KeyReusedError
from vrgcn.serve.metrics import Metrics

STATE = "state-"


class Service:
    """A live model with its journal.

    checkpoint_every: changes after which the journal is folded; 0: never
    """

    def __init__(self, live: Live, journal: Journal, folder: Path, checkpoint_every: int) -> None:
        self.live = live
        self.journal = journal
        self.folder = folder
        self.checkpoint_every = checkpoint_every
        self.number = journal.last
        self.unfolded = len(journal)
        self.metrics = _metrics(self)

    # Reading.

    def read(self, node: str, kind: str | None, neighbours: int) -> dict[str, Any]:
        """Return the prediction of a node, exact for the graph after the newest change."""
        with refusals():
            when = self.live.computed(node, kind)
            shown = self._prediction(node, kind)
            others = self.live.neighbours(node, kind, neighbours) if neighbours else []
        return {
            **_named(node, kind),
            **shown,
            "computed": datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds"),
            "change": self.number,
            "neighbours": others,
        }

    def _prediction(self, node: str, kind: str | None) -> dict[str, Any]:
        found = self.live.predict(node, kind)
        if found.classes is None:
            return {"value": float(found.outputs[0, 0])}
        shares = found.probabilities[0].tolist()
        probabilities = dict(zip(found.classes, shares, strict=True))
        if found.multilabel:
            return {
                "labels": [name for name, share in probabilities.items() if share > 0.5],
                "probabilities": probabilities,
            }
        label = max(probabilities, key=probabilities.__getitem__)
        return {"label": label, "probabilities": probabilities}

    def about(self) -> dict[str, Any]:
        """Describe the graph and the task."""
        return {"nodes": self.live.num_nodes, "change": self.number}

    # Changing.

    def change(self, changes: list[dict[str, Any]], key: str | None = None) -> dict[str, Any]:
        """Apply changes together; return once they are in the journal. One caller at a time.

        key: of the client, so that a change that comes again is applied once
        """
        body = json.dumps(changes, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        with refusals():
            seen = None if key is None else self.journal.seen(key, body)
            if seen is not None:
                return {"change": seen, "repeated": True}
            done = self.live.apply(changes, record=partial(self._record, body, key))
        rows = sum(done.rows)
        self.metrics.count("vrgcn_changes_total")
        self.metrics.count("vrgcn_rows_computed_total", rows)
        return {
            "change": self.number,
            "added": done.added,
            "rows": rows,
            "milliseconds": round(1000 * done.seconds, 3),
        }

    def _record(self, body: str, key: str | None) -> None:
        self.number = self.journal.append(body, key)
        self.unfolded += 1

    @property
    def due(self) -> bool:
        """True if the journal has enough changes to be folded."""
        return 0 < self.checkpoint_every <= self.unfolded

    def fold(self) -> None:
        """Write the changed graph and its tables, and empty the journal. One caller at a time."""
        name = f"{STATE}{self.number}"
        self.live.save(self.folder / name, note={"change": self.number})
        self.journal.fold(self.number, name)
        self.unfolded = 0
        self.metrics.count("vrgcn_folds_total")
        remove_states(self.folder, name)


@contextmanager
def opened_service(
    run: Path,
    folder: Path,
    *,
    checkpoint_every: int = 1000,
    memory: Literal["ram", "disk"] = "ram",
) -> Iterator[Service]:
    """Open a run with the changes of a state folder, which no other process may use meanwhile."""
    opened = load_run(run)
    with locked(folder):
        journal = Journal(folder, fingerprint(opened.saved))
        try:
            state = journal.folded.state
            remove_states(folder, state)
            if state is None:
                live = opened.live(memory=memory)
            else:
                tables = None if memory == "ram" else folder / "tables"
                live = Live.open(folder / state, opened.saved, directory=tables)
            for _, body in journal:
                live.apply(json.loads(body))
            yield Service(live, journal, folder, checkpoint_every)
        finally:
            journal.close()


def remove_states(folder: Path, kept: str | None) -> None:
    """Remove states other than the one that the journal names: folding was cut off before or after
    that."""
    remove_partial(folder)
    for found in folder.glob(f"{STATE}*"):
        if found.name != kept:
            shutil.rmtree(found)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors that the client can act on into answers."""
    try:
        yield
    except UnknownNodeError as error:
        raise ProblemError(404, str(error)) from None
    except KeyReusedError as error:
        raise ProblemError(409, str(error), "Idempotency-Key") from None
    except (ValueError, TypeError) as error:
        raise ProblemError(422, str(error)) from None


def _named(node: str, kind: str | None) -> dict[str, Any]:
    return {"id": node} if kind is None else {"id": node, "kind": kind}


def _metrics(service: Service) -> Metrics:
    metrics = Metrics()
    metrics.counter("vrgcn_requests_total", "Requests that were answered.")
    metrics.counter("vrgcn_changes_total", "Changes that were applied.")
    metrics.counter("vrgcn_rows_computed_total", "Rows that changes computed anew.")
    metrics.counter("vrgcn_folds_total", "Times that the journal was folded.")
    metrics.gauge("vrgcn_nodes", "Nodes of the graph.", lambda: service.live.num_nodes)
    metrics.gauge("vrgcn_change", "Number of the newest change.", lambda: service.number)
    metrics.gauge("vrgcn_journal", "Changes that are not folded.", lambda: service.unfolded)
    return metrics
