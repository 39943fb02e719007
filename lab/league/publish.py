"""The page of the league and its part of the summary of results, written from records alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import vrgcn
from lab.harness.blocks import write_block
from lab.harness.records import Record, in_order
from lab.league.picture import draw
from lab.league.real_graphs import GRAPHS
from lab.league.scores import Scores
from lab.league.table import SPLITS, WORDS, report, summary_table, tune_words
from vrgcn.baselines import RECIPES
from vrgcn.files.writing import write_text

ROOT = Path(vrgcn.__file__).resolve().parents[1]
RECORDS, PAGE = "docs/results/league.jsonl", "docs/results/league.md"
SUMMARY = "docs/results/summary.md"
PICTURE = "images/league.png"  # from the folder docs
BLOCK, BEFORE = "league", "## The paper, reproduced"

_HEAD = """# The league: real graphs, simple baselines, networks

A program writes this page from [its records](league.jsonl): nobody types its numbers.

    .venv/bin/python -m lab.league --out results/league.jsonl      # run it, or what is left of it
    .venv/bin/python -m lab.league --show results/league.jsonl     # print the tables
    .venv/bin/python -m lab.league --publish results/league.jsonl  # write this page, the picture

Every (graph, row, split) is a line of the file, and what is there is not run again. `--graphs`,
`--kinds`, `--rows` and `--splits` choose a part. Processes that share the work write to files of
their own; `--show` and `--publish` take several files. The graphs are read from `$VRGCN_DATA`.
`--imported` reads the tables of a graph by `vrgcn import`, as a user would.

- **Scores** are those of the test nodes in per cent, mean ± standard error over {splits}
  (accuracy; ROC AUC on `tolokers`, micro-F1 on `ppi`). Penalties, epochs, settings and averages
  are chosen on the validation nodes.
- **The best baseline** of a graph is the one with the best mean on the *test* nodes, chosen after
  the fact: nobody could have chosen it better.
- **Differences** are formed split by split. Two rows are *level* if their mean difference is
  within one standard error.
- **Seconds** are processor seconds of one thread, fitting and evaluation together.
- `default` is the network of `vrgcn train` without flags. Rows named after an estimator train the
  same network by it and do not smooth its predictions; other networks change the setting that they
  name and are smoothed where validation says so, as the default is. `tune` is the average that
  `vrgcn tune --time-limit {limit}` ends with; the limit counts processor seconds, so that a busy
  machine searches as far as one that does nothing else. The rows `tune: …` are the models that
  the same searches found best by their validation scores.

{versions}

![Points above the best simple baseline, by graph](../images/league.png)
"""


def page(records: Sequence[Record]) -> str:
    """The page as Markdown."""
    scores = Scores(records, SPLITS)
    head = _HEAD.format(splits=_splits(scores), limit=_limit(records), versions=_versions(records))
    about = "\n".join(
        f"| {name} | {GRAPHS[name].about} |" for name in scores.graphs if name in GRAPHS
    )
    recipes = "\n".join(f"| {name} | {recipe.words} |" for name, recipe in RECIPES.items())
    tables = f"| graph | splits |\n|---|---|\n{about}\n\n| baseline | |\n|---|---|\n{recipes}\n"
    return "\n".join([head, report(records), "## Graphs and baselines", "", tables])


def summary_part(records: Sequence[Record]) -> str:
    """The part of the summary: a picture, a table, a sentence."""
    scores = Scores(records, SPLITS)
    count = len([row for row in scores.rows if scores.kind(row) == "baseline"])
    words = tune_words(scores)
    above, level, below = (words.count(word) for word in WORDS)
    return f"""## Beside simple baselines

![Points above the best simple baseline, by graph](../{PICTURE})

{summary_table(scores)}

{len(scores.graphs)} real graphs, {_splits(scores)}, one thread, mean ± standard error;
{count} baselines from logistic regression to boosted trees, the best of them chosen on the test
nodes of each graph. `vrgcn tune --time-limit {_limit(records)}` is above it on {above}, level with
it (within one standard error) on {level} and below it on {below}; these differences are formed
split by split, over the splits that both have. A score without ± is of one split and does not
compare with a mean over several in its column. [The league](league.md)
has every row, the commits of the records (searches may be older than the rest) and the command
that repeats it."""


def publish(records: Sequence[Record], root: Path) -> None:
    """Write the records, the page, the picture and the summary's part below the folder `root`."""
    # The page is that of the records as they are written, whatever files they came from.
    records = list({(r["graph"], r["row"], r["split"]): r for r in records}.values())
    lines = (json.dumps(r, ensure_ascii=False, allow_nan=False) + "\n" for r in records)
    (root / RECORDS).parent.mkdir(parents=True, exist_ok=True)
    write_text(root / RECORDS, "".join(lines))
    write_text(root / PAGE, page(records))
    draw(records, root / "docs" / PICTURE)
    summary = (root / SUMMARY).read_text(encoding="utf-8")
    write_text(root / SUMMARY, write_block(summary, BLOCK, summary_part(records), BEFORE))


def _splits(scores: Scores) -> str:
    """How many splits each row has on a graph, in words."""
    counts = {len(scores.tests(row, graph)) for row in scores.rows for graph in scores.graphs}
    counts.discard(0)
    least, most = min(counts), max(counts)
    if most == 1:
        return "one split each"
    return f"{most} splits each" if least == most else f"{least} to {most} splits each"


def _limit(records: Sequence[Record]) -> str:
    """Time limits of the searches, in words."""
    found = in_order([record for record in records if record.get("limit")], "limit")
    return " or ".join(found) or "–"


def _versions(records: Sequence[Record]) -> str:
    """The code that made the records, in words."""
    found = in_order([record for record in records if "version" in record], "version")
    return f"Records of vrgcn {'; '.join(found)}." if found else "The version was not recorded."
