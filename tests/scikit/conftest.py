"""A graph whose classes its features hardly tell and its neighbours do."""

from __future__ import annotations

import numpy as np
import pytest

NODES, CLASSES = 240, 3


class Data:
    """X (nodes, 6), y (nodes,) names of classes, numbers (nodes,), edge_index both ways."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(CLASSES, size=NODES)
        centres = rng.normal(size=(CLASSES, 6))
        self.X = 0.7 * centres[self.codes] + rng.normal(size=(NODES, 6))
        self.y = np.array(["red", "green", "blue"])[self.codes]
        self.numbers = 1000 + 100.0 * self.codes
        source = np.repeat(np.arange(NODES), 6)
        target = np.concatenate(
            [rng.choice(np.flatnonzero(self.codes == code), 6) for code in self.codes]
        )
        self.edge_index = np.hstack([[source, target], [target, source]])
        self.train = rng.random(NODES) < 0.5


@pytest.fixture(scope="session")
def data() -> Data:
    return Data()
