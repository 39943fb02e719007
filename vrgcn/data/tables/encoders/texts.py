"""Encode columns of free text: hashed words, sublinear tf-idf, and a truncated SVD.

scikit-learn, an optional extra, does the work: its HashingVectorizer needs no vocabulary in memory,
its randomised SVD of a sparse matrix is made for this, and both are widely used and reviewed. Words
are hashed without a secret, so the same text gives the same features in every process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.encoder import (
    Arrays,
    Encoder,
    Look,
    Rejection,
    Tell,
    drop_advice,
    dropping,
)
from vrgcn.data.tables.encoders.reservoir import Reservoir
from vrgcn.data.tables.encoders.sample import PROSE, ColumnSample, mean_words
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.values import is_text, is_time, to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted

SAMPLE = 50_000  # texts that the encoder learns from
BUCKETS = 1 << 18  # number of buckets that words are hashed into
MOST_BUCKETS = 50_000  # buckets that are kept, the most frequent of the sample
WIDTH = 64
_ROWS = 20_000


class TextColumn(Encoder):
    """Encodes a column of texts as `width` features `x~0`, `x~1`, ...; all are 0 for a text without
    a known word.

    A text is a row of counts, one for each bucket that words are hashed into. A count c becomes
    (1 + ln c) · idf, idf = 1 + ln((1 + n) / (1 + texts with the word)), and the row is divided by
    its length. The features are its products with the first right singular vectors of all such
    rows of a random sample of n texts.
    """

    kind: ClassVar[str] = "text"
    option: ClassVar[str] = "how many features"
    averaged: ClassVar[bool] = False
    turn: ClassVar[int] = 60
    fitted = False
    unfilled: ClassVar[str] = "holds texts: its empty cells are texts without words, all 0"

    def __init__(self, column: str, width: int, seed: int) -> None:
        self.column = column
        self.width = width
        self.fitted = self._fresh = False
        self._seed = seed
        self._sample = Reservoir(SAMPLE, seed)
        self._buckets: NDArray[np.int64] = np.empty(0, np.int64)
        self._idf: NDArray[np.float32] = np.empty(0, np.float32)
        self._components: NDArray[np.float32] = np.empty((0, 0), np.float32)

    @classmethod
    def allows(cls, option: str) -> bool:
        return option.isdecimal() and int(option) > 0

    @classmethod
    def reads(cls, kind: pa.DataType) -> bool:
        return is_time(kind) or super().reads(kind)

    @classmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        if not sample.is_text:
            return Rejection()
        words, cells = mean_words(sample.known), len(sample.known)
        different = pc.count_distinct(sample.known).as_py()
        if words < PROSE or not (different == cells > 1 or different > sample.most_categories):
            return Rejection()
        found = Look(f"text of {words:.0f} words on average", sample.missing)
        return cls.told(sample, "", found)

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        options = {"width": int(option or WIDTH), "seed": sample.spec.text_seed}
        return Look(found.words, found.missing, options=options)

    @classmethod
    def keeps(cls, kind: pa.DataType) -> bool:
        return is_text(kind)

    @classmethod
    def check(cls, table: str, columns: Sequence[str], spec: ImportSpec) -> None:
        if columns and find_spec("sklearn") is None:
            raise InputError(
                f"to make features of texts ({', '.join(map(repr, columns[:5]))}) scikit-learn is "
                f"needed: pip install 'vrgcn[text]', or {drop_advice(columns[0])}"
            )
        if spec.text_seed and not columns:
            raise InputError(
                f"{setting('text_seed', spec.text_seed)}: {table} has no column that is read as "
                f"text, so nothing is drawn; give {setting('column', 'COLUMN=text')}, or leave "
                f"{setting('text_seed')} out"
            )

    @property
    def names(self) -> list[str]:
        return [f"{self.column}~{place}" for place in range(len(self._components))]

    def fit(self, cells: pa.Array) -> None:
        self._sample.add(to_text(cells).cast(pa.large_string()))

    def finish(self) -> None:
        if self.fitted:
            return
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        counts = _counts(text.as_py() for text in self._sample.values())
        self._sample = Reservoir(0, 0)
        texts = np.bincount(counts.indices, minlength=BUCKETS)
        # Drop words of a single text, which say nothing about other texts, unless too few are left.
        frequent = np.argsort(-texts, kind="stable")[:MOST_BUCKETS]
        least = 2 if (texts >= 2).sum() >= self.width else 1
        self._buckets = np.sort(frequent[texts[frequent] >= least])
        width = min(self.width, len(self._buckets), counts.shape[0])
        if len(self._buckets) < 2:  # an SVD has at least two columns
            words = "only one word" if width else "no words to make features of"
            raise InputError(
                f"column {self.column!r} holds {words}; leave it out with {dropping(self.column)}"
            )
        tfidf = TfidfTransformer(sublinear_tf=True).fit(counts[:, self._buckets])
        rows = tfidf.transform(counts[:, self._buckets])
        svd = TruncatedSVD(width, random_state=self._seed).fit(rows)
        self._idf = np.asarray(tfidf.idf_, np.float32)
        self._components = np.asarray(svd.components_, np.float32)
        self.fitted = self._fresh = True

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        tfidf = TfidfTransformer(sublinear_tf=True)
        tfidf.idf_ = self._idf
        text = to_text(cells)
        for start in range(0, len(text), _ROWS):
            counts = _counts(text[start : start + _ROWS].to_pylist())
            rows = tfidf.transform(counts[:, self._buckets])
            out[start : start + _ROWS] = rows @ self._components.T

    def plan(self) -> str:
        return f"{counted(self.width, 'feature')}: words by tf-idf, then an SVD"

    def notes(self) -> list[str]:
        fewer = len(self._components)
        if fewer == self.width or not self._fresh:
            return []
        return [f"{counted(fewer, 'feature')} in place of {self.width}: it has no more words"]

    def state(self) -> dict[str, Any]:
        return {"width": self.width, "buckets": BUCKETS}

    def arrays(self) -> Arrays:
        return {"buckets": self._buckets, "idf": self._idf, "components": self._components}

    @classmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> TextColumn:
        made = cls(column, state["width"], seed=0)
        made._buckets, made._idf = arrays["buckets"], arrays["idf"]
        made._components, made.fitted = arrays["components"], True
        return made


def _counts(texts: Iterable[str]) -> Any:
    """Return the number of words of each text in each bucket: sparse, (texts, BUCKETS)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(
        n_features=BUCKETS,
        alternate_sign=False,
        norm=None,
        strip_accents="unicode",
        dtype=np.float32,
    )
    return words.transform(texts)
