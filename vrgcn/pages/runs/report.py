"""The page of `vrgcn report`: a table of panels, shown one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vrgcn.pages.page import Page
from vrgcn.pages.runs.curves import show_curves, show_staleness
from vrgcn.pages.runs.records import RunRecord, by_graph
from vrgcn.pages.runs.scores import NoScores, RunScores, scores_name, show_scores
from vrgcn.pages.runs.seeds import show_seeds
from vrgcn.pages.runs.tables import show_options, show_results
from vrgcn.runs.folder import CONFIG, TRIAL, TRIALS


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
    for heading, records in runs.by_graph("Staleness", runs.records):
        page.heading(heading)
        show_staleness(page, records, runs.styles)


def _options(page: Page, runs: Reported) -> None:
    page.heading("Options")
    show_options(page, runs.records)


def _scores(page: Page, runs: Reported) -> None:
    if runs.score is None:
        return
    for heading, records in runs.by_graph(scores_name, runs.scored()):
        page.heading(heading)
        runs.notes.extend(show_scores(page, records, runs.score))


# The panels, from top to bottom.
PANELS: tuple[Panel, ...] = (_unfinished, _results, _curves, _staleness, _options, _scores)


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
