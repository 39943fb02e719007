"""Settings that a command reads from a file; flags on the command line override them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrgcn.cli.parsing import build_options, read_words
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_toml
from vrgcn.runs.config_file import read_values, setting_types
from vrgcn.runs.folder import CONFIG, read_config
from vrgcn.runs.settings import NOTED, OVER
from vrgcn.targets.usual import with_usual

_GRAPH = ("dataset", "graph")  # the options that name a graph
_NAMING = (*_GRAPH, "graph_or_dataset", "target")  # the options by which the user names a graph


def parse_with_files(options: type, words: list[str]) -> Any:
    """Return the options that the words and the files they name stand for."""
    given = read_words(options, words)
    values = file_values(options, given) | given
    return build_options(options, with_usual(values) if given.get("resume") is None else values)


def file_values(options: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings from the file of `--config FILE`, or from the run of `--resume RUN`.

    If a command takes a `target` and the target is a run, the run's own settings are included,
    except its graph, which is found through the run, and settings that have already taken effect.
    The graph in a file is left out if the user names one.

    options: the options class of the command
    given: the values of the user's own words
    """
    types = setting_types(options)
    named = any(given.get(name) is not None for name in _NAMING)
    left_out = (*NOTED, *(_GRAPH if named else ()))
    config, resumed, target = (given.get(name) for name in ("config", "resume", "target"))
    values: dict[str, Any] = {}
    # The target of `vrgcn bench` is a score, not a run.
    if isinstance(target, str) and (Path(target) / CONFIG).is_file():
        values = _run_values(Path(target), options, (*left_out, *_GRAPH, *OVER))
    if config is not None and resumed is not None:
        raise InputError("--resume takes the run's own options: leave --config out")
    if config is not None:
        values |= _read_config_file(config, options, left_out)
    if resumed is not None:
        _check_command(resumed, searching="search" in types)
        values = _run_values(resumed, options, left_out)
    return values


def _run_values(folder: Path, options: type, left_out: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of a run."""
    _refuse_fitted(folder / CONFIG)
    return read_values(folder / CONFIG, options, left_out)


def _read_config_file(path: Path, options: type, left_out: tuple[str, ...]) -> dict[str, Any]:
    try:
        _refuse_fitted(path)
        return read_values(path, options, left_out)
    except FileNotFoundError:
        raise FileNotFoundError(f"--config: there is no file {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"--config: {path} is a folder; name a file") from None


def _refuse_fitted(path: Path) -> None:
    """Refuse the settings of a model that was not trained in epochs."""
    for kind, words in (("baseline", "a baseline"), ("average", "an average of models")):
        if kind in read_toml(path):
            raise InputError(
                f"{path} is of {words} that `vrgcn tune` found, and not of a network that was "
                "trained by epochs: name a run that was, such as one of the search's trials"
            )


def _check_command(folder: Path, *, searching: bool) -> None:
    """Refuse to resume a search as a training run, and a training run as a search."""
    searched = "search" in read_config(folder)
    if searched and not searching:
        raise InputError(
            f"--resume: {folder} is a search, and no training run: vrgcn tune --resume {folder} "
            "goes on with it"
        )
    if searching and not searched:
        raise InputError(
            f"--resume: {folder} is a training run, and no search: vrgcn train --resume {folder} "
            "goes on with it"
        )
