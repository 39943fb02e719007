"""The service of a run: one writer, many readers, and a journal between them.

A change is computed first, written to the journal second, and seen by readers last. What a client
was told is on the disk, and what is on the disk was not refused.

    FOLDER/journal.head      what was acknowledged
    FOLDER/journal-17.log    changes since the newest state
    FOLDER/state-17/         graph and tables with all changes up to the 17th (`Live.save`)

A start checks all of it and refuses if anything that was acknowledged is missing or damaged. Only
then it removes what the head does not name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import FULL
from vrgcn.inference.predictions import Predictions
from vrgcn.live.changes import RefusedError
from vrgcn.live.live import Live
from vrgcn.live.reading import UnknownNodeError
from vrgcn.live.saving import fingerprint
from vrgcn.pairs.model import PairModel
from vrgcn.runs.folder import locked
from vrgcn.runs.run import load_run
from vrgcn.serve.answers import ProblemError
from vrgcn.serve.journal import Journal, KeyReusedError
from vrgcn.serve.metrics import Metrics
from vrgcn.serve.states import (
    open_state,
    refuse_foreign_states,
    remove_superseded,
    save_state,
)

PAIRS = "pairs"
INFLUENTIAL = 20  # neighbours that are left out one by one to find those that matter
_FULL_SECONDS = 30  # until the disk may have room again
_KEPT = 100_000  # nodes whose influential neighbours are kept


class Service:
    """A live model with its journal.

    checkpoint_every: changes after which the journal is folded; 0: never
    """

    def __init__(self, live: Live, journal: Journal, checkpoint_every: int) -> None:
        self.live = live
        self.journal = journal
        self.checkpoint_every = checkpoint_every
        self.number = journal.number
        self.unfolded = len(journal)
        self.metrics = _metrics(self)
        self.task = PAIRS if isinstance(live.saved.model, PairModel) else live.saved.task
        self._effects: dict[tuple[str, str | None], tuple[float, list[dict[str, Any]]]] = {}

    # Reading.

    def read(
        self, node: str, kind: str | None, neighbours: int, *, kept: bool = False
    ) -> dict[str, Any] | None:
        """Return the prediction of a node, exact for the graph after the newest change; of a kind
        without predictions only its neighbours.

        neighbours: how many of the most influential ones are named
        kept: True to return None if anything has to be computed
        """
        if kept and self.live.saved.whole is not None:
            return None
        with refusals():
            shown = self._named(node, kind)
            when = self.live.computed(node, kind)
            named: list[dict[str, Any]] = []
            if not self.live.predicts(kind):
                if kept:
                    return None
                named = self._without_effects(node, kind, neighbours)
            elif self.task != PAIRS:
                if neighbours:
                    effects = self._kept_effects(node, kind, when, compute=not kept)
                    if effects is None:
                        return None
                    named = effects[:neighbours]
                shown |= _shown(self.live.predict(node, kind))[0]
        return {
            **shown,
            "computed": datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds"),
            "change": self.number,
            "neighbours": named,
        }

    def _kept_effects(
        self, node: str, kind: str | None, when: float, *, compute: bool
    ) -> list[dict[str, Any]] | None:
        """Return the influential neighbours of a node. They are kept as long as no change affects
        the node: whatever they depend on, its prediction depends on too."""
        kept = self._effects.get((node, kind))
        if kept is not None and kept[0] == when:
            return kept[1]
        if not compute:
            return None
        effects = [
            {"id": each.id, "kind": each.kind, "effect": -each.change}
            for each in self.live.influence(node, kind, INFLUENTIAL).effects
        ]
        if len(self._effects) >= _KEPT:
            self._effects.clear()
        self._effects[node, kind] = when, effects
        return effects

    def _without_effects(self, node: str, kind: str | None, most: int) -> list[dict[str, Any]]:
        neighbours = self.live.neighbours(node, kind, most)[:most]
        return [{"id": each["id"], "kind": each["kind"], "effect": None} for each in neighbours]

    def _named(self, node: Any, kind: str | None) -> dict[str, Any]:
        """The node as answers name it: its id as the graph has it, and the kind that was asked
        for."""
        named = {"id": self.live.id(node, kind)}
        return named if kind is None else {**named, "kind": kind}

    def explain(self, node: str, kind: str | None) -> dict[str, Any]:
        """Return what leaving out each edge, neighbour and column would change."""
        with refusals():
            return self.live.explain(node, kind).to_dict()

    def recommend(self, node: str, kind: str | None, count: int) -> dict[str, Any]:
        """Return the best new partners of a node."""
        with refusals():
            partners = self.live.recommend(node, count, kind)
            named = self._named(node, self.live.source_kind)
        return {**named, "change": self.number, "recommended": partners}

    def what_if(
        self, changes: list[dict[str, Any]], ids: list[Any], kind: str | None
    ) -> dict[str, Any]:
        """Return the predictions of some nodes before and after changes, which are not made; None
        before for nodes that the changes would add."""
        with refusals(), self.live.unchanged():
            after = _shown(self.live.what_if(changes, ids, kind))
            nodes = []
            for node, new in zip(ids, after, strict=True):
                if self.live.has(node, kind):
                    named = self._named(node, kind)
                    before = _shown(self.live.predict(node, kind))[0]
                else:
                    named, before = {"id": node}, None
                nodes.append({**named, "before": before, "after": new})
            return {"change": self.number, "nodes": nodes}

    def ask(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the predictions of rows with a time of their own, in their order."""
        with refusals():
            return {"change": self.number, "rows": _shown(self.live.ask(rows))}

    def about(self) -> dict[str, Any]:
        """Describe the graph and the task."""
        about = {**self.live.about(), "task": self.task, "change": self.number}
        if self.task == PAIRS:
            about["source_kind"] = self.live.source_kind
        return about

    # Changing.

    def change(
        self,
        changes: list[dict[str, Any]],
        key: str | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Apply changes together; return once they are in the journal. One caller at a time.

        key: of the client, so that a change that comes again is applied once
        seconds: to wait at most for a computation that has begun
        """
        body = json.dumps(changes, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        with refusals():
            seen = None if key is None else self.journal.seen(key, body)
            if seen is not None:
                return {"change": seen, "repeated": True}
            done = self.live.apply(changes, partial(self._record, body, key), seconds)
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
        if not self.unfolded:
            return
        self.journal.fold(save_state(self.journal, self.live))
        self.unfolded = 0
        self.metrics.count("vrgcn_folds_total")
        remove_superseded(self.journal)


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
    with locked(folder), closing(Journal(folder, fingerprint(opened.saved))) as journal:
        refuse_foreign_states(journal)
        if journal.head.state is None:
            live = opened.live(memory=memory)
        else:
            tables = None if memory == "ram" else folder / "tables"
            live = open_state(journal, opened.saved, tables)
        for number, body in journal:
            _replay(live, journal, number, body)
        remove_superseded(journal)
        yield Service(live, journal, checkpoint_every)


def _replay(live: Live, journal: Journal, number: int, body: str) -> None:
    try:
        live.apply(json.loads(body))
    except InputError as error:
        raise InputError(
            f"{journal.path}: change {number} cannot be applied again: {error}. Serve it with the "
            "version of vrgcn that wrote it, or give another state folder"
        ) from error


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors that the client can act on into answers."""
    try:
        yield
    except UnknownNodeError as error:
        raise ProblemError(404, str(error), *(error.path or ("id",))) from None
    except KeyReusedError as error:
        raise ProblemError(409, str(error), "Idempotency-Key") from None
    except TimeoutError as error:
        raise ProblemError(503, str(error), retry_after=2) from None
    except RefusedError as error:
        raise ProblemError(422, str(error), *error.path) from None
    except InputError as error:
        raise ProblemError(422, str(error)) from None
    except OSError as error:
        if error.errno not in FULL:
            raise
        text = "the disk of the service is full; nothing was changed"
        raise ProblemError(507, text, retry_after=_FULL_SECONDS) from error


def _shown(predictions: Predictions) -> list[dict[str, Any]]:
    """Predictions as answers show them."""
    if predictions.classes is None:
        return [{"value": value} for value in predictions.outputs[:, 0].tolist()]
    shares = predictions.probabilities.tolist()
    rows = [dict(zip(predictions.classes, row, strict=True)) for row in shares]
    if predictions.multilabel:
        return [
            {"labels": [name for name, share in row.items() if share > 0.5], "probabilities": row}
            for row in rows
        ]
    assert predictions.labels is not None
    return [
        {"label": label, "probabilities": row}
        for label, row in zip(predictions.labels, rows, strict=True)
    ]


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
