"""`vrgcn evaluate`: scores a trained model on each split, and on each class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_file
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
from vrgcn.files.writing import FIGURES, PAGES, check_suffix, check_writable
from vrgcn.runs.folder import read_config
from vrgcn.runs.run import check_run, parts_of_run
from vrgcn.targets.spec import TargetSpec


@dataclass(frozen=True)
class EvaluateOptions(Options):
    """Flags of `vrgcn evaluate`."""

    loads_torch: ClassVar[bool] = True

    run: TrainedRun
    dataset: OtherDataset = None
    graph: OtherGraph = None
    data_root: RunDataRoot = None
    split: Literal["train", "val", "test"] | None = None
    """Split to show in detail. None: test, else val, else train."""
    out: Path | None = None
    """Page to write (.html), or a picture (.png, .svg or .pdf). None: evaluation-SPLIT.html in the
    run's folder. The numbers are written beside it, to evaluation-SPLIT.json, or for a file
    NAME.html to evaluation-NAME.json."""
    negatives: Path | None = None
    """Table of pairs (.csv, .tsv or .parquet) that are no edges, for a run of pairs. MRR,
    Hits@K, AUC and AP compare the pairs of the split with these. None: as in training."""
    memory: Memory = "ram"
    device: Device = "cpu"
    threads: Threads = None

    def checked(self) -> Self:
        """Raise if the run or the graph does not exist, or if the page could not be written."""
        check_run(self.run)
        find_source(self.dataset, self.graph, needed=False, parts=True)
        if self.negatives is not None:
            check_file(self.negatives, "--negatives")
            if TargetSpec.of(read_config(self.run)).labels:
                raise InputError(f"--negatives: {self.run} predicts labels of nodes, and no pairs")
        if self.out is not None:
            check_suffix(self.out, (*PAGES, *FIGURES))
            check_writable(self.out.parent)
        return self


def run(options: EvaluateOptions) -> None:
    """Print the scores, and write a page and the numbers."""
    parts = parts_of_run(options.run, options.dataset, options.graph)
    if parts is not None:
        from vrgcn.cli.predict_parts import run_evaluate_parts

        run_evaluate_parts(options, parts)
        return
    from vrgcn.pages.evaluate import evaluate

    evaluate(
        options.run,
        dataset=options.dataset,
        graph=options.graph,
        data_root=options.data_root,
        split=options.split,
        out=options.out,
        negatives=options.negatives,
        memory=options.memory,
        device=options.device,
        threads=options.threads,
        verbose=True,
    ).print()
