"""Flags that several commands share: the type and the text of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from vrgcn.cli.flags import Positional, Text, TextOf
from vrgcn.data.sources import find_source
from vrgcn.runs.settings import Settings
from vrgcn.training.config import TrainConfig

# Flags that name a graph.
GraphOrDataset = Annotated[
    Positional[str | None],
    Text(
        "Folder of an imported graph, or name of a data set.\n\n"
        "`vrgcn import` writes such folders, `vrgcn datasets` lists the names. Use --graph or "
        "--dataset if a folder and a data set have the same name."
    ),
]
Dataset = Annotated[str | None, TextOf(Settings, "dataset")]
GraphFolder = Annotated[Path | None, TextOf(Settings, "graph")]
DataRoot = Annotated[Path | None, TextOf(Settings, "data_root")]

# Flags that name a run, and another graph for its model.
TrainedRun = Annotated[Positional[Path], Text("The folder of a run that `vrgcn train` wrote.")]
OtherDataset = Annotated[
    str | None, Text("A graph by name in place of the one the model was trained on.")
]
OtherGraph = Annotated[
    Path | None, Text("A graph from disk in place of the one the model was trained on.")
]
RunDataRoot = Annotated[
    Path | None,
    Text("Folder of the raw files of named data sets. None: where the run found them."),
]

# Flags about the machine.
Memory = Annotated[
    Literal["ram", "disk"],
    Text(
        "Keep hidden layers and scaled and averaged features in memory, or in files. The files are "
        "temporary and lie beside the output; for a graph from disk, features are computed once "
        "and kept in its folder."
    ),
]
Device = Annotated[str, Text("Device of the model, such as cpu or cuda.")]
Threads = Annotated[int | None, TextOf(TrainConfig, "threads")]

T = TypeVar("T", bound=Any)


def with_graph(options: T, *, parts: bool = False) -> T:
    """Return the options in which a graph given by one word is set as `dataset` or `graph`.

    parts: True if the folder of a graph's parts is accepted
    """
    dataset, graph = find_source(
        options.dataset, options.graph, options.graph_or_dataset, parts=parts
    )
    named: T = replace(options, dataset=dataset, graph=graph, graph_or_dataset=None)
    return named
