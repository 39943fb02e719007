"""`vrgcn partition`, and train, predict and evaluate on the parts, as torchrun starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
import yaml
from torch.distributed import TCPStore

from tests.cli.conftest import named, small_graph
from tests.distributed.processes import commands, commands_of_each
from tests.waiting import LONG
from vrgcn.data.store import save_graph

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--hidden", "8", "--batch-size", "20", "--estimator", "two-way", "--fanout", "0"]


def test_a_graph_is_trained_and_predicted_in_parts(vrgcn, tmp_path: Path) -> None:
    save_graph(named(small_graph()), tmp_path / "store")
    code, out, _ = vrgcn("partition", tmp_path / "store", "--parts", 2, "--out", tmp_path / "parts")
    assert code == 0
    assert "edges cut" in out
    parts, run = str(tmp_path / "parts"), str(tmp_path / "run")
    often = ["--epochs", "3", "--checkpoint-every", "1"]
    found = commands(2, ["train", "--graph", parts, "--out", run, *often, *SMALL])
    assert [code for code, _, _ in found] == [0, 0], found
    assert "epoch 3" in found[0][1]
    assert not found[1][1]  # the message appears once
    lines = metrics(tmp_path / "run")
    assert len(lines) == 3
    assert lines[-1]["halo_age"] > lines[-1]["age"] > 0
    assert lines[-1]["exchanged"] > 0
    assert json.loads((tmp_path / "run" / "result.json").read_text())["test"] > 0.5

    here, there = tmp_path / "parts.csv", tmp_path / "whole.csv"
    found = commands(2, ["predict", run, "--out", str(here)], ["evaluate", run])
    assert [code for code, _, _ in found] == [0, 0], found
    assert vrgcn("predict", run, "--graph", tmp_path / "store", "--out", there)[0] == 0
    ours, theirs = pyarrow.csv.read_csv(here), pyarrow.csv.read_csv(there)
    assert ours["id"].equals(theirs["id"])
    for name in ours.column_names[2:]:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-5)
    evaluated = json.loads((tmp_path / "run" / "evaluation-test.json").read_text())
    assert vrgcn("evaluate", run, "--graph", tmp_path / "store")[0] == 0
    again = json.loads((tmp_path / "run" / "evaluation-test.json").read_text())
    assert evaluated["confusion"] == again["confusion"]

    # The report's page shows how far the copies lag behind, and so does a diagnosis of the whole.
    assert vrgcn("report", run, "--out", tmp_path / "report.html", "--no-scores")[0] == 0
    assert "what training in parts adds" in (tmp_path / "report.html").read_text(encoding="utf-8")
    code, _, errors = vrgcn("diagnose", run)
    assert code == 1
    assert "name the graph that they were made of" in errors
    code, out, errors = vrgcn(
        "diagnose", run, "--graph", tmp_path / "store", "--passes", 2, "--epochs", 1
    )
    assert code == 0, errors
    assert f"steps old (originals {lines[-1]['age']:.1f})" in out + errors

    # More epochs, in as many parts; then refusals, each told by one process.
    found = commands(2, ["train", "--resume", run, "--epochs", "4"])
    assert [code for code, _, _ in found] == [0, 0], found
    assert "resuming after epoch 2" in found[0][1]
    start = ["train", "--graph", parts, "--out", str(tmp_path / "other")]
    for flags, told in (
        (["--estimator", "ns"], "the estimator ns needs the whole graph"),
        (["--estimator", "cvd", "--layers", "3"], "samples neighbours on 2 levels"),
        (["--inductive"], "--inductive"),
    ):
        found = commands(2, [*start, *flags])
        assert [code for code, _, _ in found] == [1, 1], found
        assert sum(told in err for _, _, err in found) == 1
        assert sum("error" in err for _, _, err in found) == 1
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("command", [("partition", "--parts", 2), ("reorder",)])
def test_metis_that_is_not_installed_is_named(vrgcn, tmp_path: Path, monkeypatch, command) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    save_graph(small_graph(), tmp_path / "store")
    name, *flags = command
    code, _, err = vrgcn(name, tmp_path / "store", *flags, "--method", "metis", "--out", "new")
    assert code == 1
    assert "--method metis: needs pymetis: pip install 'vrgcn[partition]', or choose ldg" in err


def test_parts_without_torchrun_or_of_another_number_are_refused(vrgcn, tmp_path: Path) -> None:
    save_graph(small_graph(), tmp_path / "store")
    vrgcn("partition", tmp_path / "store", "--parts", 2, "--out", tmp_path / "parts")
    flags = ["--graph", tmp_path / "parts", "--out", tmp_path / "run"]
    code, _, err = vrgcn("train", *flags)
    assert code == 1
    assert "torchrun --nproc-per-node 2 -m vrgcn train" in err
    code, _, err = vrgcn("info", tmp_path / "parts")
    assert code == 1
    assert "has the parts of a graph" in err
    (found,) = commands(1, ["train", *map(str, flags)])
    assert found[0] == 1
    assert "has 2 parts, and torchrun started 1 process" in found[2]
    code, _, err = vrgcn("partition", tmp_path / "store", "--parts", 0, "--out", tmp_path / "no")
    assert code == 2
    assert "--parts must be at least 1" in err


def partitioned(vrgcn, folder: Path) -> list[str]:
    """`vrgcn train` on two parts, into the folder `run`."""
    save_graph(small_graph(), folder / "store")
    vrgcn("partition", folder / "store", "--parts", 2, "--out", folder / "parts")
    flags = ["--graph", str(folder / "parts"), "--out", str(folder / "run"), *SMALL]
    return ["train", *flags, "--checkpoint-every", "1"]


@pytest.mark.soak  # torchrun; commands that are repeated in processes of ours are below
@pytest.mark.parametrize("machines", [1, 2])
def test_a_process_that_is_killed_is_started_again_and_the_run_ends(
    machines: int, tmp_path: Path, vrgcn
) -> None:
    train, run = [*partitioned(vrgcn, tmp_path), "--epochs", "4"], tmp_path / "run"
    with torchruns(machines, train, tmp_path) as started:
        codes = [one.wait(LONG) for one in started]
    told = (tmp_path / "told").read_text()
    assert codes == [0] * machines, told
    assert (tmp_path / "died").exists()
    assert "resuming after epoch 1" in told
    assert [line["epoch"] for line in metrics(run)] == [1, 2, 3, 4]
    assert (run / "result.json").is_file()


@contextmanager
def torchruns(
    machines: int, command: list[str], folder: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes of a command by one torchrun, or one each by two that find each other as those
    of two machines do. Rank 1 is killed once. What they print goes to the file `told`."""
    places, store = ["--standalone"], None
    if machines > 1:
        # Ours, so that the port is nobody else's from now on.
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        places = ["--nnodes", str(machines), "--rdzv-backend", "c10d"]
        places += ["--rdzv-endpoint", f"127.0.0.1:{store.port}", "--rdzv-conf", "is_host=false"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *places, "--max-restarts", "1"]
    torchrun += ["--nproc-per-node", str(2 // machines), "-m", "tests.cli.dies_once"]
    environment = {"OMP_NUM_THREADS": "1", "DIES_ONCE": str(folder / "died")}
    with (folder / "told").open("ab") as file, ExitStack() as stack:
        started = []
        for _ in range(machines):
            one = subprocess.Popen(
                [*torchrun, *command],
                cwd=ROOT,
                env=os.environ | environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
            stack.callback(_end, one)
            started.append(one)
        yield started


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()  # torchrun ends its own
        process.wait(LONG)


def test_a_run_that_was_there_before_is_not_gone_on_with(tmp_path: Path, vrgcn) -> None:
    train, run = partitioned(vrgcn, tmp_path), tmp_path / "run"
    commands(2, [*train, "--epochs", "2"])
    before = (run / "result.json").read_text()
    longer = [*train, "--epochs", "4"]
    found = commands(2, longer, longer)  # started again after the refusal
    assert [code for code, _, _ in found] == [1, 1], found
    assert "exists already" in found[0][2] + found[1][2]
    assert (run / "result.json").read_text() == before
    assert len(metrics(run)) == 2

    # Started again before the old run was cleared away, as the first command has cleared nothing.
    (found, _) = commands(2, ["evaluate", str(run)], [*longer, "--overwrite"])
    assert found[0] == 0, found
    assert "going on" not in found[1]
    assert len(metrics(run)) == 4


def test_some_processes_may_be_told_to_resume_what_the_others_began(tmp_path: Path, vrgcn) -> None:
    train, run = partitioned(vrgcn, tmp_path), tmp_path / "run"
    resume = ["train", "--resume", str(run)]
    first = [train, resume, train]
    second = [train, train, resume]
    found = commands_of_each(
        [
            [[*line, "--epochs", str(2 + start)] for start, line in enumerate(lines)]
            for lines in (first, second)
        ]
    )
    assert [code for code, _, _ in found] == [0, 0], found
    assert "resuming after epoch 1" in found[0][1]
    assert "resuming after epoch 2" in found[0][1]
    assert len(metrics(run)) == 4

    # Another folder, and a run that would be wiped, are refused at once, by one of them.
    other = [str(tmp_path / "other") if word == str(run) else word for word in train]
    for lines, told in (
        (([train], [other]), "--out: rank 1 was told"),
        (([[*train, "--overwrite"]], [resume]), "--resume: rank 1 was told to resume"),
    ):
        found = commands_of_each(lines)
        assert [code for code, _, _ in found] == [1, 1], found
        assert sum(told in err for _, _, err in found) == 1, found
        assert sum("error" in err for _, _, err in found) == 1, found
    assert len(metrics(run)) == 4
    assert not (tmp_path / "other").exists()


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_the_files_for_clusters_are_understood() -> None:
    folder = ROOT / "examples" / "cluster"
    subprocess.run(["bash", "-n", folder / "train.sbatch"], check=True)
    service, job = yaml.safe_load_all((folder / "train-job.yaml").read_text())
    assert (service["kind"], job["kind"]) == ("Service", "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    subprocess.run(["bash", "-n", "-c", container["args"][0]], check=True)
    assert job["spec"]["completions"] == 4
    assert "--nnodes 4" in container["args"][0]
