"""What works with what: every row of docs/reference/works-with-what.md as a function that
tries it on a tiny graph, and the page itself.

    python -m tests.works_with_what     writes the page; tests/test_works_with_what.py compares it
"""

from __future__ import annotations

import io
import re
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

import vrgcn
from tests.distributed.processes import commands
from vrgcn.cli import main
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.files.mistakes import InputError
from vrgcn.serve.app import build_app
from vrgcn.serve.bodies import Limits
from vrgcn.serve.service import opened_service

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "works-with-what.md"
NODES, EDGES = 24, 70
BOUGHT = "user-bought-item"


class RefusalError(Exception):
    """One sentence that says why a cell does not work."""


@dataclass(frozen=True)
class Target:
    """What is predicted on which tables.

    imports: flags of the import of nodes and edges of a database; trains: of the training
    """

    tables: str
    name: str
    imports: tuple[str, ...]
    trains: tuple[str, ...] = ()

    @property
    def several(self) -> bool:
        """True if there are several tables of nodes."""
        return self.tables == SEVERAL

    @property
    def labels(self) -> bool:
        return not self.trains

    @property
    def links(self) -> bool:
        """True if links are predicted, whose partners can be recommended."""
        return self.name in ("links", "all relations")

    def __str__(self) -> str:
        return f"{self.name}, {self.tables}"


ONE, SEVERAL = "One table of nodes", "Several tables"
LABELS = "colour, red, green, price"
_LABELS = {
    "classes": ("colour",),
    "several classes": ("red", "green"),
    "numbers": ("price",),
}
TARGETS = (
    *(Target(ONE, name, ("--label", *columns)) for name, columns in _LABELS.items()),
    Target(ONE, "links", (), ("--predict", "edges")),
    Target(ONE, "values", (), ("--predict", "edges.rating")),
    *(
        Target(SEVERAL, name, ("--label", *(f"user.{column}" for column in columns)))
        for name, columns in _LABELS.items()
    ),
    Target(SEVERAL, "links", (), ("--predict", BOUGHT)),
    Target(SEVERAL, "values", (), ("--predict", f"{BOUGHT}.rating")),
    Target(SEVERAL, "all relations", (), ("--predict", "relations")),
)


