"""Accuracy of the testing algorithms on one trained model: exact, NS, NS+PP and CV.

NS and NS+PP predict each node from sampled neighbours. CV visits all nodes in sweeps at fixed
weights, from empty histories, one neighbour sampled per node: by Theorem 1 the predictions of the
L-th sweep of a model with L propagations are exact. As in the paper the model is trained by M1+PP.
The forward way of `two-way` sweeps likewise; nothing is sampled in it.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from lab.harness.records import Record, in_order, of
from lab.harness.units import Unit
from lab.paper.charts import testing_scores
from lab.paper.cuts import cuts
from lab.paper.experiment import Choice, Experiment, Verdict, undecided
from lab.paper.pictures import save_panels
from lab.paper.settings import (
    FIGURES,
    dataset_label,
    epochs_of,
    open_graph,
    runs_of,
    setting,
    unit_per_seed,
)
from lab.paper.wording import mean_text
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.wording import counted
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.pages.page import Page
from vrgcn.pages.panels import show_panels
from vrgcn.runs.fit import fit
from vrgcn.training.objective import score, score_name

DATASETS = FIGURES
TRAINED_BY = "M1+PP"
FANOUTS = (1, 2, 4, 8, 16, 32)
LARGE = 100_000  # nodes: there the paper's D = 2 alone is measured, twice
SWEEP_FANOUT = 1
FORWARD = {"cv": "cv", "two_way": "few/corrected/none"}  # estimators that sweep
PRECISION = 1e-5  # of the largest output: what float32 leaves of two ways to compute the same sums


def units(choice: Choice) -> list[Unit]:
    return unit_per_seed(choice, DATASETS, run, runs=runs_of, epochs=_epochs)


def _epochs(dataset: str, choice: Choice) -> int:
    return epochs_of(choice, setting(dataset).train.epochs, 5)


def run(dataset: str, seed: int, choice: Choice) -> dict[str, Any]:
    graph = open_graph(dataset, choice)
    model, epochs = _trained(dataset, graph, seed, choice)
    exact = predict(model, graph)
    assert graph.labels is not None
    labels = graph.labels[graph.test]
    repeats, count = (2, 3) if choice.quick else (5, len(FANOUTS))
    if graph.num_nodes > LARGE:
        repeats, count = 2, 1
    sampled = {
        label: [
            {
                "fanout": fanout,
                "scores": [
                    score(sampled_outputs(model, graph, fanout, preprocess, draw), labels)
                    for draw in range(seed * repeats, (seed + 1) * repeats)
                ],
            }
            for fanout in FANOUTS[:count]
        ]
        for label, preprocess in (("NS", False), ("NS+PP", True))
    }
    return {
        "label": dataset_label(dataset, choice),
        "metric": score_name(graph.labels),
        "epochs": epochs,
        "exact": score(exact[graph.test], labels),
        "sampled": sampled,
        **{
            name: sweeps(model, graph, estimator, exact, seed)
            for name, estimator in FORWARD.items()
        },
    }


def sampled_outputs(
    model: nn.Module, graph: Graph, fanout: int, preprocess: bool, seed: int
) -> Tensor:
    """Return outputs (test nodes, classes) from sampled neighbours, new ones for each minibatch."""
    batches = MiniBatches(
        model,
        graph,
        estimator="ns",
        fanout=fanout,
        nodes=graph.test,
        preprocess=preprocess,
        seed=seed,
    )
    return sweep(model, batches)[graph.test]


def sweeps(
    model: nn.Module, graph: Graph, estimator: str, exact: Tensor, seed: int
) -> list[dict[str, Any]]:
    """Make sweeps over all nodes from empty histories, one more than the model has propagations.

    score: on the test nodes; difference: the largest difference of all nodes' outputs from the
        exact ones, relative to the largest exact output; changed: number of predictions that differ
        from the exact ones
    """
    assert graph.labels is not None
    batches = MiniBatches(
        model, graph, estimator=estimator, fanout=SWEEP_FANOUT, nodes="all", seed=seed
    )
    out = []
    for number in range(1, batches.setup.training.depth + 2):
        outputs = sweep(model, batches)
        out.append(
            {
                "sweep": number,
                "propagations": batches.setup.training.depth,
                "score": score(outputs[graph.test], graph.labels[graph.test]),
                "difference": float((outputs - exact).abs().max() / exact.abs().max()),
                "changed": _changed(outputs, exact, graph.multilabel),
            }
        )
    return out


def sweep(model: nn.Module, batches: MiniBatches) -> Tensor:
    """Return outputs (nodes, classes) of one epoch at fixed weights, without dropout; histories are
    written. Rows that were not visited are zero."""
    rows = []
    model.eval()
    with torch.no_grad():
        for batch in batches:
            rows.append((batch.nodes, batch.run(model)))
            batch.commit()
    outputs = rows[0][1].new_zeros(batches.graph.num_nodes, rows[0][1].shape[1])
    for nodes, values in rows:
        outputs[nodes] = values
    return outputs


def _changed(outputs: Tensor, exact: Tensor, multilabel: bool) -> int:
    if multilabel:
        return int(((outputs > 0) != (exact > 0)).any(1).sum())
    return int((outputs.argmax(1) != exact.argmax(1)).sum())


def _trained(dataset: str, graph: Graph, seed: int, choice: Choice) -> tuple[nn.Module, int]:
    paper = setting(dataset)
    epochs = _epochs(dataset, choice)
    config = paper.config(
        TRAINED_BY,
        seed,
        epochs=epochs,
        evaluate_every=epochs,
        diagnostics=0,
        threads=choice.threads,
    )
    model = paper.build(TRAINED_BY, graph, seed)
    fit(model, graph, config)
    return model, epochs


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    page.text(
        f"Models trained by {TRAINED_BY}, one for each data set and seed, tested in several ways. "
        "NS and NS+PP sample neighbours, the fan-out of them besides the node itself (the paper's "
        "D = 2 is fan-out 1); CV sweeps over all nodes from empty histories, one neighbour "
        "sampled. two-way, not the paper's, sweeps by its forward way. " + cuts(records)
    )
    groups = [of(records, dataset=dataset) for dataset in in_order(records, "dataset")]
    page.table(
        [
            *("data set", "runs", "Exact", "CV, 1 sweep", "CV, L sweeps", "two-way, L sweeps"),
            *("NS, fan-out 1", "NS+PP, fan-out 1", "NS, largest", "NS+PP, largest"),
        ],
        [_cells(group) for group in groups],
        caption="Test scores in percent, mean ± standard deviation over the runs; of NS and NS+PP "
        "over the repetitions too, at fan-out 1 and the largest measured",
    )
    panels = testing_scores(groups)
    page.text(
        "Test scores against the fan-out of NS: means over repetitions and runs, bars their range. "
        "Exact and CV do not depend on it; CV at the sweep that Theorem 1 names and after lies on "
        "Exact."
    )
    show_panels(page, panels)
    save_panels(panels, folder, "fig-testing", columns=4)
    verdicts = [verdict for group in groups for verdict in verdicts_of(group)]
    return undecided(verdicts) if records[0]["quick"] else verdicts


def final_sweep(sweeps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sweep that Theorem 1 says is exact."""
    return sweeps[sweeps[0]["propagations"] - 1]


