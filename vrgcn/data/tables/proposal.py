"""What will be made of each feature column: as the user says, or else as its first rows look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vrgcn.data.tables.encoders import (
    BooleanColumn,
    CategoriesColumn,
    CategoryColumn,
    DateColumn,
    Encoder,
    NumberColumn,
    TextColumn,
    VectorColumn,
)
from vrgcn.data.tables.encoders.filling import FilledColumn
from vrgcn.data.tables.encoders.texts import WIDTH, check_installed
from vrgcn.data.tables.looks import Look, dates_look, lists_look, look, numbers_look
from vrgcn.data.tables.overrides import Fill, Override, matches, parse_fills
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.values import (
    cell_bytes,
    is_list,
    is_number,
    is_readable,
    is_text,
    readable_as,
)
from vrgcn.data.tables.wording import counted

SAMPLE = 10_000  # rows; fewer where their cells are long
SAMPLE_COLUMN = 32 << 20  # bytes of a column, of which several copies are made
SAMPLE_TABLE = 1 << 30
# Kind of a column that no number fills -> what becomes of its empty cells.
_WITHOUT_FILL = {
    "category": "holds categories: its empty cells become the category (missing)",
    "categories": "holds lists of categories: its empty cells become the category (missing)",
    "text": "holds texts: its empty cells are texts without words, all 0",
    "drop": "is left out",
}
SHOWN = 12  # rows of the table of columns; of more, neighbours alike share one


@dataclass(frozen=True)
class Proposed:
    """encoder: None where a column is left out."""

    column: str
    look: Look
    encoder: Encoder | None

    @property
    def words(self) -> tuple[str, str, str]:
        """The column, what it looks like, and what it becomes."""
        gaps = f"; {self.look.missing:,} missing" if self.look.missing else ""
        becomes = self.encoder.plan() if self.encoder is not None else "left out"
        if self.encoder is None and self.look.words.startswith("names"):
            becomes += f"; to keep it: --column {self.column}=text"
        return self.column, f"{self.look.words}{gaps}", becomes


@dataclass(frozen=True)
class Proposal:
    """title: what it is about, for people."""

    title: str
    columns: list[Proposed]

    @property
    def encoders(self) -> list[Encoder]:
        return [each.encoder for each in self.columns if each.encoder is not None]

    @property
    def left_out(self) -> list[str]:
        return [each.column for each in self.columns if each.encoder is None]


def propose(table: Table, columns: Sequence[str], spec: ImportSpec) -> Proposal:
    """A proposal for each column; all columns of which the user must say more are told at once."""
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
            proposals.append(_proposed(column, sample[column], overrides[column], spec))
        except ValueError as error:
            doubts.append(f"{table.name}: column {column!r} {error}")
    doubts += _useless_fills(table, proposals, spec)
    if doubts:
        raise ValueError("\n".join(doubts))
    texts = [p.column for p in proposals if isinstance(p.encoder, TextColumn)]
    check_installed(texts)
    if spec.text_seed and not texts:
        raise ValueError(
            f"--text-seed {spec.text_seed}: {table.name} has no column that is read as text, so "
            "nothing is drawn; give --column COLUMN=text, or leave --text-seed out"
        )
    return Proposal(title, proposals)


def rows_of(proposals: Sequence[Proposed]) -> list[tuple[str, str, str]]:
    """The table of columns; of many, neighbours that become the same share a row."""
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
            kind = {"number": "numbers", "drop": "nothing of use"}.get(first.look.kind)
            looks = f"{counted(end - start, 'column')} of {kind or first.look.kind}"
            rows.append((names, looks, f"each {first.words[2]}"))
        else:
            rows += [proposal.words for proposal in proposals[start:end]]
        start = end
    return rows


def _alike(one: Proposed, other: Proposed) -> bool:
    same = (one.look.kind, one.look.missing > 0) == (other.look.kind, other.look.missing > 0)
    return same and one.words[2] == other.words[2]


def _sample(table: Table, columns: Sequence[str]) -> tuple[dict[str, pa.Array], bool]:
    """The first cells of each column, and whether there may be more of them.

    Columns of a type that nothing can be made of are not read: they have no cells here.
    """
    cells = {column: pa.nulls(0, table.kind(column)) for column in columns}
    readable = [column for column in columns if is_readable(table.kind(column))]
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
    """What the user says about a column; of several, the last."""
    found = [rule for rule in map(Override.parse, spec.column) if matches(column, rule.pattern)]
    return found[-1] if found else None


def _proposed(
    column: str, cells: pa.Array, override: Override | None, spec: ImportSpec
) -> Proposed:
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    seen = look(column, cells, spec.decimal, spec.max_categories)
    if override is not None and override.kind != "drop":
        seen = _as_told(cells, seen, override, spec)
    elif override is not None:
        seen = Look("drop", seen.words, seen.missing)
    elif seen.kind == "drop" and spec.features and is_text(cells.type):
        # Asked for by name: it is not left out, whatever it looks like.
        seen = Look("text", seen.words, seen.missing)
    if seen.doubt:
        raise ValueError(seen.doubt)
    return Proposed(column, seen, _encoder(column, seen, override, spec))


def _as_told(cells: pa.Array, seen: Look, override: Override, spec: ImportSpec) -> Look:
    """The look of cells that are of the kind that the user says."""
    kind, option = override.kind, override.option
    if is_list(cells.type) and kind not in ("categories", "numbers"):
        raise ValueError(f"holds lists, which are categories or numbers and no {kind}")
    if not readable_as(kind, cells.type):
        raise ValueError(f"holds {cells.type}, which cannot be read as {kind}")
    if seen.doubt and seen.kind == kind and not option:
        return seen
    if kind == "number":
        decimal = option if option in (",", ".") else seen.options.get("decimal", spec.decimal)
        return numbers_look(cells, decimal)
    if kind == "date":
        if is_number(cells.type):
            raise ValueError(f"holds {cells.type}; dates are texts or timestamps")
        return dates_look(cells, option or seen.options.get("format"))
    if kind in ("numbers", "categories"):
        delimiter = option or seen.options.get("delimiter")
        if delimiter is None and not is_list(cells.type):
            raise ValueError(
                f"holds texts: say what divides them, as in --column COLUMN={kind}:';'"
            )
        found = lists_look(cells, delimiter, spec.decimal)
        if kind == "numbers" and found.kind != "numbers":
            raise ValueError(f"looks like {found.words}, not like lists of as many numbers each")
        return Look(kind, found.words, found.missing, "", found.options)
    return Look(kind, seen.words, seen.missing, "", seen.options)


def _encoder(
    column: str, seen: Look, override: Override | None, spec: ImportSpec
) -> Encoder | None:
    options = seen.options
    option = override.option if override is not None else ""
    fill = _fill(column, seen.missing > 0 or option == "lenient", spec)
    decimal = options.get("decimal", spec.decimal)
    made: Encoder | None = None
    match seen.kind:
        case "number":
            made = NumberColumn(
                column, fill, decimal, option == "lenient", options.get("offset", 0)
            )
        case "boolean":
            made = BooleanColumn(column, fill)
        case "category":
            made = CategoryColumn(column, int(option or spec.max_categories))
        case "categories":
            made = CategoriesColumn(column, spec.max_categories, options["delimiter"])
        case "numbers":
            made = VectorColumn(column, options["width"], fill, options["delimiter"], spec.decimal)
        case "date":
            made = DateColumn(column, fill, options["format"], options["origin"], options["hours"])
        case "text":
            made = TextColumn(column, int(option or WIDTH), spec.text_seed)
    return made


def _useless_fills(table: Table, proposals: Sequence[Proposed], spec: ImportSpec) -> Iterator[str]:
    """Errors about a `--fill COLUMN=...` that names no column whose gaps a number can fill."""
    for pattern, _ in parse_fills(spec.fill):
        named = [p for p in proposals if pattern is not None and matches(p.column, pattern)]
        if not named or any(isinstance(p.encoder, FilledColumn) for p in named):
            continue
        kind = named[0].encoder.kind if named[0].encoder is not None else "drop"
        yield (
            f"{table.name}: column {named[0].column!r}: --fill is for numbers, true and false, "
            f"lists of numbers and dates, and this column {_WITHOUT_FILL[kind]}; leave this --fill "
            f"out, or if the column holds numbers, give --column {named[0].column}=number"
        )


def _fill(column: str, gaps: bool, spec: ImportSpec) -> Fill:
    """As the user says of this column, or else of all; or else by what the sample misses."""
    fills = parse_fills(spec.fill)
    named = [fill for pattern, fill in fills if pattern is not None and matches(column, pattern)]
    general = [fill for pattern, fill in fills if pattern is None]
    chosen = (general[-1:] + named[-1:])[-1:]
    return chosen[0] if chosen else Fill("mean", mark=True) if gaps else Fill()
