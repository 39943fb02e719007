"""Settings of a generated graph. Imports no torch: the command line reads it before loading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

LEAST_STORE = 20  # nodes of a store of several kinds


@dataclass(frozen=True)
class GenerateSpec:
    """Settings of a generated graph."""

    nodes: int
    """Nodes."""
    degree: float = 15.0
    """Neighbours of a node, on average; a few percent less, since pairs that are drawn twice count
    once."""
    features: int = 64
    """Feature columns."""
    feature_dtype: Literal["float32", "float16"] = "float32"
    """Precision in which features are kept on disk; models compute in float32 either way."""
    classes: int = 16
    """Classes of nodes. All nodes of a community have the same."""
    community: int = 2000
    """Nodes of a community."""
    order: Literal["random", "communities"] = "random"
    """Order of the nodes: random, or one community after the other, the best order that `vrgcn
    reorder` could find."""
    homophily: float = 0.8
    """The share of edges inside communities; the others go anywhere."""
    train: float = 0.6
    """The share of training nodes."""
    val: float = 0.1
    """The share of validation nodes."""
    test: float = 0.1
    """The share of test nodes; nodes that are left have a label and no split."""
    kinds: bool = False
    """Make a store with three kinds of nodes (users, items and shops) and four relations. --nodes
    and --degree count all kinds and relations; users have the labels."""
    tables: Literal["none", "csv", "parquet"] = "none"
    """Write the store of --kinds as tables, for `vrgcn import`, and not as a graph."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        for name in ("nodes", "features", "classes", "community"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.order not in ("random", "communities"):
            raise InputError(f"order is random or communities, not {self.order!r}")
        if self.tables != "none" and not self.kinds:
            raise InputError(f"tables is for a store of several kinds: {setting('kinds', True)}")
        if self.kinds and self.feature_dtype != "float32":
            raise InputError("feature_dtype must be float32 in a store of several kinds")
        if self.kinds and self.nodes < LEAST_STORE:
            raise InputError(f"nodes must be at least {LEAST_STORE} in a store of several kinds")
        if self.nodes < 2:
            raise InputError("a graph with edges has at least 2 nodes")
        if not 0 <= self.degree <= (self.nodes - 1) / 2:
            raise InputError(
                f"degree is from 0 to half of the other nodes, {(self.nodes - 1) / 2:g}, not "
                f"{self.degree:g}"
            )
        if not 0 <= self.homophily <= 1:
            raise InputError(f"homophily is a share of the edges, 0 to 1, not {self.homophily}")
        shares = (self.train, self.val, self.test)
        if min(shares) < 0 or sum(shares) > 1 + 1e-9:
            raise InputError(f"train, val and test are shares, at most 1 together, not {shares}")
        if self.seed < 0:
            raise InputError(f"seed must be at least 0, not {self.seed}")
