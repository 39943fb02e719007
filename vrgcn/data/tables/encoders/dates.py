"""Encode columns of dates: seconds, and the places in the year, the week and the day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.encoder import Look, Rejection, Tell, drop_advice
from vrgcn.data.tables.encoders.filling import FilledColumn, Filling
from vrgcn.data.tables.encoders.sample import ColumnSample
from vrgcn.data.tables.overrides import Fill
from vrgcn.data.tables.values import is_nothing, is_number, is_text, to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted

DAY = 86_400
WEEK = 7 * DAY
_MONDAY = 4 * DAY  # 1970-01-05 was a Monday
MOSTLY = 0.8  # share of dates from which texts count as dates with mistakes
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_HOURS = ("", " %H:%M", " %H:%M:%S")
_YEAR_1000 = -30_610_224_000  # seconds since 1970
_PLAIN = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?$"


class DateColumn(FilledColumn):
    """Encodes a column of times: `x.seconds` since the start of a sample's earliest day, and
    angles.

    A part of the year, the week and the day is an angle a in a circle, and sin a and cos a are the
    features: December is as near to January as to November. Times are in UTC.

    format: format of `strptime`; None for ISO 8601, such as 2024-03-01 or 2024-03-01T12:30:00Z
    origin: the time that counts as 0, in seconds since 1970; without it, 32 bits would hold a time
        only to about a minute
    hours: True if the column holds times of day
    """

    kind: ClassVar[str] = "date"
    option: ClassVar[str] = "a format such as %d.%m.%Y"
    turn: ClassVar[int] = 30
    stored: ClassVar[tuple[str, ...]] = ("format", "origin", "hours")

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
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        if not sample.is_text:
            return Rejection() if is_number(sample.cells.type) else _look(sample.cells, None)
        found = _look_of_texts(sample)
        return Rejection() if found is None else found

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        if is_number(sample.cells.type):
            raise InputError(f"holds {sample.cells.type}; dates are texts or timestamps")
        return _look(sample.cells, option or found.options.get("format"))

    @property
    def names(self) -> list[str]:
        circles = ["year", "week", *(["day"] if self.hours else [])]
        parts = [f"{circle}.{wave}" for circle in circles for wave in ("sin", "cos")]
        return [*(f"{self.column}.{part}" for part in ("seconds", *parts)), *self._mark]

    def fit(self, cells: pa.Array) -> None:
        self.filling.see(parse_dates(cells, self.format)[0] - self.origin)

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        seconds, wrong = parse_dates(cells, self.format)
        advice = (
            f"give {setting('column', f'{self.column}=date:FORMAT')}, {self.column}=category, or "
            f"{drop_advice(self.column)}"
        )
        tell(no_date(self.format), wrong, cells.take(pa.array(wrong)), advice)
        seconds[wrong] = self.origin
        gaps = np.isnan(seconds)
        if self.filling.fill.how == "error":
            self.filling.see(seconds - self.origin)
            tell("is missing", np.flatnonzero(gaps), None, self._fill_advice)
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


def _look(cells: pa.Array, format: str | None, gaps: int = 0) -> Look:
    """Describe cells as times, even if some are no times.

    gaps: number of further cells that are missing
    """
    seconds, wrong = parse_dates(cells, format)
    known = seconds[~np.isnan(seconds)]
    if not len(known):
        return Look("no dates", len(cells) + gaps, options=_options(np.zeros(1), format))
    # NumPy's dates, because Parquet may hold years beyond 9999, which `datetime` refuses.
    first, last = (np.datetime64(int(t // DAY), "D") for t in (known.min(), known.max()))
    words = f"dates, {first} to {last}" if known.min() != known.max() else str(first)
    if len(wrong):
        words += f", and {counted(len(wrong), 'text')}"
    missing = len(cells) - len(known) - len(wrong) + gaps
    return Look(words, missing, options=_options(known, format))


def _options(seconds: NDArray[np.float64], format: str | None) -> dict[str, Any]:
    origin = int(np.floor(seconds.min() / DAY)) * DAY
    return {"format": format, "origin": origin, "hours": bool((seconds % DAY).any())}


def _look_of_texts(sample: ColumnSample) -> Look | None:
    """Describe texts as dates in the format that most of them have; None if there is no such
    format."""
    known = sample.known
    formats = date_formats(known) if sample.share(r"\d.*\D.*\d") else []
    if not formats:
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


def date_formats(known: pa.Array, mostly: float = MOSTLY) -> list[str | None]:
    """Return the formats that a share of some texts have, all equally often; none if they are no
    dates. None stands for ISO 8601."""
    enough = mostly * len(known)
    if len(known) - len(parse_dates(known, None)[1]) >= enough:
        return [None]
    rights = {
        day + hour: len(known) - len(parse_dates(known, day + hour)[1])
        for day in _DAYS
        for hour in _HOURS
    }
    best = max(rights.values())
    return [format for format, right in rights.items() if right == best >= enough]


def no_date(format: str | None) -> str:
    """Return the problem of a cell that is no date of a format."""
    return f"is no date {f'written as {format}' if format else 'such as 2024-03-01'}"


def parse_dates(
    cells: pa.Array, format: str | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return seconds since 1970, NaN where a cell has no date, and the places of known cells that
    are no dates.

    Numbers are read as texts, such as 2024 with the format %Y: as times they would be microseconds.
    """
    if not (is_text(cells.type) or is_number(cells.type)):
        kind = pa.timestamp("us", getattr(cells.type, "tz", None))
        # Cut nanoseconds off: 32 bits would not hold them.
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
    """Return the seconds since 1970 of a time in ISO 8601, in UTC if no zone is given; NaN if it is
    no such time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def _refused(text: pa.Array, format: str, seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows that Arrow reads although they are no dates: 31.02. as 2 March, 24 as the
    year 24.

    Python reads the few doubtful rows again. Formats that Python does not know are not checked.
    """
    if not _python_reads(format):
        return np.empty(0, np.int64)
    rows = np.flatnonzero(~np.isnan(seconds))
    rows = rows[_doubtful(seconds[rows], 1 if "%z" in format else 0)]
    cells = text.take(pa.array(rows)).dictionary_encode()  # dates repeat: read each once
    places = cells.indices.to_numpy()
    early = np.zeros(len(cells.dictionary), bool)
    early[places] = seconds[rows] < _YEAR_1000
    wrong = [
        not _is_date(each, format, strict)
        for each, strict in zip(cells.dictionary.to_pylist(), early, strict=True)
    ]
    return rows[np.array(wrong, bool)[places]]


