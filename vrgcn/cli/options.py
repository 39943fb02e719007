"""The options of each command. The text under a field is its help."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vrgcn.config import TrainConfig


@dataclass(frozen=True)
class ModelOptions:
    """What is trained."""

    model: Literal["gcn", "graphsage", "mlp"] = "graphsage"
    """Architecture: gcn averages a node with its neighbours; graphsage sets its own activation
    beside their mean; mlp looks at no neighbours."""
    hidden: int = 128
    """Hidden width."""
    layers: int = 2
    """Graph layers."""
    dense: int = 1
    """Dense layers in each graph layer."""
    dropout: float = 0.2
    """Probability of dropping, before every dense layer."""
    order: Literal["after", "before"] = "after"
    """Dropout after the propagation (allows preprocessing) or before it (as Kipf and Welling)."""
    layer_norm: bool = True
    """LayerNorm after each dense layer but the last."""
    bias: bool = False
    """Biases in the dense layers."""


@dataclass(frozen=True)
class TrainOptions:
    """Train a model on a graph and write the run to a folder."""

    dataset: str | None = None
    """A graph by name: communities, reddit-like."""
    graph: Path | None = None
    """A graph from disk, a folder written by save_graph, in place of --dataset."""
    model: ModelOptions = field(default_factory=ModelOptions)
    train: TrainConfig = field(default_factory=TrainConfig)
    name: str | None = None
    """Name of the run. None: graph, model and estimator."""
    out: Path | None = None
    """Folder to write the run to; it must not exist yet. None: runs/NAME."""
    config: Path | None = None
    """TOML file with any of these options; flags win over it."""


@dataclass(frozen=True)
class DemoOptions:
    """Compare estimators on a built-in graph: one table, one picture, about a minute."""

    dataset: str = "communities"
    """The built-in graph."""
    epochs: int = 10
    """Epochs of each run."""
    out: Path = Path("runs/demo.png")
    """Where to draw the curves (.png or .svg)."""
    seed: int = 0
    """Seed of the graph, the models and the training."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""
