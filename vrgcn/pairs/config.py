"""Settings of training on pairs. Imports no torch: the command line reads them before loading
anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import Component, at_least, declared, positive


@dataclass(frozen=True)
class PairConfig(Component):
    """How pairs are learned: their negatives, their own edges and their minibatches."""

    """Group pairs."""
    negatives: int = declared(1, of=("links", "relations"), compared=True)
    """Pairs that are no edges, drawn anew in each epoch for each training pair (--predict
    edges)."""
    negative_sampling: Literal["uniform", "degree", "shared"] = declared(
        "uniform", of=("links", "relations"), compared=True
    )
    """How negatives are drawn: each node equally likely, or by its number of training pairs to the
    power 0.75. shared: all pairs of a minibatch have the same --negatives, each node equally
    likely; thousands are cheap. In minibatches of nodes they are nodes of the minibatch."""
    own_edges: Literal["auto", "keep", "redraw", "exclude"] = declared(
        "auto", of=("links", "values", "relations")
    )
    """Whether the edge of a training pair carries a message while that pair is scored. keep: it
    does. redraw: in each epoch a new --held-share of the training pairs is scored and carries no
    messages, the others carry messages and are not scored. exclude: the pairs of a minibatch of
    pairs carry no messages in it. auto: keep; where nodes of one kind have learned rows, redraw,
    and exclude in minibatches of pairs."""
    held_share: float = declared(0.5, of=("links", "values", "relations"))
    """Share of the training pairs that an epoch scores with --own-edges redraw."""
    negatives_avoid: Literal["train", "all"] = declared("train", of=("links",))
    """Known pairs that are never negatives in training: those of training, so that training knows
    nothing of other splits; or all, as many papers have it, which tells a little of what is held
    out: pairs that are never drawn."""
    temperature: float | None = declared(None, of=("links", "relations"), compared=True)
    """Divisor of the scores in the loss of pairs. None: 0.1 for the decoder cosine; for lift, a
    value from the training pairs; 1 for others."""
    cube_penalty: float = declared(0.0, of=("relations",))
    """Weight of the cubes |x|³ of the embeddings of both nodes and of the weights of the relation
    in the loss of each triple (N3): it keeps learned rows small where little is known of them."""
    pair_batches: Literal["auto", "nodes", "pairs"] = declared("auto", of=("links", "values"))
    """Minibatches for pairs. nodes: each node is visited once in an epoch, and its partners are
    read from a table; fast, with any estimator. pairs: all nodes of some pairs are computed; the
    reference, without two-way. --batch-size counts what is named. auto: nodes, or pairs for
    relational models; where `vrgcn train` chooses the model of pairs, what a race finds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, negatives=self.negatives)
        at_least(0, cube_penalty=self.cube_penalty)
        positive(temperature=self.temperature)
        if not 0 < self.held_share < 1:
            raise InputError(f"held_share must be between 0 and 1, not {self.held_share}")
