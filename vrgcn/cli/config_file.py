"""TOML files of options: turned into flags that stand before the user's own, which win."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_type_hints

from vrgcn.cli.parsing import count_plain, read_words
from vrgcn.files.parsing import read_toml
from vrgcn.runs import folder as runs

_GRAPH = ("dataset", "graph")  # the options that name one


def expand_config(options: type, flags: list[str]) -> list[str]:
    """The flags, and before them those that the file of `--config FILE` stands for.

    `--resume RUN` stands for the run's own config.toml. Where a command takes a `target`, a run
    folder does too, all but its graph, which is found through the run, its epochs, which are over,
    as are its warm-up and its time, where it was logged to, and how several runs or processes
    shared the work. The graph of a file is left out where the user names one, by whichever option.
    """
    kinds = option_kinds(options)
    if not kinds.keys() & {"config", "resume", "target"}:
        return flags
    place = _run_place(flags, kinds) if "target" in kinds else None
    without = _GRAPH if place is not None or _names_graph(options, flags) else ()
    path = _path(flags, "--config") if "config" in kinds else None
    expanded = [] if path is None else read_flags(path, kinds, without)
    resumed = _path(flags, "--resume") if "resume" in kinds else None
    if resumed is not None:
        if path is not None:
            raise ValueError("--resume takes the run's own options: leave --config out")
        _check_command(resumed, kinds)
        expanded = read_flags(resumed / runs.CONFIG, kinds, without)
    if place is None:
        return _before(expanded, flags)
    run = flags[place]
    over = ("epochs", "warmup", "time_limit")
    left_out = (*_GRAPH, *over, "log", "seeds", "halo", "halo_every", "rank_timeout")
    theirs = read_flags(Path(run) / runs.CONFIG, kinds, without=left_out)
    return _before([*theirs, *expanded], [run, *flags[:place], *flags[place + 1 :]])


def _before(expanded: list[str], flags: list[str]) -> list[str]:
    """Flags of a file before the user's own, but for words that these begin with: the last flag of
    the file, if it takes several values, would take them too."""
    plain = count_plain(flags)
    return [*flags[:plain], *expanded, *flags[plain:]]


def _names_graph(options: type, flags: list[str]) -> bool:
    """Whether the user's own words name a graph."""
    given = read_words(options, flags)
    return any(given.get(name) is not None for name in (*_GRAPH, "graph_or_dataset", "target"))


def _check_command(folder: Path, kinds: dict[str, Any]) -> None:
    """Refuse to train on with a search, and to search on with a training run."""
    searched = "search" in runs.read_config(folder)
    if searched and "search" not in kinds:
        raise ValueError(
            f"--resume: {folder} is a search, and no training run: vrgcn tune --resume {folder} "
            "goes on with it"
        )
    if not searched and "search" in kinds:
        raise ValueError(
            f"--resume: {folder} is a training run, and no search: vrgcn train --resume {folder} "
            "goes on with it"
        )


def read_flags(path: Path, kinds: dict[str, Any], without: tuple[str, ...] = ()) -> list[str]:
    """The options of a TOML file as command-line flags, with errors that name the file."""
    try:
        options = read_toml(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"--config: there is no file {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"--config: {path} is a folder; name a file") from None
    known = kinds.keys() - {"config"}
    flags = []
    for name, value in options.items():
        if name in (*without, runs.GRAPH_CHECKSUM):
            continue
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {sorted(known)}"
            raise ValueError(f"{path}: there is no option {name!r}{hint}")
        flag = name.replace("_", "-")
        if bool in (kinds[name], *get_args(kinds[name])):
            if not isinstance(value, bool):
                raise ValueError(f"{path}: {name} must be true or false, not {value!r}")
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            flags += [f"--{flag}", *_words(path, name, value)]
    return flags


def flatten(options: Any) -> dict[str, Any]:
    """An options dataclass as one flat dict, the inner ones' fields among its own."""
    flat = {}
    for field in fields(options):
        value = getattr(options, field.name)
        flat.update(flatten(value) if is_dataclass(value) else {field.name: value})
    return flat


def option_kinds(options: type) -> dict[str, Any]:
    """The type of every option of a class, the inner ones' among its own."""
    kinds: dict[str, Any] = {}
    for name, kind in get_type_hints(options).items():
        inner = is_dataclass(kind) and isinstance(kind, type)
        kinds.update(option_kinds(kind) if inner else {name: kind})
    return kinds


def _run_place(flags: list[str], kinds: dict[str, Any]) -> int | None:
    """Where among the flags a run folder stands that is not the value of another flag."""
    paths = [name for name, kind in kinds.items() if kind is Path or Path in get_args(kind)]
    taking = {f"--{name.replace('_', '-')}" for name in paths}
    for place, flag in enumerate(flags):
        valued = place > 0 and flags[place - 1] in taking
        if not valued and not flag.startswith("-") and (Path(flag) / runs.CONFIG).is_file():
            return place
    return None


def _path(flags: list[str], name: str) -> Path | None:
    """The value of a flag, wherever it stands."""
    for place, flag in enumerate(flags):
        if flag == name and place + 1 < len(flags):
            return Path(flags[place + 1])
        if flag.startswith(f"{name}="):
            return Path(flag.removeprefix(f"{name}="))
    return None


def _words(path: Path, name: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not values or any(not isinstance(v, str | int | float) for v in values):
        raise ValueError(f"{path}: {name} must be a text, a number, true, false or a list of these")
    return [str(v) for v in values]
