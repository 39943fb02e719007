"""The common move of tables: how far all of their rows have moved together since they were written.

Errors of single rows average out in a gradient, the common one adds up. Tables in a moving frame
(engine/frame.py) have hardly any; raw ones may have more than training stands.

    common staleness   √(‖E (h - h̄)‖² / E ‖h‖²) over the rows that a minibatch writes, without bias
                       for their number; of a run, the largest over tables of a kind
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from vrgcn.engine.batch import Batch
from vrgcn.engine.estimators import Estimator
from vrgcn.files.setting_names import setting
from vrgcn.training.state import Epoch

OLD = 0.5  # of activations, in AGREE epochs in a row: seen where training ended far below exact
AGREE = 3


def common_square(apart: Tensor) -> float:
    """‖E d‖² of rows d (rows, width), without bias; 0 if there is none, or a single row."""
    rows = len(apart)
    if rows < 2:
        return 0.0
    apart = apart.detach().double()
    both = float(apart.sum(0).square().sum() - apart.square().sum())
    return max(both, 0.0) / (rows * (rows - 1))


def common_staleness(batch: Batch) -> dict[str, float]:
    """The common staleness of a minibatch's tables of activations ("h") and gradients ("g"): known
    between its backward pass and its commit."""
    found: dict[str, float] = {}
    for table in batch.changes():
        size = float(table.now.detach().double().square().sum()) / max(len(table.now), 1)
        if size > 0 and math.isfinite(size):
            common = math.sqrt(common_square(table.now - table.before) / size)
            if math.isfinite(common):
                found[table.kind] = max(found.get(table.kind, 0.0), common)
    return found


def old_tables(curve: Sequence[Epoch], estimator: Estimator) -> str | None:
    """What to say of a run whose tables are too old, at the first epoch at which that is known."""
    if not estimator.gradient_history:  # the same move did no harm there
        return None
    old = [(point.common_staleness or 0.0) > OLD for point in curve]
    windows = [all(old[end - AGREE : end]) for end in range(AGREE, len(old) + 1)]
    if not windows or not windows[-1] or any(windows[:-1]):
        return None
    off, epoch = curve[-1].common_staleness, curve[-1].epoch
    remedy = "lower the learning rate"
    if estimator.raw:
        remedy = f"keep them in a moving frame ({setting('estimator', 'two-way')}), or {remedy}"
    return (
        f"the tables are too old to be trusted: after epoch {epoch} all rows together are off by "
        f"{off:.0%} of their size; {remedy}"
    )
