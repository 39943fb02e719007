"""Read when the rows of dated tables became known, and what may be learned from.

Encoders learn categories, words, means and ranges from rows that were known by the time of the last
training row, and of the task's own table from training rows. Tables without dates were always
known: all of their rows are learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.columns import named_column
from vrgcn.data.tables.dated.settings import DatedColumn, TaskRows
from vrgcn.data.tables.encoders.dates import DateColumn, date_formats, parse_dates
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.ids import NodeIds, joined, tidied
from vrgcn.data.tables.kept import KeptReader
from vrgcn.data.tables.problems import Collected, Problems
from vrgcn.data.tables.proposal import SAMPLE
from vrgcn.data.tables.reading import Table, keys_of
from vrgcn.data.tables.schema import RelationFile
from vrgcn.data.tables.sources import RelationSource
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.splits import NO_SPLIT, NONE, split_codes
from vrgcn.data.tables.values import is_nothing, is_text, is_time, to_numbers, to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import counted
from vrgcn.graph.dated import ALWAYS, NEVER
from vrgcn.graph.until import Until

Float64s = NDArray[np.float64]
_ZONE = r"\d\d:\d\d.*(Z|[+-]\d\d:?\d\d)$"
_SECONDS = (1e8, 1e11)  # 1973 and the year 5138: numbers outside are hardly seconds since 1970


@dataclass
class Times:
    """When the rows of each dated table became known.

    rows: of the task
    values: (rows,) seconds since 1970 by kind, NaN where it is not known; of kinds that name rows
        of a dated one too
    columns: names of the columns of dates, by kind
    split: (rows of the task,) 0 train, 1 val, 2 test, -1 none
    given_split: whether `split` was made of times, and not read from a column
    until: time of the last training row; NEVER if everything was learned before
    """

    rows: TaskRows
    values: dict[str, Float64s] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    split: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    given_split: bool = False
    until: float = NEVER
    notes: list[str] = field(default_factory=list)

    def concerns(self, file: RelationFile) -> bool:
        """True if an end of a relation is of a dated kind."""
        return file.source in self.values or file.target in self.values

    def learned(self, kind: str, table: Table) -> Table:
        """The rows of a table that encoders may learn from."""
        if kind not in self.values or self.until == NEVER:
            return table
        own = kind in self.rows.kinds
        known = self.split == 0 if own else self.values[kind] <= self.until
        if not known.any():
            raise InputError(
                f"{table.name}: every row of {kind!r} became known after the last training row, on "
                f"{day(self.until)}: nothing can be learned from them; leave {kind!r} out of "
                f"{setting('nodes')}, or train on later rows"
            )
        return table if known.all() else KnownRows(table, known)

    def later_columns(self, kind: str, table: Table, encoders: Sequence[Encoder]) -> Iterator[str]:
        """Yield a warning for each column of dates that are later than the rows became known."""
        for encoder in encoders:
            if not isinstance(encoder, DateColumn) or kind not in self.values:
                continue
            column, cells = encoder.column, _first(table, encoder.column)
            known = self.values[kind][: len(cells)]
            late = int((parse_dates(cells, encoder.format)[0] > known).sum())
            if late:
                yield (
                    f"{table.name}: column {column!r} is later than {self.columns[kind]!r} in "
                    f"{late:,} of the first {counted(len(cells), 'row')}: it says what was not "
                    f"known yet; leave it out with {setting('drop', column)}, or date the rows by "
                    "it"
                )


class KnownRows:
    """Some rows of a table; see `Table`."""

    def __init__(self, table: Table, known: NDArray[np.bool_]) -> None:
        self._table, self._known = table, known
        self.name, self.columns = table.name, table.columns
        self.notes, self.header_doubt = table.notes, table.header_doubt
        self.keys = keys_of(table)

    def kind(self, column: str) -> pa.DataType:
        return self._table.kind(column)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        count = 0
        for start, batch in self._table.batches(columns):
            some = batch.filter(pa.array(self._known[start : start + len(batch)]))
            if len(some):
                yield count, some
            count += len(some)

    def where(self, rows: Sequence[int]) -> list[str]:
        places = np.flatnonzero(self._known)
        return self._table.where([int(places[row]) for row in rows])


class ReadingTimes:
    """Reads the times of all dated tables.

    tables: by kind
    ids: the column of ids of each kind with a table
    """

    def __init__(
        self,
        spec: ImportSpec,
        tables: Mapping[str, Table],
        ids: Mapping[str, str],
        on_rows: Callable[[str, int], None],
        found: Collected,
    ) -> None:
        assert spec.task_rows is not None
        self._spec, self._tables, self._ids, self._on_rows = spec, tables, ids, on_rows
        self._task, self._found = spec.task_rows, found
        self._times = Times(self._task)
        self._zones: dict[str, bool] = {}

    def read(self, relations: Sequence[RelationSource], split: str | None) -> Times:
        """relations: those of the import; split: column of the task's rows, if there is one"""
        times = self._times
        for kind, column in self._spec.dates.items():
            if kind != self._task.past and kind in self._tables:
                with self._found.step():
                    self._read(kind, column)
        self._found.raise_if_any()
        while any(self._inherit(relation) for relation in relations):
            pass  # kinds that name kinds that name dated ones
        self._check_facts()
        if self._task.past is not None:
            own = times.values[self._task.kind] + (self._task.known_after or 0)
            times.values[self._task.past] = own
            times.columns[self._task.past] = times.columns[self._task.kind]
        with self._found.step():
            self._split(split)
            self._check_repeats(relations)
        self._note_zones()
        return times

    def _read(self, kind: str, date: DatedColumn) -> None:
        name = "at" if kind == self._task.kind else "dated"
        table = self._tables[kind]
        reader = date_reader(table, date, name, kind if name == "dated" else "")
        column, parts = reader.column, []
        for start, batch in table.batches([column]):
            parts.append(reader.read(start, batch.column(column)))
            self._on_rows(table.name, start + len(batch))
        values = np.concatenate(parts)
        self._found.add(reader.problems)
        missing = np.flatnonzero(np.isnan(values))
        if kind == self._task.kind and not reader.problems.lines():
            problems = Problems(table)
            problems.add("is empty", column, missing, advice="every row needs its time")
            self._found.add(problems)
        elif len(missing):
            self._times.notes.append(
                f"{table.name}: column {column!r}: {counted(len(missing), 'row has', 'rows have')} "
                "no date: no row of the task sees them"
            )
        self._zones[kind] = has_zones(table, column)
        self._times.values[kind], self._times.columns[kind] = values, column

    def _inherit(self, relation: RelationSource) -> bool:
        """Give a kind without dates those of the rows that it names; return True if it did."""
        values, file = self._times.values, relation.file
        columns = {file.source: relation.columns.source, file.target: relation.columns.target}
        for own, other in zip(columns, reversed(columns), strict=True):
            named = own != other and other in values and own not in values
            if not named or self._spec.schema.kinds[own] != file.path:
                continue
            ids = NodeIds(self._texts(self._tables[other], self._ids[other]))
            places = ids.places(self._texts(self._tables[own], columns[other]))
            values[own] = np.where(places >= 0, values[other][places], np.nan)
            self._times.columns[own] = f"{self._times.columns[other]} of {other}"
            return True
        return False

    def _texts(self, table: Table, column: str) -> pa.Array:
        parts = [to_text(batch.column(column)) for _, batch in table.batches([column])]
        return tidied(joined(parts), self._spec.tidy_ids)

    def _check_facts(self) -> None:
        """Refuse rows that see nothing: no table is dated, and past targets are not used."""
        if self._task.past is not None or set(self._spec.dates) - {self._task.kind}:
            return
        raise InputError(
            f"{setting('rows')}: no table is dated, so that rows would see nothing of the past; "
            f"give {setting('dated', Placeholder('KIND.COLUMN'))}, the column that says when a row "
            f"became known, or {setting('known_after', '30d')} for targets of earlier rows"
        )

    def _split(self, column: str | None) -> None:
        """Find the split of the task's rows, and the time of the last training row."""
        times, task, spec = self._times, self._task, self._spec
        at, table = times.values[task.kind], self._tables[task.kind]
        if spec.train_until is not None:
            times.split, times.given_split = self._split_until(at), True
        elif column is not None:
            times.split = self._split_column(table, column)
        elif spec.like is not None:
            times.split = np.full(len(at), NONE)
        else:
            raise InputError(
                f"{table.name}: says of no row whether it is for training; give "
                f"{setting('train_until', Placeholder('DATE'))} and "
                f"{setting('val_until', Placeholder('DATE'))}, or a column `split`"
            )
        if spec.like is not None:  # everything was learned before
            return
        train = at[times.split == 0]
        if not len(train):
            first = f", and the first row is of {day(np.nanmin(at))}" if len(at) else ""
            raise InputError(f"{table.name}: no row is for training{first}")
        times.until = float(train.max())
        later = at[times.split > 0]
        if len(later) and later.min() < times.until:
            times.notes.append(
                f"{table.name}: training rows reach {day(times.until)}, and rows of validation and "
                f"test begin on {day(later.min())}: training sees facts that are later than those"
            )
        self._note_ends(at, times.split)

    def _split_until(self, at: Float64s) -> NDArray[np.int64]:
        """Rows are of a split if their target is known by its end, and their time is in it."""
        spec, window = self._spec, self._task.known_after or 0
        if spec.val_until is None:
            raise InputError(
                f"{setting('train_until', spec.train_until)}: give "
                f"{setting('val_until', Placeholder('DATE'))} too, the end of validation"
            )
        train, val = Until(str(spec.train_until)).end, Until(spec.val_until, "val_until").end
        if val <= train:
            raise InputError(
                f"{setting('val_until', spec.val_until)} must be later than "
                f"{setting('train_until', spec.train_until)}"
            )
        codes = np.where(at >= val, 2, NONE)
        codes[(at >= train) & (at + window < val)] = 1
        codes[at + window < train] = 0
        between = int((codes == NONE).sum())
        if between:
            self._times.notes.append(
                f"{counted(between, 'row is', 'rows are')} in no split: their target is known only "
                f"after the end of training or validation ({setting('known_after')})"
            )
        return codes

    def _split_column(self, table: Table, column: str) -> NDArray[np.int64]:
        codes, problems = [], Problems(table)
        for start, batch in table.batches([column]):
            text = to_text(batch.column(column))
            own, wrong = split_codes(text, self._spec.missing)
            problems.add(NO_SPLIT, column, start + wrong, text.take(pa.array(wrong)))
            codes.append(own)
        self._found.add(problems)
        return np.concatenate(codes)

    def _note_ends(self, at: Float64s, split: NDArray[np.int64]) -> None:
        """Note rows that are later than all facts, and targets that are known after them."""
        own = self._task.kinds
        facts = [values for kind, values in self._times.values.items() if kind not in own]
        if not facts:
            return
        last = max(float(np.nan_to_num(each, nan=ALWAYS).max(initial=ALWAYS)) for each in facts)
        if last == ALWAYS:
            return
        late = int((at > last).sum())
        if late:
            self._times.notes.append(
                f"{counted(late, 'row is', 'rows are')} later than the last fact of all, "
                f"{day(last)}: are facts missing?"
            )
        open_ = int(((at + (self._task.known_after or 0) > last) & (split >= 0)).sum()) - late
        if self._task.known_after is not None and open_ > 0:
            self._times.notes.append(
                f"{counted(open_, 'row has', 'rows have')} a target that is known only after the "
                f"last fact of all, {day(last)}: is the target complete?"
            )

    def _check_repeats(self, relations: Sequence[RelationSource]) -> None:
        """Refuse rows of the same entity and time in two splits; note others."""
        times, table = self._times, self._tables[self._task.kind]
        at = times.values[self._task.kind]
        key = np.unique(at, return_inverse=True)[1].astype(np.int64)
        named = []
        for relation in relations:
            if relation.file.source == self._task.kind:
                named.append(relation.columns.target)
                codes = self._texts(table, named[-1]).dictionary_encode().indices.to_numpy()
                key = np.unique(key * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(np.diff(key[order]) == 0)
        if not len(same):
            return
        first, again = order[same], order[same + 1]
        across = times.split[first] != times.split[again]
        columns = " and ".join(map(repr, [*named, times.columns[self._task.kind]]))
        if across.any():
            rows = table.where([int(first[across][0]), int(again[across][0])])
            raise InputError(
                f"{table.name}: {counted(int(across.sum()), 'row repeats', 'rows repeat')} "
                f"{columns} of a row in another split: {' and '.join(rows)}; a row of training "
                "would tell one of the test"
            )
        times.notes.append(
            f"{table.name}: {counted(len(same), 'row repeats', 'rows repeat')} {columns} of an "
            f"earlier one, first {table.where([int(again[0])])[0]}"
        )

    def _note_zones(self) -> None:
        """Note that some dates have a time zone and others have none."""
        zoned = [kind for kind, zone in self._zones.items() if zone]
        plain = [kind for kind, zone in self._zones.items() if not zone]
        if zoned and plain:
            self._times.notes.append(
                f"dates of {', '.join(zoned)} have a time zone, and those of {', '.join(plain)} "
                "have none: all are compared in UTC"
            )


def date_reader(table: Table, date: DatedColumn, name: str = "", kind: str = "") -> KeptReader:
    """Return the reader of a column of dates, in the format that the first rows have if none is
    given.

    name: the setting that names the column, for errors; "" if none does
    kind: before the column's name there
    """
    column = named_column(table, date.column, name) or date.column
    said = f"{kind}.{column}" if kind else column
    cells = _first(table, column)
    seconds = False
    if not date.format and not is_time(cells.type):
        numbers, wrong = to_numbers(cells, np.float64)
        seconds = not len(wrong)
        if seconds:
            _check_seconds(table, column, numbers, setting(name, f"{said}=date:%Y"))
    form = date.format if date.format or seconds else _seen_format(table, column, name, said)
    reader = KeptReader(table, column, "date", form)
    reader.seconds |= seconds
    if name:
        form = setting(name, f"{said}=date:FORMAT")
        reader.advice = f"if they are written otherwise, give {form}"
    return reader


def has_zones(table: Table, column: str) -> bool:
    """True if dates of the first rows have a time zone."""
    cells = _first(table, column)
    if not is_text(cells.type):
        return getattr(cells.type, "tz", None) is not None
    return bool(pc.any(pc.match_substring_regex(to_text(cells), _ZONE)).as_py())


def _first(table: Table, column: str) -> pa.Array:
    _, batch = next(iter(table.batches([column])))
    return batch.column(column)[:SAMPLE]


def _seen_format(table: Table, column: str, name: str, said: str) -> str:
    """The format of a column of dates; "" for ISO 8601, timestamps and seconds since 1970."""
    cells = _first(table, column)
    if not is_text(cells.type):
        return ""
    text = pc.utf8_trim_whitespace(to_text(cells))
    known = text.filter(pa.array(~is_nothing(text)))
    formats = date_formats(known)
    if not formats and len(known):
        raise InputError(
            f"{table.name}: column {column!r} holds {_no_dates(known)}"
            + (f"; give their format with {setting(name, f'{said}=date:FORMAT')}" if name else "")
        )
    if len(formats) > 1 and name:
        options = " or ".join(setting(name, f"{said}=date:{format}") for format in formats)
        raise InputError(
            f"{table.name}: column {column!r} holds dates such as {known[0].as_py()!r}: is the "
            f"day first, or the month? Give {options}"
        )
    return formats[0] or "" if formats else ""


def _no_dates(known: pa.Array) -> str:
    """Words for texts that are not dates of one format."""
    [form, *_] = [*date_formats(known, 1e-9), ""]
    wrong = parse_dates(known, form)[1] if form != "" else np.arange(len(known))
    right = np.setdiff1d(np.arange(len(known)), wrong)
    if not len(right):
        return f"no dates, first {known[0].as_py()!r}"
    one, other = (known[int(places[0])].as_py() for places in (right, wrong))
    return f"dates of several formats, {one!r} and {other!r}: write all of them the same way"


def _check_seconds(table: Table, column: str, values: Float64s, advice: str) -> None:
    """Refuse numbers that are hardly seconds since 1970."""
    low, high = _SECONDS
    known = np.abs(values[~np.isnan(values)])
    typical = float(np.median(known)) if len(known) else low
    if low <= typical < high:
        return
    what = "milliseconds? Divide them by 1,000" if typical >= high else f"years? Give {advice}"
    raise InputError(
        f"{table.name}: column {column!r} holds numbers such as {typical:.0f}; numbers as dates "
        f"are seconds since 1970. Are they {what}"
    )


def day(seconds: float) -> str:
    """A time in words, without its time of day at midnight."""
    # NumPy's dates, because Parquet may hold years beyond 9999, which `datetime` refuses.
    found = str(np.datetime64(int(seconds // 60), "m")).replace("T", " ")
    return found.removesuffix(" 00:00")
