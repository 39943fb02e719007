"""Read RDF: a row for each triple between two resources. Literals name no node and are left out.

N-Triples files are read in parts; a Turtle file is read at once, by rdflib.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from vrgcn.data.tables.reading import BATCH_BYTES, BATCH_ROWS, first_line
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import printable, shortened

COLUMNS = ("source", "relation", "target")
_SPACE = r"[ \t]*"
_RESOURCE = r"<[^<>]*>|_:[^ \t<>]+"
_TRIPLE = (
    rf"^{_SPACE}(?P<source>{_RESOURCE}){_SPACE}(?P<relation><[^<>]*>){_SPACE}"
    rf'(?P<target>{_RESOURCE}|".*){_SPACE}\.{_SPACE}(?:#.*)?$'
)
_NO_TRIPLE = rf"^{_SPACE}(#.*)?$"  # a blank line, or a comment


class _Rows:
    """What both kinds of files have as a `Table`."""

    columns: list[str]

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.notes: list[str] = []
        self.header_doubt = ""
        self.columns = [*COLUMNS]

    def kind(self, column: str) -> pa.DataType:
        return pa.string()

    def _count(self, rows: int, literals: int) -> None:
        """Note the literals; raise if no row is left."""
        if literals:
            self.notes.append(f"{literals:,} triples with a literal are left out: it names no node")
        if not rows:
            raise InputError(f"{self.name} has no triples between two resources")


class NTriplesTable(_Rows):
    """A file of N-Triples, also with .gz, as a `Table` with the columns of `COLUMNS`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        literals = rows = 0
        for _, triples, own in self._parts():
            rows += len(triples)
            literals += own
        self._count(rows, literals)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        start = 0
        for _, triples, _ in self._parts():
            for place in range(0, len(triples), BATCH_ROWS):
                yield start + place, triples.select(columns).slice(place, BATCH_ROWS)
            start += len(triples)

    def where(self, rows: Sequence[int]) -> list[str]:
        lines: dict[int, int] = {}
        start = 0
        for numbers, triples, _ in self._parts():
            here = [row for row in rows if start <= row < start + len(triples)]
            lines |= {row: numbers[row - start].as_py() for row in here}
            start += len(triples)
        return [f"row {row + 1:,} (line {lines[row]:,})" for row in rows]

    def _parts(self) -> Iterator[tuple[pa.Array, pa.RecordBatch, int]]:
        """Yield parts of the file: the lines of its triples, the triples, and how many literals
        were left out."""
        first = 1
        for lines in self._lines():
            found = pc.extract_regex(lines, _TRIPLE)
            self._check(lines, found, first)
            kept = pc.and_(
                found.is_valid(), pc.invert(pc.starts_with(pc.struct_field(found, "target"), '"'))
            ).fill_null(False)
            triples = found.filter(kept)
            columns = [
                pc.replace_substring_regex(pc.struct_field(triples, n), "^<|>$", "")
                for n in COLUMNS
            ]
            numbers = pa.array(range(first, first + len(lines)), pa.int64()).filter(kept)
            literals = len(found) - found.null_count - len(triples)
            yield numbers, pa.record_batch(columns, names=[*COLUMNS]), literals
            first += len(lines)

    def _lines(self) -> Iterator[pa.Array]:
        """Yield the lines of the file, in parts."""
        try:
            reader = pa.csv.open_csv(
                self.name,
                pa.csv.ReadOptions(column_names=["line"], block_size=BATCH_BYTES),
                pa.csv.ParseOptions(delimiter="\x1f", quote_char=False, ignore_empty_lines=False),
                pa.csv.ConvertOptions(column_types={"line": pa.string()}),
            )
            for batch in reader:
                yield batch.column(0)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.name} cannot be read: {first_line(error)}") from None

    def _check(self, lines: pa.Array, found: pa.Array, first: int) -> None:
        """Raise for the first line that is neither a triple, nor blank, nor a comment."""
        wrong = pc.and_(found.is_null(), pc.invert(pc.match_substring_regex(lines, _NO_TRIPLE)))
        place = pc.index(wrong, True).as_py()
        if place >= 0:
            text = printable(shortened(lines[place].as_py(), 60))
            raise InputError(
                f"{self.name}: line {first + place:,} is no triple: {text}; it must be <subject> "
                "<predicate> <object> and a point"
            )


class TurtleTable(_Rows):
    """A Turtle file as a `Table`. It is held in memory; large ones are better as N-Triples."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            import rdflib
        except ImportError:
            raise ImportError(
                f"{path} is Turtle, which rdflib reads: pip install 'vrgcn[rdf]'"
            ) from None
        graph = rdflib.Graph()
        try:
            graph.parse(path, format="turtle")
        except Exception as error:  # rdflib's errors have no common base
            raise InputError(f"{path} is not Turtle: {first_line(error)}") from None
        triples = [
            tuple(f"_:{part}" if isinstance(part, rdflib.BNode) else str(part) for part in triple)
            for triple in graph
            if not isinstance(triple[2], rdflib.Literal)
        ]
        self._count(len(triples), len(graph) - len(triples))
        columns = zip(*sorted(triples), strict=True)  # rdflib has them in no order
        self._rows = pa.record_batch([pa.array(c) for c in columns], names=[*COLUMNS])

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        for start in range(0, len(self._rows), BATCH_ROWS):
            yield start, self._rows.select(columns).slice(start, BATCH_ROWS)

    def where(self, rows: Sequence[int]) -> list[str]:
        return [
            f"the triple {' '.join(self._rows.slice(row, 1).to_pylist()[0].values())}"
            for row in rows
        ]
