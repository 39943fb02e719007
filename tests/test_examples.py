"""The examples run as they are written, and end in what they promise."""

from __future__ import annotations

import configparser
import json
import re
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from traitlets.config import Config

from tests.waiting import LONG
from vrgcn.cli import COMMANDS
from vrgcn.cli.parsing import parse

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))

# Times, addresses, and what another processor may round otherwise.
VARYING = r"\d+(\.\d+)? (s|min)\b|0x[0-9a-f]+|\d+\.\d+|kept epoch \d+"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a script as `python SCRIPT ARGUMENTS` would; gives what it prints."""

    def run(script: str, *arguments: object) -> str:
        path = str(EXAMPLES / script)
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        runpy.run_path(path, run_name="__main__")
        return capsys.readouterr().out

    return run


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found is not None, text
    return float(found[1])


def test_the_planetoid_example_reaches_the_papers_accuracy(real_data, tmp_path, run):
    shutil.copytree(real_data / "planetoid" / "Cora" / "raw", tmp_path / "Cora" / "raw")
    assert 0.78 < number(r"test accuracy ([\d.]+)", run("planetoid.py", tmp_path)) < 0.85


def test_from_two_data_frames_those_who_were_not_asked_are_predicted(run):
    out = run("dataframes.py")
    assert number(r"not asked, ([\d.]+) are predicted rightly", out) > 0.9
    assert "p_tea" in out


def test_from_three_data_frames_users_are_predicted_by_what_they_buy(run):
    out = run("several_tables.py")
    # The most frequent class is right for 0.6 of the users.
    assert number(r"not known, ([\d.]+) are predicted rightly", out) > 0.85
    assert "together 720 nodes and 5,692 edges of 1 relation" in out


def test_a_model_of_pyg_is_trained_as_it_is(run):
    out = run("pyg_model.py")
    assert number(r"test accuracy ([\d.]+)", out) > 0.9
    assert number(r"differ by ([\d.e-]+)", out) < 1e-4
    assert "basic_gnn.GraphSAGE has loaded the weights" in out


@pytest.mark.soak
def test_from_a_shops_database_products_are_recommended_with_simple_rules_beside(run):
    out = run("recommendations.py")
    assert "380 nodes, 3,621 purchases" in out
    ours, popular, ease = (
        number(rf"(?m)^{name} +NDCG@20 ([\d.]+)", out)
        for name in ("the model", "popularity", "EASE")
    )
    assert ours > popular + 0.1
    assert ease > popular
    assert re.search(r"(?m)^\d +14 +\d+ +3 ", out)  # the third product for customer 14


def test_from_a_shops_orders_it_is_predicted_who_orders_in_the_next_30_days(run):
    out = run("churn.py")
    assert number(r"ROC AUC of the last two months: ([\d.]+)", out) > 0.7
    assert re.search(r"(?m)^ +label +p_no +p_yes$", out)


@pytest.mark.soak
def test_a_script_of_pyg_ends_no_worse_after_fewer_computed_nodes(run):
    out = run("pyg_before_after.py")
    before, after = (
        number(rf"{when}: .*test accuracy ([\d.]+)", out) for when in ("before", "after")
    )
    assert after > before - 0.02
    assert after > 0.8


def test_a_loop_of_ones_own_learns(run):
    out = run("own_loop.py")
    # An MLP, which sees no neighbours, reaches 0.68 on this graph.
    assert number(r"test accuracy ([\d.]+)", out) > 0.85
    assert "embeddings of two nodes: (2, 64)" in out


def test_the_container_and_the_unit_call_serve_as_it_is():
    """Neither is built here: their commands are parsed."""
    docker = (EXAMPLES / "serve" / "Dockerfile").read_text(encoding="utf-8")
    words = re.findall(r"(?m)^([A-Z]+) ", docker)
    assert set(words) <= {"FROM", "COPY", "ARG", "RUN", "USER", "EXPOSE", "ENTRYPOINT"}
    assert (ROOT / "constraints.txt").is_file()
    contained = json.loads(docker.partition("ENTRYPOINT ")[2])
    unit = configparser.ConfigParser(strict=True)
    unit.optionxform = str
    unit.read(EXAMPLES / "serve" / "vrgcn.service", encoding="utf-8")
    started = unit["Service"]["ExecStart"].split()
    for program, command, *flags in (contained, started):
        assert (Path(program).name, command) == ("vrgcn", "serve")
        options = parse(COMMANDS["serve"].options, flags)
        assert options.port == 8000
    assert unit["Service"]["ReadWritePaths"] in started


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the output of the cells, without pictures and varying text."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            found.append(re.sub(VARYING, "#", text))
    return found


def execute(notebook: nbformat.NotebookNode, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the cells in a folder. The kernel is heard by sockets in a folder of its own, whose name
    must be short: a free port may be another's by the time that the kernel wants it."""
    with tempfile.TemporaryDirectory(prefix="kernel-") as own:
        monkeypatch.setenv("IPYTHONDIR", own)
        NotebookClient(
            notebook,
            kernel_manager_class=AsyncKernelManager,
            config=Config(AsyncKernelManager={"transport": "ipc", "ip": f"{own}/ipc"}),
            startup_timeout=int(LONG),
            timeout=int(LONG),
            iopub_timeout=int(LONG),
            coalesce_streams=True,  # a cell's output arrives in varying pieces
            resources={"metadata": {"path": str(folder)}},
        ).execute()


def test_there_is_a_notebook():
    assert NOTEBOOKS


@pytest.mark.filterwarnings("ignore")  # warnings of the kernel's own libraries
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_says_what_is_stored_in_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stored = nbformat.read(EXAMPLES / name, as_version=4)
    outputs = [output for cell in stored.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures
    assert (EXAMPLES / name).stat().st_size < 200_000
    again = nbformat.from_dict(stored)
    execute(again, tmp_path, monkeypatch)
    fresh = texts(again)
    assert any(re.match(r"epoch +1  loss", line) for line in fresh)
    assert fresh == texts(nbformat.read(EXAMPLES / name, as_version=4))
