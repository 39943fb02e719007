"""Training loss per epoch without dropout: which estimators reach the loss of exact training."""

from __future__ import annotations

from pathlib import Path

from lab.harness.algorithms import TWO_WAY
from lab.harness.records import Record, of
from lab.harness.units import Unit
from lab.paper.curves import (
    EXACT,
    QUICK_EPOCHS,
    TEST,
    add_curves,
    against_exact,
    by_dataset,
    curve_units,
    decide,
    diverged,
    reaches,
)
from lab.paper.experiment import Choice, Experiment, Verdict
from lab.paper.paired import Comparison
from lab.paper.runs import exact_training_loss, train_run
from lab.paper.settings import dataset_label, epochs_of, open_graph, setting
from vrgcn.pages.page import Page

ALGORITHMS = (EXACT, "NS", "NS+PP", "IS+PP", "CV+PP", TWO_WAY)
BIASED = ("NS", "NS+PP", "IS+PP")
FIELD = "measured"


def units(choice: Choice) -> list[Unit]:
    return curve_units(choice, ALGORITHMS, _train)


def _train(dataset: str, algorithm: str, seed: int, choice: Choice) -> Record:
    paper = setting(dataset)
    graph = open_graph(dataset, choice)
    epochs = epochs_of(choice, paper.curve_epochs(algorithm), QUICK_EPOCHS)
    model = paper.build(algorithm, graph, seed, dropout=0.0)
    config = paper.config(
        algorithm,
        seed,
        epochs=epochs,
        evaluate_every=epochs,
        diagnostics=0,
        threads=choice.threads,
    )
    loss = exact_training_loss(model, graph, config)
    record = train_run(model, graph, config, measure=loss, every=paper.every)
    kept = ("planned", "epochs", "at", FIELD, "diverged")
    return {"label": dataset_label(dataset, choice)} | {name: record[name] for name in kept}


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    page.text(
        "No dropout. The loss on the training nodes is computed with exact "
        "neighbour averages, whatever the algorithm trained with: the mean of its own minibatch "
        "losses would flatter an estimator with noisy values. M1+PP is exact training; the others "
        "sample one neighbour (IS: as many nodes as a batch has)."
    )
    add_curves(
        records,
        page,
        folder,
        name="fig-loss",
        field=FIELD,
        title="training loss",
        digits=4,
        log=True,
    )
    reached = reaches(
        records,
        FIELD,
        "CV+PP",
        "without dropout CV+PP reaches the training loss of exact training (its last tenth is not "
        f"above exact's, {TEST})",
        lower_is_better=True,
        figure=_figure,
    )
    return [*reached, *_others_do_not(records)]


def _others_do_not(records: list[Record]) -> list[Verdict]:
    """Return True if the biased ones end above exact training, on each data set. A run that
    diverged has not reached it either."""
    claim = f"without dropout NS, NS+PP and IS+PP end above exact training (last tenth, {TEST})"
    verdicts = []
    for label, mine in by_dataset(records):
        compared = [
            (name, found)
            for name in BIASED
            if (found := against_exact(mine, FIELD, name)) is not None
        ]
        lost = [f"{n} of {name}'s runs diverged" for name in BIASED if (n := diverged(mine, name))]
        text = f"{label}: {claim}{''.join(f', {each}' for each in lost)}"
        if compared:
            answers = [found.shown for _, found in compared]
            verdicts.append(decide(mine, text, compared, answers, _figure))
        elif lost and of(mine, algorithm=EXACT):
            verdicts.append(Verdict(None, f"{text}: no others to compare."))
    return verdicts or [Verdict(None, f"{claim}: no runs to compare.")]


def _figure(found: Comparison) -> str:
    """Return text such as "0.1046 to 0.0910, +15%, p = 0.002"."""
    share = f", {found.difference / found.second:+.0%}" if found.second > 0 else ""
    return f"{found.first:.4f} to {found.second:.4f}{share}, {found.p_text}"


EXPERIMENT = Experiment("fig-loss", "Training loss without dropout", units, render)
