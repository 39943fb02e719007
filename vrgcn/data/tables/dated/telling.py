"""Report what is dated, which relations rows have to facts, and how many edges a row has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vrgcn.data.tables.dated.sight import Sight
from vrgcn.data.tables.dated.times import Times, day
from vrgcn.data.tables.read_tables import ReadKind, ReadRelation
from vrgcn.data.tables.sources import OpenedTables
from vrgcn.graph.relations import relation_name
from vrgcn.graph.validation import SPLITS


def told_of_times(
    source: OpenedTables,
    kinds: Sequence[ReadKind],
    relations: Sequence[ReadRelation],
    sight: Sight,
) -> Iterator[str]:
    """Yield the lines of a summary that are about time."""
    times = source.times
    assert times is not None
    names = [*times.values, *(relation_name(each.triple) for each in sight.relations)]
    width = max(map(len, names))
    yield f"{'dated':<{width}} {'rows':>12} {'first':>16} {'last':>16}   column"
    for kind, values in times.values.items():
        known = values[~np.isnan(values)]
        ends = [day(end) for end in (known.min(), known.max())] if len(known) else ["", ""]
        later = int((values > times.until).sum())
        learned = f"; {later:,} later than the last training row" if later else ""
        yield (
            f"{kind:<{width}} {len(values):>12,} {ends[0]:>16} {ends[1]:>16}   "
            f"{times.columns[kind]!r}{learned}"
        )
    always = [_told_of_kind(kind) for kind in kinds if kind.source.name not in times.values]
    yield f"always known: {', '.join(always) or 'nothing'}"
    yield from _told_of_split(times)
    yield ""
    rows = len(times.values[times.rows.kind])
    yield f"{'a row sees':<{width}} {'edges':>12} {'of a row':>16} {'rows without':>16}"
    without = {title: sight.without[p.name] for p in sight.dated.paths for title in p.last}
    for each in sight.relations:
        name, edges = relation_name(each.triple), each.adjacency.entries
        yield f"{name:<{width}} {edges:>12,} {edges / rows:>16.2f} {without[name]:>16,}"
    yield "each row sees facts up to its own time, and facts of its very moment too"
    blind = {kind for kind in times.values if kind not in times.rows.kinds}
    blind -= {each.triple[0] for each in sight.relations}
    for kind in sorted(blind):
        yield f"no row sees {kind!r} itself: no key leads to it from {_listed(times.rows.entities)}"


def _told_of_kind(kind: ReadKind) -> str:
    """The name of a kind that was always known, and its columns that hold dates all the same."""
    dates = [each.column for each in kind.source.encoders if each.kind == "date"]
    return f"{kind.source.name} (with dates: {', '.join(dates)})" if dates else kind.source.name


def _told_of_split(times: Times) -> Iterator[str]:
    at = times.values[times.rows.kind]
    parts = []
    for code, name in enumerate(SPLITS):
        own = at[times.split == code]
        if len(own):
            parts.append(f"{name} {day(own.min())} to {day(own.max())}")
    if parts:
        yield f"{times.rows.kind}: {', '.join(parts)}"


def _listed(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names))
