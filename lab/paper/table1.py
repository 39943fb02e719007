"""Table 1: sizes, degrees and two-hop neighbourhoods of the data sets."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lab.harness.records import Record
from lab.harness.units import Unit
from lab.paper.experiment import Choice, Experiment, Verdict, undecided
from lab.paper.paper import TABLE1
from lab.paper.settings import SETTINGS, chosen_datasets, open_graph
from vrgcn.data.statistics import SampledMean, statistics
from vrgcn.pages.page import Page


def units(choice: Choice) -> list[Unit]:
    """Return a unit for each available data set."""
    return [
        Unit({"dataset": name, "quick": choice.quick}, partial(_count, name, choice))
        for name in chosen_datasets(choice, tuple(SETTINGS))
    ]


def _count(dataset: str, choice: Choice) -> Record:
    found = statistics(open_graph(dataset, choice))
    return {
        "nodes": found.nodes,
        "edges": found.edges,
        "degree": found.degree.value,
        "two_hop": found.two_hop.value,
        "two_hop_nodes": found.two_hop.nodes,
        "two_hop_error": found.two_hop.error,
    }


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    """Show the table with the paper's numbers, and whether they are the same."""
    page.text(
        "V nodes, E edges (an undirected one twice, a self-loop at each node once), the average "
        "number of nodes within one and within two hops. The paper's averages are rounded twice."
    )
    rows: list[list[str]] = []
    same: list[str] = []
    different: list[str] = []
    for record in records:
        name = record["dataset"]
        degree = SampledMean(record["degree"], record["nodes"])
        two_hop = SampledMean(record["two_hop"], record["two_hop_nodes"], record["two_hop_error"])
        about = "≈ " if two_hop.error else ""
        rows.append(
            [
                name,
                f"{record['nodes']:,}",
                f"{record['edges']:,}",
                f"{degree.value:.3f}",
                f"{about}{two_hop.value:,.3f}",
                *([f"{number:,}" for number in TABLE1[name]] if name in TABLE1 else ["–"] * 4),
            ]
        )
        if name in TABLE1:
            ours = (record["nodes"], record["edges"], degree.rounded())
            equal = ours == TABLE1[name][:3] and _agrees(two_hop, TABLE1[name].two_hop)
            (same if equal else different).append(name)
    page.table(
        [
            *("data set", "V", "E", "degree", "2-hop"),
            *("paper: V", "paper: E", "paper: degree", "paper: 2-hop"),
        ],
        rows,
        caption="nell-paper is the paper's NELL; the published nell lacks 830 entries.",
    )
    if not same and not different:
        return [Verdict(None, "Table 1: none of the paper's own data sets was counted.")]
    text = "Table 1: V, E, degree and 2-hop as rounded in the paper"
    if same:
        text += f"; the same for {', '.join(same)}"
    if different:
        text += f"; different for {', '.join(different)}"
    verdicts = [Verdict(not different, f"{text}.")]
    return undecided(verdicts) if records[0]["quick"] else verdicts


def _agrees(ours: SampledMean, paper: int) -> bool:
    """Return True if both are the same once rounded; for a sample of nodes, within two standard
    errors."""
    if ours.error == 0:
        return ours.rounded() == paper
    return abs(ours.value - paper) <= 2 * ours.error + 0.5


EXPERIMENT = Experiment("table1", "Table 1: the data sets", units, render)
