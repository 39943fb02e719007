"""A command is one file and one row of the table: nothing else knows of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vrgcn.cli import COMMANDS
from vrgcn.cli.command import Command

COUNT = '''
"""`vrgcn count`: the lines of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_file
from vrgcn.cli.flags import Positional
from vrgcn.cli.shared_flags import Threads
from vrgcn.files.mistakes import InputError


@dataclass(frozen=True)
class CountOptions(Options):
    file: Positional[Path]
    """The file."""
    every: int = 1
    """Count every so many lines."""
    threads: Threads = None

    only_prints: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InputError(f"every must be at least 1, not {self.every}")

    def checked(self) -> Self:
        check_file(self.file, "FILE")
        return replace(self, file=self.file.resolve())


def run(options: CountOptions) -> None:
    import torch

    lines = options.file.read_text().splitlines()
    print(options.file.is_absolute(), len(torch.arange(len(lines))[:: options.every]))
'''


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command `count`, in a file of its own."""
    (tmp_path / "vrgcn_count.py").write_text(COUNT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(COMMANDS, "count", Command("vrgcn_count", "Count the lines of a file."))
    yield
    sys.modules.pop("vrgcn_count", None)


@pytest.mark.usefixtures("counting")
def test_a_file_and_a_row_are_a_command(vrgcn, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a\nb\nc\n")
    assert vrgcn("count", "lines") == (0, "True 3\n", "")
    assert vrgcn("count", "lines", "--every", 2) == (0, "True 2\n", "")


@pytest.mark.usefixtures("counting")
def test_the_overview_and_the_help_have_the_command(vrgcn) -> None:
    assert "\n  count       Count the lines of a file.\n" in vrgcn("--help")[1]
    code, out, _ = vrgcn("count", "--help")
    assert code == 0
    assert out == (
        "usage: vrgcn count FILE [OPTIONS]\n"
        "\n"
        "Count the lines of a file.\n"
        "\n"
        "  FILE\n"
        "      The file.\n"
        "\n"
        "Options:\n"
        "  --every INT\n"
        "      Count every so many lines. (default: 1)\n"
        "  --threads INT\n"
        "      CPU threads. Not given: as PyTorch chooses.\n"
    )


@pytest.mark.usefixtures("counting")
def test_mistakes_are_reported_as_for_any_command(vrgcn) -> None:
    assert vrgcn("cuont")[2].endswith("did you mean vrgcn count?\n")
    for words, code, error in (
        (("count",), 2, "vrgcn count: error: missing: FILE (the file)"),
        (("count", "x", "--evry", 2), 2, "there is no option --evry; did you mean --every?"),
        (("count", "x", "--every", 0), 2, "--every must be at least 1, not 0"),
        (("count", "nowhere"), 1, "vrgcn: error: FILE: there is no file nowhere"),
    ):
        found, _, err = vrgcn(*words)
        assert (found, error in err) == (code, True), err


@pytest.mark.usefixtures("counting")
def test_output_that_is_lost_is_an_error_of_a_command_that_only_prints(
    vrgcn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines").touch()
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert vrgcn("count", "lines")[0] == 1


def test_the_help_of_every_command_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from vrgcn.cli import COMMANDS, main\n"
        "light = {name for name in sys.modules if name.startswith('vrgcn.')}\n"
        "main(['--help'])\n"
        "for command in COMMANDS: main([command, '--help'])\n"
        "heavy = {'torch', 'pyarrow', 'numpy', 'rich'} & set(sys.modules)\n"
        "named = {command.module for command in COMMANDS.values()}\n"
        "print('loaded:', *heavy, *named & light)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize(
    "name", ["predict", "recommend", "embed", "evaluate", "explain", "serve", "audit"]
)
def test_commands_that_are_silent_at_first_show_that_pytorch_is_loaded_before_they_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    @contextmanager
    def working(what: str) -> Iterator[None]:
        seen.append(what)
        yield

    command = COMMANDS[name]
    options = object.__new__(command.options)
    monkeypatch.setattr("vrgcn.training.progress.working", working)
    monkeypatch.setattr(f"{command.module}.run", lambda options: seen.append("run"))
    command.run(options)
    assert seen == ["loading PyTorch", "run"]