def _doubtful(seconds: NDArray[np.float64], zone: int) -> NDArray[np.bool_]:
    """Return True where a day beyond the end of its month may have become a day of the next month,
    or where a year has fewer than four digits.

    zone: number of days by which UTC may differ from the date as written
    """
    days = np.floor(seconds / DAY).astype(np.int64).astype("datetime64[D]")
    of_month = (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64)
    doubtful = (of_month < 3 + zone) | (seconds < _YEAR_1000)
    if zone:  # the 1st as written may be the last of the month before in UTC
        doubtful |= (days + zone).astype("datetime64[M]") != days.astype("datetime64[M]")
    return np.asarray(doubtful)


def _is_date(text: str, format: str, strict: bool) -> bool:
    """Return True if Python reads a text as a date in a format.

    strict: also refuse a text that Python rejects for its format, not for its day

    Python and Arrow differ in formats; for example, Arrow accepts full names of months for %b.
    """
    try:
        datetime.strptime(text, format)
    except ValueError as error:
        return not strict and str(error).startswith(("time data", "unconverted data"))
    return True


def _python_reads(format: str) -> bool:
    """Return True if Python's `strptime` knows every part of a format; it does not know %T or
    %F."""
    try:
        datetime.strptime(datetime(2024, 5, 6, tzinfo=UTC).strftime(format), format)
    except ValueError:
        return False
    return True


def _seconds(stamps: pa.Array) -> NDArray[np.float64]:
    # An unsafe cast, because a safe one refuses to round beyond 2^53 microseconds: before 1684 and
    # after 2255.
    micros = pc.cast(stamps, pa.int64()).cast(pa.float64(), safe=False)
    return micros.to_numpy(zero_copy_only=False) / 1e6


def _part_of_year(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of its year that has passed at each time, from 0 to 1; 0 where the time is
    unknown."""
    times = np.nan_to_num(seconds).astype("datetime64[s]")
    years = times.astype("datetime64[Y]")
    start, end = (y.astype("datetime64[s]").astype(np.int64) for y in (years, years + 1))
    return np.asarray((times.astype(np.int64) - start) / (end - start))