def sampled_scores(group: list[Record], name: str, place: int) -> list[float]:
    """Return the scores of all repetitions of all runs. place: of the fan-out in the record's
    list"""
    return [score for record in group for score in record["sampled"][name][place]["scores"]]


def _cells(group: list[Record]) -> list[str]:
    scores = [
        [record["exact"] for record in group],
        [record["cv"][0]["score"] for record in group],
        *(
            [final_sweep(record[name])["score"] for record in group if name in record]
            for name in FORWARD
        ),
        *(sampled_scores(group, name, place) for place in (0, -1) for name in ("NS", "NS+PP")),
    ]
    return [group[0]["label"], str(len(group)), *(mean_text(values, 100) for values in scores)]


def verdicts_of(group: list[Record]) -> list[Verdict]:
    """Return the verdicts on one data set, each of them over all runs."""
    label, metric, runs = group[0]["label"], group[0]["metric"], counted(len(group), "run")
    sweeps = [final_sweep(record["cv"]) for record in group]
    exact = all(
        cv["difference"] < PRECISION and cv["changed"] == 0 and cv["score"] == record["exact"]
        for cv, record in zip(sweeps, group, strict=True)
    )
    lower = {
        name: [
            100 * (record["exact"] - value)
            for record in group
            for value in record["sampled"][name][0]["scores"]
        ]
        for name in ("NS", "NS+PP")
    }
    farthest = max(sweep["difference"] for sweep in sweeps)
    return [
        Verdict(
            exact,
            f"{label}: CV's testing is exact: at sweep {sweeps[0]['sweep']} the outputs of all "
            f"nodes differ from the exact ones by at most {farthest:.1e} "
            f"of the largest (allowed {PRECISION:g}), {sum(s['changed'] for s in sweeps)} "
            f"predictions differ, and the {metric} is the same ({runs}); at sweep 1 the "
            f"difference was up to {max(r['cv'][0]['difference'] for r in group):.1e}.",
        ),
        Verdict(
            all(min(values) > 0 for values in lower.values()),
            f"{label}: at D = 2, NS and NS+PP test worse than the exact algorithm in each of "
            f"{len(lower['NS'])} repetitions ({runs}): by {fmean(lower['NS']):.2f} and "
            f"{fmean(lower['NS+PP']):.2f} points of {metric} on average.",
        ),
    ]


EXPERIMENT = Experiment("fig-testing", "Figure: accuracy of the testing algorithms", units, render)
