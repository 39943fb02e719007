"""Edges from the later to the earlier are found, in either direction; a graph of rows has none."""

from __future__ import annotations

import torch

from tests.graph.timed import dated_graph
from vrgcn import Graph
from vrgcn.graph.from_kinds import split_features
from vrgcn.leaks.back_in_time import edges_back_in_time
from vrgcn.leaks.checks import CHECKS
from vrgcn.leaks.finding import FULL, Budget, Finding


def rebuilt(graph: Graph, *, one_way: bool, last: int = 0) -> Graph:
    """The graph with reverses, or whose rows see facts `last` places later."""
    edges = {}
    for part in graph.given.values():
        starts = [graph.kinds.range(kind).start for kind in (part.source, part.target)]
        A = part.adjacency
        ends = torch.stack([A.indices, A.row_of_entry]) - torch.tensor(starts)[:, None]
        if part.triple[1] == "last":
            ends[0] = (ends[0] + last).clamp(max=graph.kinds.sizes["order"] - 1)
        edges[part.triple] = ends
    tables = split_features(graph.kinds, graph.features)
    made = Graph.from_kinds(tables, edges, target="row", one_way=list(edges) if one_way else ())
    return made.replace(kept=graph.kept, dated=graph.dated, names=graph.names)


def found(graph: Graph, budget: Budget = FULL) -> list[Finding]:
    return list(edges_back_in_time(graph, budget))


def test_a_graph_whose_edges_lead_forward_has_no_finding() -> None:
    assert edges_back_in_time in CHECKS
    assert not found(dated_graph())
    assert not found(dated_graph().replace(dated=None))


def test_reverses_lead_back_in_time() -> None:
    findings = found(rebuilt(dated_graph(), one_way=False))
    assert {finding.text.split(" over ")[1].split(",")[0] for finding in findings} == {
        *("order-rev_of-customer", "row-rev_of-customer"),
        *("row-rev_last-order", "row-rev_last_5-order"),
    }
    assert all(finding.severity == "high" and "one-way" in finding.advice for finding in findings)
    assert "always known" in findings[0].text


def test_facts_that_a_row_could_not_know_are_counted_and_named() -> None:
    graph = rebuilt(dated_graph(), one_way=True, last=40)
    A = graph.relations["order-last-row"].adjacency
    starts = [graph.kinds.range(kind).start for kind in ("order", "row")]
    ends = zip((A.indices - starts[0]).tolist(), (A.row_of_entry - starts[1]).tolist(), strict=True)
    day, at = (graph.kept[k][c].values.tolist() for k, c in (("order", "date"), ("row", "at")))
    late = sum(day[order] > at[row] for order, row in ends)
    assert late > 50
    [finding] = found(graph)
    first = f"{late} edges lead back in time over order-last-row, first: from order 44 (1970-01-20)"
    assert finding.text.startswith(first)
    assert "dated" in finding.advice


def test_a_small_budget_looks_at_a_sample() -> None:
    [finding] = found(rebuilt(dated_graph(), one_way=True, last=200), Budget(10, 10))
    assert finding.text.startswith("10 edges lead back")
