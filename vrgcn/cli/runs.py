"""Finding a run again: its model, and the graph it was trained on or another that fits it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vrgcn.cli.config_file import RUN_CONFIG
from vrgcn.data.opening import open_graph, print_graph_note
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import select_columns
from vrgcn.inference.saved import SavedModel, load_model

METRICS = "metrics.jsonl"
RESULT = "result.json"
MODEL = "model.safetensors"


@dataclass(frozen=True)
class Run:
    folder: Path
    config: dict[str, Any]
    saved: SavedModel


def open_run(folder: Path, device: torch.device) -> Run:
    """The run in a folder that `vrgcn train` wrote."""
    config = read_config(folder)
    model = folder / MODEL
    if not model.is_file():
        raise FileNotFoundError(f"{folder} has no {MODEL}: its training did not finish")
    saved = load_model(model)
    saved.model.to(device)
    return Run(folder, config, saved)


def read_config(folder: Path) -> dict[str, Any]:
    """The options that the run in a folder was started with."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no run folder {folder}")
    config = folder / RUN_CONFIG
    if not config.is_file():
        raise FileNotFoundError(f"{folder} is not a run: it has no {RUN_CONFIG}")
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
) -> Graph:
    """The graph that was asked for, or else the run's own, its features as the model takes them.

    scaled: a file for the scaled features, instead of memory
    """
    own_dataset, own_graph, own_root = graph_source(run.config)
    if dataset is None and graph is None:
        dataset, graph = own_dataset, own_graph
    data_root = data_root or own_root
    loaded, _ = open_graph(dataset, graph, data_root)
    print_graph_note(dataset, data_root)
    return fit_features(run.saved, loaded, scaled)


def fit_features(saved: SavedModel, graph: Graph, scaled: Path | None = None) -> Graph:
    """The graph with features in the model's order and scale; an error where they do not agree."""
    wanted: int = saved.model.arguments["in_features"]
    names = graph.names.features
    if saved.features is not None and names is not None and saved.features != names:
        missing = [name for name in saved.features if name not in set(names)]
        if missing:
            raise ValueError(
                f"the graph lacks {len(missing)} of the {wanted} feature columns that the model "
                f"was trained on, first: {missing[0]!r}"
            )
        place = {name: column for column, name in enumerate(names)}
        columns = torch.tensor([place[name] for name in saved.features])
        graph = graph.with_features(select_columns(graph.features, columns))
    if graph.num_features != wanted:
        raise ValueError(
            f"the model was trained on {wanted} feature columns, and the graph has "
            f"{graph.num_features}"
        )
    return graph.with_features(saved.scaling.apply(graph.features, scaled))
