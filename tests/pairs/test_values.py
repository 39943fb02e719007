"""Values of pairs: decoders, terms, scores and simple rules."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, split_pairs
from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.value_decoders import VALUE_DECODERS, value_decoder
from vrgcn.pairs.values import ValueSource
from vrgcn.targets.value_rules import (
    Biases,
    EmbeddedValues,
    EndMean,
    GlobalMean,
    MostFrequent,
    score_values,
    value_rules,
)

RATED = ("user", "rated", "item")
NAME = "user-rated-item"
PARTS = ["train", "train", "train", "train", "val", "test"]


def rated_graph(values: list[object], parts: list[str] = PARTS) -> Graph:
    """Three users (0 to 2) who rate three items (3 to 5)."""
    edges = torch.tensor([[0, 0, 1, 1, 2, 2], [0, 1, 0, 2, 0, 1]])
    return Graph.from_kinds(
        {"user": 3, "item": 3},
        {RATED: edges},
        edge_columns={RATED: {"rating": values, "part": parts}},
    )


def rated(values: list[object], parts: list[str] = PARTS) -> Pairs:
    """The pairs of that graph."""
    graph = rated_graph(values, parts)
    pairs = split_pairs(graph, f"{NAME}.rating", split_column="part").pairs
    assert pairs is not None
    return pairs


def test_pairs_have_the_values_of_their_own_edges() -> None:
    pairs = rated([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    found = {}
    for split in ("train", "val", "test"):
        found |= dict(
            zip(map(tuple, pairs.split(split).tolist()), pairs.values[split].tolist(), strict=True)
        )
    assert found == {(0, 3): 1, (0, 4): 2, (1, 3): 3, (1, 5): 4, (2, 3): 5, (2, 4): 6}
    assert str(pairs).startswith("pairs of user-rated-item.rating: train 4, val 1, test 1")


def test_pairs_without_a_value_are_in_no_split_and_still_known() -> None:
    pairs = rated([1.0, float("nan"), 3.0, 4.0, 5.0, float("nan")])
    assert [len(pairs.split(name)) for name in ("train", "val", "test")] == [3, 1, 0]
    assert pairs.known.has(torch.tensor([0, 2]), torch.tensor([4, 4])).all()
    assert "2 pairs without a rating" in pairs.said[-1]


@pytest.mark.parametrize("name", VALUE_DECODERS)
@pytest.mark.parametrize("classes", [0, 3])
def test_a_decoder_says_a_number_or_a_score_of_each_class(name: str, classes: int) -> None:
    decoder = value_decoder(name, 4, True, classes)
    one, other = torch.randn(5, 4), torch.randn(7, 4)
    shape = (5,) if not classes else (5, classes)
    assert decoder(one, other[:5]).shape == shape
    against = decoder.against(one, other)
    assert against.shape == ((5, 7) if not classes else (5, 7, classes))
    assert torch.allclose(against[:, 2], decoder(one, other[2].expand(5, -1)), atol=1e-6)


@pytest.mark.parametrize("name", VALUE_DECODERS)
def test_pairs_without_a_direction_have_one_value(name: str) -> None:
    decoder = value_decoder(name, 4, False, 0)
    one, other = torch.randn(5, 4), torch.randn(5, 4)
    assert torch.allclose(decoder(one, other), decoder(other, one), atol=1e-6)
    directed = value_decoder(name, 4, True, 0)
    assert not torch.allclose(directed(one, other), directed(other, one), atol=1e-3)


def test_numbers_are_in_the_unit_and_the_range_of_training_values() -> None:
    decoder = value_decoder("distmult", 2, True, 0)
    decoder.set_scale(torch.tensor([10.0, 30.0]).double())
    raw = decoder.raw(torch.ones(1, 2), torch.ones(1, 2))[0, 0]
    assert decoder(torch.ones(1, 2), torch.ones(1, 2)).item() == pytest.approx(20 + 10 * raw.item())
    three = Pairs("edges", True, range(3), range(3), *[torch.empty(0, 2).long()] * 3)
    far = EmbeddedValues(decoder, torch.tensor([[100.0, 0.0], [100.0, 0.0], [-100.0, 0.0]]), three)
    with torch.no_grad():
        decoder.product.fill_(1.0)
    assert far.score(torch.tensor([[0, 1], [0, 2]])).tolist() == [30.0, 10.0]
    again = value_decoder("distmult", 2, True, 0)
    again.load_state_dict(decoder.state_dict())
    assert again(torch.ones(1, 2), torch.ones(1, 2)).item() == pytest.approx(
        decoder(torch.ones(1, 2), torch.ones(1, 2)).item()
    )


def test_decoders_of_links_are_refused() -> None:
    with refused():
        value_decoder("dot", 4, True, 0)


def test_the_loss_of_numbers_does_not_depend_on_their_unit() -> None:
    generator = torch.Generator()
    losses = []
    for unit in (1.0, 1000.0):
        source = ValueSource(rated([unit * v for v in (1.0, 2.0, 3.0, 6.0, 5.0, 6.0)]), "mse")
        terms = source.draw(generator)
        assert terms.labels is not None
        losses.append(source.losses(terms, (terms.labels + unit)[:, None]))
    assert torch.allclose(losses[0], losses[1])
    assert losses[0][0] == pytest.approx(1 / 3.5)  # the variance of 1, 2, 3, 6


def test_an_epoch_has_every_training_pair_once_and_classes_their_cross_entropy() -> None:
    pairs = rated(["a", "b", "a", "c", "a", "b"])
    source = ValueSource(pairs, "cross-entropy")
    terms = source.draw(torch.Generator())
    assert source.count == len(terms) == 4
    assert terms.nodes.tolist() == pairs.train.tolist()
    scores = torch.zeros(4, 1, 3)
    assert source.losses(terms, scores).tolist() == pytest.approx([1.0986] * 4, abs=1e-4)


def test_simple_rules_see_training_values_alone() -> None:
    pairs = rated([1.0, 2.0, 3.0, 6.0, 50.0, 60.0])
    asked = torch.tensor([[0, 5], [1, 3], [2, 3]])
    assert GlobalMean(pairs).score(asked).tolist() == [3, 3, 3]
    assert EndMean(pairs, 0).score(asked).tolist() == [1.5, 4.5, 3]
    assert EndMean(pairs, 1).score(asked).tolist() == [6, 2, 2]
    biases = Biases(pairs).score(asked)
    assert 3 < biases[1] < 4.5  # user 1 rates high, item 3 is rated low
    assert list(value_rules(pairs))[-1] == "biases of user and item"


def test_biases_explain_values_that_are_sums_of_two() -> None:
    user, item = torch.randn(40).double(), torch.randn(40).double()
    grid = torch.cartesian_prod(torch.arange(40), torch.arange(40, 80))
    values = 3 + user[grid[:, 0]] + item[grid[:, 1] - 40]
    pairs = Pairs("r", True, range(40), range(40, 80), grid, grid[:0], grid[:0])
    pairs.values["train"] = values  # type: ignore[index]
    left = Biases(pairs).score(grid) - values
    assert left.std() < 0.15 * values.std()  # damping keeps some


def test_the_most_frequent_class_is_that_of_a_node_or_of_all() -> None:
    pairs = rated(
        ["a", "a", "b", "b", "a", "b"], ["train", "train", "train", "test", "train", "val"]
    )
    asked = torch.tensor([[1, 3], [0, 5]])
    assert MostFrequent(pairs).score(asked).argmax(1).tolist() == [0, 0]
    assert MostFrequent(pairs, 0).score(asked).argmax(1).tolist() == [1, 0]
    assert score_values(MostFrequent(pairs, 0), pairs, "test") == {"accuracy": 1.0}


def test_scores_of_numbers_are_rmse_and_mae() -> None:
    pairs = rated([1.0, 2.0, 3.0, 6.0, 5.0, 7.0], ["train"] * 3 + ["val", "test", "test"])
    scores = score_values(GlobalMean(pairs), pairs, "test")
    assert scores["mae"] == pytest.approx(4.0)
    assert scores["rmse"] == pytest.approx(((3**2 + 5**2) / 2) ** 0.5)


@pytest.mark.parametrize(
    "values",
    [
        ["2026-01-01"] * 6,
        [float("nan")] * 6,
    ],
)
def test_columns_that_cannot_be_predicted_are_refused(values: list[object]) -> None:
    given = np.array(values, "datetime64[D]") if isinstance(values[0], str) else values
    with refused():
        rated(given)  # type: ignore[arg-type]
