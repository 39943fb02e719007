"""`vrgcn predict`: writes the predictions of a trained model on a graph to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from vrgcn.cli.early_checks import check_file
from vrgcn.cli.exact_run import ExactOptions, opened_sweeps, shown, too_large
from vrgcn.data.databases.url import Place
from vrgcn.files.destination import check_suffix
from vrgcn.files.mistakes import InputError
from vrgcn.files.printable import printable
from vrgcn.runs.folder import read_config
from vrgcn.runs.run import parts_of_run
from vrgcn.targets.spec import TargetSpec

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel


@dataclass(frozen=True)
class PredictOptions(ExactOptions):
    """Flags of `vrgcn predict`."""

    out: Place
    """File to write: .parquet or .csv (id, label, probabilities; for regression id, prediction) or
    .npy (only the probabilities or numbers); or a new table of a database, all rows or none:
    sqlite:///shop.db#predictions, duckdb:///shop.db#predictions, postgresql://host/shop#predictions.
    """
    top: int | None = None
    """Write only this many of the most probable classes, each with its probability."""
    of: str | None = None
    """Kind of nodes to predict, in a graph of several kinds, or all. None: the kind that has
    labels."""

    coverage: float | None = None
    """Add prediction sets, or intervals for numbers, that hold the true label with this
    probability, such as 0.9: a column `set`, or `low` and `high`. Needs a calibrated model, and
    nodes like the validation nodes."""

    threshold: float | None = None
    """Probability of the second of two classes from which on it is the label, such as 0.5 for the
    more probable class. None: the one that calibration chose for its F1 on validation nodes; 0.5 if
    it chose none."""

    pairs: Place | None = None
    """For a run that predicts pairs: a CSV or Parquet file, or a table or query of a database, with
    the ids of two nodes in each row, in the columns source and target (or user and item, as their
    kinds are called), or in the first two. The file --out gets both and the score. For a run that
    predicts the edges of all relations there are three: source, relation and target."""

    takes_parts: ClassVar[bool] = True

    def checked(self) -> Self:
        """Raise if the run predicts pairs and none are given, or the other way round."""
        checked = super().checked()
        if self.coverage is not None and not 0 < self.coverage < 1:
            raise InputError(f"--coverage lies between 0 and 1, not {self.coverage:g}")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"--threshold lies between 0 and 1, not {self.threshold:g}")
        array = isinstance(self.out, Path) and self.out.suffix == ".npy"
        if self.coverage is not None and array:
            raise InputError("--coverage adds columns: use .parquet or .csv")
        target = TargetSpec.of(read_config(self.run))
        if not target.labels and not self.pairs:
            raise InputError(
                f"{self.run} predicts pairs of {target.predict}: give them by --pairs FILE, or let "
                "`vrgcn recommend` find the best for each node"
            )
        if target.labels and self.pairs:
            raise InputError(f"--pairs: {self.run} predicts labels of nodes, and no pairs")
        if self.pairs:
            if isinstance(self.pairs, Path):
                check_file(self.pairs, "--pairs")
            for flag, value in (
                ("--nodes", self.nodes),
                ("--top", self.top),
                ("--coverage", self.coverage),
                ("--threshold", self.threshold),
            ):
                if value is not None:
                    raise InputError(f"{flag} is for labels of nodes: leave it out with --pairs")
            if isinstance(self.out, Path):
                check_suffix(self.out, (".parquet", ".csv"))
        return checked


def run(options: PredictOptions) -> None:
    """Predict and write; the file or table appears once it is complete."""
    from vrgcn.data.databases.sending import destination
    from vrgcn.files.memory import memory_advice

    with memory_advice(too_large(options, "predict")):
        parts = parts_of_run(options.run, options.dataset, options.graph)
        if not options.pairs and parts is not None:
            from vrgcn.cli.predict_parts import run_predict_parts

            run_predict_parts(options, parts)
            return
        with destination(options.out, append=options.append) as path:
            done = _predict(options, path)
    print(f"{done} written to {printable(str(options.out))}")


def _predict(options: PredictOptions, out: Path) -> str:
    """Write the predictions to a file; return words for what was written."""
    if not options.pairs:
        return _predict_nodes(options, out)
    return _predict_pairs(options, options.pairs, out)


def _predict_nodes(options: PredictOptions, out: Path) -> str:
    from vrgcn.data.predictions import check_prediction, prediction_file
    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.inference.predict import check_outputs
    from vrgcn.inference.regions import model_region
    from vrgcn.runs.run import open_run
    from vrgcn.tasks import find_task

    use_threads(options.threads)
    run = open_run(options.run, find_device(options.device))
    saved = run.saved
    task, classes = find_task(saved.task), class_names(saved)
    check_prediction(out, task, len(classes), options.top)
    region = None if options.coverage is None else model_region(saved, options.coverage)
    threshold = chosen_threshold(options, saved)
    with opened_sweeps(run, options, options.of) as opened:
        graph, sweeps = opened.graph, opened.sweeps
        with (
            shown("predicting", sweeps.work(opened.nodes)) as advance,
            prediction_file(
                out,
                opened.ids,
                task,
                classes,
                count=opened.count,
                top=options.top,
                region=region,
                threshold=threshold,
            ) as file,
        ):
            sweeps.on_chunk = advance
            for chunk, outputs in sweeps.stream(opened.nodes):
                check_outputs(graph, chunk, outputs)
                file.write(chunk, outputs)
    print_threshold(options, out, classes, threshold)
    return f"exact predictions of {opened.count:,} nodes"


def chosen_threshold(options: PredictOptions, saved: SavedModel) -> float | None:
    """Return the probability from which on the second of two classes is the label: the one that
    the options name, or the model's; None if there is none."""
    if options.threshold is None:
        return None if saved.calibration is None else saved.calibration.threshold
    names = class_names(saved)
    if saved.multilabel or len(names) != 2:
        known = f"{len(names)} classes" if names else "numbers"
        raise InputError(f"--threshold is for two classes, and {options.run} predicts {known}")
    return options.threshold


def print_threshold(
    options: PredictOptions, out: Path, classes: list[str], threshold: float | None
) -> None:
    """Print how the labels were chosen, where that is not by the larger probability."""
    if threshold is None or options.top is not None or out.suffix == ".npy":
        return
    why = "" if options.threshold is not None else ", chosen for its F1 on validation nodes"
    print(
        f"label is {printable(classes[1])} from probability {threshold:.3g} on{why}; "
        "--threshold 0.5 takes the more probable class"
    )


def _predict_pairs(options: PredictOptions, file: Place, out: Path) -> str:
    from vrgcn.cli.pair_run import embedded
    from vrgcn.data.edge_tables import edge_file

    with embedded(options) as found:
        edges = found.edges
        rows = edges.read(file, found.graph)
        scores = edges.scorer(found.decoder, found.embeddings).score(rows).cpu()
        batch = edges.written(found.graph, rows, scores)
        with edge_file(out, batch.schema) as writer:
            writer.write_batch(batch)
    return f"exact {edges.noun} of {len(rows):,} {edges.word}"


def class_names(saved: SavedModel) -> list[str]:
    """Return the names of the classes that a model knows; empty if it does not predict classes."""
    from vrgcn.tasks import find_task

    if not find_task(saved.task).has_classes:
        return []
    return saved.classes or [str(i) for i in range(saved.num_classes or 0)]
