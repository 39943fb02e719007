"""Boosting by LightGBM or scikit-learn, and the trees that they grow, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.mistakes import InputError

NEVER = -20.0  # output of a class that no training node has
_RATE, _LEAVES, _DEPTH, _LEAST, _PENALTY = 0.1, 15, 8, 20, 1.0
_COLUMNS = 100  # columns that a split is chosen from, drawn anew for each


def never() -> bool:
    """There is no limit of time."""
    return False


@dataclass(frozen=True)
class Forest:
    """Trees of equal size, padded; tree i of each round adds to output i.

    feature: (rounds, outputs, nodes) column that a node looks at
    threshold: (rounds, outputs, nodes) a row goes left if its value is at most this
    branches: (rounds, outputs, nodes, 2) left and right; a leaf is its own
    value: (rounds, outputs, nodes) what a leaf adds
    start: (outputs,) what the outputs are before any tree
    """

    feature: Tensor
    threshold: Tensor
    branches: Tensor
    value: Tensor
    start: Tensor

    @staticmethod
    def of(parts: Iterable[Tensor], start: Tensor) -> Forest:
        """parts: feature, threshold, branches and value"""
        feature, threshold, branches, value = parts
        return Forest(feature, threshold, branches, value, start)

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The tensors that have an entry for each tree."""
        return self.feature, self.threshold, self.branches, self.value

    @property
    def depth(self) -> int:
        """How many steps every row needs to reach a leaf in every tree."""
        nodes = self.feature.shape[2]
        trees = self.branches.reshape(-1, nodes, 2)
        at = torch.zeros(len(trees), 1, dtype=torch.bool).expand(-1, nodes).clone()
        at[:, 0] = True
        leaves = (trees == torch.arange(nodes)[:, None]).all(2)
        steps = 0
        while (at & ~leaves).any():
            tree, node = (at & ~leaves).nonzero(as_tuple=True)
            at[:] = False
            at[tree[:, None], trees[tree, node]] = True
            steps += 1
        return steps

    def rounds(self, count: int) -> Forest:
        """Only the first rounds."""
        return Forest.of((part[:count] for part in self.parts), self.start)


