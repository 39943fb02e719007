"""`vrgcn evaluate`: scores a trained model on each split, and on each class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_file
from vrgcn.cli.notes import print_note
from vrgcn.cli.shared_flags import (
    Device,
    Memory,
    OtherDataset,
    OtherGraph,
    RunDataRoot,
    Threads,
    TrainedRun,
)
from vrgcn.data.sources import find_source
from vrgcn.files.mistakes import InputError
from vrgcn.pages.destination import FIGURES, check_suffix, check_writable
from vrgcn.runs.folder import read_config
from vrgcn.runs.run import check_run, parts_of_run
from vrgcn.targets.spec import TargetSpec

if TYPE_CHECKING:
    from vrgcn.runs.run import Run


@dataclass(frozen=True)
class EvaluateOptions(Options):
    """Flags of `vrgcn evaluate`."""

    run: TrainedRun
    dataset: OtherDataset = None
    graph: OtherGraph = None
    data_root: RunDataRoot = None
    split: Literal["train", "val", "test"] | None = None
    """The split used for the table by class and for the picture. None: test, else val, else
    train."""
    out: Path | None = None
    """File for the picture (.png, .svg or .pdf). None: confusion-SPLIT.png, or predicted-SPLIT.png
    for regression, in the run's folder. The scores are written beside it, to evaluation-SPLIT.json,
    or for a picture NAME.png to evaluation-NAME.json."""
    negatives: Path | None = None
    """Table of pairs (.csv, .tsv or .parquet) that are no edges, for a run of pairs. MRR,
    Hits@K, AUC and AP compare the pairs of the split with these. None: as in training."""
    memory: Memory = "ram"
    device: Device = "cpu"
    threads: Threads = None

    def checked(self) -> Self:
        """Raise if the run or the graph does not exist, or if the picture could not be written."""
        check_run(self.run)
        find_source(self.dataset, self.graph, needed=False, parts=True)
        if self.negatives is not None:
            check_file(self.negatives, "--negatives")
            if TargetSpec.of(read_config(self.run)).labels:
                raise InputError(f"--negatives: {self.run} predicts labels of nodes, and no pairs")
        if self.out is not None:
            check_suffix(self.out, FIGURES)
            check_writable(self.out.parent)
        return self


def run(options: EvaluateOptions) -> None:
    """Print the scores, draw the picture, and write the numbers beside it."""
    parts = parts_of_run(options.run, options.dataset, options.graph)
    if parts is not None:
        from vrgcn.cli.evaluate_parts import run_evaluate_parts

        run_evaluate_parts(options, parts)
        return
    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.files.scratch import table_folder
    from vrgcn.runs.run import open_run

    use_threads(options.threads)
    opened = open_run(options.run, find_device(options.device))
    picture_folder = opened.folder if options.out is None else options.out.parent
    with table_folder(options.memory, picture_folder) as folder:
        _evaluate(options, opened, folder)


def _evaluate(options: EvaluateOptions, run: Run, folder: Path | None) -> None:
    """Compute the scores.

    folder: where tables are kept; None keeps them in memory
    """
    from vrgcn.data.pairs import with_given_negatives
    from vrgcn.inference.predict import exact_sweeps, predict
    from vrgcn.inference.saved import model_labels
    from vrgcn.pages.compared import show_compared
    from vrgcn.pages.evaluation import find_picture, find_split, show_evaluation
    from vrgcn.runs.run import open_run_graph
    from vrgcn.targets.scored import scored_edges
    from vrgcn.training.progress import filling_bars

    opened = open_run_graph(
        run, options.dataset, options.graph, options.data_root, folder, filling_bars()
    )
    print_note(opened.note)
    graph = opened.graph
    if run.saved.smoothing is not None:
        print_note(
            "the scores of training nodes say nothing: Correct & Smooth gives them their own "
            "labels; vrgcn train --smooth never trains without it"
        )
    edges = scored_edges(graph)
    if edges is not None:
        split = edges.find_split(options.split)
        if options.negatives is not None:
            edges = scored_edges(with_given_negatives(graph, {split: options.negatives})) or edges
        everything = exact_sweeps(run.saved, graph, directory=folder).outputs(None)
        show_compared(run, edges, everything, split)
        return
    labels = model_labels(run.saved, graph)
    find_picture(options.out, run, find_split(options.split, graph))  # fail early, not late
    outputs = predict(run.saved, graph, kind="all", directory=folder)
    show_evaluation(run, graph, outputs, labels, split=options.split, out=options.out)
