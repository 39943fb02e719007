"""The page of all experiments that have records: verdicts first, then each table and figure."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from vrgcn import __version__
from vrgcn.experiments.experiment import Experiment, Verdict
from vrgcn.experiments.records import read_records
from vrgcn.files.sizes import bytes_text
from vrgcn.pages.page import VERDICTS, Page
from vrgcn.training.wording import seconds_text

PAGE = "report.html"


def write_page(
    experiments: Sequence[Experiment], folder: Path, quick: bool, command: str
) -> dict[str, list[Verdict]]:
    """Write the page from the records in a folder, into it; the verdicts of each experiment.

    quick: show the records of quick runs, or those of real ones; never both on a page
    """
    body = Page("")
    verdicts: dict[str, list[Verdict]] = {}
    seconds = 0.0
    for experiment in experiments:
        records = read_records(folder / f"{experiment.name}.jsonl")
        records = [record for record in records if record.get("quick", False) == quick]
        if not records:
            continue
        taken = sum(record["seconds"] for record in records)
        seconds += taken
        body.heading(experiment.title)
        verdicts[experiment.name] = experiment.render(records, body, folder)
        for verdict in verdicts[experiment.name]:
            body.verdict(verdict.holds, verdict.text)
        count = "1 unit" if len(records) == 1 else f"{len(records)} units"
        body.text(f"{count}, {seconds_text(taken)}; {experiment.name}.jsonl has the records.")
    page = Page(
        "Reproduction of “Stochastic Training of GCNs with Variance Reduction”", contents=True
    )
    if quick:
        page.text("A quick run: everything in its smallest size. The figures mean nothing.")
    page.text(
        f"vrgcn {__version__}, PyTorch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"{machine()}; {seconds_text(seconds)} for all units on this page. The last command:"
    )
    page.code(command)
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


def _counts(verdicts: dict[str, list[Verdict]]) -> str:
    """How many of each kind, such as "holds: 3, does not hold: 1"."""
    found = Counter(verdict.holds for part in verdicts.values() for verdict in part)
    return ", ".join(f"{text}: {found[holds]}" for holds, text in VERDICTS.items() if found[holds])


def machine() -> str:
    """Cores, memory and kind of the machine."""
    parts = [f"{os.cpu_count()} cores"]
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        parts.append(f"{bytes_text(memory)} of memory")
    except (AttributeError, OSError, ValueError):  # not on every system
        pass
    return ", ".join([*parts, platform.machine()])
