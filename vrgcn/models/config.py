"""Settings of a model. No torch here: the command line reads it before loading anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ModelConfig:
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

    def __post_init__(self) -> None:
        check_sizes(hidden=self.hidden, layers=self.layers, dense=self.dense)
        check_dropout(self.dropout)


def check_sizes(**sizes: int) -> None:
    """Refuse a named size of a model that is none."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, not {size}")


def check_dropout(p: float) -> None:
    """Refuse what is no probability, and that of dropping everything."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, not {p}")
