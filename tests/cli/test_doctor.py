"""`vrgcn doctor` says what is installed, what is missing and how to get it."""

from __future__ import annotations

from importlib import metadata

import pytest
import torch

from vrgcn import __version__
from vrgcn.cli import doctor
from vrgcn.cli.doctor import DoctorOptions, needed


@pytest.fixture
def requires(monkeypatch):
    lines = [
        "torch>=2.6",
        'matplotlib>=3.9; extra == "plots"',
        'numpy>=999; extra == "future"',
        "no-such-package>=1; (sys_platform == 'linux') and extra == 'absent'",
        'pytest; extra == "dev"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: lines)


def test_versions_threads_and_memory_are_printed(capsys):
    doctor.run(DoctorOptions())
    out = capsys.readouterr().out
    assert out.startswith(f"vrgcn {__version__} on Python 3.")
    assert f"torch {metadata.version('torch')}" in out
    assert f"{torch.get_num_threads()} threads for " in out
    assert " GB of memory free" in out


def test_an_extra_that_is_missing_or_too_old_comes_with_the_line_that_installs_it(requires, capsys):
    doctor.run(DoctorOptions())
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert lines == [
        f"plots   matplotlib {metadata.version('matplotlib')}",
        f"future  numpy {metadata.version('numpy')} is older than 999: pip install 'vrgcn[future]'",
        "absent  no-such-package is missing: pip install 'vrgcn[absent]'",
    ]


def test_every_extra_of_the_package_is_listed_but_those_of_its_developers():
    extras = {package.extra for package in needed()}
    assert {"", "plots", "tune", "db"} <= extras
    assert not extras & {"dev", "docs", "release"}
    assert {"torch", "pyarrow"} <= {package.name for package in needed() if not package.extra}
