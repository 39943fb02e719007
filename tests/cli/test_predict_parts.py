"""`vrgcn predict` in parts where machines do not have the same files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tests.cli.conftest import CLASSES, small_graph
from tests.distributed.processes import commands, in_processes
from vrgcn.cli import main
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names

ASKED = [3, 10, 17, 24, 31, 38, 45, 52]


def numbered() -> Graph:
    """Nodes are called by numbers that are other nodes' places."""
    graph = small_graph()
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    names = Names(pa.array(7 * np.arange(120) % 120), CLASSES, None)
    return Graph.from_parts(graph.adjacency, graph.features, graph.labels, splits, 3, names)


def predicted(folder: Path, graphs: list[str], out: str) -> int:
    """Each process from the folder of its own machine."""
    flags = ["--graph", str(folder / graphs[int(os.environ["RANK"])]), "--out", str(folder / out)]
    try:
        main(["predict", str(folder / "run"), "--nodes", str(folder / "nodes.txt"), *flags])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_first_process_alone_needs_names_and_files_in_place_of_memory_are_refused(
    vrgcn, tmp_path: Path
) -> None:
    save_graph(numbered(), tmp_path / "store")
    vrgcn("partition", tmp_path / "store", "--parts", 2, "--out", tmp_path / "parts")
    shutil.copytree(tmp_path / "parts", tmp_path / "there")
    (tmp_path / "there" / "ids.arrow").unlink()
    (tmp_path / "nodes.txt").write_text("\n".join(map(str, ASKED)))
    train = ["train", "--graph", str(tmp_path / "parts"), "--out", str(tmp_path / "run")]
    found = commands(2, [*train, "--epochs", "1", "--hidden", "8"])
    assert [code for code, _, _ in found] == [0, 0], found

    codes = in_processes(2, predicted, tmp_path, ["parts", "there"], "parts.csv", join=False)
    assert codes == [0, 0]
    flags = ["--nodes", tmp_path / "nodes.txt", "--graph", tmp_path / "store"]
    assert vrgcn("predict", tmp_path / "run", *flags, "--out", tmp_path / "whole.csv")[0] == 0
    whole, ours = (pyarrow.csv.read_csv(tmp_path / name) for name in ("whole.csv", "parts.csv"))
    assert ours["id"].to_pylist() == ASKED
    for name in ours.column_names[2:]:
        np.testing.assert_allclose(ours[name], whole[name], atol=1e-5)

    codes = in_processes(2, predicted, tmp_path, ["there", "parts"], "none.csv", join=False)
    assert codes == [1, 1]
    assert not (tmp_path / "none.csv").exists()

    run, flags = str(tmp_path / "run"), ["--graph", str(tmp_path / "parts"), "--memory", "disk"]
    for command in (["predict", run, "--out", str(tmp_path / "no.csv")], ["evaluate", run]):
        found = commands(2, [*command, *flags])
        assert [code for code, _, _ in found] == [1, 1]
        assert sum("--memory disk is for one process" in err for _, _, err in found) == 1, found


def test_outputs_that_are_no_numbers_have_no_scores(vrgcn, tmp_path: Path) -> None:
    graph = small_graph()
    features = graph.features.clone()
    features[graph.test] = 3e38 * features[graph.test].sign()
    for name, made in (("good", graph), ("large", graph.with_features(features))):
        save_graph(made, tmp_path / name)
        out = tmp_path / f"{name}-parts"
        assert vrgcn("partition", tmp_path / name, "--parts", 2, "--out", out)[0] == 0
    run, flags = str(tmp_path / "run"), ["--epochs", "1", "--hidden", "8", "--scaling", "none"]
    train = ["train", "--graph", str(tmp_path / "good-parts"), "--out", run]
    found = commands(2, [*train, *flags])
    assert [code for code, _, _ in found] == [0, 0], found
    command = ["evaluate", run, "--graph"]
    alone = [vrgcn(*command, tmp_path / "large")]
    for found in (alone, commands(2, [*command, str(tmp_path / "large-parts")])):
        assert {code for code, _, _ in found} == {1}, found
        assert sum("is not a finite number" in err for _, _, err in found) == 1, found
