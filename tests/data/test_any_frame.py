"""Tables of pandas, polars, PyArrow and any library with Arrow's stream are read alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
import torch

from tests.data.test_frames import frames, same
from tests.messages import refused
from vrgcn import Graph, GraphSAGE, Live, predictions
from vrgcn.data.any_frame import is_frame, library_of, read_frame

try:
    import polars
except ImportError:  # an extra
    polars = None  # type: ignore[assignment]

with_polars = pytest.mark.skipif(polars is None, reason="polars is not installed")


class Streamed:
    """A table of some other library: it has Arrow's stream, and nothing else."""

    def __init__(self, frame: pandas.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def of_polars(frame: pandas.DataFrame) -> Any:
    return polars.from_arrow(arrow(frame))


def arrow(frame: pandas.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


LIBRARIES = [arrow, Streamed, pytest.param(of_polars, marks=with_polars)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_of_any_library_becomes_the_same_graph(
    library: Callable[[pandas.DataFrame], Any],
) -> None:
    nodes, edges = frames()
    plain = nodes.reset_index()
    wanted = Graph.from_pandas(plain, edges, id="paper", label="topic", ratio=(0.6, 0.2, 0.2))
    options = {"label": "topic", "ratio": (0.6, 0.2, 0.2)}
    same(wanted, Graph.from_pandas(library(plain), library(edges), **options))
    tables = Graph.from_tables(
        {"paper": library(plain)}, {("paper", "cites", "paper"): library(edges)}
    )
    assert tables.kinds.sizes == {"paper": 40}
    assert tables.num_edges == len({(s, t) for s, t in edges.itertuples(index=False)})


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_are_the_nodes_if_edges_name_them_by_number(
    library: Callable[[pandas.DataFrame], Any],
) -> None:
    nodes = pandas.DataFrame({"x": [1.0, 2.0, 4.0]})
    graph = Graph.from_pandas(library(nodes), library(pandas.DataFrame({"a": [0, 1], "b": [1, 2]})))
    assert graph.names.nodes.to_pylist() == [0, 1, 2]
    assert graph.features.tolist() == [[1.0], [2.0], [4.0]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_live_graph_takes_rows_of_any_library(
    library: Callable[[pandas.DataFrame], Any],
) -> None:
    graph = Graph([[0, 1], [1, 2]], torch.eye(3), [0, 1, 0], train=[0, 1])
    live = Live(GraphSAGE(3, 4, 2), graph)
    new = pandas.DataFrame({"id": [7, 8], "features": [[0.5, 0.0, 1.0], [0.0, 1.0, 0.0]]})
    assert live.add_nodes(library(new)).added == [7, 8]
    live.add_edges(library(pandas.DataFrame({"source": [7, 8], "target": [0, 7]})))
    assert live.graph().num_nodes == 5


@with_polars
def test_polars_categories_dates_and_gaps_are_read() -> None:
    nodes = polars.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "town": polars.Series(["Ulm", "Bonn", "Ulm", None], dtype=polars.Categorical),
            "age": [31, None, 54, 47],
            "born": polars.Series(["1990-01-05", None, "1980-11-30", "2001-02-11"]).str.to_date(),
            "likes": [["tea"], ["tea", "cake"], [], ["cake"]],
        }
    )
    edges = polars.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    graph = Graph.from_pandas(nodes, edges)
    assert graph.names.features is not None
    assert {"age", "age.missing", "town=Ulm", "town=Bonn", "likes=tea"} <= {*graph.names.features}
    place = graph.names.features.index("age")
    assert graph.features.to_dense()[1, place].item() == pytest.approx(44.0)  # the mean


def test_predictions_give_arrows_stream() -> None:
    graph = Graph([[0, 1], [1, 2]], torch.eye(3), [0, 1, 0], train=[0, 1])
    torch.manual_seed(0)
    made = predictions(GraphSAGE(3, 4, 2), graph)
    assert pa.table(made).equals(made.to_arrow())


@with_polars
def test_predictions_come_back_as_a_frame_of_polars() -> None:
    graph = Graph([[0, 1], [1, 2]], torch.eye(3), [0, 1, 0], train=[0, 1])
    torch.manual_seed(0)
    made = predictions(GraphSAGE(3, 4, 2), graph)
    assert made.to_polars().equals(polars.DataFrame(made))
    assert made.to_polars(top=1).columns == ["id", "label_1", "p_1"]
    assert np.allclose(made.to_polars()["p_0"].to_numpy(), made.to_pandas()["p_0"])


def test_the_library_of_a_table_is_known_by_its_type() -> None:
    frame = pandas.DataFrame({"x": [1]})
    assert [library_of(table) for table in (frame, arrow(frame), Streamed(frame))] == [
        *("pandas", "pyarrow", "pyarrow")
    ]
    if polars is not None:
        assert library_of(of_polars(frame)) == "polars"
    assert not is_frame([1, 2])
    assert read_frame("x", arrow(frame)).index is None


def test_what_is_no_table_is_refused() -> None:
    with refused():
        read_frame("nodes", pa.chunked_array([[1, 2]]))
    with pytest.raises(TypeError, match=r"nodes must be a DataFrame \(of .*\), not list"):
        read_frame("nodes", [1, 2])


@with_polars
def test_a_query_of_polars_is_refused_with_the_call_that_gives_its_rows() -> None:
    from vrgcn import VRGCNClassifier

    lazy = polars.DataFrame({"a": [1.0, 2.0]}).lazy()
    with refused():
        VRGCNClassifier(epochs=1).fit(lazy, [0, 1])
