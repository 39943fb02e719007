"""Narrow factors of a sparse matrix, by subspace iteration from a fixed start."""

from __future__ import annotations

from typing import Any

import numpy as np

_MORE = 8  # columns of a subspace beyond those that are kept
_ROUNDS = 8  # of subspace iteration, fewer where the work is more than _WORK products
_WORK = 4_000_000_000


def factors(A: Any, width: int) -> tuple[Any, Any]:
    """(rows, width) and (columns, width): their product is the best approximation of A, the columns
    of the second its singular vectors. The same bits each time.

    A: a sparse matrix of SciPy
    """
    more = min(width + _MORE, *A.shape)
    rng = np.random.default_rng(0)
    Q = rng.standard_normal((A.shape[1], more)).astype(np.float32)
    for _ in range(max(min(_ROUNDS, _WORK // (2 * max(A.nnz, 1) * more)), 1)):
        Q = np.linalg.qr(A @ Q)[0]
        Q = np.linalg.qr(A.T @ Q)[0]
    U, s, W = np.linalg.svd(A @ Q, full_matrices=False)
    return U[:, :width] * s[:width], Q @ W[:width].T
