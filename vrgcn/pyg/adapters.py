"""One adapter for each of PyG's layers that averages with fixed weights.

An adapter is the layer's own `forward` with `hop(h)` in place of its `propagate`, and the matrix
that `hop` multiplies by. Weights come after `hop` wherever that is the same, P (H W) = (P H) W: a
history then holds what is before the weights, and the features' averages are computed once.

`hop.own(h)` are the rows of h for the nodes that are at hand: after `hop`, fewer than before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.pyg.matrices import LayerMatrix, Wires, chebyshev, cluster, mean, normalised, total

Pair = tuple[Tensor, Tensor]  # rows of the nodes that send and that receive; often the same tensor


class LayerHop(Protocol):
    """One layer's matrix in one pass."""

    def __call__(self, h: Tensor) -> Tensor:
        """P h for the nodes of the next level."""

    def own(self, h: Tensor) -> Tensor:
        """The rows of h, of this or an earlier level, for the nodes at hand."""

    def sums(self) -> Tensor:
        """(nodes at hand, 1) sums of the rows of P."""


@dataclass(frozen=True)
class Adapter:
    """forward: from the layer, its hop, x and the layer's other arguments to its outputs
    matrix: from the layer, its edges and its other arguments to the matrix it averages by
    """

    forward: Callable[[Any, LayerHop, Pair, Mapping[str, Any]], Tensor]
    matrix: Callable[[Any, Wires, Mapping[str, Any]], LayerMatrix]


def _by_degrees(conv: Any, wires: Wires, _: Mapping[str, Any]) -> LayerMatrix:
    """Normalised as by `gcn_norm`, unless the layer was told not to."""
    if not getattr(conv, "normalize", True):
        return _summed(conv, wires, _)
    _check_sum(conv)
    loops = bool(getattr(conv, "add_self_loops", False))
    return normalised(wires, loops=loops, improved=bool(getattr(conv, "improved", False)))


def _summed(conv: Any, wires: Wires, _: Mapping[str, Any]) -> LayerMatrix:
    """A sum or a mean, by the layer's `aggr`."""
    return mean(wires) if aggregation(conv) == "mean" else total(wires)


def aggregation(conv: Any) -> str:
    """The name of a layer's aggregation, such as "sum", "mean" or "max"."""
    return type(conv.aggr_module).__name__.lower().removesuffix("aggregation")


def _check_sum(conv: Any) -> None:
    if aggregation(conv) != "sum":
        raise InputError(
            f"{type(conv).__name__}(aggr={conv.aggr!r}): only aggr='sum' is supported for this "
            "layer"
        )


def _plus(out: Tensor, bias: Tensor | None) -> Tensor:
    return out if bias is None else out + bias


