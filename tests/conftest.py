"""Fixtures and settings of all tests: one thread, the same random numbers and terminal, and the
folder of real data.

One thread: the tests' tensors are so small that sharing work costs more than it gains.
The same random numbers: a test draws the same numbers whichever tests ran before it in its process,
and hypothesis tries the same examples, however long each takes.
"""

from __future__ import annotations

import logging
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, settings

from tests import messages
from vrgcn.cli import main
from vrgcn.data import find_dataset

# A shell starts what runs in the background without the one, nohup without the other. Tests of both
# need them, and so do the programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What people set for their terminals and jobs; processes that tests start would have it too.
_OF_USERS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
_OF_JOBS = (
    "PYTHONWARNINGS",
    "VRGCN_DEBUG",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)
for _name in (*_OF_USERS, *_OF_JOBS):
    os.environ.pop(_name, None)
os.environ |= {"TERM": "xterm", "OMP_NUM_THREADS": "1"}

settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")

# Variables that pytest sets, or a library when it is first imported.
_OF_LIBRARIES = ("PYTEST_", "KMP_", "TORCHINDUCTOR_", "_RJEM_")  # the last: polars, for DuckDB

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(messages)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Before the fixtures of a test, those that it shares among them."""
    torch.set_num_threads(1)
    _seed(0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Seed again: fixtures that several tests share drew for the first of them alone."""
    _seed(1)


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the raw files of Cora, CiteSeer, PubMed, NELL and PPI, or a skip."""
    root = Path(os.environ.get("VRGCN_DATA") or _BESIDE)
    for name in ("cora", "citeseer", "pubmed", "nell", "ppi-small"):
        raw = find_dataset(name).raw
        assert raw is not None
        if not raw.present(raw.folder(root)):
            pytest.skip(f"the raw files of {name} are not in {root}; VRGCN_DATA says where")
    return root


@pytest.fixture(scope="session", autouse=True)
def graph_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graphs of real data are made once for all tests, whichever process runs them; those that
    the user has are neither read nor written."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "graphs"
    os.environ["VRGCN_CACHE"] = str(folder)
    return folder


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """A test leaves the process as it was: the next one may be any other."""
    before = _of_process()
    yield
    after = _of_process()
    changed = {name: (before.get(name), after.get(name)) for name in {*before, *after}}
    assert not {name: values for name, values in changed.items() if values[0] != values[1]}


def _of_process() -> dict[str, object]:
    """What a test may change of its process and another one depends on."""
    signals = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT))
    return {
        **{name: os.environ[name] for name in os.environ if not name.startswith(_OF_LIBRARIES)},
        "folder": os.getcwd(),
        "signals": [signal.getsignal(number) for number in signals],
        "torch": (torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "numpy": np.geterr(),
        "logging": (logging.root.level, logging.root.disabled, logging.root.manager.disable),
        "pool": pa.default_memory_pool().backend_name,
        "arrow": (pa.cpu_count(), pa.io_thread_count()),
    }


@pytest.fixture
def vrgcn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run `vrgcn ARGUMENTS` in an empty folder; gives exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            main([str(argument) for argument in arguments])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
