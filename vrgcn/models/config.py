"""Settings of a model. No torch here: the command line reads it before loading anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints


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
    transform_first: Literal["auto", "always", "never"] = "auto"
    """Multiply the features by the first weights before they are propagated, for sparse features
    whose averages would be dense. auto: where that is less work."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_sizes(hidden=self.hidden, layers=self.layers, dense=self.dense)
        check_dropout(self.dropout)


def check_choices(settings: Any) -> None:
    """Refuse a setting whose type lists its values, and that is none of them."""
    for name, hint in get_type_hints(type(settings)).items():
        parts = [part for part in (hint, *get_args(hint)) if get_origin(part) is Literal]
        choices = [choice for part in parts for choice in get_args(part)]
        value = getattr(settings, name)
        if choices and value not in choices and value is not None:
            raise ValueError(f"{name} {value!r} is none of {', '.join(choices)}")


def check_sizes(**sizes: int) -> None:
    """Refuse a named size of a model that is none."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, not {size}")


def check_dropout(p: float) -> None:
    """Refuse what is no probability, and that of dropping everything."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, not {p}")
