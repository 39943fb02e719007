"""A command is a function: what it takes from the command line, the function takes from Python, and
both write the same files."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vrgcn as library
from tests.cli.conftest import small_graph
from tests.messages import refused
from vrgcn import save_graph
from vrgcn.cli import COMMANDS
from vrgcn.cli.flags import flags_of
from vrgcn.distributed.config import DistributedConfig
from vrgcn.files.setting_names import flags_in_messages
from vrgcn.runs.config_file import setting_types
from vrgcn.runs.run_settings import TrainSettings
from vrgcn.targets.spec import TargetSpec
from vrgcn.tuning.settings import TuneSettings

# The settings that a function takes by name.
SETTINGS: dict[str, type] = {"train": TrainSettings, "tune": TuneSettings, "audit": TargetSpec}
# Flags with another name in Python.
NAMES = {
    "train": {"graph_or_dataset": "graph"},
    "tune": {"graph_or_dataset": "graph"},
    "audit": {"graph_or_dataset": "graph"},
    "predict": {"run": "model", "of": "kind"},
    "recommend": {"for": "nodes"},
}
# Flags about what a command prints, how it exits, and of processes that torchrun starts.
OF_COMMAND = {
    "train": {*setting_types(DistributedConfig)},
    "audit": {"strict", "json"},  # Audit.findings, Audit.write
}


@pytest.mark.parametrize(
    "command",
    ["train", "tune", "predict", "evaluate", "recommend", "explain", "audit", "report"],
)
def test_a_function_takes_what_its_command_takes(command: str) -> None:
    function: Callable[..., Any] = getattr(library, command)
    taken = {*inspect.signature(function).parameters}
    if command in SETTINGS:
        taken |= {*setting_types(SETTINGS[command])}
    flags = {flag.name.rstrip("_") for flag in flags_of(COMMANDS[command].options)}
    named = NAMES.get(command, {})
    wanted = {named.get(name, name) for name in flags - OF_COMMAND.get(command, set())}
    assert not wanted - taken


def files(folder: Path) -> dict[str, bytes]:
    """What a run wrote, without what measures time or names its folder."""
    timed = ("metrics.jsonl", "result.json", "README.md", "leaderboard.json", "study.sqlite")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in timed and "checkpoints" not in path.parts
    }


@pytest.fixture
def graph_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_graph(small_graph(60), tmp_path / "graph")


SMALL = {"epochs": 2, "hidden": 4, "model": "gcn", "estimator": "cv", "smooth": "never"}


def words(settings: dict[str, Any]) -> list[str]:
    return [word for name, v in settings.items() for word in (f"--{name.replace('_', '-')}", v)]


def test_runs_are_the_same_files_by_both(vrgcn, graph_here, capsys) -> None:
    with flags_in_messages():
        library.train("graph", out="python", verbose=True, **SMALL)
    said = capsys.readouterr().out
    code, out, err = vrgcn("train", "graph", *words(SMALL), "--out", "command")
    assert code == 0, err
    assert files(Path("python")) == files(Path("command"))
    said = said.replace("python", "command")
    told = [re.sub(r"[\d.]+ ?(ms|s|min|h)\b", "", text) for text in (said, out)]  # without times
    assert told[0] == told[1]


def test_seeds_config_and_logs_are_taken_by_the_function(graph_here) -> None:
    library.train("graph", out="one", **SMALL)
    run = library.train(config="one/config.toml", out="many", seeds=2, seed=3)
    assert run.folder == Path("many/seed-3")
    assert sorted(path.name for path in Path("many").glob("seed-*")) == ["seed-3", "seed-4"]
    assert run.config["hidden"] == SMALL["hidden"]
    longer = library.train(resume="one", epochs=3)
    assert len(longer.curve) == 3


def test_predictions_are_the_same_files_by_both(vrgcn, graph_here) -> None:
    run = library.train("graph", out="run", **SMALL)
    Path("ids.txt").write_text("3\n14\n")
    done = library.predict("run", nodes=Path("ids.txt"), out="python.csv", top=2)
    code, out, err = vrgcn(
        "predict", "run", "--nodes", "ids.txt", "--out", "command.csv", "--top", 2
    )
    assert code == 0, err
    assert Path("python.csv").read_bytes() == Path("command.csv").read_bytes()
    assert str(done).replace("python", "command") == out.strip()
    outputs = library.predict(run, nodes=[3, 14], memory="disk").outputs
    assert outputs is not None
    assert outputs.equal(run.predict(nodes=[3, 14]))
    with refused():
        library.predict("run", top=2)


def test_pairs_are_scored_alike_by_both(vrgcn, graph_here) -> None:
    flags = {"predict": "edges", "epochs": 1, "hidden": 4, "model": "gcn"}
    library.train("graph", out="run", **flags)
    Path("pairs.csv").write_text("source,target\n1,2\n3,4\n")
    library.predict("run", pairs="pairs.csv", out="python.csv")
    assert vrgcn("predict", "run", "--pairs", "pairs.csv", "--out", "command.csv")[0] == 0
    assert Path("python.csv").read_bytes() == Path("command.csv").read_bytes()
    scores = library.predict("run", pairs="pairs.csv").outputs
    assert scores is not None
    assert scores.shape == (2,)
    library.recommend("run", ["1"], out="python.parquet")
    Path("for.txt").write_text("1\n")
    assert vrgcn("recommend", "run", "--for", "for.txt", "--out", "command.parquet")[0] == 0
    assert Path("python.parquet").read_bytes() == Path("command.parquet").read_bytes()


def test_searches_are_the_same_files_by_both(vrgcn, graph_here) -> None:
    pytest.importorskip("optuna")
    given = {**SMALL, "trials": 2}
    library.tune("graph", out="python", baselines=False, **given)
    code, _, err = vrgcn("tune", "graph", *words(given), "--no-baselines", "--out", "command")
    assert code == 0, err
    assert files(Path("python")) == files(Path("command"))
    assert library.tune(resume="python", trials=3).trials[2].number == 2
