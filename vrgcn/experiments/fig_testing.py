"""Accuracy of the testing algorithms on one trained model: exact, NS, NS+PP and CV.

NS and NS+PP predict each node from sampled neighbours. CV visits all nodes in sweeps at fixed
weights, from empty histories, one neighbour sampled per node: by Theorem 1 the predictions of the
L-th sweep of a model with L propagations are exact. As in the paper the model is trained by M1+PP.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.experiments.charts import testing_scores
from vrgcn.experiments.experiment import (
    Choice,
    Experiment,
    Record,
    Unit,
    Verdict,
    undecided,
)
from vrgcn.experiments.runs import label_seeds
from vrgcn.experiments.settings import dataset_label, open_graph, setting, unit_per_seed
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.pages.page import Page
from vrgcn.pages.panels import save_panels, show_panels
from vrgcn.training.fit import fit
from vrgcn.training.metrics import score, score_name
from vrgcn.training.wording import mean_text

DATASETS = ("citeseer", "cora", "pubmed", "communities")
TRAINED_BY = "M1+PP"
FANOUTS = (1, 2, 4, 8, 16, 32)
PRECISION = 1e-5  # of the largest output: what float32 leaves of two ways to compute the same sums


def units(choice: Choice) -> list[Unit]:
    return unit_per_seed(choice, DATASETS, run)


def run(dataset: str, seed: int, choice: Choice) -> dict[str, Any]:
    graph = open_graph(dataset, choice)
    model, epochs = _trained(dataset, graph, seed, choice)
    exact = predict(model, graph)
    assert graph.labels is not None
    labels = graph.labels[graph.test]
    repeats, fanouts = (2, FANOUTS[:3]) if choice.quick else (5, FANOUTS)
    sampled = {
        label: [
            {
                "fanout": fanout,
                "scores": [
                    score(sampled_outputs(model, graph, fanout, preprocess, repeat), labels)
                    for repeat in range(repeats)
                ],
            }
            for fanout in fanouts
        ]
        for label, preprocess in (("NS", False), ("NS+PP", True))
    }
    return {
        "label": dataset_label(dataset, choice),
        "metric": score_name(graph.labels),
        "epochs": epochs,
        "exact": score(exact[graph.test], labels),
        "sampled": sampled,
        "cv": cv_sweeps(model, graph, exact, seed),
    }


def sampled_outputs(
    model: nn.Module, graph: Graph, fanout: int, preprocess: bool, seed: int
) -> Tensor:
    """(test nodes, classes) from sampled neighbours, new ones for each minibatch."""
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


def cv_sweeps(model: nn.Module, graph: Graph, exact: Tensor, seed: int) -> list[dict[str, Any]]:
    """Sweeps of CV over all nodes, one more than the model has propagations.

    score: on the test nodes; difference: the largest of all nodes' outputs from the exact ones,
    over the largest exact output; changed: how many predictions are not the exact ones
    """
    assert graph.labels is not None
    batches = MiniBatches(model, graph, estimator="cv", fanout=1, nodes="all", seed=seed)
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
    """(nodes, classes): outputs of one epoch at fixed weights, without dropout; histories are
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
    epochs = 5 if choice.quick else paper.train.epochs
    config = paper.config(
        TRAINED_BY, seed, epochs=epochs, evaluate_every=epochs, threads=choice.threads
    )
    model = paper.build(TRAINED_BY, graph, seed)
    fit(model, graph, config)
    return model, epochs


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    records = label_seeds(records)
    page.text(
        f"One model for each data set, trained by {TRAINED_BY}, tested in several ways. NS and "
        "NS+PP sample neighbours, the fan-out of them besides the node itself (the paper's D = 2 "
        "is fan-out 1); CV sweeps over all nodes from empty histories, one neighbour sampled."
    )
    page.table(
        ["data set", "Exact", "CV, 1 sweep", "CV, L sweeps", *_sampled_columns(records[0])],
        [_cells(record) for record in records],
        caption="Test scores; of NS and NS+PP mean ± standard deviation over the repetitions, at "
        "the smallest and the largest fan-out measured",
    )
    panels = testing_scores(records)
    page.text(
        "Test scores against the fan-out of NS: means of the repetitions, bars their range. Exact "
        "and CV do not depend on it; CV at the sweep that Theorem 1 names and after lies on Exact."
    )
    show_panels(page, panels)
    save_panels(panels, folder, "fig-testing", columns=4)
    verdicts = [verdict for record in records for verdict in verdicts_of(record)]
    return undecided(verdicts) if records[0]["quick"] else verdicts


def final_sweep(record: Record) -> dict[str, Any]:
    """The sweep that Theorem 1 says is exact."""
    sweeps: list[dict[str, Any]] = record["cv"]
    return sweeps[sweeps[0]["propagations"] - 1]


def _sampled_columns(record: Record) -> list[str]:
    fanouts = [part["fanout"] for part in record["sampled"]["NS"]]
    return [f"{name}, fan-out {fanout}" for fanout in (1, max(fanouts)) for name in ("NS", "NS+PP")]


def _cells(record: Record) -> list[str]:
    ns, pp = (record["sampled"][label] for label in ("NS", "NS+PP"))
    return [
        record["label"],
        f"{record['exact']:.4f}",
        f"{record['cv'][0]['score']:.4f}",
        f"{final_sweep(record)['score']:.4f}",
        *(mean_text(part["scores"], digits=4) for part in (ns[0], pp[0], ns[-1], pp[-1])),
    ]


def verdicts_of(record: Record) -> list[Verdict]:
    cv, label = final_sweep(record), record["label"]
    exact = cv["difference"] < PRECISION and cv["changed"] == 0 and cv["score"] == record["exact"]
    first = record["cv"][0]
    lower = {
        name: [100 * (record["exact"] - value) for value in record["sampled"][name][0]["scores"]]
        for name in ("NS", "NS+PP")
    }
    return [
        Verdict(
            exact,
            f"{label}: CV's testing is exact: at sweep {cv['sweep']} the outputs of all nodes "
            f"differ from the exact ones by {cv['difference']:.1e} of the largest (allowed "
            f"{PRECISION:g}), {cv['changed']} predictions differ, and the {record['metric']} is "
            f"{cv['score']:.4f} against {record['exact']:.4f}; at sweep 1 the difference was "
            f"{first['difference']:.1e}.",
        ),
        Verdict(
            all(min(values) > 0 for values in lower.values()),
            f"{label}: at D = 2, NS and NS+PP test worse than the exact algorithm in each of "
            f"{len(lower['NS'])} repetitions: by {fmean(lower['NS']):.2f} and "
            f"{fmean(lower['NS+PP']):.2f} points of {record['metric']}.",
        ),
    ]


EXPERIMENT = Experiment("fig-testing", "Figure: accuracy of the testing algorithms", units, render)
