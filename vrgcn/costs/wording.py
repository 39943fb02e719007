"""Costs of an epoch and of a run in words, printed before the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vrgcn.costs.epoch_cost import Cost, counted
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import bytes_text

COST_COLUMNS = ("estimator", "nodes computed", "neighbours averaged", "memory")


class Advice(NamedTuple):
    """One piece of advice.

    action: what to do; reason: what was measured. Both lack a capital at the start and a full stop,
        so that they fit on a line of their own or into a sentence.
    """

    action: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.action}"


def cost_rows(costs: Mapping[str, Cost]) -> list[Sequence[str]]:
    """Return a row under COST_COLUMNS for each estimator."""
    return [
        (name, counted(cost.nodes), counted(cost.neighbours), bytes_text(cost.total_memory))
        for name, cost in costs.items()
    ]


def cost_line(used: str, cost: Cost) -> str:
    """Describe the cost of a run in a line."""
    largest = sorted(cost.memory, key=cost.memory.__getitem__, reverse=True)[:2]
    most = ", ".join(f"{name} {bytes_text(cost.memory[name])}" for name in largest)
    by, neighbours = "", "looks at no neighbours"
    if cost.neighbours:
        by, neighbours = f" by {used}", f"averages {counted(cost.neighbours)} neighbours"
    saved = ""
    if cost.forward or cost.left_out:
        saved = (
            f"; of the nodes it visits, gradients reach {cost.backward:,}, {cost.forward:,} are "
            f"visited forward only, and {cost.left_out:,} that nobody reads are left out"
        )
    files = f", and {bytes_text(cost.disk)} of disk for tables" if cost.files else ""
    if cost.mapped:
        files += f"; {bytes_text(cost.mapped)} of features and edges are read from disk as needed"
    return (
        f"an epoch{by} computes about {counted(cost.nodes)} nodes and {neighbours}{saved}; the run "
        f"takes about "
        f"{bytes_text(cost.total_memory)} of memory ({most}) besides Python and PyTorch{files}"
    )


def exact_advice(used: str, costs: Mapping[str, Cost], reference: str) -> Advice | None:
    """Return advice for when exact training computes hardly more than the estimator that is
    used."""
    if used == reference or used not in costs or reference not in costs:
        return None
    exact, mine = costs[reference], costs[used]
    if not exact.hardly_more(mine) or not exact.neighbours:
        return None
    more = "no more" if exact.nodes <= mine.nodes else "hardly more"
    return Advice(
        f"try {setting('estimator', reference)}, which costs {more} and has no noise",
        f"on this graph {reference} training computes {counted(exact.nodes)} nodes an epoch, "
        f"{used} {counted(mine.nodes)}",
    )
