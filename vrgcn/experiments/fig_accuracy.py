"""Validation accuracy per epoch with dropout: which estimators reach that of exact training."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from vrgcn.experiments.curves import EXACT, QUICK_EPOCHS, add_curves, curve_units, diverged, settled
from vrgcn.experiments.experiment import Choice, Experiment, Record, Unit, Verdict
from vrgcn.experiments.runs import in_order, of, train_run
from vrgcn.experiments.settings import TWO_WAY, dataset_label, epochs_of, open_graph, setting
from vrgcn.experiments.summary import difference_error
from vrgcn.pages.page import Page

ALGORITHMS = (EXACT, "NS", "NS+PP", "IS+PP", "CV+PP", "CVD+PP", TWO_WAY)
MARGIN = 0.5  # points
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
    kept = ("epochs", FIELD, "test", "diverged")
    about = {"label": dataset_label(dataset, choice), "every": paper.every}
    return about | {name: record[name] for name in kept}


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
    return [_cvd_reaches(records)]


def _cvd_reaches(records: list[Record]) -> Verdict:
    claim = (
        "Validation accuracy with dropout: CVD+PP reaches that of exact training on every data "
        f"set (mean over runs of the last tenth, at most {MARGIN} points or 2 standard errors "
        "of the difference below exact's)"
    )
    found, missed = [], []
    for dataset in in_order(records, "dataset"):
        mine = of(records, dataset=dataset)
        ends = settled(mine, FIELD)
        exact = [100 * value for value in ends.get(EXACT, [])]
        ours = [100 * value for value in ends.get("CVD+PP", [])]
        lost = diverged(mine, "CVD+PP")
        if exact and lost:
            text = f"{mine[0]['label']} ({lost} of CVD+PP's runs diverged)"
            found.append(text)
            missed.append(text)
        if not exact or not ours or lost:
            continue
        difference = fmean(ours) - fmean(exact)
        text = f"{mine[0]['label']} {fmean(ours):.1f} to {fmean(exact):.1f}"
        found.append(text)
        if difference < -max(MARGIN, 2 * difference_error(ours, exact)):
            missed.append(text)
    if not found:
        return Verdict(None, f"{claim}: no runs to compare.")
    text = f"{claim}: {', '.join(found)}"
    if records[0]["quick"]:
        return Verdict(None, f"{text}; a quick run decides nothing.")
    return Verdict(not missed, f"{text}{'; not so: ' + ', '.join(missed) if missed else ''}.")


EXPERIMENT = Experiment("fig-accuracy", "Validation accuracy with dropout", units, render)
