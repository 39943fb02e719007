"""Which graph is meant by a word, a name or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.data.sources import META, find_source


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_graph(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / META).touch()


def test_a_word_is_the_folder_or_the_data_set_that_there_is(here: Path) -> None:
    make_graph(here / "graphs" / "mine")
    (here / "pubmed").mkdir()  # for example for its raw files
    assert find_source(None, None, "graphs/mine") == (None, Path("graphs/mine"))
    assert find_source(None, None, "cora") == ("cora", None)
    assert find_source(None, None, "ogbn-arxiv") == ("ogbn-arxiv", None)
    assert find_source(None, None, "pubmed") == ("pubmed", None)


def test_a_word_that_is_both_is_asked_back(here: Path) -> None:
    make_graph(here / "cora")
    with refused():
        find_source(None, None, "cora")
    assert find_source("cora", None) == ("cora", None)
    assert find_source(None, Path("cora")) == (None, Path("cora"))


def test_none_where_one_is_needed_and_more_than_one_are_told_apart(here: Path) -> None:
    with refused():
        find_source(None, None)
    assert find_source(None, None, needed=False) == (None, None)
    with refused():
        find_source("ppi", Path("g"), "cora")


def test_a_folder_given_as_a_name_says_which_flag(here: Path) -> None:
    make_graph(here / "mine")
    with refused():
        find_source("mine", None)
