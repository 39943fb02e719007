"""Propose an encoder for each feature column: by the user's settings, or else by its first rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from vrgcn.data.tables.encoders import ENCODERS, encoders_of, find_encoder, recognise
from vrgcn.data.tables.encoders.encoder import Encoder, Look
from vrgcn.data.tables.encoders.sample import ColumnSample
from vrgcn.data.tables.overrides import DROP, Fill, Override, matches, parse_fills
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.values import cell_bytes, is_list
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted

SAMPLE = 10_000  # rows; fewer if their cells are long
SAMPLE_COLUMN = 32 << 20  # bytes of a column, which is copied several times
SAMPLE_TABLE = 1 << 30
SHOWN = 12  # rows shown in the table of columns; beyond that, similar neighbours share a row


@dataclass(frozen=True)
class Proposed:
    """The proposal for one column.

    encoder: None if the column is left out
    """

    column: str
    look: Look
    encoder: Encoder | None

    @property
    def words(self) -> tuple[str, str, str]:
        """Words for the name of the column, its look, and its features."""
        gaps = f"; {self.look.missing:,} missing" if self.look.missing else ""
        kept = "; ".join(filter(None, ["left out", self.look.advice]))
        becomes = self.encoder.plan() if self.encoder is not None else kept
        return self.column, f"{self.look.words}{gaps}", becomes

    @property
    def kind(self) -> str:
        return self.encoder.kind if self.encoder is not None else DROP

    @property
    def plural(self) -> str:
        """Words for the content of several such columns."""
        return (self.encoder.plural or self.kind) if self.encoder else "nothing of use"


@dataclass(frozen=True)
class Proposal:
    """The proposals for all feature columns of a table.

    title: the heading that is shown to the user
    notes: warnings about columns that could be read in two ways
    """

    title: str
    columns: list[Proposed]
    notes: Sequence[str] = ()

    @property
    def encoders(self) -> list[Encoder]:
        return [each.encoder for each in self.columns if each.encoder is not None]

    @property
    def left_out(self) -> list[str]:
        return [each.column for each in self.columns if each.encoder is None]


def propose(
    table: Table,
    columns: Sequence[str],
    spec: ImportSpec,
    edges: bool = False,
    keys: Container[str] = (),
    growing: bool = False,
) -> Proposal:
    """Propose an encoder for each column; raise one error for all columns that need a setting.

    edges: the columns are those of edges, whose means become features; unless the user gives their
        kind, columns of which a mean says little are left out
    keys: columns that name rows, of this table or of another
    growing: later rows may miss numbers where these rows miss none; the mean of these fills them
    """
    title = f"feature columns of {table.name}"
    if not columns:
        return Proposal(title, [])
    overrides = {column: _override(column, spec) for column in columns}
    sample, cut = _sample(table, columns)
    if cut:
        title += f", by its first {counted(max(map(len, sample.values())), 'row')}"
    proposals, doubts = [], []
    for column in columns:
        try:
            cells = sample[column]
            if pa.types.is_dictionary(cells.type):
                cells = cells.dictionary_decode()
            first = ColumnSample(column, cells, spec, edges, column in keys)
            proposals.append(_proposed(first, overrides[column], growing))
        except InputError as error:
            doubts.append(f"{table.name}: column {column!r} {error}")
    if edges:
        proposals = [p if overrides[p.column] else _of_edges(p) for p in proposals]
    doubts += _useless_fills(table, proposals, spec)
    if doubts:
        raise InputError("\n".join(doubts))
    used = [each.encoder.kind for each in proposals if each.encoder is not None]
    for kind in dict.fromkeys((*ENCODERS, *used)):
        own = [proposal.column for proposal in proposals if proposal.kind == kind]
        find_encoder(kind).check(table.name, own, spec)
    return Proposal(title, proposals, _read_as_categories(table, proposals, sample))


def _read_as_categories(
    table: Table, proposals: Sequence[Proposed], sample: dict[str, pa.Array]
) -> list[str]:
    """Return warnings about columns that would be numbers, but for some texts."""
    problems = Problems(table)
    for each in proposals:
        number = setting("column", f"{each.column}=number:lenient")
        advice = f"all its cells count as categories; for numbers give {number}"
        rows, what = np.array(each.look.odd, np.int64), "holds texts among codes of digits"
        problems.add(what, each.column, rows, sample[each.column].take(pa.array(rows)), advice)
    return problems.lines()


def _of_edges(proposed: Proposed) -> Proposed:
    if proposed.encoder is None or proposed.encoder.averaged:
        return proposed
    kind = f"{proposed.column}={proposed.encoder.kind}"
    advice = f"{setting('column', kind)} keeps it"
    return replace(proposed, encoder=None, look=replace(proposed.look, advice=advice))


def rows_of(proposals: Sequence[Proposed]) -> list[tuple[str, str, str]]:
    """Return the rows of the table of columns. If there are many columns, neighbours with the same
    features share a row."""
    if len(proposals) <= SHOWN:
        return [proposal.words for proposal in proposals]
    rows: list[tuple[str, str, str]] = []
    start = 0
    while start < len(proposals):
        end = start + 1
        while end < len(proposals) and _alike(proposals[start], proposals[end]):
            end += 1
        first, last = proposals[start], proposals[end - 1]
        if end - start > 2:
            names = f"{first.column} ... {last.column}"
            looks = f"{counted(end - start, 'column')} of {first.plural}"
            rows.append((names, looks, f"each {first.words[2]}"))
        else:
            rows += [proposal.words for proposal in proposals[start:end]]
        start = end
    return rows


def _alike(one: Proposed, other: Proposed) -> bool:
    same = (one.kind, one.look.missing > 0) == (other.kind, other.look.missing > 0)
    return same and one.words[2] == other.words[2]


def _sample(table: Table, columns: Sequence[str]) -> tuple[dict[str, pa.Array], bool]:
    """Return the first cells of each column, and True if the table may have more.

    Columns of a type that no encoder reads are not read; they get an empty array.
    """
    cells = {column: pa.nulls(0, table.kind(column)) for column in columns}
    readable = [column for column in columns if encoders_of(table.kind(column))]
    parts: list[pa.RecordBatch] = []
    cut = False
    sizes = np.zeros(len(readable), np.int64)
    for _, batch in table.batches(readable) if readable else ():
        parts.append(batch)
        sizes += [int(cell_bytes(column).sum()) for column in batch.columns]
        cut = sum(map(len, parts)) >= SAMPLE
        cut |= bool(sizes.max() >= SAMPLE_COLUMN or sizes.sum() >= SAMPLE_TABLE)
        if cut:
            break
    if parts:
        whole = pa.Table.from_batches(parts)[:SAMPLE]
        cells |= {name: pa.concat_arrays(whole.column(name).chunks) for name in readable}
    return cells, cut


def _override(column: str, spec: ImportSpec) -> Override | None:
    """Return the user's `--column` setting for a column, the last if several match."""
    found = [rule for rule in map(Override.parse, spec.column) if matches(column, rule.pattern)]
    return found[-1] if found else None


