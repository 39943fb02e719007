"""What a run tells while it trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an import of tables shows progress, and needs no torch
    from vrgcn.engine.batch import Batch
    from vrgcn.training.state import Epoch


class StopTraining(Exception):  # noqa: N818 - no error, as StopIteration
    """Raised by `on_epoch` or `on_restore`: training ends, as if this epoch had been the last."""


@dataclass(frozen=True)
class Callbacks:
    """Whom to tell, and when.

    on_epoch: each point of the curve; it may raise StopTraining
    on_kept: the point of an epoch whose weights would be kept if training ended now; the model has
        them
    on_step: (steps done, steps in the epoch)
    on_batch: each minibatch before its step
    on_checkpoint: before each checkpoint; an error of it stops the run with the last one kept
    on_restore: the curve so far, after the run was put to where a checkpoint is; it may raise
        StopTraining
    on_note: what people must know and what is no error; None: a warning
    """

    on_epoch: Callable[[Epoch], None] | None = None
    on_kept: Callable[[Epoch], None] | None = None
    on_step: Callable[[int, int], None] | None = None
    on_batch: Callable[[Batch], None] | None = None
    on_checkpoint: Callable[[], None] | None = None
    on_restore: Callable[[list[Epoch]], None] | None = None
    on_note: Callable[[str], None] | None = None
