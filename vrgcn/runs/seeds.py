"""Runs that differ only in their seed, in one folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from vrgcn.runs.card import Facts, write_seeds_card
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import CONFIG, SEED, remove_card
from vrgcn.runs.interrupts import Interrupted, stop_requests
from vrgcn.runs.resume import nothing_left
from vrgcn.runs.run_settings import TrainSettings
from vrgcn.runs.settings import with_choice


def run_seeds(
    settings: TrainSettings,
    folder: Path,
    estimator: str,
    facts: Facts,
    train_one: Callable[[TrainSettings, Path], None],
    say: Callable[[str], None],
) -> None:
    """Train one run after the other; finished runs are left as they are, and a stopped run is
    resumed.

    estimator: the one that `auto` stands for
    facts: what the card of all runs says about the graph
    train_one: trains as the settings say, in a folder
    say: called with lines about what happens
    """
    assert settings.seeds is not None
    config = with_choice(settings.as_dict(), estimator)
    remove_card(folder)
    write_settings(folder / CONFIG, config)
    first = settings.train.seed
    with stop_requests() as stop:
        for place in range(settings.seeds):
            seed = first + place
            if stop.signal is not None:  # the signal came after the previous run was done
                raise Interrupted(stop.signal, f"stopped before seed {seed}")
            say(f"\nseed {seed}, {place + 1} of {settings.seeds}")
            mine = _with_seed(settings, folder, seed)
            if nothing_left(mine, mine.resume):
                say("has finished already")
                continue
            with mine.folder(estimator) as own:
                train_one(mine, own)
    write_seeds_card(folder, config, facts)


def _with_seed(settings: TrainSettings, folder: Path, seed: int) -> TrainSettings:
    """Return the settings of one of the runs, which starts or resumes in its own folder."""
    home = folder / f"{SEED}{seed}"
    begun = (home / CONFIG).is_file()
    return replace(
        settings,
        seeds=None,
        name=None,
        config=None,
        overwrite=False,
        out=None if begun else home,
        resume=home if begun else None,
        train=replace(settings.train, seed=seed),
    )
