"""The end of a network that embeds nodes: what a table of partners holds, and how it is read.

A table holds what the layers after the last `propagate` take in. The present layers are applied
when it is read: a table of embeddings would be as old as its weights.

    GCN, GraphSAGE      the last layer's input, P h; beside it a node's own h in GraphSAGE
    jumping knowledge   the outputs of all graph layers, joined
    LightGCN            the sum of the averages over all hops; the node's learned row is read anew
    relational models   a node's own h, and its averages over each relation into its kind
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.trace import set_mode
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.models.lightgcn import LightGCN
from vrgcn.models.models import GraphModel
from vrgcn.models.relational import RelationalModel

# Averages of a node that a row of the table holds at most, of relational models.
_MOST_RELATIONS = 16


class Head:
    """The layers after a model's last `propagate`.

    module: takes in what the table holds, as it is called by the model
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def kept(self, arguments: tuple[Any, ...]) -> Tensor:
        """(nodes, width) rows for the table, from the arguments that the module was called with."""
        rows: Tensor = arguments[0]
        return rows

    def embed(self, rows: Tensor, nodes: Tensor) -> Tensor:
        """(nodes, width) embeddings: the present layers on rows of the table."""
        embedded: Tensor = self.module(rows)
        return embedded


class LightHead(Head):
    """The mean over levels of LightGCN."""

    def __init__(self, encoder: LightGCN, graph: Graph) -> None:
        super().__init__(encoder.readout)
        self.encoder = encoder
        self.features = None if encoder.encoder is None else graph.features

    def embed(self, rows: Tensor, nodes: Tensor) -> Tensor:
        embedded: Tensor = self.module(rows, self.encoder.own(nodes, self.features))
        return self.encoder.with_prior(embedded, nodes)


class RelationalHead(Head):
    """The last layer of a relational model. A row has parts of one width: the node's own, then one
    for each relation into its kind, in the order of the layer's relations."""

    def __init__(self, encoder: RelationalModel, graph: Graph) -> None:
        super().__init__(encoder.layers[-1])
        self.kinds, self.width = graph.kinds, encoder.width
        into: dict[str, int] = dict.fromkeys(encoder.kinds, 0)
        self.parts: list[tuple[str, int]] = []  # kind that a relation leads into, place in its row
        for over in encoder.used[-1]:
            kind = graph.relations[over].target
            into[kind] += 1
            self.parts.append((kind, into[kind]))
        self.most = max(into.values())
        if self.most > _MOST_RELATIONS:
            raise InputError(
                f"a table of partners would hold averages over {self.most} relations for a node, "
                f"more than {_MOST_RELATIONS}: use minibatches of pairs (pair_batches='pairs')"
            )

    def kept(self, arguments: tuple[Any, ...]) -> Tensor:
        own, _, averages = arguments
        rows: Tensor = own.new_zeros(len(own), 1 + self.most, self.width)
        rows[:, 0] = own
        for (_, place), (reached, y) in zip(self.parts, averages, strict=True):
            rows[reached, place] = y
        return rows.flatten(1)

    def embed(self, rows: Tensor, nodes: Tensor) -> Tensor:
        parts = rows.view(len(rows), 1 + self.most, self.width)
        ranges = {kind: self.kinds.range(kind) for kind in self.kinds.names}
        places = {
            kind: ((nodes >= own.start) & (nodes < own.stop)).nonzero()[:, 0]
            for kind, own in ranges.items()
        }
        averages = [(places[kind], parts[places[kind], place]) for kind, place in self.parts]
        kinds = list(places.values()) if len(places) > 1 else [nodes[:0]]
        embedded: Tensor = self.module(parts[:, 0], kinds, averages)
        return embedded


def has_head(model: nn.Module, graph: Graph) -> bool:
    """Whether the layers after the last `propagate` are known, so that partners can be read from a
    table."""
    try:
        head_of(model, graph)
    except InputError:
        return False
    return True


def head_of(model: nn.Module, graph: Graph) -> Head:
    """The layers of a model of pairs after its last `propagate`."""
    encoder = getattr(model, "encoder", None)
    if isinstance(encoder, LightGCN):
        return LightHead(encoder, graph)
    if not isinstance(encoder, GraphModel | RelationalModel):
        raise InputError(
            "minibatches of nodes read partners from a table, for which the model's last layers "
            "must be known: give a PairModel, or use minibatches of pairs (pair_batches='pairs')"
        )
    if encoder.head is not None:
        return Head(encoder.head)
    if not len(encoder.layers):
        raise InputError(
            "a model without layers propagates nothing, and has no table of partners: use "
            "minibatches of pairs (pair_batches='pairs')"
        )
    if len(encoder.layers) == 1 and _adds_tables(encoder):
        raise InputError(
            "a model of one layer with learned rows or transform_first has no table of partners: "
            "use minibatches of pairs (pair_batches='pairs')"
        )
    if isinstance(encoder, RelationalModel):
        return RelationalHead(encoder, graph)
    return Head(encoder.layers[-1])


def _adds_tables(encoder: GraphModel | RelationalModel) -> bool:
    """Whether the first layer takes in more than what was propagated."""
    if isinstance(encoder, RelationalModel):
        return False  # averages of learned rows are among those that its layer takes in
    tables = encoder.learned is not None or encoder.inputs is not None
    return encoder.transform_first or tables


class Watched:
    """Remembers what a head took in last, inside a context: `value`, rows for the table."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.value: Tensor

    def __enter__(self) -> Watched:
        self._hook = self.head.module.register_forward_pre_hook(self._remember)
        return self

    @torch.no_grad()
    def _remember(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        self.value = self.head.kept(arguments)

    def __exit__(self, *_: object) -> None:
        self._hook.remove()


@torch.no_grad()
def read_partners(head: Head, rows: Tensor, nodes: Tensor, *, training: bool) -> Tensor:
    """(nodes, width) embeddings of partners, without gradients."""
    with set_mode(head.module, training=training, norms=False):
        return head.embed(rows, nodes)
