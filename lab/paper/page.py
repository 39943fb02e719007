"""The page of all experiments that have records: verdicts first, then each table and figure."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from lab.harness.records import Record, in_order, of
from lab.harness.units import planned_epochs, read_records
from lab.harness.version import code_version
from lab.paper.experiment import Experiment, Verdict
from lab.paper.numbers import COLUMNS, NONE, numbers
from lab.paper.settings import setting
from vrgcn import __version__
from vrgcn.files.wording import bytes_text, counted, seconds_text
from vrgcn.pages.page import VERDICTS, Page

PAGE = "report.html"
NOT_NOTED = "an earlier version, not noted"


def write_page(
    experiments: Sequence[Experiment], folder: Path, quick: bool, command: str
) -> dict[str, list[Verdict]]:
    """Write the page from the records in a folder, into it; return the verdicts of each experiment.

    quick: show the records of quick runs, or those of real ones; never both on a page
    """
    body = Page("")
    verdicts: dict[str, list[Verdict]] = {}
    seconds = 0.0
    read: dict[str, list[Record]] = {}
    for experiment in experiments:
        records = read_records(folder / f"{experiment.name}.jsonl")
        records = [record for record in records if record.get("quick", False) == quick]
        if not records:
            continue
        read[experiment.name] = records
        taken = sum(record["seconds"] for record in records)
        seconds += taken
        body.heading(experiment.title)
        verdicts[experiment.name] = experiment.render(records, body, folder)
        for verdict in verdicts[experiment.name]:
            body.verdict(verdict.holds, verdict.text)
        count = counted(len(records), "unit")
        body.text(
            f"{count}, {seconds_text(taken)}; vrgcn {versions(records)}; {experiment.name}.jsonl "
            "has the records, and this command makes them again:"
        )
        body.code("\n".join(commands(experiment.name, records)))
    page = Page(
        "Reproduction of “Stochastic Training of GCNs with Variance Reduction”", contents=True
    )
    if quick:
        page.text("A quick run: everything in its smallest size. The figures mean nothing.")
    page.text(
        f"Made by vrgcn {versions([r for records in read.values() for r in records])}; the page "
        f"by vrgcn {code_version()}, PyTorch {torch.__version__}, {torch.get_num_threads()} "
        f"threads, {machine()}. {seconds_text(seconds)} for all units on this page. The last "
        "command:"
    )
    page.code(command)
    if read and not quick:
        page.heading("Every number that the paper prints")
        page.text(f"{NONE}: not measured, or its data is not here.")
        page.table(COLUMNS, numbers(read))
    page.heading("Verdicts")
    if verdicts:
        page.text(f"{_counts(verdicts)}. The test is part of each sentence.")
    titles = {experiment.name: experiment.title for experiment in experiments}
    for name, found in verdicts.items():
        if found:
            page.heading(titles[name], level=3)
        for verdict in found:
            page.verdict(verdict.holds, verdict.text)
    if not verdicts:
        page.text("There are no records yet.")
    page.append(body)
    page.write(folder / PAGE)
    return verdicts


def versions(records: Sequence[Record]) -> str:
    """Return the code versions that made the records, with their counts if there were several."""
    made = Counter(str(record.get("version", NOT_NOTED)) for record in records)
    if len(made) <= 1:
        return "".join(made) or __version__
    return "; ".join(f"{version} ({count} units)" for version, count in made.items())


def commands(name: str, records: Sequence[Record]) -> list[str]:
    """Return the fewest commands that make these records: data sets with as many runs and epochs
    together. Algorithms with fewer runs than others get more."""
    quick = " --quick" if records[0].get("quick") else ""
    groups: dict[tuple[int, str], list[str]] = {}
    for dataset in in_order(records, "dataset"):
        mine = of(records, dataset=dataset)
        runs = 1 + max(record.get("seed", 0) for record in mine)
        groups.setdefault((runs, _epochs(name, mine)), []).append(dataset)
    return [
        f"vrgcn reproduce {name} --datasets {' '.join(datasets)}"
        + ("" if name == "table1" else f" --runs {runs}")
        + epochs
        + quick
        for (runs, epochs), datasets in groups.items()
    ]


def _epochs(name: str, records: Sequence[Record]) -> str:
    """Return the option that cuts epochs, if these have fewer than the settings say."""
    if name in ("table1", "table2", "table4", "fig-correlation") or records[0].get("quick"):
        return ""
    paper = setting(records[0]["dataset"])
    curves = name in ("fig-loss", "fig-accuracy")
    wanted = paper.convergence_epochs if curves else paper.train.epochs
    fewest = min(planned_epochs(record) or wanted for record in records)
    return f" --epochs {fewest}" if fewest < wanted else ""


def _counts(verdicts: dict[str, list[Verdict]]) -> str:
    """Return the counts of each kind, such as "holds: 3, does not hold: 1"."""
    found = Counter(verdict.holds for part in verdicts.values() for verdict in part)
    return ", ".join(f"{text}: {found[holds]}" for holds, text in VERDICTS.items() if found[holds])


def machine() -> str:
    """Describe cores, memory and kind of the machine."""
    parts = [f"{os.cpu_count()} cores"]
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        parts.append(f"{bytes_text(memory)} of memory")
    except (AttributeError, OSError, ValueError):  # not on every system
        pass
    return ", ".join([*parts, platform.machine()])
