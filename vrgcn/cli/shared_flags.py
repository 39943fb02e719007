"""Flags that several commands have: the type and the text of each, once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from vrgcn.cli.flags import Positional, Text, TextOf
from vrgcn.data.sources import find_source
from vrgcn.runs.settings import Settings
from vrgcn.training.config import TrainConfig

# A graph.
GraphOrDataset = Annotated[
    Positional[str | None],
    Text(
        "A graph: the folder that `vrgcn import` wrote, or the name of a data set, whichever there "
        "is. --graph and --dataset say which is meant."
    ),
]
Dataset = Annotated[str | None, TextOf(Settings, "dataset")]
GraphFolder = Annotated[Path | None, TextOf(Settings, "graph")]
DataRoot = Annotated[Path | None, TextOf(Settings, "data_root")]

# A run, and another graph for its model.
TrainedRun = Annotated[Positional[Path], Text("The folder of a run that `vrgcn train` wrote.")]
OtherDataset = Annotated[
    str | None, Text("A graph by name in place of the one the model was trained on.")
]
OtherGraph = Annotated[
    Path | None, Text("A graph from disk in place of the one the model was trained on.")
]
RunDataRoot = Annotated[
    Path | None,
    Text("Where raw files of named data sets lie or go. None: where the run found them."),
]

# The machine.
Memory = Annotated[
    Literal["ram", "disk"],
    Text(
        "Keep hidden layers and scaled and averaged features in memory, or in files: beside what "
        "is written and gone afterwards, or made once and kept in the folder of a graph from disk."
    ),
]
Device = Annotated[str, Text("Device of the model, such as cpu or cuda.")]
Threads = Annotated[int | None, TextOf(TrainConfig, "threads")]

# A TOML file.
ConfigFile = Annotated[Path | None, Text("TOML file with any of these options; flags win over it.")]

T = TypeVar("T", bound=Any)


def with_graph(options: T, *, parts: bool = False) -> T:
    """Return the options with a graph that was given by one word as `dataset` or `graph`.

    parts: True if the folder of a graph's parts will do
    """
    dataset, graph = find_source(
        options.dataset, options.graph, options.graph_or_dataset, parts=parts
    )
    found: T = replace(options, dataset=dataset, graph=graph, graph_or_dataset=None)
    return found
