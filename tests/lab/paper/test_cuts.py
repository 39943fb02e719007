"""The page names the cuts for time of each data set."""

from __future__ import annotations

from lab.paper.cuts import cuts


def runs(dataset: str, label: str, count: int, epochs: int, algorithm: str = "M1", quick=False):
    return [
        {"dataset": dataset, "label": label, "seed": seed, "epochs": epochs, "quick": quick,
         "algorithm": algorithm}
        for seed in range(count)
    ]  # fmt: skip


def test_nothing_is_said_where_everything_is_as_in_the_paper():
    assert cuts(runs("cora", "Cora", 10, 200)) == ""
    assert cuts(runs("cora", "Cora", 10, 400), curves=True) == ""
    assert cuts(runs("cora", "Cora", 1, 4, quick=True)) == ""


def test_fewer_epochs_and_runs_are_said_and_whose_differ():
    records = runs("cora", "Cora", 10, 400) + runs("cora", "Cora", 3, 400, "two-way")
    records += runs("ppi-small", "PPI", 5, 20)
    assert cuts(records, curves=True) == (
        "Cut for time: Cora 10 (two-way 3) of 10 runs; PPI 20 of 100 epochs. "
    )


def test_epochs_that_differ_from_run_to_run_are_said_and_not_those_lost_by_diverging():
    records = runs("cora", "Cora", 5, 40) + runs("cora", "Cora", 10, 400)[5:]
    assert cuts(records, curves=True) == "Cut for time: Cora 40 to 400 of 400 epochs. "
    lost = [record | {"planned": 400, "epochs": 37} for record in runs("cora", "Cora", 10, 0)]
    assert cuts(lost, curves=True) == ""
    ns = runs("reddit2", "Reddit", 5, 60, "NS") + runs("reddit2", "Reddit", 5, 50)
    assert cuts(ns, curves=True) == "Cut for time: Reddit 60 of 100 epochs. "


def test_a_graph_in_reddits_place_is_held_against_reddits_epochs():
    assert cuts(runs("reddit-like", "Reddit-like", 1, 6)) == (
        "Cut for time: Reddit-like 6 of 30 epochs, 1 of 5 runs. "
    )
