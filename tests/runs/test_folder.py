"""The folder of a run."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
import torch

from tests.files.replacing import before_opening, replaced_at_every_moment, there_and_back
from tests.messages import refused
from vrgcn.data.opening import open_graph
from vrgcn.data.store import save_graph
from vrgcn.files.folder import FolderReplacedError
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling
from vrgcn.inference import MODEL
from vrgcn.inference.saved import SavedModel, save_model
from vrgcn.models.models import GCN
from vrgcn.runs.folder import CONFIG, METRICS, RESULT, read_config
from vrgcn.runs.run import graph_source, open_run, open_run_graph

CPU = torch.device("cpu")
FEATURES = torch.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 4.0]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run on the graph in `graph`, with a model that takes features halved."""
    save_graph(Graph([[0], [1]], FEATURES), tmp_path / "graph")
    run = tmp_path / "run"
    run.mkdir()
    (run / CONFIG).write_text(f'graph = "{tmp_path / "graph"}"\nepochs = 3\n')
    halved = Scaling("standard", torch.zeros(2), torch.full((2,), 2.0))
    (run / RESULT).write_text("{}")
    save_model(SavedModel(GCN(2, 4, 3), "gcn", halved), run / MODEL)
    return run


def test_a_run_opens_its_own_graph_with_features_as_the_model_takes_them(folder):
    run = open_run(folder, CPU)
    assert run.config["epochs"] == 3
    opened = open_run_graph(run, None, None, None)
    assert torch.equal(opened.graph.features, FEATURES / 2)
    assert opened.note is None


def test_a_run_opens_another_graph_that_is_asked_for(folder, tmp_path):
    save_graph(Graph([[0], [1]], 10 * FEATURES), tmp_path / "other")
    opened = open_run_graph(open_run(folder, CPU), None, tmp_path / "other", None)
    assert torch.equal(opened.graph.features, 5 * FEATURES)


@pytest.fixture
def drawn(folder, tmp_path) -> Path:
    """The run, having drawn a split of a graph that has another."""
    graph = Graph([[0], [1]], torch.ones(12, 2), torch.arange(12) % 3, train=[0], test=[1])
    save_graph(graph, tmp_path / "split")
    text = f'graph = "{tmp_path / "split"}"\nratio = [0.5, 0.25, 0.25]\nsplit_seed = 3\n'
    (folder / CONFIG).write_text(text)
    return folder


def note_checksum(run: Path, graph: Path) -> None:
    with open(run / CONFIG, "a") as file:
        file.write(f'graph_checksum = "{open_graph(None, graph).checksum}"\n')


def test_a_split_that_was_drawn_is_drawn_again_on_the_graph_that_was_moved(drawn, tmp_path):
    before = open_run_graph(open_run(drawn, CPU), None, None, None).graph
    note_checksum(drawn, tmp_path / "split")
    (tmp_path / "split").rename(tmp_path / "moved")
    opened = open_run_graph(open_run(drawn, CPU), None, tmp_path / "moved", None)
    assert torch.equal(opened.graph.test, before.test)
    assert len(before.test) == 3
    assert opened.note is None


def test_a_run_is_shown_in_a_line(drawn):
    run = open_run(drawn, CPU)
    assert repr(run) == f"<{run}>"
    assert "\n" not in repr(run)


def test_another_graph_keeps_its_split_and_says_so_where_it_is_scored(drawn, tmp_path):
    note_checksum(drawn, tmp_path / "split")
    save_graph(Graph([[0], [1]], FEATURES, torch.arange(3), test=[2]), tmp_path / "other")
    opened = open_run_graph(open_run(drawn, CPU), None, tmp_path / "other", None)
    assert opened.graph.test.tolist() == [2]
    assert "the run drew its own split, 50/25/25 by seed 3; this graph is scored" in opened.note
    run = open_run(drawn, CPU)
    assert open_run_graph(run, None, tmp_path / "other", None, scored=False).note is None


