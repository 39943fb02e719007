"""Validation accuracy per epoch with dropout: which estimators reach that of exact training."""

from __future__ import annotations

from pathlib import Path

from lab.harness.algorithms import TWO_WAY
from lab.harness.records import Record
from lab.harness.units import Unit
from lab.paper.curves import (
    EXACT,
    QUICK_EPOCHS,
    TEST,
    add_curves,
    curve_units,
    reaches,
)
from lab.paper.experiment import Choice, Experiment, Verdict
from lab.paper.paired import Comparison
from lab.paper.runs import train_run
from lab.paper.settings import dataset_label, epochs_of, open_graph, setting
from vrgcn.pages.page import Page

ALGORITHMS = (EXACT, "NS", "NS+PP", "IS+PP", "CV+PP", "CVD+PP", TWO_WAY)
FIELD = "val"


def units(choice: Choice) -> list[Unit]:
    return curve_units(choice, ALGORITHMS, _train)


def _train(dataset: str, algorithm: str, seed: int, choice: Choice) -> Record:
    paper = setting(dataset)
    graph = open_graph(dataset, choice)
    epochs = epochs_of(choice, paper.curve_epochs(algorithm), QUICK_EPOCHS)
    config = paper.config(
        algorithm,
        seed,
        epochs=epochs,
        evaluate_every=paper.every,
        diagnostics=0,
        threads=choice.threads,
    )
    record = train_run(paper.build(algorithm, graph, seed), graph, config)
    kept = ("planned", "epochs", "at", FIELD, "test", "diverged")
    return {"label": dataset_label(dataset, choice)} | {name: record[name] for name in kept}


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    page.text(
        "With dropout. Validation accuracy (micro-F1 for PPI) in percent after each epoch, always "
        "predicted exactly. M1+PP is exact training; the others sample one neighbour (IS: as many "
        "nodes as a batch has)."
    )
    add_curves(
        records,
        page,
        folder,
        name="fig-accuracy",
        field=FIELD,
        title="validation score (%)",
        scale=100,
    )
    return [
        verdict
        for algorithm, but in (("CVD+PP", ""), ("CV+PP", ", in the paper on all but PPI"))
        for verdict in reaches(
            records,
            FIELD,
            algorithm,
            f"with dropout {algorithm} reaches the validation score of exact training{but} (its "
            f"last tenth is not below exact's, {TEST})",
            lower_is_better=False,
            figure=_figure,
        )
    ]


def _figure(found: Comparison) -> str:
    """Return text such as "78.6 to 78.8, -0.2 points, p = 0.21"."""
    points = 100 * found.difference
    return f"{100 * found.first:.1f} to {100 * found.second:.1f}, {points:+.1f}, {found.p_text}"


EXPERIMENT = Experiment("fig-accuracy", "Validation accuracy with dropout", units, render)
