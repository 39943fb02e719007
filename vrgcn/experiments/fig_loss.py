"""Training loss per epoch without dropout: which estimators reach the loss of exact training."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from vrgcn.experiments.curves import EXACT, QUICK_EPOCHS, add_curves, curve_units, diverged, settled
from vrgcn.experiments.experiment import Choice, Experiment, Record, Unit, Verdict
from vrgcn.experiments.runs import exact_training_loss, in_order, of, train_run
from vrgcn.experiments.settings import TWO_WAY, dataset_label, epochs_of, open_graph, setting
from vrgcn.pages.page import Page

ALGORITHMS = (EXACT, "NS", "NS+PP", "IS+PP", "CV+PP", TWO_WAY)
BIASED = ("NS+PP", "IS+PP")
SHARE, LEAST = 0.05, 0.01  # "reached" means within so much of exact's loss, or so many nats
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
    kept = ("epochs", FIELD, "diverged")
    about = {"label": dataset_label(dataset, choice), "every": paper.every}
    return about | {name: record[name] for name in kept}


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    page.text(
        "No dropout. After each epoch the loss on the training nodes is computed with exact "
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
    return [_cv_reaches(records), _others_do_not(records)]


def margin(exact: float) -> float:
    """How far above exact's loss still counts as reaching it."""
    return max(SHARE * exact, LEAST)


_TEST = (
    f"mean over runs of the last tenth's loss, at most {SHARE:.0%} or {LEAST} nats above exact's"
)


def _cv_reaches(records: list[Record]) -> Verdict:
    claim = f"Training loss without dropout: CV+PP reaches that of exact training ({_TEST})"
    found, reached = [], []
    for label, ends in _ends(records):
        lost = diverged(of(records, label=label), "CV+PP")
        if ends.get(EXACT) and lost:
            found.append(f"{label} ({lost} of CV+PP's runs diverged)")
            reached.append(False)
        elif ends.get(EXACT) and ends.get("CV+PP"):
            exact, ours = fmean(ends[EXACT]), fmean(ends["CV+PP"])
            found.append(f"{label} {ours:.4f} to {exact:.4f}")
            reached.append(ours <= exact + margin(exact))
    return _verdict(records, claim, found, reached)


def _others_do_not(records: list[Record]) -> Verdict:
    claim = f"Training loss without dropout: NS+PP and IS+PP do not reach it ({_TEST})"
    found, above = [], []
    for label, ends in _ends(records):
        for algorithm in BIASED:
            if ends.get(EXACT) and ends.get(algorithm):
                exact, ours = fmean(ends[EXACT]), fmean(ends[algorithm])
                found.append(f"{label} {algorithm} {ours:.4f} to {exact:.4f}")
                above.append(ours > exact + margin(exact))
    return _verdict(records, claim, found, above)


def _verdict(records: list[Record], claim: str, found: list[str], held: list[bool]) -> Verdict:
    if not found:
        return Verdict(None, f"{claim}: no runs to compare.")
    text = f"{claim}: {', '.join(found)}"
    missed = [what for what, holds in zip(found, held, strict=True) if not holds]
    if records[0]["quick"]:
        return Verdict(None, f"{text}; a quick run decides nothing.")
    return Verdict(not missed, f"{text}{'; not so: ' + ', '.join(missed) if missed else ''}.")


def _ends(records: list[Record]) -> list[tuple[str, dict[str, list[float]]]]:
    parts = [of(records, dataset=dataset) for dataset in in_order(records, "dataset")]
    return [(part[0]["label"], settled(part, FIELD)) for part in parts]


EXPERIMENT = Experiment("fig-loss", "Training loss without dropout", units, render)
