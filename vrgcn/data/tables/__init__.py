"""Graphs from the user's own tables: CSV, TSV and Parquet files of nodes and edges.

    summary = import_tables(ImportSpec(nodes=Path("nodes.csv"), edges=Path("edges.csv"), out=...))
    graph = load_graph(summary.out)

Files are read in batches and features go straight to the graph's folder, so that files larger than
memory work. Memory holds the ids, the labels, and one range of the edges at a time.

    spec                    settings of an import
    schema, narrowing       kinds and relations that it names; the settings of each table
    reading, delimited, parquet     files as batches of columns
    columns, values         roles of columns; columns as texts and as numbers
    overrides               settings about single columns
    encoders                columns to features, a class for each kind
    proposal                the encoder that is proposed for each column
    recipe, recipe_file     how an import was done, stored so that it can be repeated
    problems, wording       errors that name file, column and row; counts in words
    ids, labels, splits, features, nodes    one pass over the nodes
    edges, adjacency        rows to pairs of nodes, and these to a sorted matrix
    edge_means, rows        columns of edges as features of nodes; rows of edges as nodes
    telling, summary, warnings     the columns and files that were used; counts; odd data
    sources, roles          the opened tables, with the role of each column
    opening, read_tables, importing     the whole import: open, read, write
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vrgcn.data.tables.spec import ImportSpec

if TYPE_CHECKING:
    from vrgcn.data.tables.summary import ImportSummary

__all__ = ["ImportSpec", "import_tables"]


def import_tables(
    spec: ImportSpec,
    on_rows: Callable[[str, int], None] | None = None,
    on_plan: Callable[[str, list[tuple[str, str, str]]], None] | None = None,
) -> ImportSummary:
    """Read the tables and write the graph to the new folder `spec.out`: all of it, or nothing.

    on_rows: called with a file's name and the number of its rows read so far
    on_plan: called before the long reading with a title and a row for each feature column, or for
        several that are alike: its name, what it looks like, and what it becomes
    """
    # PyTorch and Arrow are loaded here, not when the command line asks for the options.
    from vrgcn.data.tables.importing import run_import

    return run_import(
        spec, on_rows or (lambda name, rows: None), on_plan or (lambda title, rows: None)
    )
