"""Graphs that commands work on: which scaling suits them, and what must be known of them."""

from __future__ import annotations

import pytest
import torch

from tests.messages import refused
from vrgcn.data import opening
from vrgcn.data.opening import open_graph
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph


@pytest.mark.parametrize(("sparse", "scaling"), [(False, "standard"), (True, "row")])
def test_a_graph_from_disk_has_no_note_and_the_scaling_of_its_kind(tmp_path, sparse, scaling):
    features = torch.eye(3)
    save_graph(Graph([[0], [1]], features.to_sparse_csr() if sparse else features), tmp_path / "g")
    opened = open_graph(None, tmp_path / "g")
    assert opened.graph.num_nodes == 3
    assert (opened.scaling, opened.note) == (scaling, None)


def test_rebuilt_raw_files_are_noted_and_nothing_is_printed(tmp_path, monkeypatch, capsys):
    (tmp_path / "ppi").mkdir()
    (tmp_path / "ppi" / "toy_ppi_rebuilt.npz").touch()
    graph = Graph([[0], [1]], torch.eye(2))
    monkeypatch.setattr(opening, "load_dataset", lambda name, data_root, verify: graph)
    opened = open_graph("ppi-small", data_root=tmp_path)
    assert opened.graph is graph
    assert opened.scaling == "standard"
    assert opened.note.startswith("real edges and split; features and labels rebuilt")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "given",
    [(None, None), ("cora", "here")],
)
def test_one_graph_is_asked_for(given):
    with refused():
        open_graph(*given)