def _gcn(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    return _plus(conv.lin(hop(x[0])), conv.bias)


def _sage(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    source, target = x
    if conv.project:
        source = conv.lin(source).relu()
    out = conv.lin_l(hop(source))
    if conv.root_weight:
        out = out + conv.lin_r(hop.own(target))
    return F.normalize(out, p=2.0, dim=-1) if conv.normalize else out


def _graph(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    averaged: Tensor = conv.lin_rel(hop(x[0]))
    return averaged + conv.lin_root(hop.own(x[1]))


def _gin(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    averaged = hop(x[0])
    made: Tensor = conv.nn(averaged + (1 + conv.eps) * hop.own(x[1]))
    return made


def _sg(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    h = x[0]
    for _hop in range(conv.K):
        h = hop(h)
    made: Tensor = conv.lin(h)
    return made


def _ssg(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    h, kept = x[0], x[0] * conv.alpha
    for _hop in range(conv.K):
        h = hop(h)
        kept = hop.own(kept) + (1 - conv.alpha) / conv.K * h
    made: Tensor = conv.lin(kept)
    return made


def _appnp(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    if conv.dropout > 0:
        raise InputError(
            f"APPNP(dropout={conv.dropout:g}) drops edges, and averages here have fixed weights: "
            "set dropout=0, and put torch.nn.Dropout before the layer"
        )
    h = x[0]
    for _hop in range(conv.K):
        averaged = hop(h)
        h = (1 - conv.alpha) * averaged + conv.alpha * hop.own(x[0])
    return h


def _gcn2(conv: Any, hop: LayerHop, x: Pair, others: Mapping[str, Any]) -> Tensor:
    averaged = (1 - conv.alpha) * hop(x[0])
    first = conv.alpha * hop.own(others["x_0"])
    keep, change = 1.0 - conv.beta, conv.beta
    if conv.weight2 is None:
        both = averaged + first
        return torch.addmm(both, both, conv.weight1, beta=keep, alpha=change)
    out = torch.addmm(averaged, averaged, conv.weight1, beta=keep, alpha=change)
    return out + torch.addmm(first, first, conv.weight2, beta=keep, alpha=change)


def _tag(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    h, out = x[0], conv.lins[0](x[0])
    for lin in conv.lins[1:]:
        h = hop(h)
        out = hop.own(out) + lin(h)
    return _plus(out, conv.bias)


def _le(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    # The sum over edges of w (W1 h_v + b1 - W2 h_u) is W1 P h + (P 1) (b1 - W2 h_u).
    averaged = F.linear(hop(x[0]), conv.lin1.weight)
    target = hop.own(x[1])
    difference = _plus(-conv.lin2(target), conv.lin1.bias)
    out: Tensor = averaged + hop.sums() * difference + conv.lin3(target)
    return out


def _cheb(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    before, h = x[0], x[0]
    out: Tensor = conv.lins[0](h)
    for number, lin in enumerate(conv.lins[1:]):
        averaged = hop(h)
        before, h = h, averaged if number == 0 else 2 * averaged - hop.own(before)
        out = hop.own(out) + lin(h)
    return _plus(out, conv.bias)


def _cluster(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    averaged: Tensor = conv.lin_out(hop(x[0]))
    return averaged + conv.lin_root(hop.own(x[1]))


def _light(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    return hop(x[0])


def _mixhop(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    h, outs = x[0], [conv.lins[0](x[0])]
    for lin in conv.lins[1:]:
        h = hop(h)
        outs.append(lin(h))
    return _plus(torch.cat([hop.own(outs[power]) for power in conv.powers], dim=-1), conv.bias)


def _simple(conv: Any, hop: LayerHop, x: Pair, _: Mapping[str, Any]) -> Tensor:
    averaged = hop(x[0])
    if conv.combine_root == "sum":
        return averaged + hop.own(x[1])
    if conv.combine_root == "cat":
        return torch.cat([hop.own(x[1]), averaged], dim=-1)
    return averaged


def _simple_matrix(conv: Any, wires: Wires, others: Mapping[str, Any]) -> LayerMatrix:
    if conv.combine_root != "self_loop":
        return _summed(conv, wires, others)
    if aggregation(conv) == "mean":
        raise InputError(
            "SimpleConv(aggr='mean', combine_root='self_loop') has no adapter: use "
            "GCNConv, or combine_root='cat'"
        )
    return total(wires, loop=1.0)


def _cheb_matrix(conv: Any, wires: Wires, others: Mapping[str, Any]) -> LayerMatrix:
    _check_sum(conv)
    largest = others.get("lambda_max")
    if isinstance(largest, Tensor):
        if largest.numel() != 1:
            raise InputError("ChebConv: lambda_max has one value for the one graph, not several")
        largest = float(largest)
    return chebyshev(wires, normalization=conv.normalization, largest=largest)


def _cluster_matrix(conv: Any, wires: Wires, _: Mapping[str, Any]) -> LayerMatrix:
    _check_sum(conv)
    return cluster(wires, loops=conv.add_self_loops, diagonal=float(conv.diag_lambda))


# By the name of the layer's class in torch_geometric.nn.
ADAPTERS: dict[str, Adapter] = {
    "GCNConv": Adapter(_gcn, _by_degrees),
    "SAGEConv": Adapter(_sage, _summed),
    "GraphConv": Adapter(_graph, _summed),
    "GINConv": Adapter(_gin, _summed),
    "SGConv": Adapter(_sg, _by_degrees),
    "SSGConv": Adapter(_ssg, _by_degrees),
    "APPNP": Adapter(_appnp, _by_degrees),
    "GCN2Conv": Adapter(_gcn2, _by_degrees),
    "TAGConv": Adapter(_tag, _by_degrees),
    "LEConv": Adapter(_le, _summed),
    "ChebConv": Adapter(_cheb, _cheb_matrix),
    "ClusterGCNConv": Adapter(_cluster, _cluster_matrix),
    "LGConv": Adapter(_light, _by_degrees),
    "MixHopConv": Adapter(_mixhop, _by_degrees),
    "SimpleConv": Adapter(_simple, _simple_matrix),
}
