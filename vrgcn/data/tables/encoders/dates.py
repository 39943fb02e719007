"""Columns of dates: seconds, and the places in the year, the week and the day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.encoder import Arrays, Look, Rejection, Tell, drop_advice
from vrgcn.data.tables.encoders.filling import FilledColumn, Filling
from vrgcn.data.tables.encoders.sample import Sample
from vrgcn.data.tables.overrides import Fill
from vrgcn.data.tables.values import is_nothing, is_number, is_text, to_text
from vrgcn.data.tables.wording import counted
from vrgcn.files.setting_names import setting

DAY = 86_400
WEEK = 7 * DAY
_MONDAY = 4 * DAY  # 1970-01-05 was one
MOSTLY = 0.8  # so many dates among texts, and it is a column of dates with mistakes in it
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_HOURS = ("", " %H:%M", " %H:%M:%S")
_YEAR_1000 = -30_610_224_000  # seconds since 1970
_PLAIN = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?$"


class DateColumn(FilledColumn):
    """A time each: `x.seconds` since the earliest of a sample, and angles.

    A part of the year, the week and the day is an angle a in a circle, and sin a and cos a are the
    features: December is as near to January as to November. Times are in UTC.

    format: of `strptime`; None: ISO 8601, such as 2024-03-01 or 2024-03-01T12:30:00Z
    origin: seconds since 1970 that count as 0; 32 bits hold seconds since then only to a minute
    hours: there are times of day
    """

    kind: ClassVar[str] = "date"
    option: ClassVar[str] = "a format such as %d.%m.%Y"
    turn: ClassVar[int] = 30

    def __init__(
        self, column: str, fill: Fill | Filling, format: str | None, origin: int, hours: bool
    ) -> None:
        super().__init__(column, fill)
        self.format = format
        self.origin = origin
        self.hours = hours

    @classmethod
    def reads(cls, kind: pa.DataType) -> bool:
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        stamps = pa.types.is_timestamp(inner) or pa.types.is_date(inner)
        return bool(stamps) or super().reads(kind)

    @classmethod
    def recognise(cls, sample: Sample) -> Look | Rejection:
        if not sample.is_text:
            return Rejection() if is_number(sample.cells.type) else _look(sample.cells, None)
        found = _look_of_texts(sample)
        return Rejection() if found is None else found

    @classmethod
    def told(cls, sample: Sample, option: str, found: Look) -> Look:
        if is_number(sample.cells.type):
            raise ValueError(f"holds {sample.cells.type}; dates are texts or timestamps")
        return _look(sample.cells, option or found.options.get("format"))

    @property
    def names(self) -> list[str]:
        circles = ["year", "week", *(["day"] if self.hours else [])]
        parts = [f"{circle}.{wave}" for circle in circles for wave in ("sin", "cos")]
        mark = ["missing"] if self.filling.fill.mark else []
        return [f"{self.column}.{part}" for part in ("seconds", *parts, *mark)]

    def fit(self, cells: pa.Array) -> None:
        self.filling.see(parse_dates(cells, self.format)[0] - self.origin)

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        seconds, wrong = parse_dates(cells, self.format)
        form = f"written as {self.format}" if self.format else "such as 2024-03-01"
        advice = (
            f"give {setting('column', f'{self.column}=date:FORMAT')}, {self.column}=category, or "
            f"{drop_advice(self.column)}"
        )
        tell(f"is no date {form}", wrong, cells.take(pa.array(wrong)), advice)
        seconds[wrong] = self.origin
        gaps = np.isnan(seconds)
        if self.filling.fill.how == "error":
            self.filling.see(seconds - self.origin)
            advice = (
                f"give {setting('fill', f'{self.column}=mean+mark')}, or {drop_advice(self.column)}"
            )
            tell("is missing", np.flatnonzero(gaps), None, advice)
        out[:, 0] = seconds - self.origin
        angles = [_part_of_year(seconds), (seconds - _MONDAY) / WEEK]
        angles += [seconds / DAY] if self.hours else []
        for place, turn in enumerate(angles):
            out[:, 1 + 2 * place] = np.sin(2 * np.pi * turn)
            out[:, 2 + 2 * place] = np.cos(2 * np.pi * turn)
        if gaps.any():
            out[gaps] = 0  # the middle of every circle
            out[gaps, 0] = self.filling.put(int(gaps.sum()))
        if self.filling.fill.mark:
            out[:, -1] = gaps

    def plan(self) -> str:
        circles = "year, week and day" if self.hours else "year and week"
        return (
            f"{counted(len(self.names), 'feature')}: seconds, and places in the {circles}"
            f"{self.filling}"
        )

    def state(self) -> dict[str, Any]:
        return {
            "fill": self.filling.state(),
            "format": self.format,
            "origin": self.origin,
            "hours": self.hours,
        }

    @classmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> DateColumn:
        fill = Filling.from_state(state["fill"])
        return cls(column, fill, state["format"], state["origin"], state["hours"])


def _look(cells: pa.Array, format: str | None, gaps: int = 0) -> Look:
    """Cells as times, though some may be none; gaps: further ones that are missing."""
    seconds, wrong = parse_dates(cells, format)
    known = seconds[~np.isnan(seconds)]
    if not len(known):
        return Look("no dates", len(cells) + gaps, options=_options(np.zeros(1), format))
    # NumPy's, for years beyond 9999 that Parquet may hold and `datetime` refuses.
    first, last = (np.datetime64(int(t // DAY), "D") for t in (known.min(), known.max()))
    words = f"dates, {first} to {last}" if known.min() != known.max() else str(first)
    if len(wrong):
        words += f", and {counted(len(wrong), 'text')}"
    missing = len(cells) - len(known) - len(wrong) + gaps
    return Look(words, missing, options=_options(known, format))


def _options(seconds: NDArray[np.float64], format: str | None) -> dict[str, Any]:
    origin = int(np.floor(seconds.min() / DAY)) * DAY
    return {"format": format, "origin": origin, "hours": bool((seconds % DAY).any())}


def _look_of_texts(sample: Sample) -> Look | None:
    """Texts as dates in the format that most of them have; None if there is no such format."""
    known = sample.known
    if not sample.share(r"\d.*\D.*\d"):
        return None
    enough = MOSTLY * len(known)
    if len(known) - len(parse_dates(known, None)[1]) >= enough:
        return _look(known, None, sample.gaps)
    rights = {
        day + hour: len(known) - len(parse_dates(known, day + hour)[1])
        for day in _DAYS
        for hour in _HOURS
    }
    best = max(rights.values())
    formats = [format for format, right in rights.items() if right == best]
    if best < enough:
        return None
    if len(formats) == 1:
        return _look(known, formats[0], sample.gaps)
    values = [f"{sample.column}=date:{format}" for format in formats]
    options = " or ".join(setting("column", value, typed=f"'{value}'") for value in values)
    return Look(
        "dates, the day or the month first",
        sample.gaps,
        f"holds dates such as {known[0].as_py()!r}: is the day first, or the month? Give {options}",
    )


def parse_dates(
    cells: pa.Array, format: str | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Seconds since 1970, NaN where a cell has none, and the places of what is no date.

    Numbers are read as they are written, 2024 under %Y: as times they would be microseconds.
    """
    if not (is_text(cells.type) or is_number(cells.type)):
        kind = pa.timestamp("us", getattr(cells.type, "tz", None))
        # Nanoseconds are cut off: 32 bits would not hold them.
        stamps = pc.cast(cells, options=pc.CastOptions(kind, allow_time_truncate=True))
        return _seconds(stamps), np.empty(0, np.int64)
    text = pc.utf8_trim_whitespace(to_text(cells))
    nothing = is_nothing(text)
    text = pc.if_else(pa.array(nothing), None, text)
    if format is not None:
        stamps = pc.strptime(text, format=format, unit="us", error_is_null=True)
        seconds = _seconds(stamps)
        seconds[_refused(text, format, seconds)] = np.nan
    else:
        plain = pc.fill_null(pc.match_substring_regex(text, _PLAIN), False)
        try:
            seconds = _seconds(pc.cast(pc.if_else(plain, text, None), pa.timestamp("us")))
        except pa.ArrowInvalid:  # the 30th of February
            plain = pa.array(np.zeros(len(text), bool))
            seconds = np.full(len(text), np.nan)
        for row in np.flatnonzero(~nothing & ~plain.to_numpy(zero_copy_only=False)):
            seconds[row] = _iso_seconds(text[int(row)].as_py())
    return seconds, np.flatnonzero(np.isnan(seconds) & ~nothing)