def write_tables(file: Path) -> None:
    """Write a database: nodes and edges of one kind; users, items, who bought what and who follows
    whom."""
    drawn = torch.Generator().manual_seed(0)

    def number(most: int) -> int:
        return int(torch.randint(most, (), generator=drawn))

    def node(i: int) -> tuple[Any, ...]:
        split = ("train", "train", "val", "test")[i % 4]
        labels = ("red", "green", "blue")[i % 3], i % 2, i // 2 % 2, 10.0 + number(90)
        return (i, number(100) / 10, number(9), f"2026-01-{i + 1:02}", split, *labels)

    def edge(i: int, targets: int) -> tuple[Any, ...]:
        return (
            i % NODES,
            (i * 5 + i // NODES) % targets,
            1 + number(5),
            f"2026-01-{1 + i % 28:02}",
        )

    tables: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
        "item": ("id, weight", [(i, i / 2) for i in range(NODES // 2)])
    }
    for name in ("nodes", "user"):
        tables[name] = f"id, age, size, born, split, {LABELS}", [node(i) for i in range(NODES)]
    for name, ends, targets in (
        ("edges", "source, target", NODES),
        ("bought", "user, item", NODES // 2),
        ("follows", "source, target", NODES),
    ):
        tables[name] = f"{ends}, rating, day", [edge(i, targets) for i in range(EDGES)]
    with closing(sqlite3.connect(file)) as shop, shop:
        for name, (columns, rows) in tables.items():
            shop.execute(f"CREATE TABLE {name} ({columns})")
            places = ",".join("?" * len(rows[0]))
            shop.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


@dataclass
class Trial:
    """The cells of one target: they share a graph, and a run of one epoch on it.

    folder: of this target alone, empty at first
    """

    target: Target
    folder: Path
    count: int = 0

    def __post_init__(self) -> None:
        write_tables(self.folder / "shop.db")
        (self.folder / "some.csv").write_text(self._pairs())

    def _pairs(self) -> str:
        if self.target.name == "all relations":
            return "source,relation,target\n1,bought,2\n"
        return ("user,item" if self.target.several else "source,target") + "\n1,2\n"

    @property
    def graph(self) -> Path:
        return self.folder / "graph"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def new(self, ending: str = "") -> Path:
        """A path where nothing is yet."""
        self.count += 1
        return self.folder / f"new-{self.count}{ending}"

    def vrgcn(self, *arguments: object) -> str:
        """Run a command; return what it prints. An error is a refusal."""
        out, err = io.StringIO(), io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main([str(argument) for argument in arguments])
        except SystemExit as end:
            if end.code:
                raise RefusalError(err.getvalue()) from None
        return out.getvalue()

    def train(
        self, *flags: object, out: Path | None = None, graph: Path | None = None
    ) -> tuple[Path, str]:
        """Train an epoch; return the folder of the run and what was printed."""
        run = out or self.new()
        usual = {
            "--model": "graphsage", "--layers": 2, "--hidden": 4, "--epochs": 1,
            "--estimator": "exact", "--smooth": "never", "--checkpoint-every": 1,
        }  # fmt: skip
        base = [
            word for flag, value in usual.items() if flag not in flags for word in (flag, value)
        ]
        beside = () if "--baseline" in flags else ("--no-baseline",)
        return run, self.vrgcn(
            "train", graph or self.graph, *self.target.trains, *base, *beside, *flags, "--out", run
        )

    def asked(self) -> tuple[object, ...]:
        """The flags that name what to predict."""
        return () if self.target.labels else ("--pairs", self.folder / "some.csv")


Cell = Callable[[Trial], object]


def imported(trial: Trial, out: Path, *, dated: bool = False) -> None:
    """Import the tables from the database.

    dated: keep the dates of nodes and edges, and the ratings; otherwise keep the ratings only if
        they are predicted
    """
    shop, several = f"sqlite:///{trial.folder}/shop.db", trial.target.several
    tables = ["--nodes", f"{shop}#nodes", "--edges", f"{shop}#edges"]
    node, edge = "", ""
    if several:
        tables = ["--nodes", f"user={shop}#user", f"item={shop}#item"]
        tables += ["--edges", f"{BOUGHT}={shop}#bought", f"user-follows-user={shop}#follows"]
        node, edge = "user.", "bought."
    keep = [f"{node}born=date", f"{edge}rating", f"{edge}day=date"] if dated else []
    drop = ["follows.rating", "follows.day"] if several else []
    drop += [] if dated else [f"{node}born", f"{edge}day"]
    if trial.target.name == "values" and not dated:
        keep = [f"{edge}rating"]
    elif not dated:
        drop.append(f"{edge}rating")
    if not trial.target.labels:
        drop += [f"{node}{column}" for column in ("split", *LABELS.split(", "))]
    given = [
        word
        for flag, words in (("--keep", keep), ("--drop", drop))
        if words
        for word in (flag, *words)
    ]
    trial.vrgcn("import", *tables, *given, *trial.target.imports, "--out", out)


def from_database(trial: Trial) -> None:
    imported(trial, trial.graph)


def usual(trial: Trial) -> None:
    """The run that other cells use: GraphSAGE by the exact algorithm."""
    if not trial.run.exists():
        trial.train(out=trial.run)


def trained(*flags: object) -> Cell:
    """Training with some flags."""
    return lambda trial: trial.train(*flags)


def with_auto(trial: Trial) -> None:
    trial.train("--model", "auto", "--estimator", "auto")


def baselines(trial: Trial) -> None:
    _, said = trial.train("--baseline")
    if not said.partition("written to ")[2].partition("\n")[2]:
        raise AssertionError("no baseline is printed, and no error says why")


def by_time(trial: Trial) -> None:
    graph = trial.new()
    imported(trial, graph, dated=True)
    trial.train("--train-until", "2026-01-15", "--val-until", "2026-01-20", graph=graph)


def resumed(trial: Trial) -> None:
    trial.vrgcn("train", "--resume", trial.run, "--epochs", 2)


def smoothed(trial: Trial) -> None:
    run, _ = trial.train("--smooth", "always")
    if vrgcn.load_run(run).saved.smoothing is None:
        raise AssertionError("the model is not smoothed, and no error says why")


def calibrated(trial: Trial) -> None:
    run, _ = trial.train("--calibrate", "always")
    if vrgcn.load_run(run).saved.calibration is None:
        raise AssertionError("the model is not calibrated, and no error says why")


def sets(trial: Trial) -> None:
    run = trial.train("--calibrate", "always")[0] if trial.target.labels else trial.run
    trial.vrgcn("predict", run, *trial.asked(), "--coverage", 0.5, "--out", trial.new(".csv"))


def on_the_run(command: str, *flags: object) -> Cell:
    """A command about the run that has a file to write, called as the last of the flags ends."""
    *given, ending = flags
    return lambda trial: trial.vrgcn(command, trial.run, *given, "--out", trial.new(str(ending)))


def predicted(trial: Trial) -> None:
    trial.vrgcn("predict", trial.run, *trial.asked(), "--out", trial.new(".csv"))


def to_database(trial: Trial) -> None:
    table = f"sqlite:///{trial.folder}/out.db#predictions"
    trial.vrgcn("predict", trial.run, *trial.asked(), "--out", table)


def recommended(trial: Trial) -> None:
    relation = ("--relation", "bought") if trial.target.name == "all relations" else ()
    trial.vrgcn("recommend", trial.run, *relation, "--out", trial.new(".csv"))


def in_parts(trial: Trial) -> None:
    trial.vrgcn("partition", trial.graph, "--parts", 2, "--out", trial.new())


def reordered(trial: Trial) -> None:
    trial.vrgcn("reorder", trial.graph, "--block", 8, "--out", trial.new())


def audited(trial: Trial) -> None:
    trial.vrgcn("audit", trial.graph, *trial.target.trains)


def trained_in_parts(trial: Trial) -> None:
    parts, out = trial.new(), trial.new()
    trial.vrgcn("partition", trial.graph, "--parts", 2, "--out", parts)
    flags = [*trial.target.trains, "--epochs", "1", "--hidden", "4", "--out", str(out)]
    for code, _, errors in commands(2, ["train", str(parts), *flags]):
        if code:
            raise RefusalError(errors)


def diagnosed(trial: Trial) -> None:
    cheap = ("--passes", 2, "--epochs", 1, "--compare", "cvd", "--out", trial.new(".html"))
    trial.vrgcn("diagnose", trial.run, *cheap)


def searched(*flags: object) -> Cell:
    """A search of one trial."""
    cheap = ("--model", "graphsage", "--trials", 1, "--epochs", 1, "--hidden", 4, *flags)
    return lambda trial: trial.vrgcn(
        "tune", trial.graph, *trial.target.trains, *cheap, "--out", trial.new()
    )


def live(trial: Trial) -> None:
    changed = vrgcn.load_run(trial.run).live()
    kinds = trial.target.several
    changed.add_edges((1, 7), BOUGHT if kinds else None)
    if trial.target.labels:
        changed.predict(1)
    else:
        changed.recommend(1)


def served(trial: Trial) -> None:
    with opened_service(trial.run, trial.new(), checkpoint_every=0) as service:
        build_app(service, Limits(), None, loopback=True)
        if trial.target.labels:
            service.read("1", None, 1)
        else:
            service.recommend("1", None, 2)


def scikit(trial: Trial) -> None:
    if trial.target.labels:
        graph = vrgcn.load_graph(trial.graph)
        numbers = graph.task == "regression"
        known = vrgcn.VRGCNRegressor if numbers else vrgcn.VRGCNClassifier
        known(epochs=1, hidden=4).fit(graph)
        return
    predict = trial.target.trains[1]
    settings = {} if predict == BOUGHT else {"predict": predict}
    pairs = [[i % NODES, i % 5] for i in range(EDGES)]
    vrgcn.VRGCNRecommender(epochs=1, hidden=4, settings=settings).fit(torch.tensor(pairs).numpy())


@dataclass(frozen=True)
class Row:
    """A row of the page.

    slow: its cells need processes: they are tried by `make soak`
    """

    group: str
    name: str
    cell: Cell
    slow: bool = False


def _estimators() -> list[Row]:
    flags = ("--fanout", 1, "--batch-size", 8)
    return [
        Row("Estimators", f"`{name}`", trained("--estimator", name, *flags))
        for name in (*ESTIMATORS, "few/corrected/corrected/raw")
        if name != "exact"
    ]


ROWS = (
    Row("Import", "tables of a database", from_database),
    Row("Models", "`graphsage`", usual),  # before those that need its run
    *(
        Row("Models", f"`{name}`", trained("--model", name))
        for name in ("gcn", "residual", "mlp", "lightgcn")
    ),
    Row("Models", "`--learned-rows`", trained("--learned-rows")),
    Row("Models", "`--node-embeddings`", trained("--node-embeddings")),
    Row("Models", "`--neighbour-labels`", trained("--neighbour-labels")),
    Row("Models", "`--order before`", trained("--order", "before")),
    Row("Estimators", "`exact`", usual),
    *_estimators(),
    Row("Training", "model and estimator chosen", with_auto),
    Row("Training", "`--resume`", resumed),
    Row("Training", "`--seeds`", trained("--seeds", 2), slow=True),
    Row("Training", "`--ratio`", trained("--ratio", 0.6, 0.2, 0.2)),
    Row("Training", "`--train-until`", by_time),
    Row("Training", "`--leave-one-out`", trained("--leave-one-out")),
    Row("Training", "`--inductive`", trained("--inductive")),
    Row("Training", "a baseline beside it", baselines),
    Row("Training", "`--calibrate always`", calibrated),
    Row("Training", "`--smooth always`", smoothed),
    Row("Training", "`tune`", searched("--no-baselines"), slow=True),
    Row("Training", "`tune` with baselines", searched(), slow=True),
    Row("Where it runs", "`--memory disk`", trained("--memory", "disk")),
    Row("Where it runs", "`--batches blocks`", trained("--batches", "blocks", "--batch-size", 8)),
    Row("Where it runs", "`partition`", in_parts),
    Row("Where it runs", "`torchrun` on parts", trained_in_parts, slow=True),
    Row("Where it runs", "`reorder`", reordered),
    Row("After training", "`evaluate`", on_the_run("evaluate", ".html")),
    Row("After training", "`report`", on_the_run("report", ".html"), slow=True),
    Row("After training", "`predict`", predicted),
    Row("After training", "`predict` to a database", to_database),
    Row("After training", "`predict --coverage`", sets),
    Row("After training", "`recommend`", recommended),
    Row("After training", "`embed`", on_the_run("embed", ".csv")),
    Row("After training", "`explain`", on_the_run("explain", "--nodes", 1, ".json")),
    Row("After training", "`audit`", audited),
    Row("After training", "`diagnose`", diagnosed, slow=True),
    Row("After training", "`Run.live`", live),
    Row("After training", "`serve`", served),
    Row("From Python", "scikit-learn", scikit),
)
YES = "yes"
# What each cell is, by target and row: YES, or the sentence of the refusal.
Results = dict[tuple[str, str], str]


def tried(target: Target, folder: Path, rows: Sequence[Row]) -> Results:
    """Try some rows of a target."""
    trial = Trial(target, folder)
    return {(str(target), row.name): _tried(trial, row) for row in ROWS if _needed(row, rows)}


def _needed(row: Row, rows: Sequence[Row]) -> bool:
    return row in rows or row.cell in (from_database, usual)


def _tried(trial: Trial, row: Row) -> str:
    try:
        row.cell(trial)
    except (RefusalError, InputError) as error:
        return _sentence(str(error), trial.folder)
    return YES


def _sentence(error: str, folder: Path) -> str:
    """The text of an error without the command, its hint and the folder of the trial."""
    text = error.replace(f"{folder}/", "").replace("\n(vrgcn", "\0").partition("\0")[0]
    found = re.sub(r"^vrgcn[ \w]*: error: ", "", text).strip()
    assert "\n" not in found, found
    return found


_HEAD = """# Works with what

What is predicted, beside everything that can be done with it. A number stands for a refusal, whose sentence is [below](#refusals). Refusals
are gaps to close, except where nothing is asked: labels of nodes have no partners to recommend.

`python -m tests.works_with_what` writes this page: it tries every cell on a tiny graph. `tests/test_works_with_what.py` compares the
page with what it finds.
"""  # noqa: E501


def page(results: Results) -> str:
    """The text of the page."""
    texts = [
        results[str(target), row.name]
        for tables in (ONE, SEVERAL)
        for row in ROWS
        for target in TARGETS
        if target.tables == tables
    ]
    refusals = [text for text in dict.fromkeys(texts) if text != YES]
    sections = [_HEAD, *(_section(tables, results, refusals) for tables in (ONE, SEVERAL))]
    lines = [f"{number}. ``{text}``" for number, text in enumerate(refusals, start=1)]
    return "\n".join([*sections, "## Refusals\n", *lines, ""])


def _section(tables: str, results: Results, refusals: Sequence[str]) -> str:
    targets = [target for target in TARGETS if target.tables == tables]
    lines = [f"## {tables}\n", f"| | {' | '.join(target.name for target in targets)} |"]
    lines.append("|---" * (len(targets) + 1) + "|")
    for group, rows in groupby(ROWS, lambda row: row.group):
        lines.append(f"| **{group}** |" + " |" * len(targets))
        for row in rows:
            texts = [results[str(target), row.name] for target in targets]
            cells = [text if text == YES else str(refusals.index(text) + 1) for text in texts]
            lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def read(text: str) -> Results:
    """The results that a page shows."""
    refusals = dict(re.findall(r"(?m)^(\d+)\. ``(.*)``$", text))
    found: Results = {}
    for tables in (ONE, SEVERAL):
        lines = text.partition(f"## {tables}\n")[2].partition("\n## ")[0].splitlines()
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line]
        targets = [f"{name}, {tables}" for name in rows[0][1:]]
        for name, *cells in rows[2:]:
            for target, cell in zip(targets, cells, strict=True):
                if cell:
                    found[target, name] = refusals.get(cell, cell)
    return found


def write() -> None:
    results: Results = {}
    for target in TARGETS:
        with tempfile.TemporaryDirectory() as folder:
            results |= tried(target, Path(folder), ROWS)
        print(target)
    PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    write()
