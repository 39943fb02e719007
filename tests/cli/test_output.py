"""Standard output that cannot be written, seen from inside and by every command."""

from __future__ import annotations

import errno
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import waiting
from tests.cli.conftest import named, small_graph
from tests.tuning.conftest import one_look_at_the_schema  # noqa: F401
from vrgcn.cli import COMMANDS, main
from vrgcn.cli.output import Unbroken, unbroken_output
from vrgcn.data.store import save_graph

# A name that clears a screen, that ASCII does not have, and that is not UTF-8.
HOSTILE = "o\x1b[2J\u00e9\udcff"
ESCAPED = r"o\x1b[2J\xe9\udcff"
OUT = "OUT"  # stands for a name in the commands below

TRAINED = ("--graph", "graph", "--epochs", 1, "--hidden", 4)
WRITING = {
    "import": ("--edges", "edges.csv", "--out", OUT),
    "generate": ("--nodes", 60, "--out", OUT),
    "reorder": ("graph", "--out", OUT),
    "partition": ("--graph", "graph", "--parts", 2, "--method", "ldg", "--out", OUT),
    "train": (*TRAINED, "--out", OUT),
    "train --seeds": (*TRAINED, "--seeds", 2, "--out", OUT),
    "tune": (*TRAINED, "--trials", 1, "--out", OUT),
    "predict": ("run", "--out", f"{OUT}.csv"),
    "embed": ("run", "--layer", 0, "--out", f"{OUT}.npy"),
    "evaluate": ("run", "--out", f"{OUT}.svg"),
    "recommend": ("pairs", "--out", f"{OUT}.csv"),
    "report": ("run", "--out", f"{OUT}.html"),
    "explain": ("run", "--nodes", "n-0", "--out", f"{OUT}.json"),
    "audit": ("graph", "--json", f"{OUT}.json"),
    "diagnose": ("run", "--passes", 2, "--compare", "ns", "--out", f"{OUT}.html"),
}
LONG = {"demo", "bench", "reproduce", "serve"}  # print as the others do, and take their time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph, a run on it, another on its pairs, and a table of edges."""
    folder = tmp_path_factory.mktemp("output")
    save_graph(named(small_graph()), folder / "graph")
    (folder / "edges.csv").write_text("source,target\na,b\nb,c\n")
    out = ("--out", str(folder / "run"))
    main(["train", "--graph", str(folder / "graph"), "--epochs", "1", "--hidden", "4", *out])
    trained = ("--graph", str(folder / "graph"), "--epochs", "1", "--hidden", "4")
    main(["train", *trained, "--predict", "edges", "--out", str(folder / "pairs")])
    return folder


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder with nothing else in it, as the current one."""
    monkeypatch.chdir(folder)
    yield folder
    for path in folder.iterdir():
        if path.name not in ("graph", "run", "pairs", "edges.csv"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def words(command: str, out: str) -> list[str]:
    """The words of a command that writes to `out`."""
    given = [str(word).replace(OUT, out) for word in WRITING[command]]
    return [command.partition(" ")[0], *given]


def exit_code(arguments: list[str]) -> int:
    try:
        main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def shell(redirected: str, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `vrgcn ARGUMENTS` in a process of its own, redirected as a shell does."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {redirected}', "bash", sys.executable, "-m", "vrgcn", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=waiting.LONG,
        check=False,
    )


def test_what_is_written_after_the_reader_is_gone_goes_nowhere() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        output = Unbroken(stream)
        assert output.write("seen\n") == 5
        output.flush()
        assert os.read(reader, 100) == b"seen\n"
        os.close(reader)
        for _ in range(3):
            assert output.write("lost") == 4  # so little that it stays in the buffer
            output.flush()
    # And closing, which writes what is left, raises nothing.
    assert output.lost is not None
    assert output.lost.errno == errno.EPIPE


@pytest.mark.parametrize("text", ["short", "long" * 100_000])
def test_a_full_disk_is_noted_once_and_the_buffer_goes_nowhere(text: str) -> None:
    with open("/dev/full", "w") as stream:
        output = Unbroken(stream)
        output.write(text)
        output.flush()
        assert output.lost is not None
        assert output.lost.errno == errno.ENOSPC
        output.write(text)
        output.flush()


@pytest.mark.parametrize("code", ["EIO", "ENOSPC", "EDQUOT", "EPIPE", "EBADF", "EFBIG"])
def test_no_error_of_the_system_is_raised(code: str) -> None:
    def refuse(*given: object) -> None:
        raise OSError(getattr(errno, code), code)

    output = Unbroken(SimpleNamespace(write=refuse, flush=refuse, fileno=io.StringIO().fileno))
    assert output.write("lost") == 4
    output.flush()
    assert output.lost is not None
    assert output.lost.errno == getattr(errno, code)


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("ascii", rb"caf\xe9 \u2248 \udcff"), ("utf-8", "café ≈ ".encode() + rb"\udcff")],
)
def test_what_the_encoding_does_not_have_is_escaped(encoding: str, written: bytes) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    output = Unbroken(stream)
    output.write("café ≈ \udcff")
    output.flush()
    assert stream.buffer.getvalue() == written


def test_the_streams_are_put_back_and_the_wrapper_is_like_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sys.stdout, sys.stderr
    with unbroken_output():
        print("hello")
        assert sys.stdout.encoding == before[0].encoding
        assert sys.stdout.isatty() == before[0].isatty()
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "hello\n"


OPENED = """
import os
from vrgcn.cli.output import unbroken_output
with unbroken_output(), open("data", "w") as file:
    for number in (0, 1, 2):
        assert os.get_inheritable(number)
    os.write(1, b"of a library")
    os.system("echo of another process; echo and its errors >&2")
    print("hello")
    file.write("mine")