def _proposed(sample: ColumnSample, override: Override | None, growing: bool) -> Proposed:
    column, cells, spec = sample.column, sample.cells, sample.spec
    encoder, look = recognise(sample)
    if override is not None and override.kind == DROP:
        return Proposed(column, replace(look, doubt=""), None)
    if override is not None:
        seen, encoder = encoder, find_encoder(override.kind)
        _check_reads(encoder, cells.type)
        if not (look.doubt and seen is encoder and not override.option):
            look = encoder.told(sample, override.option, look)
    elif encoder is None and spec.features:
        # The user asks for this column by name, so it is kept if an encoder can keep it.
        kept = (each for each in encoders_of(cells.type) if each.keeps(cells.type))
        encoder = next(kept, None)
        look = look if encoder is None else encoder.told(sample, "", look)
    if look.doubt:
        raise InputError(look.doubt)
    if encoder is None:
        return Proposed(column, look, None)
    fill = _fill(column, look.missing > 0 or look.gaps, spec, growing)
    return Proposed(column, look, encoder.make(column, fill, look.options))


def _check_reads(encoder: type[Encoder], kind: pa.DataType) -> None:
    """Refuse an encoder that cannot read cells of this type."""
    if encoder.reads(kind):
        return
    lists = sorted(name for name in ENCODERS if find_encoder(name).reads(pa.list_(pa.string())))
    if is_list(kind) and encoder.kind not in lists:
        raise InputError(f"holds lists, which are {' or '.join(lists)} and no {encoder.kind}")
    raise InputError(f"holds {kind}, which cannot be read as {encoder.kind}")


def _useless_fills(table: Table, proposals: Sequence[Proposed], spec: ImportSpec) -> Iterator[str]:
    """Yield an error for each `--fill COLUMN=...` that matches no column whose gaps a number can
    fill."""
    for pattern, _ in parse_fills(spec.fill):
        named = [p for p in proposals if pattern is not None and matches(p.column, pattern)]
        if not named or any(p.encoder is not None and not p.encoder.unfilled for p in named):
            continue
        empty = named[0].encoder.unfilled if named[0].encoder is not None else "is left out"
        yield (
            f"{table.name}: column {named[0].column!r}: {setting('fill')} is for numbers, true and "
            f"false, lists of numbers and dates, and this column {empty}; leave this "
            f"{setting('fill')} out, or if the column holds numbers, give "
            f"{setting('column', f'{named[0].column}=number')}"
        )


def _fill(column: str, gaps: bool, spec: ImportSpec, growing: bool) -> Fill:
    """Return the user's fill for this column, or else for all; or else one that depends on
    `gaps`. growing: see `propose`"""
    fills = parse_fills(spec.fill)
    named = [fill for pattern, fill in fills if pattern is not None and matches(column, pattern)]
    general = [fill for pattern, fill in fills if pattern is None]
    chosen = (general[-1:] + named[-1:])[-1:]
    if chosen:
        return chosen[0]
    if gaps:
        return Fill("mean", mark=True)
    return Fill("mean", expected=False) if growing else Fill()