def test_the_checksum_of_a_graph_leaves_its_splits_out(tmp_path):
    for name, test in (("a", [0]), ("b", [1])):
        save_graph(Graph([[0], [1]], FEATURES, torch.arange(3), test=test), tmp_path / name)
    save_graph(Graph([[0], [2]], FEATURES, torch.arange(3), test=[0]), tmp_path / "c")
    a, b, c = (open_graph(None, tmp_path / name).checksum for name in "abc")
    assert a == b != c


def test_a_graph_that_was_moved_is_asked_for(folder, tmp_path):
    (tmp_path / "graph").rename(tmp_path / "moved")
    with refused(FileNotFoundError):
        open_run_graph(open_run(folder, CPU), None, None, None)


def test_a_run_that_has_not_finished_says_so_wherever_it_is_used(folder):
    (folder / RESULT).unlink()
    (folder / METRICS).write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    note = open_run_graph(open_run(folder, CPU), None, None, None).note
    assert "has not finished (2 of 3 epochs): this is its best model so far" in note
    assert f"vrgcn train --resume {folder}" in note


def test_the_source_of_a_graph_is_a_name_or_a_folder():
    assert graph_source({"dataset": "cora", "data_root": "raw"}) == ("cora", None, Path("raw"))
    assert graph_source({"graph": "g"}) == (None, Path("g"), None)


def test_what_is_no_run_is_told_by_what_it_lacks(folder, tmp_path):
    with refused(FileNotFoundError):
        read_config(tmp_path / "nowhere")
    with refused(FileNotFoundError):
        read_config(tmp_path / "graph")
    (folder / MODEL).unlink()
    (folder / RESULT).unlink()
    with refused(FileNotFoundError):
        open_run(folder, CPU)
    (folder / RESULT).write_text("{}")
    with refused(FileNotFoundError):
        open_run(folder, CPU)
    (folder / CONFIG).write_text("epochs = ")
    with refused():
        read_config(folder)


def test_options_and_model_are_those_of_one_run_whenever_it_is_replaced(tmp_path):
    def make(home: Path) -> None:
        for epochs, kind in enumerate(("old", "new")):
            (home / kind).mkdir()
            (home / kind / CONFIG).write_text(f"epochs = {epochs}\n")
            model = GCN(2, 4, 3)
            for weight in model.parameters():
                torch.nn.init.constant_(weight, epochs)
            save_model(SavedModel(model, "gcn"), home / kind / MODEL)

    def read(folder: Path) -> tuple[int, float]:
        run = open_run(folder, CPU)
        return run.config["epochs"], next(run.saved.model.parameters()).mean().item()

    found = list(replaced_at_every_moment(tmp_path, make, "renamed", read))
    assert set(found) == {(0, 0.0), (1, 1.0)}


def test_a_run_that_is_replaced_again_and_again_is_refused(folder, tmp_path):
    copytree(folder, tmp_path / "other")
    (tmp_path / "other" / CONFIG).write_text("epochs = 9\n")

    def replace() -> None:
        there_and_back(folder, tmp_path / "other")

    with (
        before_opening(1, replace, every=True),
        refused(FolderReplacedError),
    ):
        open_run(folder, CPU)


def test_a_split_is_drawn_of_the_graph_that_it_was_drawn_of_whenever_that_is_replaced(
    drawn, tmp_path
):
    note_checksum(drawn, tmp_path / "split")
    run = open_run(drawn, CPU)
    own = open_run_graph(run, None, None, None).graph.test.tolist()

    def make(home: Path) -> None:
        copytree(tmp_path / "split", home / "old")
        other = Graph([[0], [1]], torch.zeros(12, 2), torch.arange(12) % 3, train=[0], test=[4])
        save_graph(other, home / "new")

    def read(folder: Path) -> tuple[float, list[int]]:
        graph = open_run_graph(run, None, folder, None).graph
        return float(graph.features.mean()), graph.test.tolist()

    found = list(replaced_at_every_moment(tmp_path / "moments", make, "linked", read))
    assert {value for value, _ in found} == {0.0, 0.5}
    assert all(test == (own if value else [4]) for value, test in found)
