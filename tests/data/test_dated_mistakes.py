"""Mistakes in dated tables and in rows with a time of their own: what is wrong, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from tests.data.test_dated_import import FILES, NODES, ROWS, files, imported
from tests.messages import refused
from vrgcn import Graph

__all__ = ["files"]  # the fixture

RESULTS, ROWS_FILE = FILES["results.csv"], FILES["dnf.csv"]
GERMAN = re.compile(r"(\d+)-(\d+)-(\d+)")


def dates(text: str, form: str) -> str:
    """The same table with dates in another format."""
    return GERMAN.sub(form, text)


OPTIONS: dict[str, Mapping[str, object]] = {
    "a kind that is not there": {"dated": ("reslt.date",)},
    "a date without its kind": {"dated": ("date",)},
    "a column that is not there": {"dated": ("result.day",)},
    "two dates of a kind": {"dated": ("result.date", "result.points")},
    "numbers that are no seconds": {"dated": ("result.points",)},
    "texts that are no dates": {"dated": ("result.car",)},
    "a format without a word for it": {"dated": ("result.date=%Y-%m-%d",)},
    "the wrong format": {"dated": ("result.date=date:%d.%m.%Y",)},
    "dates of the rows twice": {"dated": ("result.date", "dnf.date")},
    "dates of a kind without a table": {"dated": ("result.date", "car.since")},
    "nothing dated": {"dated": (), "known_after": None},
    "rows without a kind": {"rows": ("dnf.csv",)},
    "rows of a kind that is not there": {"rows": ("pilot=dnf.csv",), "known_after": None},
    "rows of a misspelt kind": {"rows": ("drivr=dnf.csv",)},
    "rows called as a kind": {"rows": ("driver=team.csv",)},
    "facts that are the rows": {"nodes": (*NODES, "fact=dnf.csv")},
    "edges that are the rows": {"edges": (*ROWS["edges"], "driver-in-team=dnf.csv")},
    "two tables of rows": {"rows": ("driver=dnf.csv", "team=other.csv")},
    "rows without times": {"at": None},
    "a time that is not there": {"at": "day"},
    "times without rows": {"rows": (), "dated": ()},
    "dates without rows": {"rows": (), "dated": ("result.date",), "at": None, "known_after": None},
    "a label that is not there": {"label": ("dnf",)},
    "a split at random": {"ratio": (0.6, 0.2, 0.2)},
    "two splits": {"split": "split", "train_until": "2020", "val_until": "2021"},
    "no end of validation": {"train_until": "2020"},
    "only an end of validation": {"val_until": "2020"},
    "validation before training": {"train_until": "2020-03", "val_until": "2020-02"},
    "no row that early": {"train_until": "2019", "val_until": "2020-02"},
    "a moment that is none": {"train_until": "spring", "val_until": "2020-02"},
    "a window without a unit": {"known_after": "30"},
    "a window that goes back": {"known_after": "-30d"},
    "a window of nothing": {"known_after": "0d"},
    "months": {"known_after": "1 month"},
    "no last fact": {"last": (0, 5)},
    "the same number of facts twice": {"last": (5, 5)},
    "an edge that keeps a column": {"keep": ("for.points",)},
}


@pytest.mark.parametrize("mistake", OPTIONS)
def test_a_mistake_in_the_settings_is_told(mistake: str, files: Path) -> None:
    (files / "x.csv").write_text(FILES["drivers.csv"])
    (files / "drives.csv").write_text("result,team,points\n1,t1,3\n")
    edges = (*ROWS["edges"], "driver-in-car=x.csv", "result-for-team=drives.csv")
    with refused((ValueError, FileNotFoundError)):
        imported(**({"edges": edges} | dict(OPTIONS[mistake])))


TABLES: dict[str, Mapping[str, str]] = {
    "day or month first": {"results.csv": dates(RESULTS, r"\3/\2/\1").replace("10/", "03/")},
    "three formats": {
        "results.csv": RESULTS.replace("2020-02-10", "10.02.2020").replace("2020-06-10", "June 10")
    },
    "milliseconds": {"results.csv": GERMAN.sub("1580000000000", RESULTS)},
    "a day that does not exist": {"results.csv": RESULTS.replace("2020-02-10", "2020-02-31")},
    "a row without a time": {"dnf.csv": ROWS_FILE.replace("d2,2020-02-20", "d2,")},
    "a row of an entity that is not there": {"dnf.csv": ROWS_FILE.replace("d2,2020", "d9,2020")},
    "a fact of an entity that is not there": {"results.csv": RESULTS.replace("4,d2", "4,d7")},
    "a row in two splits": {"dnf.csv": ROWS_FILE + "d1,2020-01-10,1,test\n"},
    "no fact with a date": {"results.csv": GERMAN.sub("", RESULTS)},
    "no split": {"dnf.csv": re.sub(r",\w+\n", "\n", ROWS_FILE)},
    "a split that is none": {"dnf.csv": ROWS_FILE.replace(",val", ",later")},
    "no row for training": {"dnf.csv": ROWS_FILE.replace(",train", ",val")},
    "every fact after training": {"results.csv": RESULTS.replace("2020", "2021")},
}


@pytest.mark.parametrize("mistake", TABLES)
def test_a_mistake_in_the_tables_is_told(mistake: str, files: Path) -> None:
    for name, text in TABLES[mistake].items():
        (files / name).write_text(text)
    with refused():
        imported()


NOTED: dict[str, tuple[dict[str, str], str]] = {
    "rows later than all facts": (
        {},
        "1 row is later than the last fact of all, 2020-06-10: are facts missing?",
    ),
    "a target known after all facts": (
        {"dnf.csv": ROWS_FILE.replace("d2,2020-07-01", "d2,2020-06-01")},
        "1 row has a target that is known only after the last fact of all, 2020-06-10: is the "
        "target complete?",
    ),
    "a fact without a date": (
        {"results.csv": RESULTS.replace("2020-02-10", "")},
        "results.csv: column 'date': 1 row has no date: no row of the task sees them",
    ),
    "some dates with a time zone": (
        {"dnf.csv": GERMAN.sub(r"\g<0>T00:00:00+02:00", ROWS_FILE)},
        "dates of dnf have a time zone, and those of result have none: all are compared in UTC",
    ),
    "the same row twice": (
        {"dnf.csv": ROWS_FILE + "d1,2020-01-10,0,train\n"},
        "dnf.csv: 1 row repeats 'driver' and 'date' of an earlier one, first row 7 (line 8)",
    ),
    "a column that is known later": (
        {
            "results.csv": RESULTS.replace("car\n", "paid\n")
            .replace("red", "2020-01-20")
            .replace("blue", "2020-02-05")
            .replace("green", "2020-02-06")
        },
        "results.csv: column 'paid' is later than 'date' in 2 of the first 5 rows: it says what "
        'was not known yet; leave it out with drop="result.paid", or date the rows by it',
    ),
    "training after validation": (
        {"dnf.csv": ROWS_FILE.replace("d1,2020-05-01,0,val", "d1,2020-02-01,0,val")},
        "dnf.csv: training rows reach 2020-03-01, and rows of validation and test begin on "
        "2020-02-01: training sees facts that are later than those",
    ),
}


def test_rows_of_a_frame_that_is_a_table_of_facts_too_are_refused() -> None:
    rows = pd.DataFrame({"driver": ["a", "b"], "at": ["2020-01-01", "2020-01-02"], "won": [0, 1]})
    with refused():
        Graph.from_tables(
            {"race": rows},
            {("race", "of", "driver"): rows},
            dated={"race": "at"},
            rows=("driver", rows, "at"),
            label="won",
        )


def test_facts_that_are_not_said_to_be_dated_are_refused(files: Path) -> None:
    (files / "pits.csv").write_text("id,driver,when\n1,d1,2020-01-09\n2,d2,2020-02-10\n")
    given = {"nodes": (*NODES, "pit=pits.csv"), "edges": (*ROWS["edges"], "pit-of-driver=pits.csv")}
    with refused():
        imported(**given)
    graph, _ = imported(**given, column=("pit.when=date",))
    assert not graph.relations["pit-of-driver"].one_way


@pytest.mark.parametrize("case", NOTED)
def test_what_is_odd_is_noted(case: str, files: Path) -> None:
    tables, note = NOTED[case]
    for name, text in tables.items():
        (files / name).write_text(text)
    _, summary = imported()
    assert note in summary.warnings


def test_dates_before_1970_and_with_times_of_day_are_dates(files: Path) -> None:
    for name in ("results.csv", "dnf.csv"):
        text = (files / name).read_text().replace("2020-", "1950-")
        (files / name).write_text(text.replace("1950-03-01", "1950-03-10T12:00"))
    graph, summary = imported()
    assert "1950-03-10 12:00" in str(summary)
    assert graph.kept["dnf"]["date"].values[3] == pd.Timestamp("1950-03-10 12:00").timestamp()
