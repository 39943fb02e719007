"""Models of graphs with several kinds of nodes and several relations (R-GCN).

    h'_u = activation( h_u W_kind(u)  +  sum over relations r into u of  (P_r h)_u W_r )

P_r is normalised per relation. The entrance brings every kind to a common width: x W, with columns
of its own for each kind, plus a learned row of each node of kinds that have no features. It is
linear, so it is applied after the first propagation: P_r X is computed once and exact, and P_r of
learned rows reads the rows themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.randomness import default_generator
from vrgcn.graph.relations import Relation
from vrgcn.models.config import DROPOUT, ModelConfig, arguments_for, check_sizes
from vrgcn.models.dense import NORMS, Dense, Dropout, InputLinear, Linear, OutputScale
from vrgcn.models.models import JUMPING
from vrgcn.models.node_table import NodeTable

# Places among some nodes, and a row for each: what a relation, or a kind, adds to these nodes.
Part = tuple[Tensor, Tensor]


_DEVIATION = 0.03  # initial standard deviation of learned rows


class RelationalLinear(nn.Module):
    """The sum of a node's own row times the weights of its kind, and of its averages over relations
    times the weights of each relation.

    kinds, relations: how many
    bases: weights of relations are sums of so many matrices that all relations share (basis
        decomposition); 0: each relation has a matrix of its own
    """

    def __init__(
        self, width: int, out: int, kinds: int, relations: int, *, bases: int, bias: bool
    ) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.empty(kinds, width, out))
        self.weight = nn.Parameter(torch.empty(bases or relations, width, out))
        self.shares = nn.Parameter(torch.empty(relations, bases)) if bases else None
        self.bias = nn.Parameter(torch.zeros(kinds, out)) if bias else None
        for matrix in (*self.own, *self.weight):
            nn.init.xavier_uniform_(matrix)
        if self.shares is not None:
            nn.init.normal_(self.shares, std=bases**-0.5)

    def forward(self, own: Sequence[Part], averages: Sequence[Part], count: int) -> Tensor:
        """(count, out). own: by kind; averages: by relation"""
        biases = [None] * len(own) if self.bias is None else self.bias.unbind()
        y: Tensor | None = None
        for (rows, h), matrix, bias in zip(own, self.own.unbind(), biases, strict=True):
            part = h @ matrix if bias is None else torch.addmm(bias, h, matrix)
            if y is None and len(own) == 1:
                y = part
            else:
                y = part.new_zeros(count, part.shape[1]) if y is None else y
                y = y.index_add(0, rows, part)
        assert y is not None
        return y if not averages else self._with_averages(y, averages)

    def _with_averages(self, y: Tensor, averages: Sequence[Part]) -> Tensor:
        """y plus the averages over all relations times their weights, added in one step: adding
        them one by one would copy y for each of hundreds of relations."""
        rows = torch.cat([rows for rows, _ in averages])
        if self.shares is None:
            weights = zip(averages, self.weight.unbind(), strict=True)
            return y.index_add(0, rows, torch.cat([h @ matrix for (_, h), matrix in weights]))
        h = torch.cat([h for _, h in averages])
        counts = torch.tensor([len(rows) for rows, _ in averages], device=h.device)
        shares = torch.repeat_interleave(self.shares, counts, dim=0, output_size=len(rows))
        for share, basis in zip(shares.unbind(1), self.weight.unbind(), strict=True):
            mixed = h.new_zeros(len(y), h.shape[1]).index_add(0, rows, h * share[:, None])
            y = y + mixed @ basis
        return y


class RelationalDense(Dense):
    """The dense part of a relational graph layer: `Dense` whose first linear layer is relational.

    kinds, relations, bases: see `RelationalLinear`
    adds_own: a node's own row is added to the output
    """

    def __init__(
        self,
        widths: list[int],
        *,
        kinds: int,
        relations: int,
        bases: int,
        bias: bool,
        adds_own: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(widths, bias=bias, **settings)
        self.adds_own = adds_own
        self.linears[0] = RelationalLinear(
            widths[0], widths[1], kinds, relations, bases=bases, bias=bias
        )

    def forward(  # type: ignore[override]
        self, own: Tensor, kinds: Sequence[Tensor], averages: Sequence[Part]
    ) -> Tensor:
        """own: (nodes, width); kinds: for each kind, the places of its nodes among them, nothing
        where all are of one kind; averages: by relation"""
        dropped = self.dropout(own)
        if len(kinds) == 1:
            parts = [(kinds[0], dropped)]
        else:
            parts = [(rows, dropped.index_select(0, rows)) for rows in kinds]
        given = [(rows, self.dropout(y)) for rows, y in averages]
        y = self.after_first(self.linears[0](parts, given, len(own)))
        return y + own if self.adds_own else y


class RelationalModel(nn.Module):
    """Base of relational GCN and GraphSAGE: `layers` graph layers of `dense` dense layers each.

    kinds: feature columns of each kind of nodes, in the order of the graph; 0 where it has none
    relations: (source kind, relation, target kind) of each
    target: the kind that is predicted; several where pairs of nodes of two kinds are
    rows: how many nodes each kind has that gets learned rows; the first layer averages nothing over
        relations from kinds with neither features nor rows
    bases: see `RelationalLinear`
    layers: 0: the outputs are what the entrance gives, and no neighbours are averaged
    transform_first: multiply the features by the entrance's weights before they are propagated, for
        sparse features whose averages would be dense; products have a history then
    others: as in `models.GraphModel`

    A layer has weights of those relations alone that the outputs of the target depend on.
    """

    propagation = "mean"

    def __init__(
        self,
        kinds: Mapping[str, int],
        relations: Sequence[Sequence[str]],
        target: str | Sequence[str],
        hidden: int,
        classes: int,
        *,
        rows: Mapping[str, int] | None = None,
        layers: int = ModelConfig.layers,
        dense: int = ModelConfig.dense,
        dropout: float = DROPOUT,
        layer_norm: bool = ModelConfig.layer_norm,
        bias: bool = ModelConfig.bias,
        activation: str = "relu",
        transform_first: bool = False,
        norm: str = ModelConfig.norm,
        skip: bool = ModelConfig.skip,
        jumping: str = ModelConfig.jumping,
        bases: int = ModelConfig.bases,
    ) -> None:
        super().__init__()
        rows = dict(rows or {})
        check_sizes(hidden=hidden, classes=classes, dense=dense)
        check_sizes(least=0, layers=layers)
        if not layers:  # the entrance gives the outputs
            hidden, jumping = classes, "none"
        if norm not in ("auto", *NORMS):
            raise InputError(f"norm {norm!r} is none of auto, {', '.join(NORMS)}")
        if jumping not in JUMPING:
            raise InputError(f"jumping {jumping!r} is none of {', '.join(JUMPING)}")
        targets = [target] if isinstance(target, str) else list(target)
        for one in targets:
            if one not in kinds:
                raise InputError(f"target {one!r} is none of the kinds {', '.join(kinds)}")
        in_features = sum(kinds.values())
        self.arguments: dict[str, Any] = {
            "kinds": dict(kinds), "relations": [list(one) for one in relations],
            "target": target if isinstance(target, str) else targets,
            "hidden": hidden, "classes": classes, "rows": rows, "layers": layers, "dense": dense,
            "dropout": dropout, "layer_norm": layer_norm, "bias": bias, "activation": activation,
            "transform_first": transform_first, "norm": norm, "skip": skip, "jumping": jumping,
            "bases": bases,
        }  # fmt: skip
        self.kinds, self.width = dict(kinds), hidden
        self.sources = {"-".join(one): one[0] for one in relations}
        self.used = used_relations(relations, targets, layers)
        if layers:
            known = [kind for kind, columns in kinds.items() if columns or kind in rows]
            self.used[0] = [over for over in self.used[0] if self.sources[over] in known]
        self.transform_first = transform_first
        self.skip, self.jumping = skip, jumping
        self.dropout = Dropout(dropout)
        if norm == "auto":
            norm = "layer" if layer_norm else "none"
        self.encoder = InputLinear(in_features, hidden, bias=False) if in_features else None
        self.rows = nn.ModuleList(
            NodeTable.drawn(count, hidden, _DEVIATION, kind, input=True)
            for kind, count in rows.items()
        )
        ends = jumping == "none"  # with the last graph layer
        self.layers = nn.ModuleList()
        for layer in range(layers):
            last = ends and layer == layers - 1
            widths = [hidden] * dense + [classes if last else hidden]
            self.layers.append(
                RelationalDense(
                    widths,
                    kinds=len(kinds),
                    relations=len(self.used[layer]),
                    bases=bases,
                    bias=bias,
                    dropout=dropout,
                    norm=norm,
                    activation=activation,
                    last=last,
                    # Embeddings of pairs are rows like those of hidden layers; outputs of labels
                    # are not.
                    adds_own=skip and last and classes == hidden and not isinstance(target, str),
                )
            )
        self.head: Linear | None = None
        if not ends:
            self.head = Linear(hidden * (layers if jumping == "cat" else 1), classes, bias=bias)
        self.output_scale = OutputScale()

    def set_output_scale(self, mean: float, deviation: float) -> None:
        """From now on the outputs are multiplied by `deviation` and moved by `mean`."""
        self.output_scale.set(mean, deviation, next(self.parameters()).device)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        seen: list[Tensor] = []
        h = x if len(self.layers) else self.dropout(self._with_rows(x, propagate))
        for index, layer in enumerate(self.layers):
            if index == 0:
                own, averages = self._entrance(x, propagate)
            else:
                averages = [propagate.reached(h, over) for over in self.used[index]]
                own = propagate.own(h) if averages else h
            h = layer(own, self._places(own, propagate), averages)
            if self.skip and index > 0 and (self.head is not None or layer is not self.layers[-1]):
                h = h + own
            seen.append(h)
        if self.head is not None:
            parts = [propagate.own(part) for part in seen]
            joined = torch.cat(parts, 1) if self.jumping == "cat" else torch.stack(parts).amax(0)
            h = self.head(self.dropout(joined))
        scaled: Tensor = self.output_scale(h)
        return scaled

    def _places(self, own: Tensor, propagate: Any) -> list[Tensor]:
        """For each kind, the places of its nodes among those at hand."""
        if len(self.kinds) == 1:
            return [own[:0]]  # all rows: their places are not needed
        return [propagate.of_kind(kind)[0] for kind in self.kinds]

    def _entrance(self, x: Tensor, propagate: Any) -> tuple[Tensor, list[Part]]:
        """The nodes' own rows of the common width, and their averages over each relation."""
        given = x
        if self.encoder is not None and self.transform_first:
            given = self.encoder(x)
        reached: dict[str, Part] = {}
        for over in self.used[0]:
            if self.kinds[self.sources[over]]:
                rows, y = propagate.reached(given, over)
                reached[over] = rows, self._encoded(y)
        own = propagate.own(given) if reached else given
        for table in self.rows:
            assert isinstance(table, NodeTable)
            overs = [over for over in self.used[0] if self.sources[over] == table.kind]
            for over, (rows, y) in zip(overs, propagate.tables(table.rows, overs), strict=True):
                reached[over] = (rows, reached[over][1] + y) if over in reached else (rows, y)
        return self._with_rows(own, propagate), [reached[over] for over in self.used[0]]

    def _encoded(self, x: Tensor) -> Tensor:
        if self.encoder is None or self.transform_first:
            return x
        encoded: Tensor = self.encoder(x)
        return encoded

    def _with_rows(self, own: Tensor, propagate: Any) -> Tensor:
        """The features of the nodes at hand in the common width, and their learned rows."""
        if self.encoder is not None:
            h = self._encoded(own)
        else:
            h = next(self.parameters()).new_zeros(own.shape[0], self.width)
        for table in self.rows:
            assert isinstance(table, NodeTable)
            rows, numbers = propagate.of_kind(table.kind)
            h = h.index_add(0, rows, table.take(numbers))
        return h


