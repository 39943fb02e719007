"""`vrgcn predict`: writes the predictions of a trained model on a graph to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from vrgcn.cli.early_checks import check_file
from vrgcn.cli.exact_run import ExactOptions, too_large
from vrgcn.data.databases.url import Place
from vrgcn.runs.folder import read_config
from vrgcn.runs.predict import check_predicts, predict
from vrgcn.runs.run import parts_of_run

_COLUMNS = ("top", "coverage", "threshold")  # what is written of each node


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

    rows: Place | None = None
    """For a run on rows with a time of their own: a CSV or Parquet file, or a table or query of a
    database, with new rows, such as driver and date. Columns are called as in the imported table.
    The file --out gets them and their predictions, each by the facts known at its time."""

    takes_parts: ClassVar[bool] = True

    def checked(self) -> Self:
        """Raise if the run predicts pairs and none are given, or the other way round."""
        checked = super().checked()
        of_labels = {name: getattr(self, name) for name in ("nodes", *_COLUMNS)}
        config = read_config(self.run)
        check_predicts(
            self.run, config, out=self.out, pairs=self.pairs, of_labels=of_labels, rows=self.rows
        )
        if isinstance(self.rows, Path):
            check_file(self.rows, "--rows")
        if isinstance(self.pairs, Path):
            check_file(self.pairs, "--pairs")
        return checked


def run(options: PredictOptions) -> None:
    """Predict and write; the file or table appears once it is complete."""
    from vrgcn.files.memory import memory_advice

    with memory_advice(too_large(options, "predict")):
        parts = parts_of_run(options.run, options.dataset, options.graph)
        if not options.pairs and parts is not None:
            from vrgcn.cli.predict_parts import run_predict_parts

            run_predict_parts(options, parts)
            return
        print(
            predict(
                options.run,
                options.graph,
                options.nodes,
                kind=options.of,
                out=options.out,
                append=options.append,
                pairs=options.pairs,
                rows=options.rows,
                **{name: getattr(options, name) for name in _COLUMNS},
                dataset=options.dataset,
                data_root=options.data_root,
                memory=options.memory,
                device=options.device,
                threads=options.threads,
                verbose=True,
            )
        )
