"""fig-testing: predictions by sampling and by sweeps against exact ones."""

from __future__ import annotations

import copy

import pytest
import torch
from matplotlib.figure import Figure

from lab.paper import charts, fig_testing
from lab.paper.experiment import Choice
from lab.paper.settings import open_graph, setting
from lab.paper.wording import mean_text
from vrgcn import predict


@pytest.fixture(scope="module")
def outcome(run_quick):
    return run_quick(fig_testing.EXPERIMENT)


def test_scores_that_are_all_the_same_can_be_drawn(outcome, tmp_path):
    records = copy.deepcopy(outcome.records[:1])
    for k in range(0, 1001, 7):  # the last bit differs in many such means
        for part in (part for parts in records[0]["sampled"].values() for part in parts):
            part["scores"] = [k / 1000] * 5
        for panel in charts.testing_scores([records]):
            axes = Figure().subplots()
            panel.draw(axes)
            assert len(axes.containers) == len(records[0]["sampled"])


def test_runs_draw_different_neighbours(monkeypatch):
    drawn: list[int] = []
    outputs = fig_testing.sampled_outputs

    def noted(model, graph, fanout, preprocess, seed):
        drawn.append(seed)
        return outputs(model, graph, fanout, preprocess, seed)

    monkeypatch.setattr(fig_testing, "sampled_outputs", noted)
    for seed in (0, 1):
        fig_testing.run("communities", seed, Choice(quick=True, threads=1))
    assert set(drawn[: len(drawn) // 2]) == {0, 1}
    assert set(drawn[len(drawn) // 2 :]) == {2, 3}


def test_cv_is_exact_at_the_last_of_as_many_sweeps_as_propagations(outcome):
    for record in outcome.records:
        for name in ("cv", "two_way"):
            first, second, third = record[name]
            assert first["difference"] > 0.01
            for sweep in (second, third):
                assert sweep["difference"] < fig_testing.PRECISION
                assert sweep["changed"] == 0
                assert sweep["score"] == record["exact"]
            assert fig_testing.final_sweep(record[name]) == second
    assert any(record["cv"][0]["changed"] > 0 for record in outcome.records)
    assert fig_testing.verdicts_of(outcome.records)[0].holds


def test_ns_is_nearer_to_exact_with_more_neighbours_and_with_preprocessing(outcome):
    record = outcome.records[0]
    ns, pp = (record["sampled"][label] for label in ("NS", "NS+PP"))
    assert [part["fanout"] for part in ns] == [1, 2, 4]
    assert all(0 < value < 1 for part in (*ns, *pp) for value in part["scores"])
    lower = [
        100 * (run["exact"] - value)
        for run in outcome.records
        for value in run["sampled"]["NS"][0]["scores"]
    ]
    assert len(lower) == 4  # two repetitions of two runs
    assert f"by {sum(lower) / 4:.2f} and" in outcome.verdicts[1].text


def test_the_figure_and_the_table_are_there(outcome):
    assert outcome.figures() == {"fig-testing.png", "fig-testing.svg"}
    exact = mean_text([record["exact"] for record in outcome.records], 100)
    assert f"<td>{exact}</td>" in outcome.page


def test_predictions_that_differ_are_not_called_exact(outcome):
    for change in ({"difference": 1e-3}, {"changed": 1}, {"score": 0.0}):
        records = copy.deepcopy(outcome.records)
        records[1]["cv"][1] |= change
        assert fig_testing.verdicts_of(records)[0].holds is False


@pytest.mark.parametrize("preprocess", [False, True])
def test_every_repetition_samples_anew(preprocess):
    graph = open_graph("communities", Choice(quick=True))
    model = setting("communities").build("M1+PP", graph, 0).eval()
    first, again, other = (
        fig_testing.sampled_outputs(model, graph, 1, preprocess, seed) for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert (first != other).any(1).double().mean() > 0.9


def test_with_all_neighbours_ns_is_exact():
    graph = open_graph("communities", Choice(quick=True))
    model = setting("communities").build("M1+PP", graph, 0)
    exact = predict(model, graph)[graph.test]
    for preprocess in (False, True):
        sampled = fig_testing.sampled_outputs(model, graph, 5_000, preprocess, seed=0)
        torch.testing.assert_close(sampled, exact, rtol=1e-4, atol=1e-5)
        few = fig_testing.sampled_outputs(model, graph, 1, preprocess, seed=0)
        assert (few - exact).abs().max() > 0.01