class RelationalGCN(RelationalModel):
    """R-GCN with P_r = D^-1/2 A_r D^-1/2, by each relation's own degrees."""

    propagation = "gcn"


class RelationalSAGE(RelationalModel):
    """R-GCN as published: P_r is the mean over a relation's neighbours."""


def num_columns(arguments: Mapping[str, Any]) -> int | None:
    """How many feature columns a model takes that was made with these arguments; None where
    nothing tells."""
    if "kinds" in arguments:
        return sum(arguments["kinds"].values())
    columns: int | None = arguments.get("in_features")
    return columns


RELATIONAL: dict[str, type[RelationalModel]] = {
    "relational-gcn": RelationalGCN,
    "relational-graphsage": RelationalSAGE,
}


def used_relations(
    relations: Sequence[Sequence[str]], targets: Iterable[str], layers: int
) -> list[list[str]]:
    """For each layer, the names of the relations that outputs of the targets depend on."""
    needed, used = set(targets), []
    for _ in range(layers):
        into = [one for one in relations if one[2] in needed]
        used.append(["-".join(one) for one in into])
        needed |= {one[0] for one in into}
    return used[::-1]


def build_relational(
    config: ModelConfig,
    kinds: Kinds,
    relations: Iterable[Relation],
    classes: int,
    seed: int,
    targets: Sequence[str] | None = None,
    dated: Collection[str] = (),
) -> RelationalModel:
    """Build the relational model that a config describes, with weights that depend only on the
    seed.

    kinds, relations: of the graph, whose kind with labels is predicted
    targets: kinds whose outputs are wanted, in place of the kind with labels
    dated: kinds whose nodes become known with time; they have no learned rows, which would differ
        with what is known later, and which new nodes do not have
    """
    target = targets or kinds.target
    if target is None:
        raise InputError("no kind of nodes has labels: name the kind that is to be predicted")
    if f"relational-{config.model}" not in RELATIONAL:
        raise InputError(
            f"{setting('model', config.model)} knows one kind of nodes: graphs of several need "
            "graphsage or gcn"
        )
    for name, cure in (
        ("order", "they drop after the propagation"),
        ("learned_rows", f"use {setting('node_embeddings', True)}"),
        ("neighbour_labels", "leave it out"),
    ):
        given = getattr(config, name)
        if given not in (None, getattr(ModelConfig, name)):
            raise InputError(f"relational models do not know {setting(name, given)}: {cure}")
    columns = {kind: kinds.widths.get(kind, 0) for kind in kinds.names}
    learned = (k for k in kinds.names if config.node_embeddings or not columns[k])
    rows = {k: kinds.sizes[k] for k in learned if k not in dated}
    kind = RELATIONAL[f"relational-{config.model}"]
    first = config.transform_first == "always"
    arguments = arguments_for(config, kind) | {"transform_first": first}
    with default_generator(torch.device("cpu"), seed):
        return kind(
            columns,
            [part.triple for part in relations],
            target,
            classes=classes,
            rows=rows,
            **arguments,
        )
