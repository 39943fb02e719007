"""The folder of a run: its files, its options, its model, and the graph it was trained on.

The command line knows the files' names before it loads torch, which waits here until a run is
opened.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.inference import MODEL

if TYPE_CHECKING:
    import torch

    from vrgcn.data.opening import Opened
    from vrgcn.inference.saved import SavedModel

CONFIG = "config.toml"
METRICS = "metrics.jsonl"
RESULT = "result.json"


@dataclass(frozen=True)
class Run:
    folder: Path
    config: dict[str, Any]
    saved: SavedModel


def open_run(folder: Path, device: torch.device) -> Run:
    """The run in a folder that `vrgcn train` wrote."""
    from vrgcn.inference.saved import load_model

    config = read_config(folder)
    model = folder / MODEL
    if not model.is_file():
        ended = (folder / RESULT).is_file()
        why = "it was deleted or moved" if ended else "its training has kept none yet"
        raise FileNotFoundError(f"{folder} has no {MODEL}: {why}")
    saved = load_model(model)
    saved.model.to(device)
    return Run(folder, config, saved)


def read_config(folder: Path) -> dict[str, Any]:
    """The options that the run in a folder was started with."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no run folder {folder}")
    config = folder / CONFIG
    if not config.is_file():
        raise FileNotFoundError(f"{folder} is not a run: it has no {CONFIG}")
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{config}: not a TOML file: {error}") from None


def graph_source(config: dict[str, Any]) -> tuple[str | None, Path | None, Path | None]:
    """Where a run's graph came from: name of the data set or folder, and the raw files' root."""
    graph, root = (Path(config[key]) if key in config else None for key in ("graph", "data_root"))
    return config.get("dataset"), graph, root


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
    return opened._replace(graph=fit_features(run.saved, opened.graph, scaled))
