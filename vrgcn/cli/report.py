"""`vrgcn report`: writes one page about one or several runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vrgcn.cli.command import Options
from vrgcn.cli.flags import Positional
from vrgcn.cli.shared_flags import Device, Threads
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import print_note, printable
from vrgcn.files.writing import PAGES, check_suffix, check_writable
from vrgcn.runs.folder import read_config


@dataclass(frozen=True)
class ReportOptions(Options):
    """Flags of `vrgcn report`."""

    runs: Positional[tuple[Path, ...]]
    """Folders that `vrgcn train` wrote, finished or not."""
    out: Path = Path("report.html")
    """The page to write; an existing page is overwritten."""
    scores: bool = True
    """Predict the test nodes of every run, to get the scores by class."""
    data_root: Path | None = None
    """Folder with the raw files of named data sets. None: where the runs found them."""
    device: Device = "cpu"
    threads: Threads = None

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("give at least one run: a folder that `vrgcn train` wrote")

    def checked(self) -> Self:
        """Raise if the page could not be written or a folder is no run."""
        check_suffix(self.out, PAGES)
        check_writable(self.out.parent)
        for folder in self.runs:
            if not folder.is_file():  # `runs/*` also matches pages and pictures
                read_config(folder)
        return self


def run(options: ReportOptions) -> None:
    """Read the runs, predict if asked, write the page."""
    from vrgcn.pages.runs.report import report
    from vrgcn.training.progress import counting_bar

    with counting_bar("predicting") as on_score:
        shown = report(
            options.runs,
            options.out,
            scores=options.scores,
            data_root=options.data_root,
            device=options.device,
            threads=options.threads,
            on_score=on_score,
        )
    for line in shown.notes:
        print_note(line)
    count = "1 run" if len(shown.records) == 1 else f"{len(shown.records)} runs"
    print(f"report of {count}: {printable(options.out)}")
