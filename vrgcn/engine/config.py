"""Settings of the estimator. Imports no torch: the command line reads them before loading
anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from vrgcn.engine.estimators import Estimator, find_estimator
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO, Component, at_least, declared, is_whole


@dataclass(frozen=True)
class EstimatorConfig(Component):
    """How neighbours are averaged in training."""

    """Group estimator: how neighbours are averaged in training."""
    estimator: str = AUTO
    """Estimator, such as exact or two-way.

    It computes the average over neighbours in training. auto: two-way, or exact if that costs
    hardly more, as on graphs of low degree; a run prints its choice and why. exact; ns and is
    sample neighbours (GraphSAGE, FastGCN); cv and cvd correct the sample by the history; history
    reads neighbours only from it; two-way keeps histories of gradients too, two-way-cv with sampled
    neighbours; gradient-only samples only for the gradient. Or a composition
    SAMPLER/FORWARD/BACKWARD, such as uniform/corrected/none; docs/ideas/estimators.md."""
    fanout: tuple[int, ...] | None = None
    """Number of neighbours sampled per node besides itself: one number, or one per layer from the
    input. For two-way: neighbours are computed for nodes that have at most this many. None: 1, for
    two-way 3."""
    sample_size: int = 512
    """Nodes that the estimator `is` draws per layer."""
    preprocess: bool | None = None
    """Average the features once before training. None: if the model allows it."""
    propagation: Literal["gcn", "symmetric", "mean", "identity"] | None = None
    """Propagation matrix. None: the one the model is meant for."""
    inductive: bool = declared(False, of=("labels",))
    """Train only on edges between training nodes; evaluate on all edges."""
    visit: Literal["auto", "train", "all"] = "auto"
    """Nodes that an epoch visits. `all` keeps every history fresh, as the theorems assume; only
    training nodes count in the loss in either case. auto: all if gradients have a history
    (two-way), because they pass through unlabelled nodes too; otherwise the training nodes."""

    history_dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """Precision of the stored histories."""
    history_cap: int | None = None
    """Average the histories of at most this many neighbours of a node, drawn at random."""
    warm_start: bool = False
    """Fill the histories with an exact pass before the first epoch."""
    refresh: Literal["auto", "always", "never"] = "auto"
    """Before each epoch, recompute the histories that training reads but never visits. auto: if no
    neighbours are sampled (estimator `history`, or fanout 0), because nothing else writes them."""

    def __post_init__(self) -> None:
        if self.fanout is not None:
            object.__setattr__(self, "fanout", _fanout(self.fanout))
        super().__post_init__()
        _check_estimator(self.estimator)
        at_least(1, sample_size=self.sample_size, history_cap=self.history_cap)


def _fanout(given: Any) -> tuple[int, ...]:
    """Return the numbers of a fan-out; Python callers may give a single number."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    numbers = tuple(given) if several else (given,)
    if not all(map(is_whole, numbers)):
        raise InputError(f"fanout must be a whole number, or one per layer, not {given!r}")
    if not numbers:
        raise InputError("fanout needs at least one number")
    at_least(0, fanout=min(numbers))
    return numbers


def _check_estimator(name: Any) -> None:
    if not isinstance(name, str):
        own = "; one of your own: fit(estimator=...)" if isinstance(name, Estimator) else ""
        raise InputError(f"estimator must be a name such as 'cvd', not {name!r}{own}")
    if name != AUTO:
        find_estimator(name)
