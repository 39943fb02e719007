"""Messages of errors, compared with the ones that a person has read: `with refused(): …`.

Each folder of tests has its messages in one file, `messages.txt`, by test. `make messages` writes
them anew and prints what changed: read that as the user will. This module is a pytest plugin, which
conftest.py registers; it fails a test whose messages differ, and an entry that no test has made.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from vrgcn.files.mistakes import InputError

TESTS = Path(__file__).parent
NAME = "messages.txt"
WRITE = os.environ.get("VRGCN_MESSAGES") == "write"

Messages = dict[str, list[str]]  # by the test, as `test_file.py::test_name[case]`

# What differs between machines and runs, and what stands for it.
_VARYING = {
    # A folder of pytest's for one test or one fixture, wherever temporary files are.
    r"[^\s'\"(:=]*/pytest-of-[^/]+/pytest-\d+(/popen-gw\d+)?/[\w.-]+": "/tmp",
    r"postgresql://postgres:@/[^\s#]+": "postgresql://…",  # the server of the tests
    r"the disk at (?!/tmp/)\S+ is full": "the disk at … is full",
    r"[\d.]+ [kMGT]?B are (needed|free)": r"… are \1",
    r"(the process (has|may allocate)) [\d.]+ [kMGT]?B": r"\1 …",
    r"\b0x[0-9a-f]{6,}": "0x…",
    r"line \d+ column \d+ \(char \d+\)": "line …",  # of JSON that holds versions
    r"\b[0-9a-f]{32}\b": "…",  # of a file that is being written
}


@contextmanager
def refused(
    error: type[BaseException] | tuple[type[BaseException], ...] = InputError,
    varying: str | None = None,
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error whose whole message is the next of this test in messages.txt.

    varying: a pattern of what else differs from run to run or between machines; it becomes "…"
    """
    with pytest.raises(error) as caught:
        yield caught
    message = shown(str(caught.value))
    if varying is not None:
        assert re.search(varying, message), f"no {varying} in {message}"
        message = re.sub(varying, "…", message)
    assert _Test.running is not None, "refused() is for the body of a test"
    _Test.running.compare(message)


def shown(message: str) -> str:
    """A message without what varies, and with nothing that moves a terminal's cursor."""
    for pattern, replacement in _VARYING.items():
        message = re.sub(pattern, replacement, message)
    return "".join(x if x.isprintable() or x == "\n" else ascii(x)[1:-1] for x in message)


class _Test:
    """A test that runs: where its messages are, and those that it has made so far."""

    running: _Test | None = None

    def __init__(self, file: Path, name: str) -> None:
        self.golden, self.name = golden_of(file), key(file, name)
        self.made: list[str] = []

    @property
    def expected(self) -> list[str]:
        return read(self.golden).get(self.name, [])

    def compare(self, message: str) -> None:
        """Compare the next message; one that comes again at once, as in a loop, has one entry."""
        if self.made[-1:] == [message]:
            return
        number = len(self.made)
        self.made.append(message)
        if WRITE:
            return
        known = self.expected[number] if number < len(self.expected) else None
        what = f"message {number + 1} of {self.name}"
        assert message == known, f"{_advice(what, self.golden)}\nnow: {message}\nwas: {known}"

    def finish(self) -> None:
        assert WRITE or len(self.made) == len(self.expected), _advice(
            f"{self.name} makes {len(self.made)} messages", self.golden
        )


def _advice(what: str, golden: Path) -> str:
    return f"{what}: not as in {golden.relative_to(TESTS.parent)}; `make messages` writes it"


def golden_of(file: Path) -> Path:
    """The file of messages of a file of tests: one for each folder directly below tests/."""
    below = file.relative_to(TESTS).parts
    return TESTS.joinpath(*below[:1], NAME) if len(below) > 1 else TESTS / NAME


def key(file: Path, name: str) -> str:
    return f"{file.relative_to(golden_of(file).parent).as_posix()}::{name}"


@cache
def read(golden: Path) -> Messages:
    """The messages of a file; none if it does not exist."""
    return parse(golden.read_text(encoding="utf-8")) if golden.is_file() else {}


def parse(text: str) -> Messages:
    """A test a line, below it each of its messages after `  - `, further lines after 4 spaces."""
    messages: Messages = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("  - "):
            lines.append(line[4:])
        elif line.startswith("    "):
            lines[-1] += "\n" + line[4:]
        elif line:
            lines = messages.setdefault(line, [])
    return messages


def write(messages: Messages) -> str:
    """The text of a file of messages, in the order of the tests' names."""
    return "\n".join(
        "\n".join([name, *("  - " + "\n    ".join(text.split("\n")) for text in texts), ""])
        for name, texts in sorted(messages.items())
        if texts
    )


# What pytest calls.


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if isinstance(item, _Stale):
        return (yield)
    _Test.running = test = _Test(item.path, item.nodeid.partition("::")[2])
    try:
        yield
    finally:
        _Test.running = None
    test.finish()
    item.user_properties.append(("messages", [str(test.golden), test.name, test.made]))
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Before any test is left out by its name or its mark: add a test that fails for each file of
    messages with an entry of no test. To write messages, keep only files of tests that have any."""
    whole = not config.getoption("lf", False) and not any(
        "::" in argument for argument in config.args
    )
    names: dict[Path, set[str]] = {}
    for item in items:
        names.setdefault(item.path, set()).add(key(item.path, item.nodeid.partition("::")[2]))
    if WRITE:
        items[:] = [item for item in items if "refused(" in _source(item.path)]
    for golden in sorted({golden_of(file) for file in names}) if whole else ():
        stale = stale_entries(golden, names)
        if stale:
            items.append(_Stale.from_parent(session, name=f"stale:{golden}", stale=stale))


@cache
def _source(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def stale_entries(golden: Path, names: dict[Path, set[str]]) -> list[str]:
    """Entries of tests that are not in their file, as far as `names` has the file, or whose file
    has gone."""
    stale = []
    for name in read(golden):
        file = golden.parent / name.partition("::")[0]
        if name not in names[file] if file in names else not file.is_file():
            stale.append(name)
    return stale


class _Stale(pytest.Item):
    """Fails with the entries that no test makes."""

    def __init__(self, *, stale: list[str], **settings: Any) -> None:
        super().__init__(**settings)
        self.golden, self.stale = Path(self.name.removeprefix("stale:")), stale

    def runtest(self) -> None:
        if not WRITE:
            pytest.fail(_advice(f"no test makes {', '.join(self.stale)}", self.golden), False)
        self.user_properties += [("messages", [str(self.golden), x, []]) for x in self.stale]


class Written:
    """Writes what the tests made, in the process that the others report to; a test that was
    skipped or failed keeps its entry."""

    def __init__(self) -> None:
        self.made: dict[Path, Messages] = {}
        self.changes: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            for what, made in report.user_properties:
                if what == "messages":
                    golden, name, messages = made  # type: ignore[misc]
                    self.made.setdefault(Path(golden), {})[name] = messages

    def pytest_sessionfinish(self) -> None:
        for golden, made in sorted(self.made.items()):
            before = write(read(golden))
            after = write(read(golden) | made)
            if after == before:
                continue
            golden.write_text(after, encoding="utf-8")
            name = str(golden.relative_to(TESTS.parent))
            lines = (before.split("\n"), after.split("\n"))
            self.changes += difflib.unified_diff(*lines, name, name, n=1, lineterm="")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.write("\n".join([*self.changes, ""]))


def pytest_configure(config: pytest.Config) -> None:
    if WRITE and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Written())
