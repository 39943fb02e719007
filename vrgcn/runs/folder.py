"""The folder of a run: its files, its options, its model, and the graph it was trained on.

The command line knows the files' names before it loads torch, which waits here until a run is
opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vrgcn.data.sources import META, has_parts
from vrgcn.files.checksums import value_checksum
from vrgcn.files.kinds import Kind, check_kinds, shown
from vrgcn.files.parsing import read_toml
from vrgcn.files.writing import write_text
from vrgcn.inference import MODEL

if TYPE_CHECKING:
    import torch

    from vrgcn.data.opening import Opened
    from vrgcn.inference.saved import SavedModel

CONFIG = "config.toml"
METRICS = "metrics.jsonl"
RESULT = "result.json"
CHECKPOINTS = "checkpoints"

# Runs in the folder of several: of `vrgcn train --seeds`, and of `vrgcn tune`.
SEED = "seed-"
BEST = "best"
TRIALS = "trials"
TRIAL = "trial-"

# What config.toml says beside options: by what a graph whose split the run drew is known again.
GRAPH_CHECKSUM = "graph_checksum"

RATIO = Kind(
    lambda value: isinstance(value, list) and all(isinstance(v, int | float) for v in value),
    "a list of shares",
)


@dataclass(frozen=True)
class Run:
    folder: Path
    config: dict[str, Any]
    saved: SavedModel


def open_run(folder: Path, device: torch.device) -> Run:
    """The run in a folder that `vrgcn train` wrote."""
    from vrgcn.inference.saved import load_model

    config = check_run(folder)
    saved = load_model(folder)
    saved.model.to(device)
    return Run(folder, config, saved)


def check_run(folder: Path) -> dict[str, Any]:
    """Refuse a folder without a trained model; gives the options that the run was started with."""
    config = read_config(folder)
    several = member_runs(folder)
    if several:
        raise ValueError(f"{folder} holds {len(several)} runs: name one, such as {several[0]}")
    if not (folder / MODEL).is_file():
        done = unfinished(folder)
        why = "it was deleted or moved"
        if done is not None:
            why = (
                f"its training has kept none yet, and has not finished ({done}); vrgcn train "
                f"--resume {folder} goes on with it"
            )
        raise FileNotFoundError(f"{folder} has no {MODEL}: {why}")
    return config


def read_config(folder: Path) -> dict[str, Any]:
    """The options that the run in a folder was started with."""
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; name the folder of a run")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no run folder {folder}")
    config = folder / CONFIG
    if not config.is_file():
        graph = f"; it is a graph, and `vrgcn train {folder}` makes a run of it"
        is_graph = (folder / META).is_file()
        raise FileNotFoundError(
            f"{folder} is not a run: it has no {CONFIG}{graph if is_graph else ''}"
        )
    options = read_toml(config)
    for name in ("dataset", "graph", "data_root", "metric", GRAPH_CHECKSUM):
        if not isinstance(options.get(name, ""), str):
            raise ValueError(f"{config}: {name} must be a text, not {shown(options[name])}")
    if "ratio" in options:
        check_kinds(str(config), options, {"ratio": RATIO})
    return options


def write_config(path: Path, options: dict[str, Any]) -> None:
    """Options as a TOML file that `--config` reads back. Those that are None are left out."""
    write_text(path, config_text(options))


def config_text(options: dict[str, Any]) -> str:
    """What `write_config` writes."""
    return "".join(f"{name} = {_toml(v)}\n" for name, v in options.items() if v is not None)


def member_runs(folder: Path) -> list[Path]:
    """The runs of a folder that holds several, the best of them first; none of a run's own."""
    if (folder / METRICS).is_file():
        return []
    patterns = (BEST, f"{SEED}*", f"{TRIALS}/{TRIAL}*")
    found = [sorted(folder.glob(pattern), key=_by_number) for pattern in patterns]
    return [run for group in found for run in group if (run / METRICS).is_file()]


def _by_number(folder: Path) -> tuple[int, str]:
    number = folder.name.rpartition("-")[2]
    return (int(number) if number.isdecimal() else -1, folder.name)


def unfinished(folder: Path) -> str | None:
    """How far the training of a run came that has not ended; None of one that has."""
    if (folder / RESULT).is_file():
        return None
    config = read_config(folder)
    ended = sum((run / RESULT).is_file() for run in member_runs(folder))
    if "search" in config:
        return None if (folder / BEST / RESULT).is_file() else f"{ended} trials"
    seeds = config.get("seeds")
    if isinstance(seeds, int):
        return None if ended >= seeds else f"{ended} of {seeds} runs"
    metrics = folder / METRICS
    done = metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
    epochs = config.get("epochs")
    return f"{done} of {epochs} epochs" if isinstance(epochs, int) else f"{done} epochs"


