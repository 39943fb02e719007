"""The page of `vrgcn report`: a table of panels, shown one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vrgcn.engine.devices import find_device, use_threads
from vrgcn.files.writing import PAGES, check_out
from vrgcn.pages.figures import check_figure
from vrgcn.pages.page import Page
from vrgcn.pages.runs.curves import show_curves, show_staleness
from vrgcn.pages.runs.records import RunRecord, by_graph, read_runs
from vrgcn.pages.runs.scores import NoScores, RunScorer, RunScores, scores_name, show_scores
from vrgcn.pages.runs.seeds import show_seeds
from vrgcn.pages.runs.tables import show_options, show_results
from vrgcn.runs.folder import CONFIG, TRIAL, TRIALS, member_runs
from vrgcn.runs.run import Run


@dataclass(frozen=True)
class Reported:
    """The runs of a page.

    score: scores a run's model on the test nodes; None: no scores were requested
    notes: lines for the user, which panels add to
    """

    records: Sequence[RunRecord]
    score: Callable[[RunRecord], RunScores | NoScores] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def styles(self) -> dict[str, int]:
        """The number of each run's colour and dashes, by its label."""
        return {record.label: style for style, record in enumerate(self.records)}

    def by_graph(
        self, heading: str | Callable[[Sequence[RunRecord]], str], records: Sequence[RunRecord]
    ) -> Iterator[tuple[str, list[RunRecord]]]:
        """Yield the runs on each graph, with a heading that names the graph if there are
        several."""
        graphs = by_graph(records)
        for graph, runs in graphs.items():
            title = heading if isinstance(heading, str) else heading(runs)
            yield (f"{title}: {graph}" if len(graphs) > 1 else title), runs

    def scored(self) -> list[RunRecord]:
        """The runs whose models are scored: no trials, which are chosen only by validation."""
        if self.score is None:
            return []
        return [r for r in self.records if not _is_trial(r.folder.resolve())]


# A panel adds its heading and the content below it.
Panel = Callable[[Page, Reported], None]


def _unfinished(page: Page, runs: Reported) -> None:
    for record in runs.records:
        if record.result is None:
            text = f"{record.label}: still training, or stopped early; {record.epochs} epochs are"
            torn = ", the line of the next was cut off" if record.torn else ""
            page.note(f"{text} shown{torn}. {scores_name([record])} are of its best model so far.")


def _results(page: Page, runs: Reported) -> None:
    page.heading("Results")
    show_results(page, runs.records)
    show_seeds(page, runs.records)


def _curves(page: Page, runs: Reported) -> None:
    for heading, records in runs.by_graph("Curves", runs.records):
        page.heading(heading)
        show_curves(page, records, runs.styles)


def _staleness(page: Page, runs: Reported) -> None:
    for heading, records in runs.by_graph("Staleness of the histories", runs.records):
        page.heading(heading)
        with page.fold("how old and how far off the tables were, epoch by epoch"):
            show_staleness(page, records, runs.styles)


def _options(page: Page, runs: Reported) -> None:
    page.heading("Options")
    with page.fold("settings of each run, and what differs"):
        show_options(page, runs.records)


def _scores(page: Page, runs: Reported) -> None:
    if runs.score is None:
        return
    for heading, records in runs.by_graph(scores_name, runs.scored()):
        page.heading(heading)
        runs.notes.extend(show_scores(page, records, runs.score))


# The panels, from top to bottom.
PANELS: tuple[Panel, ...] = (_unfinished, _results, _curves, _scores, _options, _staleness)


def report(
    runs: Run | str | Path | Sequence[Run | str | Path],
    out: str | Path = "report.html",
    *,
    scores: bool = True,
    data_root: str | Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    on_score: Callable[[int, int], None] | None = None,
) -> Reported:
    """Write one page about one or several runs, as `vrgcn report` does; return what it shows.

    runs: runs or their folders, finished or not; a folder of several runs stands for them
    out: the page; an existing page is overwritten
    scores: predict the test nodes of every run, to get the scores by class
    data_root: folder with the raw files of named data sets; None: where the runs found them
    device, threads: of the predictions
    on_score: called after each run that was predicted, with 1 and the number of all of them
    """
    use_threads(threads)
    path = Path(out)
    check_out(path, PAGES)
    check_figure(path, PAGES)
    given = [runs] if isinstance(runs, Run | str | Path) else runs
    paths, notes = _folders([run.folder if isinstance(run, Run) else Path(run) for run in given])
    folders = [run for folder in paths for run in member_runs(folder) or [folder]]
    scorer = RunScorer(None if data_root is None else Path(data_root), find_device(device))

    def score(record: RunRecord) -> RunScores | NoScores:
        answer = scorer(record)
        if on_score is not None:
            on_score(1, len(shown.scored()))
        return answer

    shown = Reported(read_runs(folders), score if scores else None, notes)
    report_page(shown).write(path)
    twice = len(folders) - len(shown.records)
    if twice:
        notes.append(f"{twice} of the folders were given more than once; each run is shown once")
    return shown


def _folders(given: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the folders among the paths, and a note if there are others: `runs/*` also matches
    pages and pictures, and no run is a file."""
    files = [path for path in given if path.is_file()]
    if not files or len(files) == len(given):
        return list(given), []
    names = ", ".join(path.name for path in files)
    folders = [path for path in given if path not in files]
    return folders, [f"left out, for a run is a folder: {names}"]


def report_page(runs: Reported) -> Page:
    """Return the page of the runs."""
    page = Page(_title(runs.records), contents=True)
    for panel in PANELS:
        panel(page, runs)
    return page


def _is_trial(folder: Path) -> bool:
    """Return True if `vrgcn tune` wrote a run as one of its trials; a folder of the user's own may
    have the same name."""
    named = folder.parent.name == TRIALS and folder.name.startswith(TRIAL)
    return named and (folder.parents[1] / CONFIG).is_file()


def _title(records: Sequence[RunRecord]) -> str:
    if len(records) == 1:
        return f"{records[0].label} on {records[0].graph}"
    graphs = list(by_graph(records))
    where = graphs[0] if len(graphs) == 1 else f"{len(graphs)} graphs"
    return f"{len(records)} runs on {where}"
