"""A training run as a record."""

from __future__ import annotations

import json

import pytest
import torch

from lab.paper.experiment import Choice
from lab.paper.runs import exact_training_loss, label_seeds, train_run
from lab.paper.settings import open_graph, setting
from lab.paper.summary import difference_error, tail_mean
from lab.paper.wording import mean_text
from vrgcn.graph.propagation import build_propagation
from vrgcn.training.objective import loss_per_node

QUICK = Choice(quick=True)


def run(algorithm="CV+PP", **changes):
    paper, graph = setting("communities"), open_graph("communities", QUICK)
    model = paper.build(algorithm, graph, 0)
    return model, graph, paper.config(algorithm, 0, epochs=3, **changes)


def test_a_record_has_an_entry_for_each_epoch_and_is_json():
    record = train_run(*run())
    assert record["epochs"] == 3
    assert [len(record[name]) for name in ("loss", "val", "epoch_seconds")] == [3, 3, 3]
    assert 0 <= record["test"] <= 1
    assert record["diverged"] is None
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_run_stops_at_the_first_epoch_that_reaches_the_score():
    whole = train_run(*run())
    stopped = train_run(*run(), until=whole["val"][1])
    assert stopped["val"] == whole["val"][: stopped["epochs"]]
    assert stopped["epochs"] == next(
        i for i, v in enumerate(whole["val"], 1) if v >= whole["val"][1]
    )
    assert stopped["test"] is None


def test_a_run_that_diverges_is_a_record_with_what_came_before():
    model, graph, config = run(learning_rate=1e30)
    record = train_run(model, graph, config)
    assert "loss became" in record["diverged"]
    assert record["epochs"] < 3
    assert record["test"] is None
    json.dumps(record, allow_nan=False)


def test_measures_come_with_their_epochs_and_the_last_is_among_them():
    record = train_run(*run(), measure=lambda: 0.5, every=2)
    assert (record["measured"], record["at"]) == ([0.5, 0.5], [2, 3])
    assert train_run(*run(evaluate_every=2))["at"] == [2, 3]


def test_a_measure_that_is_not_finite_is_a_run_that_diverged():
    values = iter([0.5, float("inf")])
    record = train_run(*run(), measure=lambda: next(values))
    assert record["diverged"] == "the loss was inf after epoch 2"
    assert record["measured"] == [0.5]
    assert (record["planned"], record["epochs"]) == (3, 2)


@pytest.mark.parametrize("algorithm", ["NS", "IS+PP", "CV+PP", "MLP"])
def test_the_measured_loss_is_the_exact_objective_on_the_training_edges(algorithm):
    model, graph, config = run(algorithm, select="last")
    record = train_run(model, graph, config, measure=exact_training_loss(model, graph, config))
    # Computed by hand: dense P of the graph among training nodes, the model with its final weights.
    rule = "identity" if algorithm == "MLP" else "mean"
    P = build_propagation(rule, graph.among(graph.train))
    dense = P.to_dense()

    class By:
        def __call__(self, h):
            return dense @ h

        def beside(self, h):
            return torch.cat([h, dense @ h], dim=-1)

    with torch.no_grad():
        outputs = model.eval()(graph.features, By())
    expected = loss_per_node(outputs[graph.train], graph.labels[graph.train]).mean()
    assert len(record["measured"]) == 3
    assert record["measured"][-1] == pytest.approx(float(expected), rel=1e-4)


def test_means_are_written_with_the_deviation_of_the_sample():
    assert mean_text([0.81, 0.83], scale=100) == "82.0 ± 1.4"
    assert mean_text([0.5], digits=2) == "0.50"
    assert mean_text([]) == "–"
    assert difference_error([1.0, 3.0], [2.0, 2.0]) == pytest.approx(1.0)
    assert difference_error([1.0], [2.0, 3.0]) == 0.0
    assert tail_mean([9.0] * 18 + [1.0, 3.0]) == 2.0
    assert tail_mean([9.0, 1.0]) == 1.0


def test_a_label_has_the_seed_where_a_data_set_has_several():
    records = [
        {"dataset": "cora", "label": "Cora", "seed": 0},
        {"dataset": "cora", "label": "Cora", "seed": 1},
        {"dataset": "nell", "label": "NELL", "seed": 0},
    ]
    labels = [record["label"] for record in label_seeds(records)]
    assert labels == ["Cora, seed 0", "Cora, seed 1", "NELL"]
    assert records[0]["label"] == "Cora"
