"""The first page is right: its commands run, one after the other, and print what it shows."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks, text
from vrgcn.cli import main
from vrgcn.data.example import write_example

PAGE = "docs/start.md"
SHORT = ("--epochs", "40", "--threads", "1")  # without the race of models, which takes seconds
DIGITS = r"[\d.,]+"


def commands() -> list[list[str]]:
    """The commands of the page's blocks of shell, in their order."""
    lines = "".join(blocks(PAGE, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line]


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    """What the commands print, in a folder with the tables that the demo leaves."""
    monkeypatch.chdir(tmp_path)
    write_example(Path("runs/demo"))
    for program, *arguments in commands():
        assert program == "vrgcn"
        main([*arguments, *SHORT] if arguments[0] == "train" else arguments)
    return capsys.readouterr().out


def test_the_commands_of_the_start_page_run_and_print_what_it_shows(printed):
    first, *shown = blocks(PAGE, "text")
    tables = Path("runs/demo/modules.csv").read_text(encoding="utf-8").splitlines()
    assert set(first.splitlines()) <= set(tables)
    assert len(shown) == 4
    lines = {re.sub(DIGITS, "#", line) for line in printed.splitlines()}
    for line in "".join(shown).splitlines():
        if line != "...":
            assert re.sub(DIGITS, "#", line) in lines, line
    assert Path("report.html").is_file()
    assert len(Path("predictions.csv").read_text(encoding="utf-8").splitlines()) == 656


def test_every_extra_of_the_page_is_one_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = text(PAGE).partition("| extra | for |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z]+)`", " ".join(re.findall(r"(?m)^\| (.*?) \|", table))))
    assert named == {*project["optional-dependencies"]} - {"dev", "docs", "release"}
