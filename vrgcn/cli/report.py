"""`vrgcn report`: writes one page about one or several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vrgcn.cli.command import Options
from vrgcn.cli.flags import Positional
from vrgcn.cli.notes import print_note
from vrgcn.cli.shared_flags import Device, Threads
from vrgcn.files.mistakes import InputError
from vrgcn.files.printable import printable
from vrgcn.pages.destination import PAGES, check_suffix, check_writable
from vrgcn.runs.folder import member_runs, read_config

if TYPE_CHECKING:
    from vrgcn.pages.runs.records import RunRecord
    from vrgcn.pages.runs.scores import NoScores, RunScores


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
    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.pages.figures import check_figure
    from vrgcn.pages.runs.records import read_runs
    from vrgcn.pages.runs.report import Reported, report_page
    from vrgcn.pages.runs.scores import RunScorer
    from vrgcn.training.progress import progress_bar

    use_threads(options.threads)
    device = find_device(options.device)
    check_figure(options.out, PAGES)
    folders = [run for folder in _folders(options.runs) for run in member_runs(folder) or [folder]]
    records = read_runs(folders)
    scorer = RunScorer(options.data_root, device)
    with progress_bar() as progress:

        def score(record: RunRecord) -> RunScores | NoScores:
            if not progress.tasks:
                progress.add_task("predicting", total=len(runs.scored()))
            answer = scorer(record)
            progress.advance(progress.task_ids[0])
            return answer

        runs = Reported(records, score if options.scores else None)
        page = report_page(runs)
    for line in runs.notes:
        print_note(line)
    page.write(options.out)
    twice = len(folders) - len(records)
    if twice:
        print_note(f"{twice} of the folders were given more than once; each run is shown once")
    count = "1 run" if len(records) == 1 else f"{len(records)} runs"
    print(f"report of {count}: {printable(options.out)}")


def _folders(given: Sequence[Path]) -> list[Path]:
    """Return the folders among the paths: `runs/*` also matches pages and pictures, and no run is a
    file."""
    files = [path for path in given if path.is_file()]
    if files and len(files) < len(given):
        names = ", ".join(path.name for path in files)
        print_note(f"left out, for a run is a folder: {names}")
        return [path for path in given if path not in files]
    return list(given)
