"""Settings from a file, or from a run: the user's own words override them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_toml
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import declarations
from vrgcn.runs.config_file import read_values, setting_types
from vrgcn.runs.folder import CONFIG, read_config
from vrgcn.runs.settings import NOTED

_GRAPH = ("dataset", "graph")  # the options that name a graph
_NAMING = (*_GRAPH, "graph_or_dataset", "target")  # the options by which the user names a graph


def file_values(options: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings from the file `config`, or from the run `resume`.

    If a command takes a `target` and the target is a run, the run's own settings are included,
    except its graph, which is found through the run, and settings that have already taken effect.
    The graph in a file is left out if the user names one.

    options: the class of the settings
    given: the values that the user gives, by name
    """
    types = setting_types(options)
    named = any(given.get(name) is not None for name in _NAMING)
    left_out = (*NOTED, *(_GRAPH if named else ()))
    config, resumed, target = (given.get(name) for name in ("config", "resume", "target"))
    values: dict[str, Any] = {}
    # The target of `vrgcn bench` is a score, not a run.
    if isinstance(target, str) and (Path(target) / CONFIG).is_file():
        once = (name for name, said in declarations(options).items() if said.once)
        others = read_toml(Path(target) / CONFIG).keys() - types  # of the command that trained it
        values = _run_values(Path(target), options, (*left_out, *_GRAPH, *once, *others))
    if config is not None and resumed is not None:
        raise InputError(
            f"{setting('resume')} takes the run's own options: leave {setting('config')} out"
        )
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
        raise FileNotFoundError(f"{setting('config')}: there is no file {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{setting('config')}: {path} is a folder; name a file") from None


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
    if searched == searching:
        return
    kinds = ("search", "training run") if searched else ("training run", "search")
    command = "tune" if searched else "train"
    function = f"vrgcn.{command}(resume={str(folder)!r})"
    there = setting("resume", True, typed=folder, command=command, python=function)
    raise InputError(
        f"{setting('resume')}: {folder} is a {kinds[0]}, and no {kinds[1]}: {there} goes on with it"
    )
