"""`vrgcn report`: one page of one or several runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vrgcn.cli.notes import print_note
from vrgcn.cli.options import ReportOptions
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.files.printable import printable
from vrgcn.pages.figures import check_figure
from vrgcn.pages.page import Page
from vrgcn.pages.runs.curves import show_curves, show_staleness
from vrgcn.pages.runs.records import Record, by_graph, read_runs
from vrgcn.pages.runs.scores import NoScores, RunScores, Scorer, scores_name, show_scores
from vrgcn.pages.runs.seeds import show_seeds
from vrgcn.pages.runs.tables import show_options, show_results
from vrgcn.runs.folder import CONFIG, TRIAL, TRIALS, member_runs
from vrgcn.training.progress import progress_bar

_SUFFIXES = (".html", ".htm")


def run_report(options: ReportOptions) -> None:
    """Read the runs, predict where asked to, write the page."""
    use_threads(options.threads)
    device = find_device(options.device)
    check_figure(options.out, _SUFFIXES)
    folders = [run for folder in _folders(options.runs) for run in member_runs(folder) or [folder]]
    records = read_runs(folders)
    page = Page(_title(records), contents=True)
    for record in records:
        if record.result is None:
            page.note(_unfinished(record))
    page.heading("Results")
    show_results(page, records)
    show_seeds(page, records)
    graphs = by_graph(records)
    styles = {record.label: style for style, record in enumerate(records)}
    for graph, runs in graphs.items():
        page.heading(_on("Curves", graph, graphs))
        show_curves(page, runs, styles)
    for graph, runs in graphs.items():
        page.heading(_on("Staleness", graph, graphs))
        show_staleness(page, runs, styles)
    page.heading("Options")
    show_options(page, records)
    if options.scores:  # not of trials, which are chosen by validation alone
        scored = by_graph(r for r in records if not _is_trial(r.folder.resolve()))
        _add_scores(page, scored, Scorer(options.data_root, device))
    page.write(options.out)
    twice = len(folders) - len(records)
    if twice:
        print_note(f"{twice} of the folders were given more than once; each run is shown once")
    count = "1 run" if len(records) == 1 else f"{len(records)} runs"
    print(f"report of {count}: {printable(options.out)}")


def _add_scores(page: Page, graphs: dict[str, list[Record]], scorer: Scorer) -> None:
    total = sum(map(len, graphs.values()))
    with progress_bar() as progress:
        task = progress.add_task("predicting", total=total)

        def score_run(record: Record) -> RunScores | NoScores:
            answer = scorer(record)
            progress.advance(task)
            return answer

        failed = []
        for graph, runs in graphs.items():
            page.heading(_on(scores_name(runs), graph, graphs))
            failed += show_scores(page, runs, score_run)
    for line in failed:
        print_note(line)


def _is_trial(folder: Path) -> bool:
    """Whether `vrgcn tune` wrote a run as one of its trials; a folder of one's own may be called
    like theirs."""
    named = folder.parent.name == TRIALS and folder.name.startswith(TRIAL)
    return named and (folder.parents[1] / CONFIG).is_file()


def _folders(given: Sequence[Path]) -> list[Path]:
    """Without the files among them: `runs/*` names pages and pictures too, and no run is a file."""
    files = [path for path in given if path.is_file()]
    if files and len(files) < len(given):
        names = ", ".join(path.name for path in files)
        print_note(f"left out, for a run is a folder: {names}")
        return [path for path in given if path not in files]
    return list(given)


def _title(records: Sequence[Record]) -> str:
    if len(records) == 1:
        return f"{records[0].label} on {records[0].graph}"
    graphs = list(by_graph(records))
    where = graphs[0] if len(graphs) == 1 else f"{len(graphs)} graphs"
    return f"{len(records)} runs on {where}"


def _unfinished(record: Record) -> str:
    text = f"{record.label}: still training, or stopped early; {record.epochs} epochs are shown"
    if record.torn:
        text += ", the line of the next was cut off"
    return text + f". {scores_name([record])} are of its best model so far."


def _on(heading: str, graph: str, graphs: dict[str, list[Record]]) -> str:
    return f"{heading}: {graph}" if len(graphs) > 1 else heading
