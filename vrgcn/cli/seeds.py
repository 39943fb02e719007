"""`vrgcn train --seeds`: trains runs that differ only in their seed, in one folder, with one
table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from vrgcn.cli.run_folder import run_folder
from vrgcn.cli.train import TrainOptions
from vrgcn.pages.runs.records import read_runs
from vrgcn.pages.runs.seeds import seed_columns, seed_rows
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.runs.card import write_seeds_card
from vrgcn.runs.card_facts import Facts
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import CONFIG, SEED, member_runs, remove_card
from vrgcn.runs.interrupts import Interrupted, stop_requests
from vrgcn.runs.resume import nothing_left
from vrgcn.runs.settings import with_choice


def run_seeds(
    options: TrainOptions,
    folder: Path,
    estimator: str,
    facts: Facts,
    train_one: Callable[[TrainOptions, Path], None],
) -> None:
    """Train one run after the other; finished runs are left as they are, and a stopped run is
    resumed.

    estimator: the one that `auto` stands for
    facts: what the card of all runs says about the graph
    train_one: trains as the options say, in a folder
    """
    assert options.seeds is not None
    config = with_choice(options.as_dict(), estimator)
    remove_card(folder)
    write_settings(folder / CONFIG, config)
    first = options.train.seed
    with stop_requests() as stop:
        for place in range(options.seeds):
            seed = first + place
            if stop.signal is not None:  # the signal came after the previous run was done
                raise Interrupted(stop.signal, f"stopped before seed {seed}")
            print(f"\nseed {seed}, {place + 1} of {options.seeds}")
            mine = _with_seed(options, folder, seed)
            if nothing_left(mine, mine.resume):
                print("has finished already")
                continue
            with run_folder(mine, estimator) as own:
                train_one(mine, own)
    write_seeds_card(folder, config, facts)
    print_seeds(folder)


def _with_seed(options: TrainOptions, folder: Path, seed: int) -> TrainOptions:
    """Return the options of one of the runs, which starts or resumes in its own folder."""
    home = folder / f"{SEED}{seed}"
    begun = (home / CONFIG).is_file()
    return replace(
        options,
        seeds=None,
        name=None,
        config=None,
        overwrite=False,
        out=None if begun else home,
        resume=home if begun else None,
        train=replace(options.train, seed=seed),
    )


def print_seeds(folder: Path) -> None:
    """Print the table of the runs in a folder."""
    runs = read_runs(member_runs(folder))
    title = f"{folder}: {len(runs)} seeds, mean ± standard deviation"
    print_table(text_table(title, seed_columns(runs), seed_rows(runs)))
