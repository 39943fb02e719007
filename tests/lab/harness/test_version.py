"""The code that made a record, by the commit where it is a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.harness.version import code_version
from vrgcn import __version__


@pytest.fixture(autouse=True)
def fresh():
    code_version.cache_clear()
    yield
    code_version.cache_clear()


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_package_that_is_no_checkout_has_its_version(tmp_path):
    assert code_version(tmp_path) == __version__


def test_a_checkout_has_the_commit_and_says_where_files_changed(tmp_path):
    for folder in ("vrgcn", "lab"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    commit, date = git(tmp_path, "log", "-1", "--format=%h %cs", "--abbrev=7").split()
    assert code_version(tmp_path) == f"{__version__}, commit {commit} of {date}"
    (tmp_path / "beside.txt").write_text("neither of the package nor of lab")
    code_version.cache_clear()
    assert "changed" not in code_version(tmp_path)
    for folder in ("vrgcn", "lab"):
        file = tmp_path / folder / "__init__.py"
        file.write_text("x = 1")
        code_version.cache_clear()
        assert code_version(tmp_path).endswith(", changed")
        file.write_text("")


def test_a_package_inside_of_another_projects_checkout_is_not_taken_for_it(tmp_path):
    (tmp_path / "site" / "vrgcn").mkdir(parents=True)
    (tmp_path / "site" / "vrgcn" / "__init__.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "nothing", "--allow-empty")
    assert code_version(tmp_path / "site") == __version__


def test_without_git_there_is_the_version(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert code_version() == __version__
