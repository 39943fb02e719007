"""Looking at a model before it runs: which levels it propagates, what, and whether at random."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from vrgcn.engine.forward import find_adapter, run_forward
from vrgcn.engine.node_rows import LonelyRows
from vrgcn.engine.plan import Relation
from vrgcn.engine.propagate import Answer, Propagate
from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import ONE
from vrgcn.graph.randomness import default_generator, default_state, drawing_from
from vrgcn.graph.relations import Schema
from vrgcn.graph.sparse import first_rows, full_precision, is_dense, select_rows

_MOST_LEVELS = 1000  # calls of propagate


@dataclass(frozen=True)
class Trace:
    """levels: for each level that the model propagates, from the input up, over which relations
    features_first: whether what it propagates first are the features as they are
    random: whether it draws random numbers, as dropout does
    default_random: whether from PyTorch's default generator, as `torch.nn.Dropout` does
    widths: of what it propagates, for each level
    tables: the relations that it averages tables of all nodes over
    second_hops: those of them that it averages tables over twice
    """

    levels: tuple[tuple[Relation, ...], ...]
    features_first: bool
    random: bool
    default_random: bool = False
    widths: tuple[int, ...] = ()
    tables: frozenset[Relation] = frozenset()
    second_hops: frozenset[Relation] = frozenset()

    @property
    def depth(self) -> int:
        """How many levels the model propagates."""
        return len(self.levels)

    @property
    def first_table(self) -> int:
        """The first level whose activations need a history."""
        return 1 if self.features_first else 0


def trace(
    model: nn.Module,
    features: Tensor,
    *,
    training: bool,
    schema: Schema | None = None,
) -> Trace:
    """Run the model on two nodes with P = I and note what it asks for.

    schema: kinds and relations of the graph

    Nothing remains of it: modes and random numbers are as before, and no statistics are updated.
    """
    _check_dtypes(model, features)
    _check_width(model, features)
    if schema is not None:
        _check_kinds(model, schema)
    device = device_of(model)
    nodes = torch.tensor([0, min(1, features.shape[0] - 1)], device=features.device)
    dtype = full_precision(features.dtype)
    x = select_rows(features, nodes).to(device, dtype)
    before = version(x)
    received: list[Tensor] = []
    levels: list[list[Relation]] = []
    tables: set[Relation] = set()
    twice: set[Relation] = set()

    def answer(level: int, over: Relation, h: Tensor) -> Tensor:
        if level == _MOST_LEVELS:
            raise InputError(
                f"the model calls propagate more than {_MOST_LEVELS:,} times: give it fewer layers"
            )
        if level == len(levels):
            received.append(h)
            levels.append([])
        if over not in levels[level]:
            levels[level].append(over)
        # A new tensor, as a real answer is: the model must not see its own input come back.
        return h.clone()

    def asking(sizes: list[int], answer: Answer) -> Propagate:
        return Propagate(sizes, answer, LonelyRows(sizes, device, schema, tables, twice))

    own = torch.Generator(device).manual_seed(0)
    with (
        default_generator(device),
        drawing_from(own),
        torch.no_grad(),
        set_mode(model, training, norms=False),
    ):
        states = own.get_state(), default_state(device)
        output = run_forward(model, x, asking([len(nodes)] * (_MOST_LEVELS + 2), answer))
        drew_own = not torch.equal(states[0], own.get_state())
        drew_default = not torch.equal(states[1], default_state(device))
        if version(x) != before:
            raise RuntimeError(
                "the model changes its input x in place, and others start from it too; "
                "use x = x * 2 instead of x *= 2, and no inplace=True on x"
            )
        sizes = [len(nodes)] * (len(levels) + 1)
        same = partial(asking, sizes, lambda level, over, h: h.clone())
        again = run_forward(model, x, same())
        if find_adapter(model) and not training and is_dense(x):
            other = torch.cat([x[:1], x[1:] + 1])
            _check_rows(output, run_forward(model, other, same()))
        # Again with fewer nodes at each level, as in a minibatch: rows of one level that are taken
        # for another's show here, whatever the batches are like.
        sizes = [len(levels) + 2 - level for level in range(len(levels) + 1)]
        rows = select_rows(features, nodes[torch.arange(sizes[0]) % 2]).to(device, dtype)
        fewer = asking(sizes, lambda level, _, h: first_rows(h, sizes[level + 1]).clone())
        run_forward(model, rows, fewer)
    return Trace(
        tuple(map(tuple, levels)),
        bool(received) and received[0] is x,
        # A model may have a generator of its own: then its outputs differ.
        drew_own or drew_default or not torch.equal(output, again),
        drew_default,
        tuple(h.shape[1] for h in received),
        frozenset(tables),
        frozenset(twice),
    )


def version(h: Tensor) -> int:
    """How often a tensor was changed in place; not counted in inference mode."""
    return 0 if h.is_inference() else h._version


def _check_rows(outputs: Tensor, others: Tensor) -> None:
    """Refuse a model that mixes nodes elsewhere than in its layers.

    outputs, others: of two nodes without edges; the second has other features, the first the same
    """
    if not torch.allclose(outputs[:1], others[:1], rtol=1e-3, atol=1e-5):
        raise InputError(
            "the model's output for a node depends on nodes that it has no edges to, as x.mean(0) "
            "or a norm over all nodes makes it; a minibatch has a part of the nodes: use a norm of "
            "each row (torch.nn.LayerNorm) or of the batch (torch.nn.BatchNorm1d)"
        )


def _check_dtypes(model: nn.Module, features: Tensor) -> None:
    dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
    if len(dtypes) == 1 and full_precision(features.dtype) not in dtypes:
        raise TypeError(
            f"the features are {features.dtype} and the model's weights {dtypes.pop()}: convert "
            "one of them, by graph.with_features(graph.features.float()) or model.double()"
        )


def _check_width(model: nn.Module, features: Tensor) -> None:
    width = getattr(model, "arguments", {}).get("in_features", features.shape[1])
    if width != features.shape[1]:
        raise InputError(
            f"the model was made for {width} feature columns (in_features), and the graph has "
            f"{features.shape[1]}"
        )


def _check_kinds(model: nn.Module, schema: Schema) -> None:
    """Refuse a graph of other kinds than a relational model was made for."""
    wanted = getattr(model, "arguments", {}).get("kinds")
    if not isinstance(wanted, dict):
        return
    kinds = schema.kinds
    found = {kind: kinds.widths.get(kind, 0) for kind in kinds.names if kind != ONE}
    if list(found.items()) != list(wanted.items()):
        mine, theirs = (
            ", ".join(f"{kind} ({width} columns)" for kind, width in part.items()) or "none"
            for part in (wanted, found)
        )
        raise InputError(f"the model was made for the kinds {mine}, and the graph has {theirs}")


@contextmanager
def set_mode(model: nn.Module, training: bool, *, norms: bool | None = None) -> Iterator[None]:
    """The model in training or evaluation mode, and as it was afterwards.

    norms: the mode of layers that normalise over the batch; None leaves theirs as it is.
    """
    changed = []
    try:
        for module in model.modules():
            wanted = norms if isinstance(module, _NormBase) else training
            if wanted is not None and module.training != wanted:
                changed.append(module)
                _set_training(module, wanted)
        yield
    finally:
        for module in changed:
            _set_training(module, not module.training)


def _set_training(module: nn.Module, training: bool) -> None:
    attributes = vars(module)
    if "training" in attributes:  # past Module.__setattr__, which takes 3 us to do the same
        attributes["training"] = training
    else:
        module.training = training


def device_of(model: nn.Module) -> torch.device:
    """Device of the model's parameters; the CPU for a model without any."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