"""


def test_no_file_takes_the_place_of_descriptors_that_are_closed(tmp_path: Path) -> None:
    script = ["bash", "-c", '"$@" <&- >&- 2>&-', "bash", sys.executable, "-c", OPENED]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(script, cwd=tmp_path, env=env, check=False).returncode == 0
    assert (tmp_path / "data").read_text() == "mine"


def test_every_command_is_looked_at() -> None:
    printing = {name for name, command in COMMANDS.items() if command.options.only_prints is True}
    assert {name.partition(" ")[0] for name in WRITING} | printing | LONG == COMMANDS.keys()
    assert printing == {"info", "datasets", "doctor", "completion"}


@pytest.mark.parametrize("command", WRITING)
def test_a_full_disk_under_the_log_costs_no_file(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/full", "w") as log, open("/dev/full", "w") as errors:
        monkeypatch.setattr(sys, "stdout", log)
        monkeypatch.setattr(sys, "stderr", errors)
        assert exit_code(words(command, "out")) == 0
    assert list(place.glob("out*"))


@pytest.mark.parametrize("command", WRITING)
def test_closed_output_costs_no_file(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert exit_code(words(command, "out")) == 0
    assert list(place.glob("out*"))
    assert (sys.stdout, sys.stderr) == (None, None)


@pytest.mark.parametrize("command", WRITING)
def test_names_are_escaped_where_they_cannot_be_shown(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", shown)
    assert exit_code(words(command, HOSTILE)) == 0
    assert list(place.glob(f"{HOSTILE}*"))
    written = shown.buffer.getvalue().decode("ascii")
    assert ESCAPED in written
    assert all(letter.isprintable() or letter == "\n" for letter in written)


class Terminal(io.TextIOWrapper):
    """A terminal that shows ASCII alone."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", ["import", "train", "tune"])
def test_bars_and_tables_are_escaped_on_a_terminal_too(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Terminal(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setenv("TERM", "xterm")
    assert exit_code(words(command, HOSTILE)) == 0
    written = shown.buffer.getvalue().decode("ascii")
    assert "\x1b[?25l" in written  # a bar was drawn
    assert ESCAPED in written
    assert "\x1b[2J" not in written


@pytest.mark.parametrize(
    ("redirected", "command"),
    [("<&- >&- 2>&-", "train"), (">&-", "import"), (">/dev/full", "import")],
)
def test_a_command_ends_whatever_is_closed_or_full(
    redirected: str, command: str, place: Path
) -> None:
    done = shell(redirected, words(command, "out"), place)
    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "out" / ("result.json" if command == "train" else "meta.json")).is_file()


PRODUCTS = [["info", "graph"], ["datasets"], ["--help"], ["info", "--help"], ["--version"]]


@pytest.mark.parametrize("arguments", PRODUCTS, ids=" ".join)
@pytest.mark.parametrize("why", ["No space left on device", "it is closed"])
def test_output_that_is_all_there_is_must_not_be_lost_silently(
    arguments: list[str],
    why: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", None if "closed" in why else full)
        assert exit_code(arguments) == 1
    told = f"vrgcn: error: standard output cannot be written: {why}\n"
    assert capsys.readouterr().err == told


def test_a_reader_who_has_seen_enough_of_it_makes_no_error(place: Path) -> None:
    done = shell('| true; exit "${PIPESTATUS[0]}"', ["datasets"], place)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("redirected", ["2>/dev/full", ">&- 2>&-"])
def test_an_error_has_its_exit_code_though_nobody_can_be_told(redirected: str, place: Path) -> None:
    assert shell(redirected, ["info", "nothing"], place).returncode == 1
    assert shell(redirected, ["info", "--nothing"], place).returncode == 2


@pytest.mark.parametrize(
    "arguments", [["info", HOSTILE], ["train", f"--{HOSTILE}", "1"], [HOSTILE]]
)
def test_errors_show_names_escaped(
    arguments: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stderr", shown)
    assert exit_code(arguments) in (1, 2)
    written = shown.buffer.getvalue().decode("ascii")
    assert ESCAPED in written
    assert "\x1b" not in written


def test_a_page_shows_names_that_are_not_utf_8(place: Path) -> None:
    shutil.copytree(place / "run", place / HOSTILE)
    main(["report", HOSTILE, "--no-scores", "--out", "out.html"])
    assert r"\udcff" in (place / "out.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["train", "--graph"], "and config.toml takes no other paths"),
        (["import", "--out", "out", "--edges"], "and PyArrow takes no other paths"),
    ],
)
def test_a_path_that_nothing_can_be_done_with_is_refused_at_once(
    arguments: list[str], told: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(place / "graph", place / HOSTILE)
    shutil.copy(place / "edges.csv", place / f"{HOSTILE}.csv")
    name = f"{HOSTILE}.csv" if arguments[0] == "import" else HOSTILE
    assert exit_code([*arguments, name]) == 1
    err = capsys.readouterr().err
    assert f"{arguments[-1]}: " in err
    assert f"is not UTF-8, {told}: rename it" in err
