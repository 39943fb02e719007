"""From words to options: values, what was meant by words that do not fit, how soon that is said."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from tests.messages import refused
from vrgcn.cli.flags import Positional, Repeated
from vrgcn.cli.import_tables import ImportOptions
from vrgcn.cli.parsing import UsageError, parse, similar
from vrgcn.cli.predict import PredictOptions
from vrgcn.cli.train import TrainOptions
from vrgcn.files.mistakes import InputError


@dataclass(frozen=True)
class Inner:
    """How."""

    rate: float = 0.1
    """The rate."""
    fast: bool = True
    """Be quick."""


@dataclass(frozen=True)
class Outer:
    """What."""

    what: Positional[str | None] = None
    """The thing."""
    sizes: tuple[int, ...] = (1,)
    """Numbers."""
    names: tuple[str, ...] = ()
    """Texts."""
    rules: Repeated[tuple[str, ...]] = ()
    """Texts, again and again."""
    kind: Literal["one", "two"] = "one"
    """Which."""
    count: int | None = None
    """How many."""
    maybe: bool | None = None
    """Perhaps."""
    inner: Inner = field(default_factory=lambda: Inner(rate=0.5))

    def __post_init__(self) -> None:
        if self.count == 0:
            raise InputError("count must not be 0")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", Outer()),
        ("thing --kind two", Outer("thing", kind="two")),
        ("--sizes 3 4 thing", Outer("thing", sizes=(3, 4))),
        ("--sizes=3 4 --names a b", Outer(sizes=(3, 4), names=("a", "b"))),
        ("--names=-1 ?", Outer(names=("-1", "?"))),
        ("--rate -2.5", Outer(inner=Inner(-2.5))),
        ("--rate 3 --no-fast", Outer(inner=Inner(3.0, fast=False))),
        ("--fast --count 2 --count None", Outer()),
        ("--no-maybe", Outer(maybe=False)),
        ("--maybe", Outer(maybe=True)),
    ],
)
def test_words_become_options(line: str, wanted: Outer) -> None:
    assert parse(Outer, line.split()) == wanted


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("--kind tow", "--kind: 'tow' is none of one, two; did you mean two?"),
        ("--count x", "--count: 'x' is not a whole number"),
        ("--count 1.5", "--count: '1.5' is not a whole number"),
        ("--rate fast", "--rate: 'fast' is not a number"),
        ("--rate nan", "--rate: 'nan' is not a number"),
        ("--rate", "--rate needs a value: --rate NUMBER"),
        ("--rate --fast", "--rate needs a value"),
        ("--fast=yes", "--fast takes no value: --fast or --no-fast"),
        ("--no-rate", "there is no option --no-rate; did you mean --rate?"),
        ("--count 0", "--count must not be 0"),
        ("thing other", "'other' after thing belongs to no option"),
        ("thing -rate 3", "there is no option -rate; did you mean --rate?"),
        ("thing --sizes 1 x", "--sizes: 'x' is not a whole number"),
    ],
)
def test_what_does_not_fit_is_said_in_words(line: str, error: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(Outer, line.split())
    assert error in str(raised.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lr", "learning_rate"),
        ("bs", "batch_size"),
        ("wd", "weight_decay"),
        ("num_layers", "layers"),
        ("rate", "learning_rate"),
        ("epoch", "epochs"),
        ("learning_rates", "learning_rate"),
        ("hidden_channels", "hidden"),
    ],
)
def test_another_name_of_an_option_suggests_ours(typed: str, meant: str) -> None:
    known = ["learning_rate", "batch_size", "weight_decay", "decay", "layers", "epochs", "hidden"]
    assert similar(typed, known)[0] == meant
    with refused(UsageError):
        parse(TrainOptions, [f"--{typed.replace('_', '-')}", "3"])


def test_what_is_needed_is_named() -> None:
    with refused(UsageError):
        parse(PredictOptions, [])
    with refused(UsageError):
        parse(ImportOptions, ["--edges", "e", "--out", "o", "--undirected", "--directed"])


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("train --lr 3", 2, "did you mean --learning-rate?"),
        ("train nowhere", 1, "there is no folder nowhere, and no data set of that name"),
        ("train", 1, "give a graph"),
        ("train cora --graph x", 1, "cora and --graph x: give one graph, not 2"),
        ("train communities --out file", 1, "--out: file is a file; name a folder"),
        ("train communities --out file/run", 1, "--out: file is a file; name a folder"),
        ("train communities --out full", 1, "--out: full exists already"),
        ("train file", 1, "file is a file, not the folder of a graph; `vrgcn import` makes"),
        ("train full", 1, "full is no graph: it has no meta.json"),
        ("train --config full", 1, "--config: full is a folder; name a file"),
        ("info nowhere", 1, "there is no folder nowhere"),
        ("diagnose nowhere", 1, "there is no folder nowhere"),
        ("predict nowhere --out x.csv", 1, "there is no run folder nowhere"),
        ("predict file --out x.csv", 1, "file is a file; name the folder of a run"),
        ("predict full --out x.csv", 1, "full is not a run: it has no config.toml"),
        ("predict deleted --out x.csv", 1, "deleted has no model.safetensors: it was deleted"),
        ("predict early --out x.csv", 1, "early has no model.safetensors: its training has kept"),
        ("predict run --out x.txt", 1, "--out: x.txt must end in one of .parquet, .csv, .npy"),
        ("predict run --out x.csv --nodes full", 1, "--nodes: full is a folder; name a file"),
        ("predict run --out full", 1, "--out: full is a folder; name a file"),
        (
            "evaluate run --out x.txt",
            1,
            "--out: x.txt must end in one of .html, .htm, .png, .svg, .pdf",
        ),
        ("evaluate run --graph full", 1, "--graph: full is no graph"),
        ("report nowhere", 1, "there is no run folder nowhere"),
        ("import --edges full --out o", 1, "--edges: full is a folder; name a file"),
        ("import --edges no.csv --out o", 1, "--edges: there is no file no.csv"),
        ("import --edges file", 2, "missing: --out PATH (folder to write the graph to)"),
        ("import file --out o", 2, "everything here has a flag, such as --edges PATH ... --out"),
        ("import --edges file --out full", 1, "--out: full exists already; choose another folder"),
        ("import --edges file --out o --like file", 1, "--like: file is a file, not the folder of"),
        ("import --edges file --out o --like full", 1, "--like: full is no graph"),
        ("train communities --hidden 0", 2, "--hidden must be at least 1, not 0"),
        ("train communities --batch-size 0", 2, "--batch-size must be at least 1, not 0"),
        (
            "train communities --model mlp --learned-rows",
            2,
            "--model mlp looks at no neighbours: --learned-rows and --neighbour-labels need",
        ),
        ("train communities --warmup 200", 2, "--warmup 200 is longer than the run, --epochs 100"),
        ("train communities --val-until 2026", 2, "--val-until 2026 needs --train-until DATE"),
        ("train communities --dropout 1", 2, "--dropout must be at least 0 and below 1, not 1.0"),
        ("train communities --estimator cvdd", 2, "uniform/history/sampled; did you mean cvd?"),
        ("diagnose communities --compare cvdd", 2, "--compare: estimator 'cvdd' is none of"),
        ("predict graph --out x.csv", 1, "it is a graph, and `vrgcn train graph` makes a run"),
        ("report", 2, "give at least one run"),
        ("demo --epochs 0", 2, "--epochs must be at least 1, not 0"),
    ],
)
def test_mistakes_are_told_before_torch_is_loaded(
    line: str, code: int, error: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "meta.json").touch()
    for run in ("run", "deleted", "early"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "config.toml").write_text('dataset = "communities"\n')
    (tmp_path / "run" / "model.safetensors").touch()
    (tmp_path / "deleted" / "result.json").touch()
    script = (
        "import os, sys\n"
        "os.chdir(sys.argv[1])\n"
        "from vrgcn.cli import main\n"
        "try: main(sys.argv[2:])\n"
        "except SystemExit as stop: code = stop.code\n"
        "heavy = {'torch', 'pyarrow', 'numpy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "sys.exit(code)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path), *line.split()]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert error in done.stderr
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_repeated_flag_adds_to_its_values_and_of_any_other_the_last_counts():
    words = ["--rules", "a", "--names", "a", "--rules=b", "c", "--names", "b"]
    options = parse(Outer, words)
    assert options.rules == ("a", "b", "c")
    assert options.names == ("b",)


@dataclass(frozen=True)
class Broken:
    """A check with a bug of its own."""

    sizes: tuple[int, ...] = ()
    """Numbers."""

    def __post_init__(self) -> None:
        max(self.sizes)


def test_a_bug_in_a_check_is_not_shown_as_a_wrong_word() -> None:
    assert parse(Broken, ["--sizes", "3"]).sizes == (3,)
    with pytest.raises(ValueError, match="empty"):
        parse(Broken, [])