class Booster(Protocol):
    """Boosting by a library.

    width: outputs that it has trees for
    """

    width: int

    def grow(self, rounds: int, over: Callable[[], bool] = never) -> None:
        """Boost until there are as many rounds, or the time is over after one at least."""

    def raw(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """(rows, width): the sums of the trees so far, as the library computes them."""

    def forest(self) -> Forest:
        """The trees so far."""


class ScikitBooster:
    """scikit-learn's histogram gradient boosting.

    classes: of the targets, which are 0, 1, ...; 0 for numbers
    absolute: numbers are fitted by the absolute error, not the squared one
    """

    def __init__(
        self,
        rows: NDArray[Any],
        targets: NDArray[Any],
        classes: int,
        seed: int,
        absolute: bool = False,
    ) -> None:
        from sklearn import ensemble

        kind = ensemble.HistGradientBoostingClassifier
        if not classes:
            kind = ensemble.HistGradientBoostingRegressor
        self.rows, self.targets = rows, targets
        self.width = classes if classes > 2 else 1
        self.model = kind(
            learning_rate=_RATE,
            max_leaf_nodes=_LEAVES,
            max_depth=_DEPTH,
            min_samples_leaf=_least(len(rows)),
            l2_regularization=_PENALTY,
            max_features=min(1.0, _COLUMNS / rows.shape[1]),
            early_stopping=False,
            warm_start=True,
            random_state=seed,
            **({"loss": "absolute_error"} if absolute else {}),
        )

    def grow(self, rounds: int, over: Callable[[], bool] = never) -> None:
        self.model.set_params(max_iter=rounds).fit(self.rows, self.targets)

    def raw(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        numbers = not hasattr(self.model, "decision_function")
        outputs = self.model.predict(rows) if numbers else self.model.decision_function(rows)
        return np.asarray(outputs, np.float64).reshape(len(rows), self.width)

    def forest(self) -> Forest:
        trees = [
            [_from_scikit(tree.nodes) for tree in one_round] for one_round in self.model._predictors
        ]
        start = torch.from_numpy(np.asarray(self.model._baseline_prediction, np.float64))
        return padded(trees, start.flatten())


class LightBooster:
    """LightGBM's. classes, absolute: see `ScikitBooster`"""

    def __init__(
        self,
        rows: NDArray[Any],
        targets: NDArray[Any],
        classes: int,
        seed: int,
        absolute: bool = False,
    ) -> None:
        import lightgbm

        self.width = classes if classes > 2 else 1
        numbers = "regression_l1" if absolute else "regression"
        objective = "multiclass" if classes > 2 else "binary" if classes else numbers
        settings = {
            "objective": objective,
            "learning_rate": _RATE,
            "num_leaves": _LEAVES,
            "max_depth": _DEPTH,
            "min_data_in_leaf": _least(len(rows)),
            "lambda_l2": _PENALTY,
            "feature_fraction_bynode": min(1.0, _COLUMNS / rows.shape[1]),
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": torch.get_num_threads(),
            "verbose": -1,
        }
        if classes > 2:
            settings["num_class"] = classes
        data = lightgbm.Dataset(rows, targets.astype(np.float64), params={"verbose": -1})
        self.model = lightgbm.Booster(settings, data)
        self.rounds = 0

    def grow(self, rounds: int, over: Callable[[], bool] = never) -> None:
        while self.rounds < rounds and not (self.rounds and over()):
            self.model.update()
            self.rounds += 1

    def raw(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        outputs = self.model.predict(rows, raw_score=True)
        return np.asarray(outputs, np.float64).reshape(len(rows), self.width)

    def forest(self) -> Forest:
        roots = [
            _from_light(tree["tree_structure"]) for tree in self.model.dump_model()["tree_info"]
        ]
        trees = [roots[i : i + self.width] for i in range(0, len(roots), self.width)]
        return padded(trees, torch.zeros(self.width, dtype=torch.float64))


# Nodes of a tree, the root first: feature, threshold, left, right, value; a leaf is its own branch.
Nodes = list[tuple[int, float, int, int, float]]
_LEAF = (0, 0.0, 0, 0, 0.0)  # a tree that adds nothing


def _from_scikit(nodes: NDArray[Any]) -> Nodes:
    tree: Nodes = []
    for place, node in enumerate(nodes):
        if node["is_leaf"]:
            tree.append((0, 0.0, place, place, float(node["value"])))
        else:
            tree.append(
                (
                    int(node["feature_idx"]),
                    float(node["num_threshold"]),
                    int(node["left"]),
                    int(node["right"]),
                    0.0,
                )
            )
    return tree


def _from_light(root: dict[str, Any]) -> Nodes:
    waiting, count = [root], 1
    tree: Nodes = []
    for node in waiting:  # grows while it is walked
        place = len(tree)
        if "split_feature" not in node:
            tree.append((0, 0.0, place, place, float(node["leaf_value"])))
            continue
        if node["decision_type"] != "<=":
            raise InputError(f"a tree of LightGBM decides by {node['decision_type']!r}")
        waiting += [node["left_child"], node["right_child"]]
        tree.append((int(node["split_feature"]), float(node["threshold"]), count, count + 1, 0.0))
        count += 2
    return tree


def padded(trees: list[list[Nodes]], start: Tensor) -> Forest:
    """A forest of trees of any size, by round and output. Where a library ends early, it has fewer
    trees in the end."""
    size = max(len(tree) for one_round in trees for tree in one_round)
    shape = (len(trees), len(start), size)
    feature, threshold = np.zeros(shape, np.int64), np.zeros(shape)
    value, branches = np.zeros(shape), np.zeros((*shape, 2), np.int64)
    branches[:] = np.arange(size)[:, None]
    for r, one_round in enumerate(trees):
        for w, tree in enumerate(one_round):
            columns = list(zip(*tree, strict=True))
            feature[r, w, : len(tree)], threshold[r, w, : len(tree)] = columns[:2]
            branches[r, w, : len(tree)] = np.stack(columns[2:4], axis=1)
            value[r, w, : len(tree)] = columns[4]
    return Forest.of(map(torch.from_numpy, (feature, threshold, branches, value)), start)


def joined(forests: list[Forest]) -> Forest:
    """The outputs of several forests side by side; shorter ones add nothing in further rounds."""
    if len(forests) == 1:
        return forests[0]
    rounds, nodes = (max(forest.feature.shape[axis] for forest in forests) for axis in (0, 2))

    def stacked(name: str) -> Tensor:
        parts = []
        for forest in forests:
            part: Tensor = getattr(forest, name)
            whole = part.new_zeros((rounds, part.shape[1], nodes, *part.shape[3:]))
            if name == "branches":
                whole += torch.arange(nodes)[:, None]
            whole[: part.shape[0], :, : part.shape[2]] = part
            parts.append(whole)
        return torch.cat(parts, dim=1)

    names = ("feature", "threshold", "branches", "value")
    return Forest.of(map(stacked, names), torch.cat([forest.start for forest in forests]))


class SomeOutputs:
    """A booster for some of the outputs: the others are of classes that no training node has.

    places: the outputs that the booster's own stand for. A booster of two classes has one output,
        the second's, and the first's is 0
    """

    def __init__(self, booster: Booster, places: list[int], width: int) -> None:
        self.booster, self.width = booster, width
        self.start = torch.full((width,), NEVER, dtype=torch.float64)
        self.start[places] = 0.0
        self.places = places[-booster.width :]

    def grow(self, rounds: int, over: Callable[[], bool] = never) -> None:
        self.booster.grow(rounds, over)

    def raw(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.tile(self.start.numpy(), (len(rows), 1))
        sums[:, self.places] = self.booster.raw(rows)
        return sums

    def forest(self) -> Forest:
        own = self.booster.forest()
        whole = padded([[[_LEAF]] * self.width] * len(own.feature), self.start)
        whole = joined([whole, own])  # as many nodes; then in their places
        order = torch.arange(self.width)
        order[self.places] = self.width + torch.arange(len(self.places))
        return Forest.of((part[:, order] for part in whole.parts), whole.start[order])


class Constant:
    """An output for which all targets are the same."""

    width = 1

    def __init__(self, output: float) -> None:
        self.output = output

    def grow(self, rounds: int, over: Callable[[], bool] = never) -> None:
        pass

    def raw(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        return np.full((len(rows), 1), self.output)

    def forest(self) -> Forest:
        return padded([[[_LEAF]]], torch.tensor([self.output], dtype=torch.float64))


def rounded_down(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The largest number of a type that is at most each value: x <= value then holds for the same
    x of that type."""
    near = values.to(dtype)
    lower = torch.nextafter(near, torch.full_like(near, -torch.inf))
    return torch.where(near.double() > values, lower, near)


def _least(rows: int) -> int:
    """Rows of a leaf at least: fewer where there are few in all."""
    return min(_LEAST, max(1, rows // 100))
