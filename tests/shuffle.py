"""A pytest plugin: tests in a random order that can be repeated, and a record of it.

    python -m pytest -p tests.shuffle --order=17                  the order of seed 17
    python -m pytest -p tests.shuffle --order=LOGS/gw0.txt        the tests of a file, in its order

Files are shuffled, and tests within their file, so that fixtures of a file are made once.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

FAILED = "failed"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", help="a seed, or a file with a test a line")
    parser.addoption("--order-log", help="a folder: what each process ran, and what failed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = config.getoption("--order")
    if order is not None:
        named = {item.nodeid: item for item in items}
        items[:] = [named[name] for name in ordered(list(named), order) if name in named]


def ordered(names: list[str], order: str) -> list[str]:
    """The names of tests in the order of a seed, or those of a file."""
    if not order.isdigit():
        return Path(order).read_text(encoding="utf-8").splitlines()
    files: dict[str, list[str]] = {}
    for name in names:
        files.setdefault(name.split("::")[0], []).append(name)
    draw, shuffled = random.Random(int(order)), list(files.values())
    draw.shuffle(shuffled)
    for tests in shuffled:
        draw.shuffle(tests)
    return [name for tests in shuffled for name in tests]


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--order-log")
    if folder is not None:
        config.pluginmanager.register(_Log(Path(folder)))


class _Log:
    def __init__(self, folder: Path) -> None:
        self.folder, self.worker = folder, os.environ.get("PYTEST_XDIST_WORKER")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.worker:  # the process that starts the others is told of each test too
            self._write(self.worker, nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self.worker and report.failed:  # a process that died reports nothing itself
            self._write(FAILED, f"{report.node.gateway.id} {report.nodeid}")

    def _write(self, name: str, line: str) -> None:
        with (self.folder / f"{name}.txt").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