def _iso_seconds(text: str) -> float:
    """Seconds since 1970 of one time in ISO 8601, UTC where no zone is given; NaN if it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def _refused(text: pa.Array, format: str, seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """The rows that Arrow reads though they are no dates: 31.02. as 2 March, 24 as the year 24.

    Python reads the few that may be such again. Formats that it does not know are not checked.
    """
    if not _python_reads(format):
        return np.empty(0, np.int64)
    rows = np.flatnonzero(~np.isnan(seconds))
    rows = rows[_doubtful(seconds[rows], 1 if "%z" in format else 0)]
    cells = text.take(pa.array(rows)).dictionary_encode()  # dates come again: each is read once
    places = cells.indices.to_numpy()
    early = np.zeros(len(cells.dictionary), bool)
    early[places] = seconds[rows] < _YEAR_1000
    wrong = [
        not _is_date(each, format, strict)
        for each, strict in zip(cells.dictionary.to_pylist(), early, strict=True)
    ]
    return rows[np.array(wrong, bool)[places]]


def _doubtful(seconds: NDArray[np.float64], zone: int) -> NDArray[np.bool_]:
    """Where a day beyond the end of its month may have become one of the next, or a year has less
    than four digits.

    zone: by how many days UTC may differ from the date as it is written
    """
    days = np.floor(seconds / DAY).astype(np.int64).astype("datetime64[D]")
    of_month = (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64)
    doubtful = (of_month < 3 + zone) | (seconds < _YEAR_1000)
    if zone:  # the 1st where it was written, the last of the month before in UTC
        doubtful |= (days + zone).astype("datetime64[M]") != days.astype("datetime64[M]")
    return np.asarray(doubtful)


def _is_date(text: str, format: str, strict: bool) -> bool:
    """As Python reads it; strict: also where it differs from Arrow in the format, not in the day.

    Arrow takes whole names of months for %b, to name one difference.
    """
    try:
        datetime.strptime(text, format)
    except ValueError as error:
        return not strict and str(error).startswith(("time data", "unconverted data"))
    return True


def _python_reads(format: str) -> bool:
    """Python's `strptime` knows all of a format: not so %T or %F."""
    try:
        datetime.strptime(datetime(2024, 5, 6, tzinfo=UTC).strftime(format), format)
    except ValueError:
        return False
    return True


def _seconds(stamps: pa.Array) -> NDArray[np.float64]:
    # Unsafe: beyond 2^53 microseconds, before 1684 and after 2255, a safe cast refuses to round.
    micros = pc.cast(stamps, pa.int64()).cast(pa.float64(), safe=False)
    return micros.to_numpy(zero_copy_only=False) / 1e6


def _part_of_year(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of its year has passed, from 0 to 1; 0 where the time is unknown."""
    times = np.nan_to_num(seconds).astype("datetime64[s]")
    years = times.astype("datetime64[Y]")
    start, end = (y.astype("datetime64[s]").astype(np.int64) for y in (years, years + 1))
    return np.asarray((times.astype(np.int64) - start) / (end - start))
