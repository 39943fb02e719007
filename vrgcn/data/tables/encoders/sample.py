"""The first cells of a column, as encoders look at them to recognise it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vrgcn.data.tables.encoders.cells import BRACKETS, Lists, describe_lists
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.values import is_list, is_nothing, is_text, to_numbers, to_text

CATEGORIES = 50
LISTED = 65_536  # lists have thousands of tags, and are stored sparse
PROSE = 4  # words in a cell on average
VECTOR = 8  # least count of numbers with spaces between them that are a vector
MOSTLY = 0.8  # share of numbers from which texts count as numbers with mistakes
REPEATS = 10  # how often a code stands in a column on average, at least
COVERED = 0.9  # share of the cells of codes that the most frequent ones are, those with a feature
# Names of columns that hold ids: user_id, userId, UserID, shop key.
_ID = re.compile(r"(^|[_ \-.])(?i:id|uuid|guid|key|fk|pk)$|[a-z\d](Id|ID|Key)$")
_DIGITS = r"^\d{3,}$"


@dataclass(frozen=True)
class ColumnSample:
    """The first cells of a column.

    column: name of the column
    cells: the first cells, decoded if they were in a dictionary
    spec: the user's settings
    edges: the column is one of edges, whose means become dense features
    key: it is a key of the table, or of another
    """

    column: str
    cells: pa.Array
    spec: ImportSpec
    edges: bool = False
    key: bool = False

    @cached_property
    def is_text(self) -> bool:
        return is_text(self.cells.type)

    @property
    def type_words(self) -> str:
        kind = self.cells.type
        return f"lists of {kind.value_type}" if is_list(kind) else str(kind)

    @cached_property
    def known(self) -> pa.Array:
        """The texts that are not missing, without spaces around them; cells of other types
        unchanged."""
        if not self.is_text:
            return self.cells
        text = _stripped(self.cells)
        return text.filter(pa.array(~is_nothing(text)))

    @property
    def gaps(self) -> int:
        """The number of cells that `known` lacks."""
        return len(self.cells) - len(self.known)

    @property
    def missing(self) -> int:
        return self.gaps + self.known.null_count

    @property
    def is_empty(self) -> bool:
        return not self.plain_numbers and self.missing == len(self.cells)

    @property
    def most_categories(self) -> int:
        """The most categories of a column that get a feature each."""
        return self.spec.max_categories or CATEGORIES

    @property
    def most_listed(self) -> int:
        """The same of a column of lists."""
        return self.spec.max_categories or (CATEGORIES if self.edges else LISTED)

    @cached_property
    def plain_numbers(self) -> bool:
        """True if all cells are texts that Arrow reads as numbers, none missing. The test must be
        quick, because tables may have thousands of such columns."""
        if not self.is_text or self.spec.decimal is not None:
            return False
        try:
            return bool(pc.cast(self.cells, pa.float64()).null_count == 0)
        except pa.ArrowInvalid:
            return False

    @cached_property
    def holds_ids(self) -> bool:
        """True if the column is a key, or called as one, and holds whole numbers: they are names,
        and no amounts. Columns that the user chooses as features are not asked."""
        if self.spec.features or not (self.key or is_called_id(self.column)):
            return False
        if pa.types.is_integer(self.cells.type):
            return True
        if not (self.is_text or pa.types.is_floating(self.cells.type)):
            return False
        values, wrong = to_numbers(self.known, np.float64)
        values = values[np.isfinite(values)]
        return not len(wrong) and bool(len(values)) and bool((values == np.floor(values)).all())

    @cached_property
    def holds_codes(self) -> bool:
        """True if ids that are no declared key repeat often and a few of them are most cells, such
        as the status of an order: they are categories. Ids of rows of another table are many, or
        about equally frequent."""
        counts = np.sort(pc.value_counts(self.known.drop_null()).field("counts").to_numpy())[::-1]
        cells = counts.sum()
        repeated = cells >= REPEATS * len(counts)
        return not self.key and bool(
            repeated and counts[: self.most_categories].sum() >= COVERED * cells
        )

    @cached_property
    def odd_codes(self) -> list[int]:
        """Rows with a text among codes of digits, such as V3N4P among the postal codes 02154 and
        55105; none if the texts may be mistakes among numbers."""
        if not self.is_text or self.share(_DIGITS) < MOSTLY:
            return []
        digits = pc.match_substring_regex(self.known, _DIGITS)
        others = self.known.filter(pc.invert(digits))
        length = pc.unique(pc.utf8_length(self.known.filter(digits)))
        if not len(others) or len(length) > 1:
            return []
        zeros = bool(self.share(r"^0"))  # no number begins so
        code = r"[A-Za-z].*\d|\d.*[A-Za-z]|^\d+-\d+$" if zeros else r"^(\d*[A-Za-z]\d*){2,}$"
        same = zeros or pc.all(pc.equal(pc.utf8_length(others), length[0])).as_py()
        if not same or share(others, code) < 1 or not (zeros or share(others, r"\d") == 1):
            return []
        odd = pc.is_in(_stripped(self.cells), others)
        return list(np.flatnonzero(odd.to_numpy(zero_copy_only=False)))

    @cached_property
    def lists(self) -> Lists | None:
        """Description of the cells if they are lists or texts that look like lists; None
        otherwise."""
        if is_list(self.cells.type):
            return describe_lists(self.cells, None, None)
        if not self.is_text:
            return None
        if self.share(r"^\[.*\]$") == 1:
            return describe_lists(self.known, BRACKETS, self.spec.decimal)
        found = (self._delimited(delimiter) for delimiter in ("|", ";", " "))
        return next(filter(None, found), None)

    def _delimited(self, delimiter: str) -> Lists | None:
        """Describe cells with several delimited values: equally many numbers in each, or repeated
        categories; None otherwise."""
        share = self.share(r"\s" if delimiter == " " else f"\\{delimiter}")
        if share == 1:
            found = describe_lists(self.known, delimiter, self.spec.decimal)
            # A few whole numbers with spaces between them are more likely telephone numbers than
            # vectors.
            certain = delimiter != " " or found.width >= VECTOR or self.share(r"\d\.\d")
            if found.width > 1 and certain:
                return found
        if share < 0.1 or delimiter == " ":
            return None
        parts = pc.utf8_trim_whitespace(pc.split_pattern(self.known, delimiter).flatten())
        if pc.count_distinct(parts).as_py() <= len(parts) / 2 and mean_words(parts) < PROSE:
            return describe_lists(self.known, delimiter, self.spec.decimal)
        return None

    def share(self, pattern: str) -> float:
        """Return the share of the texts that match."""
        return share(self.known, pattern)


def is_called_id(column: str) -> bool:
    """True if a column has a name that columns of ids have."""
    return _ID.search(column) is not None


def _stripped(cells: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(to_text(cells))


def mean_words(text: pa.Array) -> float:
    return float(pc.mean(pc.count_substring_regex(text, r"\S+")).as_py() or 0)


def share(text: pa.Array, pattern: str) -> float:
    """Return the share of the texts that match."""
    return float(pc.mean(pc.match_substring_regex(text, pattern).cast(pa.float64())).as_py() or 0)
