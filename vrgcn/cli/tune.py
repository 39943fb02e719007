"""`vrgcn tune`: searches for models of a graph, averages the best, writes all of them as runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vrgcn.cli.notes import print_note
from vrgcn.cli.run_folder import run_folder
from vrgcn.cli.run_options import RunOptions
from vrgcn.files.printable import printable
from vrgcn.files.settings import at_least
from vrgcn.models.config import ModelConfig
from vrgcn.runs.folder import AVERAGED, BEST, CONFIG, RESULT, remove_card, resumable
from vrgcn.runs.settings import SEARCHED_MODEL
from vrgcn.tuning.space import SPACE, check_names, searched

if TYPE_CHECKING:
    from vrgcn.tuning.tuner import TuneResult

_OF_SEARCH = ("trials", "search", "baselines")  # flags that single runs do not have


@dataclass(frozen=True)
class TuneOptions(RunOptions):
    """Flags of `vrgcn tune`: the settings that are tried first, and the settings that are not
    searched."""

    model: ModelConfig = field(default_factory=lambda: SEARCHED_MODEL)
    name: str | None = None
    """Name of the search. None: the name of the graph with -tuned."""
    resume: Path | None = None
    """Folder of a search to resume.

    The search was stopped or killed. It resumes with its own options. With more --trials or a
    longer --time-limit, a finished search can be resumed too."""

    """Group search: what is tried, and how often."""
    trials: int | None = None
    """Maximum number of settings to try.

    None: 40, or as many as --time-limit allows, which includes the time for baselines."""
    search: tuple[str, ...] = tuple(SPACE)
    """Settings to vary; the others keep their given values.

    Pairs have others, such as decoder, loss and negatives; all of these unless some are named."""
    baselines: bool = True
    """Fit linear models, perceptrons, boosted trees and others before training networks, in 15% of
    the time; for pairs, score simple rules."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, trials=self.trials)
        check_names(self.search)

    def usual_name(self, estimator: str) -> str:
        """Return the default name of a search."""
        return f"{self.graph_name}-tuned"


def run(options: TuneOptions) -> None:
    """Search as the options say, or resume a search."""
    from vrgcn.engine.devices import find_device
    from vrgcn.runs.config_file import write_settings
    from vrgcn.runs.interrupts import Interrupted
    from vrgcn.runs.resume import described, nothing_left
    from vrgcn.training.progress import filling_bars
    from vrgcn.tuning.study import check_optuna
    from vrgcn.tuning.tune import tune

    check_optuna()
    find_device(options.train.device)
    if nothing_left(options, options.resume):
        print(
            f"{printable(str(options.resume))} has finished already; with more --trials or a "
            "longer --time-limit it goes on"
        )
        return
    opened = options.open_graph(filling_bars())
    graph = opened.graph
    scaling = "none" if graph.scaling is None else graph.scaling.kind
    with run_folder(options) as folder:
        names = searched(options.search, options.spec.kind)
        print(f"{graph}\nfeatures scaled: {scaling}, searching {', '.join(names)}")
        print(f"writing to {printable(folder)}")
        print_note(opened.note)
        if graph.visible is not None:
            print(f"no leaks: {'; '.join(graph.visible.rules)}; baselines are fitted to the past")
        told = described(options, opened.checksum)

        def begin() -> None:
            (folder / BEST / RESULT).unlink(missing_ok=True)  # unfinished from here on
            remove_card(folder)
            write_settings(folder / CONFIG, told)

        if options.resume is None:
            begin()  # first of all: the options mark the folder as ours if we are killed
        try:
            result = tune(
                graph,
                options.model,
                options.train,
                trials=options.trials,
                search=options.search,
                baselines=None if options.baselines else (),
                folder=folder,
                options={k: v for k, v in told.items() if k not in _OF_SEARCH},
                verbose=True,
                on_begin=begin,
                on_note=print_note,
            )
        except Interrupted as stop:
            print(f"\n{_what_is_kept(folder)}")
            sys.exit(128 + stop.signal)
        except KeyboardInterrupt:
            print(f"\nstopped early; {_what_is_kept(folder)}")
            raise
    _print_result(result, folder)


def _what_is_kept(folder: Path) -> str:
    if resumable(folder):
        return f"vrgcn tune --resume {printable(folder)} goes on with it"
    return "nothing was kept"


def _print_result(result: TuneResult, folder: Path) -> None:
    print(result)
    first, metric = result.trials[0], result.result.metric
    if result.best.number == first.number:
        print("the settings that were given are the best of those that were tried")
    elif first.val is not None and result.result.val is not None:
        scores = metric.text(result.result.val), metric.text(first.val)
        after = "" if first.reason is None else f", after {first.epochs} epochs: {first.reason}"
        print(
            f"validation {metric.title} {scores[0]}, of the settings that were given {scores[1]}"
            f"{after}"
        )
    if result.average is None:
        _print_pairs(result, folder)
        return
    gain = result.standings[-1].gain
    if gain is not None:
        sign = "gains" if gain >= 0 else "loses"
        print(
            f"the average {sign} {metric.text(abs(gain))} over the best baseline on the validation "
            "nodes"
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
