"""`vrgcn tune`: searches for models of a graph, averages the best, writes all of them as runs."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrgcn.cli.train import RunOptions
from vrgcn.files.wording import print_note, printable
from vrgcn.runs.folder import AVERAGED, BEST
from vrgcn.training.clock import Clock
from vrgcn.tuning.settings import TuneSettings

if TYPE_CHECKING:
    from vrgcn.tuning.finishing import TuneResult


@dataclass(frozen=True)
class TuneOptions(TuneSettings, RunOptions):
    """Flags of `vrgcn tune`: the settings that are tried first, and the settings that are not
    searched."""


def run(options: TuneOptions) -> None:
    """Search as the options say, or resume a search. Loading this program and PyTorch counts as
    time of it."""
    begun = Clock.now() - time.process_time()
    if sys.stdout.isatty():
        print("loading PyTorch", flush=True)  # seconds in which nothing else is shown
    from vrgcn.runs.resume import nothing_left
    from vrgcn.runs.training import finished_text
    from vrgcn.tuning.searching import run_search

    if options.resume is not None and nothing_left(options, options.resume):
        print(finished_text(options.resume, "trials"))
    else:
        print_result(*run_search(options, verbose=True, begun=begun))


def print_result(result: TuneResult, folder: Path) -> None:
    """Print what a search found, and the commands that go on with it."""
    print(result)
    first, metric = result.trials[0], result.result.metric
    if result.best.number == first.number:
        print("trial 0, with the settings that `vrgcn train` takes, is the best single model")
    elif first.val is not None and result.result.val is not None:
        scores = metric.text(result.result.val), metric.text(first.val)
        after = "" if first.reason is None else f", after {first.epochs} epochs: {first.reason}"
        print(
            f"validation {metric.title} {scores[0]}; trial 0, with the settings that `vrgcn train` "
            f"takes, has {scores[1]}{after}"
        )
    if result.average is None:
        _print_pairs(result, folder)
        return
    gain = result.standings[-1].gain
    if gain is not None:
        than = "better" if gain >= 0 else "worse"
        print(
            f"the average is {metric.text(abs(gain))} {than} than the best baseline on the "
            "validation nodes"
        )
    print(f"the best: vrgcn predict {printable(folder / BEST)} --out predictions.csv")
    print(f"the average: vrgcn predict {printable(folder / AVERAGED)} --out predictions.csv")
    print(f"all of it: vrgcn report {printable(folder)} --no-scores")


def _print_pairs(result: TuneResult, folder: Path) -> None:
    """Print the end of a search for pairs, which averages nothing."""
    metric = result.result.metric
    best = result.standings[0]
    if best.kind == "baseline":
        print_note(
            f"{best.name} is better than every network that was tried: validation {metric.title} "
            f"{metric.text(best.val)}"
        )
    print("embeddings of different networks have no average: the best is a single one")
    best_run = printable(folder / BEST)
    print(f"the best: vrgcn predict {best_run} --pairs pairs.csv --out scored.csv")
    print(f"all of it: vrgcn report {printable(folder)} --no-scores")
