"""The paper's settings, against what PAPER tables say, and graphs as it trains on them."""

from __future__ import annotations

import pytest
import torch

from lab.harness.algorithms import ALGORITHMS
from lab.paper.experiment import Choice
from lab.paper.settings import (
    SETTINGS,
    absent,
    chosen_datasets,
    dataset_label,
    epochs_of,
    open_graph,
    runs_of,
    setting,
)
from tests.messages import refused
from vrgcn.data import DATASETS
from vrgcn.models.models import GCN, GraphSAGE

QUICK = Choice(quick=True)


@pytest.mark.parametrize(
    ("dataset", "hidden", "dense", "dropout", "decay", "norm", "batch", "epochs", "curve", "runs"),
    [
        ("cora", 32, 1, 0.5, 5e-4, False, 1000, 200, 400, 10),
        ("citeseer", 32, 1, 0.5, 5e-4, False, 1000, 200, 400, 10),
        ("pubmed", 32, 1, 0.5, 5e-4, False, 1000, 200, 400, 10),
        ("nell-paper", 64, 1, 0.1, 1e-5, False, 1000, 200, 400, 10),
        ("ppi-small", 512, 2, 0.2, 0.0, True, 512, 100, 100, 5),
        ("reddit", 128, 2, 0.2, 0.0, True, 512, 30, 50, 5),
    ],
)
def test_the_settings_are_the_papers(
    dataset, hidden, dense, dropout, decay, norm, batch, epochs, curve, runs
):
    found = setting(dataset)
    model, train = found.model, found.train
    assert (model.hidden, model.dense, model.dropout, model.layer_norm) == (
        hidden,
        dense,
        dropout,
        norm,
    )
    assert (train.weight_decay, train.batch_size, train.epochs) == (decay, batch, epochs)
    assert (train.optimizer, train.learning_rate, train.decay) == ("adam", 0.01, "first")
    assert train.select == "last"
    assert (found.convergence_epochs, found.runs) == (curve, runs)
    assert not model.bias
    assert model.layers == 2
    assert train.fanout == (1,)  # the paper's D = 2


def test_inductive_training_is_where_the_data_set_says_so():
    for name, found in SETTINGS.items():
        if DATASETS[name].raw is not None:
            assert found.train.inductive == DATASETS[name].inductive, name


def test_ns_has_twice_the_epochs_on_reddit_alone():
    assert setting("reddit").curve_epochs("NS") == 100
    assert setting("reddit").curve_epochs("NS+PP") == 50
    assert setting("cora").curve_epochs("NS") == 400


def test_an_algorithms_label_decides_estimator_preprocessing_and_order():
    found = setting("cora")
    graph = open_graph("communities", QUICK)
    assert found.build("M0", graph, 0).order == "before"
    assert found.build("M1", graph, 0).order == "after"
    assert isinstance(found.build("M1", graph, 0), GCN)
    assert isinstance(setting("reddit").build("NS", graph, 0, layers=3), GraphSAGE)
    assert len(setting("reddit").build("NS", graph, 0, layers=3).layers) == 3
    expected = {
        "M0": ("exact", False, None),
        "M1": ("exact", False, None),
        "M1+PP": ("exact", True, None),
        "Exact": ("exact", False, None),
        "Exact+PP": ("exact", True, None),
        "NS": ("ns", False, None),
        "NS+PP": ("ns", True, None),
        "IS+PP": ("is", True, None),
        "CV+PP": ("cv", True, None),
        "CVD+PP": ("cvd", True, None),
        "two-way": ("two-way", True, None),
        "MLP": ("exact", True, "identity"),
        # The bench's.
        "exact+PP": ("exact", True, None),
        "NS (10, 25)": ("ns", False, None),
        "history": ("history", True, None),
        "two-way, raw": ("few/corrected/corrected/raw", True, None),
        "two-way-cv": ("two-way-cv", True, None),
    }
    assert expected.keys() == ALGORITHMS.keys()
    for label, wanted in expected.items():
        config = found.config(label, seed=4)
        assert (config.estimator, config.preprocess, config.propagation) == wanted
        assert config.seed == 4
    assert found.config("M1", 0, epochs=3).epochs == 3
    assert found.config("NS", 0).fanout == (1,)
    assert found.config("NS (10, 25)", 0).fanout == (10, 25)


def test_two_way_visits_all_nodes_in_eighths_and_has_its_own_rate_where_inductive():
    config = setting("cora").config("two-way", seed=0)
    assert (config.visit, config.fanout, config.batch_size) == ("auto", None, 339)
    assert setting("cora").config("CVD+PP", 0).batch_size == 1000
    config = setting("reddit").config("two-way", seed=0)
    assert (config.batch_size, config.learning_rate) == (512, 0.003)
    assert setting("reddit").config("CVD+PP", 0).learning_rate == 0.01


def test_epochs_are_the_papers_unless_fewer_are_asked_for():
    assert epochs_of(Choice(), 200, 4) == 200
    assert epochs_of(Choice(epochs=20), 200, 4) == 20
    assert epochs_of(Choice(epochs=500), 200, 4) == 200
    assert epochs_of(QUICK, 200, 4) == 4


def test_seeds_give_different_weights_and_the_same_seed_the_same():
    graph = open_graph("communities", QUICK)
    first, again, other = (
        next(setting("communities").build("M1", graph, seed).parameters()) for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_quick_choice_takes_the_tiny_graph_and_few_runs():
    assert chosen_datasets(QUICK, ("reddit", "cora")) == ("communities",)
    assert open_graph("communities", QUICK).num_nodes == 2_000
    assert runs_of(QUICK, "cora") == 2
    assert runs_of(Choice(), "cora") == 10
    assert runs_of(Choice(runs=3), "cora") == 3


def test_data_sets_without_files_are_left_out(tmp_path):
    choice = Choice(datasets=("cora", "communities"), data_root=tmp_path)
    assert chosen_datasets(choice, ()) == ("communities",)
    assert absent(choice) == ("cora",)
    assert "reddit" in absent(Choice(data_root=tmp_path))
    assert absent(Choice(quick=True, data_root=tmp_path)) == ()
    assert chosen_datasets(choice, (), among=("cora",)) == ()


def test_unknown_data_sets_are_refused_with_what_there_is():
    with refused():
        setting("coral")
    with refused():
        setting("ogbn-arxiv")


def test_real_data_is_scaled_and_rebuilt_data_labelled(real_data):
    choice = Choice(data_root=real_data)
    sums = open_graph("cora", choice).features.sum(1)
    assert torch.allclose(sums, torch.ones_like(sums))
    assert dataset_label("cora", choice) == "Cora"
    raw = DATASETS["ppi-small"].raw
    assert raw is not None
    rebuilt = raw.note(raw.folder(real_data)) is not None
    assert dataset_label("ppi-small", choice) == ("PPI (rebuilt)" if rebuilt else "PPI")
