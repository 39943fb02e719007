"""The folder of a run: its files, its options, its model, and the graph it was trained on.

The command line knows the files' names before it loads torch, which waits here until a run is
opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.data.sources import has_parts
from vrgcn.files.kinds import shown
from vrgcn.files.parsing import read_toml
from vrgcn.inference import MODEL

if TYPE_CHECKING:
    import torch

    from vrgcn.data.opening import Opened
    from vrgcn.inference.saved import SavedModel

CONFIG = "config.toml"
METRICS = "metrics.jsonl"
RESULT = "result.json"
CHECKPOINTS = "checkpoints"


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
        raise FileNotFoundError(f"{folder} is not a run: it has no {CONFIG}")
    options = read_toml(config)
    for name in ("dataset", "graph", "data_root", "metric"):
        if not isinstance(options.get(name, ""), str):
            raise ValueError(f"{config}: {name} must be a text, not {shown(options[name])}")
    return options


def unfinished(folder: Path) -> str | None:
    """How far the training of a run came that has not ended; None of one that has."""
    if (folder / RESULT).is_file():
        return None
    metrics = folder / METRICS
    done = metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
    epochs = read_config(folder).get("epochs")
    return f"{done} of {epochs} epochs" if isinstance(epochs, int) else f"{done} epochs"


def graph_source(config: dict[str, Any]) -> tuple[str | None, Path | None, Path | None]:
    """Where a run's graph came from: name of the data set or folder, and the raw files' root."""
    graph, root = (Path(config[key]) if key in config else None for key in ("graph", "data_root"))
    return config.get("dataset"), graph, root


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
    scaled: Path | None = None,
) -> Opened:
    """The graph that was asked for, or else the run's own, its features as the model takes them.

    scaled: a file for the scaled features, instead of memory
    """
    from vrgcn.data.opening import open_graph
    from vrgcn.inference.saved import fit_features

    own_dataset, own_graph, own_root = graph_source(run.config)
    if dataset is None and graph is None:
        dataset, graph = own_dataset, own_graph
    opened = open_graph(dataset, graph, data_root or own_root)
    notes = [] if opened.note is None else [opened.note]
    done = unfinished(run.folder)
    if done is not None:
        notes.append(
            f"the training of {run.folder} has not finished ({done}): this is its best model so "
            f"far; vrgcn train --resume {run.folder} goes on with it"
        )
    fitted = fit_features(run.saved, opened.graph, scaled)
    return opened._replace(graph=fitted, note="; ".join(notes) or None)
