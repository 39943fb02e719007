"""The league's records as tables in Markdown: scores, seconds, verdicts, published numbers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from lab.harness.records import Record
from lab.league.real_graphs import GRAPHS
from lab.league.rows import LAST
from lab.league.scores import Difference, Scores, with_error

SPLITS = 3  # that every row is run on
MOST_BEHIND = 1.0  # points that the default may be below the best network
# Mean test ROC AUC over the ten official splits (Platonov et al., ICLR 2023).
PUBLISHED = {"tolokers": {"GCN": 83.64, "GraphSAGE": 82.43, "GAT": 83.70}}
WORDS = ("above", "level", "below")


def report(records: Sequence[Record]) -> str:
    """Everything that the records say, as Markdown."""
    return "\n".join(f"## {title}\n\n{text}\n" for title, text in sections(records).items())


def sections(records: Sequence[Record]) -> dict[str, str]:
    """Tables by their titles, as far as the records fill them."""
    scores = Scores(records, SPLITS)
    found = {
        "`tune` beside the best baseline": tune_table(scores),
        "The default beside the best network": default_table(scores),
        "Averaged weights beside the last weights": average_table(scores),
        **{
            f"Published numbers beside ours: {graph}": published_table(records, graph)
            for graph in PUBLISHED
        },
        "All scores": score_table(scores),
        "All seconds": second_table(scores),
        f"Splits that were run, of {SPLITS}": count_table(scores),
    }
    return {title: text for title, text in found.items() if text}


def score_table(scores: Scores) -> str:
    """Test scores in per cent, mean ± standard error: a row for each competitor, a column for each
    graph, the best of a column in bold."""
    best = {
        graph: max(mean[0] for row in scores.rows if (mean := scores.mean(row, graph)) is not None)
        for graph in scores.graphs
    }

    def cell(row: str, graph: str) -> str:
        found = scores.mean(row, graph)
        if found is None:
            return ""
        text = with_error(*found)
        return f"**{text}**" if found[0] == best[graph] else text

    return _by_graph("test score, %", scores, cell)


def second_table(scores: Scores) -> str:
    """Processor seconds of each competitor on each graph, mean over splits."""

    def cell(row: str, graph: str) -> str:
        found = scores.seconds(row, graph)
        return "" if found is None else f"{found:.1f}"

    timed = [row for row in scores.rows if any(cell(row, graph) for graph in scores.graphs)]
    return _by_graph("processor seconds", scores, cell, timed)


def count_table(scores: Scores) -> str:
    """The splits of each competitor on each graph; nothing if all were run."""
    counts = {
        (row, graph): len(scores.tests(row, graph))
        for row in scores.rows
        for graph in scores.graphs
    }
    if set(counts.values()) == {SPLITS}:
        return ""
    return _by_graph("splits", scores, lambda row, graph: str(counts[row, graph]))


def tune_table(scores: Scores) -> str:
    """The search and, on each graph, the baseline with the best mean on the test nodes."""
    rows = [
        (
            *(graph, best.removeprefix("baseline "), _text(scores, best, graph)),
            *(_text(scores, "tune", graph), str(difference), difference.word),
        )
        for graph, best, difference in _against_best(scores)
    ]
    words = tune_words(scores)
    counts = ", ".join(f"{word} on {words.count(word)}" for word in WORDS)
    told = f"`vrgcn tune` and the best baseline, {len(words)} graphs: {counts}."
    headings = ["graph", "best baseline", "its score", "tune", "difference", ""]
    return _table(headings, rows, told) if rows else ""


def tune_words(scores: Scores) -> list[str]:
    """For each graph: whether the search is above, level with or below the best baseline."""
    return [difference.word for _, _, difference in _against_best(scores)]


def _against_best(scores: Scores) -> Iterator[tuple[str, str, Difference]]:
    """Graphs, the baseline with the best mean there, and how far the search is from it."""
    for graph in scores.graphs:
        best = scores.best(graph, ("baseline",))
        difference = None if best is None else scores.difference("tune", best, graph)
        if best is not None and difference is not None:
            yield graph, best, difference


def default_table(scores: Scores) -> str:
    """The default network and, on each graph, the best of all networks."""
    rows, within = [], 0
    for graph in scores.graphs:
        best = scores.best_network(graph)
        if best is None or (difference := scores.difference("default", best, graph)) is None:
            continue
        fine = difference.mean >= -MOST_BEHIND
        within += fine
        rows.append(
            (
                *(graph, best, _text(scores, best, graph), _text(scores, "default", graph)),
                *(str(difference), "yes" if fine else "no"),
            )
        )
    if not any(row[1] != "default" for row in rows):
        return ""  # nothing to compare with
    headings = ["graph", "best network", "its score", "default", "difference", "within a point"]
    told = f"The default is at most a point below the best network on {within} of {len(rows)}."
    return _table(headings, rows, told)


def average_table(scores: Scores) -> str:
    """For each estimator: on how many graphs averaged weights score better than the last ones."""
    rows, gains = [], []
    for row in scores.rows:
        found = [scores.difference(row, row + LAST, graph) for graph in scores.graphs]
        means = [difference.mean for difference in found if difference is not None]
        if not means:
            continue
        gains += means
        rows.append([row, *_won(means)])
    if not rows:
        return ""
    rows.append(["all", *_won(gains)])
    return _table(["estimator", "better", "equal", "worse", "mean gain, points"], rows)


def published_table(records: Sequence[Record], graph: str) -> str:
    """Published means over official splits, and ours with as many splits as each row has."""
    scores = Scores(records)
    official = len(GRAPHS[graph].official)
    rows = [
        [f"{name}, published", str(official), f"{mean:.2f}"]
        for name, mean in PUBLISHED[graph].items()
    ]
    for row in scores.rows:
        tests = list(scores.tests(row, graph).values())
        if len(tests) > SPLITS:
            spread = statistics.stdev(tests)
            text = f"{statistics.mean(tests):.2f} ± {spread:.2f}"
            rows.append([row, str(len(tests)), text])
    if len(rows) == len(PUBLISHED[graph]):
        return ""
    headings = ["", "official splits", f"test {GRAPHS[graph].metric}, %, mean ± deviation"]
    return _table(headings, rows)


def summary_table(scores: Scores) -> str:
    """The best baseline, the default network and the search on each graph."""

    def cell(row: str, graph: str) -> str:
        name = scores.best(graph, ("baseline",)) if row == "best simple baseline" else row
        found = None if name is None else scores.mean(name, graph)
        return "" if found is None else with_error(*found)

    rows = ["best simple baseline", *(r for r in ("default", "tune") if r in scores.rows)]
    return _by_graph("test score, %", scores, cell, rows)


def _won(gains: Sequence[float]) -> list[str]:
    better, worse = sum(g > 0 for g in gains), sum(g < 0 for g in gains)
    mean = f"{statistics.mean(gains):+.2f}"
    return [str(better), str(len(gains) - better - worse), str(worse), mean]


def _text(scores: Scores, row: str, graph: str) -> str:
    found = scores.mean(row, graph)
    assert found is not None
    return with_error(*found)


def _by_graph(
    title: str,
    scores: Scores,
    cell: Callable[[str, str], str],
    rows: Sequence[str] | None = None,
) -> str:
    shown = scores.rows if rows is None else rows
    body = [[row, *(cell(row, graph) for graph in scores.graphs)] for row in shown]
    return _table([title, *scores.graphs], body)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], below: str = "") -> str:
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", below] if below else lines)
