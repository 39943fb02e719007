"""The door to `lab`: commands that need it find it beside the package, or say where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from vrgcn.cli import COMMANDS, lab

ROOT = Path(__file__).resolve().parents[2]
EVERY_MODULE = """
import pkgutil, sys
import vrgcn
names = [module.name for module in pkgutil.walk_packages(vrgcn.__path__, "vrgcn.")]
names.remove("vrgcn.__main__")
for name in names:
    __import__(name)
assert not [name for name in sys.modules if name.split(".")[0] == "lab"]
print(len(names), vrgcn.__file__)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the files that the wheel has, and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for package in build["targets"]["wheel"]["packages"]:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    return folder


def run(
    installed: Path, *arguments: object, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Python in which the wheel's files are all there is of this project.

    -S: an editable install would put the repository on the path.
    """
    path = os.pathsep.join([str(installed), sysconfig.get_paths()["purelib"]])
    return subprocess.run(
        [sys.executable, "-S", *map(str, arguments)],
        check=False, capture_output=True, text=True, cwd=cwd or installed,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip


def test_no_module_of_the_wheel_needs_lab(installed):
    done = run(installed, "-W", "ignore", "-c", EVERY_MODULE)
    assert done.returncode == 0, done.stderr
    count, file = done.stdout.split()
    assert int(count) > 200
    assert Path(file).parent == installed / "vrgcn"


def test_the_help_of_the_wheel_has_every_command(installed):
    done = run(installed, "-m", "vrgcn", "--help")
    assert all(f"  {command} " in done.stdout for command in COMMANDS)
    assert "--sections" in run(installed, "-m", "vrgcn", "bench", "--help").stdout


@pytest.mark.parametrize("words", [("bench", "--quick"), ("reproduce", "table1")])
def test_without_lab_a_command_that_needs_it_says_how_to_get_it(installed, words):
    done = run(installed, "-m", "vrgcn", *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"vrgcn: error: vrgcn {words[0]} is research code")
    assert "not part of the installed package. Clone the repository" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_lab_a_bad_flag_is_still_named(installed):
    done = run(installed, "-m", "vrgcn", "bench", "--sections", "speed")
    assert done.returncode == 2
    assert "--sections" in done.stderr


def test_a_package_of_another_project_called_lab_is_not_taken_for_it(installed, tmp_path):
    (tmp_path / "lab.py").write_text("raise RuntimeError('imported')")
    done = run(installed, "-m", "vrgcn", "reproduce", "all", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("vrgcn: error: vrgcn reproduce is research code")


def test_lab_beside_the_package_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [p for p in sys.path if Path(p).resolve() != ROOT])
    for name in [name for name in sys.modules if name.split(".")[0] == "lab"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.chdir(tmp_path)
    module = lab.open_lab("bench", "lab.bench.scale")
    assert Path(module.__file__) == ROOT / "lab" / "bench" / "scale.py"
