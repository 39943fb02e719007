"""An audit: every check that fits a graph, in one list.

A check is a function from a graph and a budget to findings. `vrgcn train` runs all of them with a
small budget, `vrgcn audit` with a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vrgcn.graph.graph import Graph
from vrgcn.leaks.back_in_time import edges_back_in_time
from vrgcn.leaks.columns_of_pairs import columns_made_of_pairs
from vrgcn.leaks.finding import FULL, QUICK, Budget, Finding
from vrgcn.leaks.later import Later, later_things
from vrgcn.leaks.repeated_pairs import (
    pairs_in_messages,
    pairs_in_two_splits,
    triples_in_messages,
)
from vrgcn.leaks.telling import (
    columns_that_tell_labels,
    columns_that_tell_splits,
    orders_that_tell_labels,
)
from vrgcn.leaks.twins import twins_across_splits

Check = Callable[[Graph, Budget], Iterator[Finding]]
CHECKS: tuple[Check, ...] = (
    columns_that_tell_labels,
    columns_that_tell_splits,
    orders_that_tell_labels,
    twins_across_splits,
    edges_back_in_time,
)
OF_PAIRS: tuple[Check, ...] = (  # if a graph has edges to predict
    pairs_in_two_splits,
    pairs_in_messages,
    triples_in_messages,
    columns_made_of_pairs,
)


def find_leaks(graph: Graph, budget: Budget = FULL, *, later: Later | None = None) -> list[Finding]:
    """Return what looks like a leak in a graph with its split, the severe first.

    graph: with labels and a split of its nodes, or with pairs, as `split_pairs` returns it. Labels
        of validation and test nodes are read for the question of twins alone
    later: of a split by time, the cut-off and the times of the graph before it was split
    """
    checks = CHECKS if graph.predicted is None else CHECKS + OF_PAIRS
    findings = [finding for check in checks for finding in check(graph, budget)]
    if later is not None:
        findings += later_things(graph, later)
    return sorted(findings, key=lambda finding: finding.severity != "high")


def quick_audit(graph: Graph) -> list[Finding]:
    """Return what an audit finds within about a second: it reads a sample of large graphs."""
    return find_leaks(graph, QUICK)
