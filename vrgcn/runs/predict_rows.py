"""Predictions of a run for rows with a time of their own, which nobody has imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.data.any_frame import is_frame, library_of, like_given
from vrgcn.data.asked_rows import AskedColumns, AskedRows, Recipes, read_asked
from vrgcn.data.databases.opening import TableOpener
from vrgcn.data.databases.url import place
from vrgcn.data.frames import table_of
from vrgcn.data.predictions import PredictionRows
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.recipe_file import FILE, read_recipes
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.graph.dated import Lookback
from vrgcn.graph.graph import Graph
from vrgcn.graph.new_rows import with_rows
from vrgcn.inference.predict import check_outputs, exact_sweeps
from vrgcn.runs.predict import class_names
from vrgcn.runs.run import Run, graph_source, open_run_graph
from vrgcn.tasks import find_task

ROWS = Placeholder("KIND=FILE")
_AT_ONCE = 1 << 18  # rows whose facts are found, and which are predicted, together


@dataclass(frozen=True)
class RowQuestions:
    """Rows that a run is asked about.

    graph: the facts that rows see; features as they are
    """

    run: Run
    graph: Graph
    asked: AskedRows
    columns: AskedColumns

    def stream(
        self, on_chunk: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Chunks of rows, as `columns` knows them, and their outputs."""
        lookback = Lookback.on(self.graph)
        assert self.graph.dated is not None
        rows = self.graph.dated.rows
        first = self.graph.kinds.range(rows).start
        for start in range(0, len(self.asked), _AT_ONCE):
            part = self.asked.part(start, _AT_ONCE)
            graph = with_rows(self.graph, part.rows, part.own, lookback)
            self.columns.first = first - start
            for nodes, outputs in exact_sweeps(self.run.saved, graph).stream(
                graph.kinds.nodes(rows)
            ):
                check_outputs(graph, nodes, outputs)
                yield nodes, outputs
                if on_chunk is not None:
                    on_chunk(len(nodes))

    def outputs(self, on_chunk: Callable[[int], None] | None = None) -> Tensor:
        """(rows, width) of all rows."""
        return torch.cat([outputs for _, outputs in self.stream(on_chunk)])


def ask(run: Run, rows: Any, graph: Graph | str | Path | None = None) -> RowQuestions:
    """The rows of a table, as a run is asked about them.

    rows: a DataFrame, or the place of a table
    graph: with later facts, in place of the run's own; a Graph, or its folder
    """
    found, recipes = _facts(run, graph)
    if found.dated is None:
        raise InputError(
            f"{setting('rows')}: the graph of {run.folder} has no rows with a time of their own; "
            f"import it with {setting('rows', ROWS, command='import')}"
        )
    with TableOpener() as opener:
        if is_frame(rows):
            table: Table = table_of("rows", rows)
        else:
            table = opener(place(str(rows)), "rows", None)
        asked = read_asked(table, found, recipes)
    return RowQuestions(run, found, asked, AskedColumns(asked.given))


def predict_rows(run: Run, rows: Any, graph: Graph | str | Path | None = None) -> Any:
    """Exact predictions of rows: a DataFrame of the library of `rows`, with the columns that say
    which row it is, and the label and its probabilities, or the prediction."""
    asked = ask(run, rows, graph)
    saved = run.saved
    threshold = None if saved.calibration is None else saved.calibration.threshold
    task, classes = find_task(saved.task), class_names(saved)
    made = PredictionRows(asked.columns, task, classes, None, None, threshold)
    batches = [made.batch(nodes, outputs) for nodes, outputs in asked.stream()]
    found = pa.Table.from_batches(batches, schema=made.schema)
    return like_given(found, library_of(rows)) if is_frame(rows) else found


def _facts(run: Run, graph: Graph | str | Path | None) -> tuple[Graph, Recipes]:
    """The graph whose facts rows see, and the recipes of its import."""
    folder = graph_source(run.config)[1] if graph is None else None
    if isinstance(graph, str | Path):
        folder = Path(graph)
    recipes = read_recipes(folder) if folder is not None and (folder / FILE).is_file() else {}
    if isinstance(graph, Graph):
        return graph, recipes
    path = None if graph is None else Path(graph)
    return open_run_graph(run, graph=path, scored=False, scaled=False).graph, recipes
