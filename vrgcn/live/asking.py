"""Questions to a live model: rows with a time of their own, which nobody has to store.

A question becomes a node that sees the facts its entity had by its time, found by the code that
made the edges of the imported rows. It is predicted as a change would be, and leaves no trace. A
fact that is added needs its time, and no edge may lead back in time: so new facts change no answer
about an earlier time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.data.asked_rows import AskedRows, entity_columns, read_asked
from vrgcn.data.frames import ColumnTable, column_array
from vrgcn.files.mistakes import InputError
from vrgcn.graph.dated import Int64s, Lookback, Pairs
from vrgcn.graph.names import Names
from vrgcn.graph.new_rows import seen_by
from vrgcn.inference.predictions import Predictions
from vrgcn.live.changes import RefusedError, node_rows
from vrgcn.live.resolving import Resolved
from vrgcn.live.slots import FullError
from vrgcn.live.world import Recipes, World

if TYPE_CHECKING:
    from vrgcn.live.live import Live

_AT_ONCE = 512  # questions: a kind has room for twice as many


def ask(live: Live, rows: Any) -> Predictions:
    """See `Live.ask`."""
    saved = live.saved
    if saved.whole is not None:
        raise InputError(f"ask: predictions that are {saved.whole.words} need stored rows")
    with live._turns:
        asked = read_questions(live._world, live._recipes, rows)
        try:
            outputs = answers(live, live._world, asked)
        except FullError:
            live._fold()
            outputs = answers(live, live._world, read_questions(live._world, live._recipes, rows))
    names = Names(pa.array(np.arange(len(asked))))
    outputs = saved.row_outputs(outputs)
    every = torch.arange(len(asked))
    return Predictions(every, outputs, names, live.classes, saved.task, saved.calibration)


def read_questions(world: World, recipes: Recipes, rows: Any) -> AskedRows:
    """The questions of some rows, entities by their slots.

    rows: dicts or a DataFrame, with the columns of the imported rows; the kind of an entity and
        `at` stand for its column and that of the time
    """
    graph, given = world.graph, node_rows(rows, "ask")
    if graph.dated is None:
        raise InputError("ask: the graph has no rows with a time of their own: see predict")
    names = dict(entity_columns(graph, recipes).values())
    names["at"] = graph.dated.times[graph.dated.rows]
    renamed = [{names.get(key, key): value for key, value in row.items()} for row in given]
    columns = dict.fromkeys(key for row in renamed for key in row)
    arrays = {key: _array([row.get(key) for row in renamed]) for key in columns}
    if not arrays:
        raise RefusedError("ask: there are no rows", "rows")
    table = ColumnTable("rows", arrays, range(len(given)))

    def slots(kind: str, ids: pa.Array) -> Int64s:
        index = world.ids[kind]
        keys = (index.index.key(one) for one in ids.to_pylist())
        found = (None if key is None else index.slot(key) for key in keys)
        return np.array([-1 if slot is None else slot for slot in found], np.int64)

    return read_asked(table, graph, recipes, slots)


def answers(live: Live, world: World, asked: AskedRows) -> Tensor:
    """(questions, width) outputs of the model."""
    dated = world.graph.dated
    assert dated is not None
    lookback = _lookback(world, asked)
    parts = []
    for start in range(0, len(asked), _AT_ONCE):
        part = asked.part(start, _AT_ONCE)
        width = world.graph.kinds.widths.get(dated.rows, 0)
        features, edges = seen_by(dated, width, part.rows, part.own, lookback)
        slots = [world.slots.free(dated.rows, number) for number in range(len(part))]
        changes = Resolved(
            added={(dated.rows, f"?{number}"): slot for number, slot in enumerate(slots)},
            features=dict(zip(slots, features.astype(np.float64), strict=True)),
            edits={name: _edits(slots, pairs) for name, pairs in edges.items()},
            taken={dated.rows: len(slots)},
        )
        parts.append(live._supposed(changes, torch.tensor(slots)))
    return torch.cat(parts)


def _edits(slots: Sequence[int], pairs: Pairs) -> dict[tuple[int, int], float | None]:
    places, facts = pairs
    return {
        (slots[place], fact): 1.0
        for place, fact in zip(places.tolist(), facts.tolist(), strict=True)
    }


def _lookback(world: World, asked: AskedRows) -> Lookback:
    """Over the facts of the entities that are asked about, and of others that these facts name."""
    dated, moments = world.graph.dated, world.state.moments
    assert dated is not None
    assert moments is not None
    near: dict[str, Int64s] = {}

    def add(kind: str, slots: Int64s) -> None:
        near[kind] = np.union1d(near.get(kind, slots[:0]), slots[slots >= 0])

    for path in dated.paths:
        add(world.relations[path.entity].source, asked.rows.entities[path.entity])
    for one, other in dict.fromkeys(pair for path in dated.paths for pair in path.by):
        _, facts = _out(world, one, near)
        into = world.relations[other].edges.into.rows.rows(torch.from_numpy(np.unique(facts)))
        add(world.relations[other].source, into.indices.numpy())

    return Lookback(lambda relation: _out(world, relation, near), moments.numpy())


def _out(world: World, relation: str, near: Mapping[str, Int64s]) -> Pairs:
    """The edges of a relation that leave some nodes, by ascending targets."""
    part = world.relations[relation]
    own = near.get(part.source, np.empty(0, np.int64)).astype(np.int64)
    rows = part.edges.out.rows.rows(torch.from_numpy(own))
    sources, targets = own[rows.row_of_entry.numpy()], rows.indices.numpy()
    order = np.lexsort((sources, targets))
    return sources[order], targets[order]


def edges_in_time(world: World, changes: Resolved) -> Iterator[str]:
    """Yield what is wrong with new edges that lead back in time."""
    moments = world.state.moments
    if moments is None:
        return
    for name, edits in changes.edits.items():
        for (target, source), weight in edits.items():
            times = [changes.times.get(slot, float(moments[slot])) for slot in (source, target)]
            if weight is not None and times[0] > times[1] and times[0] > -np.inf:
                yield (
                    f"add_edges: an edge of {name} leads back in time, from what became known "
                    f"{_day(times[0])} to what became known {_day(times[1])}: leave it out"
                )


def _day(moment: float) -> str:
    if not np.isfinite(moment):
        return "never" if moment > 0 else "always"
    return f"on {np.datetime64(int(moment), 's')}"


def _array(values: list[Any]) -> Any:
    array = column_array(values)
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array
