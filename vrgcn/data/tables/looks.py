"""What a column looks like, from a sample of its cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from vrgcn.data.tables.encoders.cells import BRACKETS, cell_lists, list_decimal
from vrgcn.data.tables.encoders.dates import DAY, parse_dates
from vrgcn.data.tables.encoders.numbers import EXACT, NO, YES
from vrgcn.data.tables.values import (
    is_list,
    is_nothing,
    is_number,
    is_readable,
    is_text,
    to_numbers,
    to_text,
)
from vrgcn.data.tables.wording import counted
from vrgcn.tasks.spread import number_text

MOSTLY = 0.8  # so many numbers among texts, and it is a column of numbers with mistakes in it
PROSE = 4  # words in a cell on average
VECTOR = 8  # whole numbers with spaces between them
NAMES = 0.9  # so many different cells, and they are names
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_HOURS = ("", " %H:%M", " %H:%M:%S")
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"
_COMMA_SURELY = r"^[+-]?(\d+,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+|\d{1,3}(\.\d{3})+,\d+)$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
_THOUSANDS_SURELY = r"^[+-]?\d{1,3}((,\d{3})+\.\d+|(,\d{3}){2,})$"


@dataclass(frozen=True)
class Look:
    """kind: what `--column` would say
    words: for people
    missing: cells of the sample that hold nothing
    doubt: why the user has to say what the column is; "" if there is none
    options: what an encoder of this kind has to know
    """

    kind: str
    words: str
    missing: int = 0
    doubt: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def look(column: str, cells: pa.Array, decimal: str | None, most: int) -> Look:
    """What a column of these cells holds.

    decimal: as the user said, see `to_numbers`; None: find out
    most: categories that a column may have
    """
    kind = cells.type
    found = Look("drop", f"{kind}, of which no feature can be made")
    if is_list(kind) and not is_readable(kind):
        found = Look("drop", f"lists of {kind.value_type}, of which no feature can be made")
    elif not is_readable(kind):
        pass
    elif types.is_null(kind) or cells.null_count == len(cells):
        found = Look("drop", "nothing but empty cells", len(cells))
    elif types.is_boolean(kind):
        found = Look("boolean", "true and false", cells.null_count)
    elif types.is_timestamp(kind) or types.is_date(kind):
        found = dates_look(cells, None)
    elif is_list(kind):
        found = lists_look(cells, None, None)
    elif is_number(kind):
        found = numbers_look(cells, None)
    elif is_text(kind):
        found = _texts(column, cells, decimal, most)
    return found


def numbers_look(cells: pa.Array, decimal: str | None) -> Look:
    """Cells as numbers, though some may be none."""
    values, wrong = to_numbers(cells, np.float64, decimal=decimal)
    with np.errstate(over="ignore"):
        finite = values[np.isfinite(values.astype(np.float32))]
    if not len(finite):
        return Look("number", "no numbers", len(values) - len(wrong), options={"offset": 0})
    least, greatest = number_text(finite.min()), number_text(finite.max())
    words = f"numbers, {least} to {greatest}" if least != greatest else f"numbers around {least}"
    if finite.min() == finite.max():
        words = f"always {least}"
    if len(wrong):
        words += f", and {counted(len(wrong), 'text')}"
    missing = len(values) - len(finite) - len(wrong)
    options = {"offset": _offset(finite), "decimal": decimal}
    return Look("number", words, missing, options=options)


def _offset(values: NDArray[np.float64]) -> int:
    """What to subtract so that 32 bits tell numbers apart; 0 where they do it anyway.

    Of values that differ by less than they are rounded by, the deviation would be that of rounding.
    """
    low, high = float(values.min()), float(values.max())
    if max(abs(low), abs(high)) <= EXACT or max(abs(low), abs(high)) >= 2.0**62:
        return 0
    if (values != np.floor(values)).any() or (values.astype(np.float32) == values).all():
        return 0
    return int(low) if high - low < max(abs(low), abs(high)) / 1000 else 0


def dates_look(cells: pa.Array, format: str | None) -> Look:
    """Cells as times, though some may be none."""
    seconds, wrong = parse_dates(cells, format)
    known = seconds[~np.isnan(seconds)]
    if not len(known):
        return Look("date", "no dates", len(cells), options=_date_options(np.zeros(1), format))
    # NumPy's, for years beyond 9999 that Parquet may hold and `datetime` refuses.
    first, last = (np.datetime64(int(t // DAY), "D") for t in (known.min(), known.max()))
    words = f"dates, {first} to {last}" if known.min() != known.max() else str(first)
    if len(wrong):
        words += f", and {counted(len(wrong), 'text')}"
    missing = len(cells) - len(known) - len(wrong)
    return Look("date", words, missing, options=_date_options(known, format))


def _date_options(seconds: NDArray[np.float64], format: str | None) -> dict[str, Any]:
    origin = int(np.floor(seconds.min() / DAY)) * DAY
    return {"format": format, "origin": origin, "hours": bool((seconds % DAY).any())}


def lists_look(cells: pa.Array, delimiter: str | None, decimal: str | None) -> Look:
    """Cells as lists: of numbers if they are all as long, or else of categories."""
    lists, wrong = cell_lists(cells, delimiter)
    missing = lists.null_count - len(wrong)
    lengths = pc.list_value_length(lists).drop_null().to_numpy()
    lengths = lengths[lengths > 0]
    options: dict[str, Any] = {"delimiter": delimiter}
    if not len(lengths):
        return Look("drop", "nothing but empty lists", missing, options=options)
    flat = lists.flatten()
    texts = np.arange(1)
    if not types.is_boolean(flat.type):
        _, texts = to_numbers(flat, decimal=list_decimal(delimiter, decimal))
    whole = types.is_integer(flat.type)
    if len(texts) == 0 and not (whole and lengths.min() != lengths.max()):
        width = int(np.bincount(lengths).argmax())
        options["width"] = width
        return Look("numbers", f"lists of {counted(width, 'number')}", missing, options=options)
    values = pc.utf8_trim_whitespace(to_text(flat))
    different = counted(pc.count_distinct(values).as_py(), "category", "categories")
    return Look("categories", f"lists of {different}", missing, options=options)


def _texts(column: str, cells: pa.Array, decimal: str | None, most: int) -> Look:
    if decimal is None and _all_numbers(
        cells
    ):  # told quickly: tables have thousands of such columns
        return numbers_look(cells, None)
    text = pc.utf8_trim_whitespace(to_text(cells))
    nothing = is_nothing(text)
    known = text.filter(pa.array(~nothing))
    missing = int(nothing.sum())
    if not len(known):
        return Look("drop", "nothing but empty cells", missing)
    for found in _candidates(column, known, decimal):
        return Look(found.kind, found.words, missing + found.missing, found.doubt, found.options)
    return _words(known, missing, most)


def _all_numbers(cells: pa.Array) -> bool:
    try:
        return pc.cast(cells, pa.float64()).null_count == 0
    except pa.ArrowInvalid:
        return False


def _candidates(column: str, known: pa.Array, decimal: str | None) -> Iterator[Look]:
    """What texts without gaps may be, the most special first; nothing if they are just texts."""
    words = pc.utf8_lower(known)
    if pc.all(pc.is_in(words, pa.array(YES + NO))).as_py() and not _share(known, r"^[\d.]+$"):
        yield Look("boolean", " and ".join(sorted(pc.unique(words).to_pylist())))
    _, wrong = to_numbers(known, np.float64, decimal=decimal)
    if len(known) - len(wrong) >= MOSTLY * len(known):
        yield numbers_look(known, decimal)
    if decimal is None:
        yield from _with_commas(column, known)
    else:
        yield from _with_the_other(column, known, decimal)
    yield from _dates(column, known)
    if _share(known, r"^\[.*\]$") == 1:
        yield lists_look(known, BRACKETS, decimal)
    for delimiter in ("|", ";", " "):
        yield from _delimited(known, delimiter, decimal)


def sure_decimal(known: pa.Array) -> str | None:
    """The comma or the point that stands before fractions in texts with commas, where they can be
    read in one way alone."""
    surely_comma, surely_point = _share(known, _COMMA_SURELY), _share(known, _THOUSANDS_SURELY)
    if bool(surely_comma) == bool(surely_point):
        return None
    return "," if surely_comma else "."


def _with_commas(column: str, known: pa.Array) -> Iterator[Look]:
    """Numbers in which a comma stands before the fraction, or between thousands."""
    comma, thousands = _share(known, _COMMA), _share(known, _THOUSANDS)
    if max(comma, thousands) < MOSTLY or not _share(known, ","):
        return
    decimal = sure_decimal(known)
    if decimal is not None:
        yield numbers_look(known, decimal)
    else:
        cell = known.filter(pc.match_substring(known, ","))[0].as_py()
        yield Look(
            "number",
            "numbers with commas",
            doubt=f"holds numbers with commas, such as {cell!r}: give --decimal , if a comma "
            "stands before fractions, or --decimal . if it divides thousands",
        )


def _with_the_other(column: str, known: pa.Array, decimal: str) -> Iterator[Look]:
    """Numbers, were the comma and the point to change places."""
    other = "." if decimal == "," else ","
    wrong = to_numbers(known, np.float64, decimal=other)[1]
    if len(known) - len(wrong) >= MOSTLY * len(known):
        _, odd = to_numbers(known, np.float64, decimal=decimal)
        cell = known[int(odd[0])].as_py()
        yield Look(
            "number",
            "numbers",
            doubt=f"holds {cell!r}, which is no number with --decimal {decimal}: for this column "
            f"give --column '{column}=number:{other}'",
        )


def _dates(column: str, known: pa.Array) -> Iterator[Look]:
    if not _share(known, r"\d.*\D.*\d"):
        return
    enough = MOSTLY * len(known)
    if len(known) - len(parse_dates(known, None)[1]) >= enough:
        yield dates_look(known, None)
    rights = {
        day + hour: len(known) - len(parse_dates(known, day + hour)[1])
        for day in _DAYS
        for hour in _HOURS
    }
    best = max(rights.values())
    formats = [format for format, right in rights.items() if right == best]
    if best < enough:
        return
    if len(formats) == 1:
        yield dates_look(known, formats[0])
    options = " or ".join(f"--column '{column}=date:{format}'" for format in formats)
    yield Look(
        "date",
        "dates, the day or the month first",
        doubt=f"holds dates such as {known[0].as_py()!r}: is the day first, or the month? "
        f"Give {options}",
    )


def _delimited(known: pa.Array, delimiter: str, decimal: str | None) -> Iterator[Look]:
    """Several values in a cell: numbers, as many in each; or categories that come again."""
    pattern = r"\s" if delimiter == " " else f"\\{delimiter}"
    share = _share(known, pattern)
    if share == 1:
        found = lists_look(known, delimiter, decimal)
        width = found.options["width"] if found.kind == "numbers" else 0
        # Digits with spaces among them are telephone numbers sooner than vectors.
        if width > 1 and (delimiter != " " or width >= VECTOR or _share(known, r"\d\.\d")):
            yield found
    if share < 0.1 or delimiter == " ":
        return
    parts = pc.utf8_trim_whitespace(pc.split_pattern(known, delimiter).flatten())
    if pc.count_distinct(parts).as_py() <= len(parts) / 2 and _mean_words(parts) < PROSE:
        yield lists_look(known, delimiter, decimal)


def _words(known: pa.Array, missing: int, most: int) -> Look:
    """Texts that are nothing more special: prose, categories, or names that come once."""
    different, prose = pc.count_distinct(known).as_py(), _mean_words(known) >= PROSE
    if prose and (different == len(known) > 1 or different > most):
        return Look("text", f"text of {_mean_words(known):.0f} words on average", missing)
    if (different == len(known) > 1) or (different > most and different > NAMES * len(known)):
        return Look("drop", "names, (almost) all different", missing)
    return Look("category", counted(different, "category", "categories"), missing)


def _mean_words(text: pa.Array) -> float:
    return float(pc.mean(pc.count_substring_regex(text, r"\S+")).as_py() or 0)


def _share(text: pa.Array, pattern: str) -> float:
    """How many of the texts match."""
    return float(pc.mean(pc.match_substring_regex(text, pattern).cast(pa.float64())).as_py() or 0)