def graph_source(config: dict[str, Any]) -> tuple[str | None, Path | None, Path | None]:
    """Where a run's graph came from: name of the data set or folder, and the raw files' root."""
    graph, root = (Path(config[key]) if key in config else None for key in ("graph", "data_root"))
    return config.get("dataset"), graph, root


def split_source(config: dict[str, Any]) -> dict[str, Any]:
    """How a run's split was drawn anew, as `open_graph` takes it."""
    return {"ratio": config.get("ratio"), "split_seed": config.get("split_seed", 0)}


def parts_of_run(folder: Path, dataset: str | None, graph: Path | None) -> Path | None:
    """The folder of a graph's parts, where those are asked for, or else what the run was trained
    on; None where it is a graph as a whole."""
    if dataset is None and graph is None:
        _, graph, _ = graph_source(read_config(folder))
    return graph if has_parts(graph) else None


def open_run_graph(
    run: Run,
    dataset: str | None,
    graph: Path | None,
    data_root: Path | None,
    directory: Path | None = None,
    on_fill: Callable[[str, float], None] | None = None,
    *,
    scored: bool = True,
) -> Opened:
    """The graph that was asked for, or else the run's own, its features as the model takes them.

    A split that the run drew is drawn again, also where its own graph is asked for, be it that it
    lies elsewhere now. Another graph keeps its own.

    directory: keep scaled features in a file, there or beside the graph, instead of in memory
    on_fill: told of what is made there
    scored: whether the splits are looked at, and a note on them matters
    """
    from vrgcn.data.opening import open_graph
    from vrgcn.inference.saved import fit_features

    own_dataset, own_graph, own_root = graph_source(run.config)
    if dataset is None and graph is None:
        dataset, graph = own_dataset, own_graph
        _check_there(run.folder, own_graph)
    own = _is_own_graph(run.config, dataset, graph)
    split = split_source(run.config) if own else {}
    memory: Literal["ram", "disk"] = "ram" if directory is None else "disk"
    opened = open_graph(
        dataset, graph, data_root or own_root, memory=memory, on_fill=on_fill, **split
    )
    notes = [] if opened.note is None else [opened.note]
    ratio = run.config.get("ratio")
    if scored and ratio is not None and not own:
        notes.append(
            f"the run drew its own split (--ratio {' '.join(map(str, ratio))}); this graph is "
            "scored by its own, whose test nodes the model may have been trained on"
        )
    done = unfinished(run.folder)
    if done is not None:
        notes.append(
            f"the training of {run.folder} has not finished ({done}): this is its best model so "
            f"far; vrgcn train --resume {run.folder} goes on with it"
        )
    scaled = None if directory is None else directory / "features.bin"
    fitted = fit_features(run.saved, opened.graph, scaled)
    return opened._replace(graph=fitted, note="; ".join(notes) or None)


def graph_checksum(folder: Path) -> str | None:
    """Of all that a graph on disk holds but its splits; None of one without checksums."""
    from vrgcn.data.store_format import read_meta
    from vrgcn.graph.validation import SPLITS

    sums = read_meta(folder).get("checksums")
    if sums is None:
        return None
    splits = [f"{name}.npy" for name in SPLITS]
    return value_checksum({name: value for name, value in sums.items() if name not in splits})


def _is_own_graph(config: dict[str, Any], dataset: str | None, graph: Path | None) -> bool:
    """Whether a graph is the one that the run was trained on, wherever it lies now."""
    own_dataset, own, _ = graph_source(config)
    if graph is None:
        return dataset == own_dataset
    if own is None:
        return False
    if graph.resolve() == own.resolve():
        return True
    if not (graph / META).is_file():
        return False
    noted = config.get(GRAPH_CHECKSUM)
    if noted is None and (own / META).is_file():  # of a run from before it was noted
        noted = graph_checksum(own)
    return noted is not None and graph_checksum(graph) == noted


def _check_there(run: Path, graph: Path | None) -> None:
    """Refuse a run's own graph that was moved or deleted."""
    if graph is not None and not (has_parts(graph) or (graph / META).is_file()):
        raise FileNotFoundError(
            f"the graph of run {run} was in {graph}; say where it is now with --graph"
        )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # Texts of TOML are those of JSON, but for one character that JSON does not escape.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
