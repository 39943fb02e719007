"""VRGCNRegressor: numbers in their own unit, some of them unknown."""

from __future__ import annotations

import numpy as np
import pytest

from tests.messages import refused
from vrgcn import Graph, VRGCNRegressor


def regressor(**given) -> VRGCNRegressor:
    return VRGCNRegressor(**{"epochs": 40, "hidden": 16, "random_state": 0, **given})


def test_numbers_of_neighbours_tell_those_that_are_unknown(data):
    y = np.where(data.train, data.numbers, np.nan)
    model = regressor().fit(data.X, y, edge_index=data.edge_index)
    unknown = np.where(data.train, np.nan, data.numbers)
    assert model.score(data.X, unknown) > 0.7
    assert regressor().fit(data.X, y).score(data.X, unknown) < 0.6
    predicted = model.predict(data.X)
    assert predicted.shape == (240,)
    assert 950 < predicted.min() < predicted.max() < 1250


def test_a_graph_of_classes_is_refused(data):
    graph = Graph(data.edge_index, data.X.astype(np.float32), data.codes, train=range(240))
    with refused():
        regressor().fit(graph)


def test_a_column_of_numbers_is_taken_with_a_warning_and_several_are_refused(data):
    with pytest.warns(UserWarning, match="column-vector"):
        regressor(epochs=1).fit(data.X, data.numbers[:, None])
    with refused():
        regressor().fit(data.X, np.stack([data.numbers, data.numbers], axis=1))
