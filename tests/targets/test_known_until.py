"""Facts that stop at a date: later rows, and validation before it, see older facts only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.graph.timed import dated_graph
from tests.messages import refused
from vrgcn import Graph, load_run, train
from vrgcn.data.store import save_graph
from vrgcn.graph.dated import DAY
from vrgcn.targets.known_until import frozen, repeated
from vrgcn.targets.opening import for_training, open_target
from vrgcn.targets.spec import TargetSpec

UNTIL = "1970-03-16"  # 75 days; 22 of the 90 rows are later, and all 20 rows of the test


def latest(graph: Graph, name: str) -> torch.Tensor:
    """(rows,) the day of the latest fact that each row sees; -inf if it sees none."""
    assert graph.dated is not None
    A, span = graph.relations[name].adjacency, graph.kinds.range("row")
    days = graph.dated.moments(graph) / DAY
    found = torch.full((len(span),), -torch.inf, dtype=torch.float64)
    places = A.row_of_entry - span.start
    return found.scatter_reduce(0, places, days[A.indices], "amax")


def times(graph: Graph) -> torch.Tensor:
    return graph.kept["row"]["at"].values / DAY


def test_rows_after_the_date_see_facts_until_then_and_validation_its_beginning() -> None:
    graph = dated_graph()
    cut = frozen(graph, UNTIL)
    assert torch.equal(times(cut), times(graph))
    for name in ("order-last-row", "order-last_5-row"):
        own, stopped = latest(graph, name), latest(cut, name)
        assert torch.equal(own[:50], stopped[:50])  # training rows see their own time
        assert float(stopped[70:].max()) < 75
        assert float(own[75:].max()) > 90
        assert float(stopped[50:70].max()) <= float(times(graph)[50])
    assert cut.dated is not None
    assert UNTIL in cut.dated.rules[0]
    for name in ("train", "val", "test"):
        assert torch.equal(cut.split(name), graph.split(name))
    assert torch.equal(cut.labels, graph.labels)  # type: ignore[arg-type]
    assert cut.names.ids_of("row") == graph.names.ids_of("row")


def test_the_age_of_facts_is_counted_from_the_row_and_not_from_the_date() -> None:
    graph = dated_graph()
    own, cut = (
        g.features.to_dense()[g.kinds.range("row").start :, -1]
        for g in (graph, frozen(graph, UNTIL))
    )
    age = times(graph) - latest(frozen(graph, UNTIL), "order-last-row")
    assert torch.allclose(cut[70:].double().expm1(), age[70:], atol=1e-3)
    assert float((cut[70:] - own[70:]).min()) >= 0


def test_training_rows_are_repeated_with_facts_as_old_as_those_of_later_rows() -> None:
    graph = dated_graph()
    found = repeated(graph, UNTIL)
    assert len(found.train) == 4 * len(graph.train)
    assert torch.equal(found.val, graph.val)
    assert torch.equal(found.test, graph.test)
    again = found.train.view(4, 50) - found.kinds.range("row").start
    at = times(found)
    assert all(torch.equal(at[rows], times(graph)[:50]) for rows in again)
    assert found.labels is not None
    assert all(
        torch.equal(found.labels[found.train.view(4, 50)[n]], graph.labels[graph.train])
        for n in range(4)
    )  # type: ignore[index]
    gaps = np.quantile(times(graph)[times(graph) >= 75] - 75, (np.arange(4) + 0.5) / 4)
    seen = latest(found, "order-last-row")
    for rows, gap in zip(again, gaps, strict=True):
        assert float((seen[rows] - (at[rows] - gap)).max()) <= 1e-6
    assert len(found.names.ids_of("row").unique()) == 90 + 150
    part, cut = frozen(graph, UNTIL), found
    assert torch.equal(latest(part, "order-last-row")[50:90], latest(cut, "order-last-row")[50:90])


@pytest.mark.parametrize("see", [frozen, repeated])
def test_training_rows_after_the_date_see_no_fact_that_is_later_either(see: Any) -> None:
    graph = see(dated_graph(), "1970-01-15")
    after = times(graph) >= 15
    assert int(after[graph.train - graph.kinds.range("row").start].sum()) > 30
    for name in ("order-last-row", "order-last_5-row"):
        assert float(latest(graph, name)[after].max()) < 15


def test_training_repeats_rows_and_what_follows_does_not() -> None:
    graph, spec = dated_graph(), TargetSpec(known_until=UNTIL)
    assert for_training(spec, graph).kinds.sizes["row"] == 240
    assert open_target(spec, graph).kinds.sizes["row"] == 90
    assert spec.split_name == f"facts known until {UNTIL}"
    assert for_training(TargetSpec(), graph) is graph


def test_a_run_says_by_which_protocol_it_was_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_graph(dated_graph(), tmp_path / "graph")
    settings = {"model": "graphsage", "epochs": 2, "hidden": 6, "threads": 1, "verbose": True}
    train(tmp_path / "graph", out=tmp_path / "run", known_until=UNTIL, **settings)
    assert f"rows after {UNTIL} see facts until then only" in capsys.readouterr().out
    run = load_run(tmp_path / "run")
    assert run.config["known_until"] == UNTIL
    assert "see facts until then only" in (tmp_path / "run" / "README.md").read_text()
    graph = run.graph()
    assert graph.labels is not None
    assert run.result is not None
    right = run.predict().argmax(1)[70:] == graph.labels[graph.test]
    assert float(right.double().mean()) == pytest.approx(run.result["test"])
    train(tmp_path / "graph", out=tmp_path / "own", **settings)
    assert "each row sees the facts until its own time" in capsys.readouterr().out


def test_dates_without_later_rows_and_graphs_without_rows_are_refused() -> None:
    with refused():
        frozen(dated_graph(), "1971")
    with refused():
        frozen(dated_graph().replace(dated=None), UNTIL)
    with refused():
        frozen(dated_graph(), "soon")
