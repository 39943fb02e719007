"""One place for the defaults of a model."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from tests.messages import refused
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import MODELS, build_model
from vrgcn.models.relational import RelationalSAGE


def test_a_model_made_by_hand_has_the_defaults_of_the_config():
    defaults = asdict(ModelConfig())
    kind = MODELS[defaults.pop("model")]
    # Which order is less work is known of a graph, and a model is made without one.
    assert defaults.pop("transform_first") == "auto"
    assert defaults.pop("centre_features") is False  # nor are the means of features
    assert defaults.pop("node_embeddings") is False  # of graphs of several kinds
    bases = defaults.pop("bases")
    # These are of models of pairs, which are made around others.
    assert {defaults.pop(name) for name in ("decoder", "embedding")} == {"dot", 64}
    made = kind(5, defaults["hidden"], 3).arguments
    assert {name: made[name] for name in defaults} == defaults
    assert (made["dropout"], made["layer_norm"], made["transform_first"]) == (0.2, True, False)
    model = RelationalSAGE({"user": 2}, [["user", "follows", "user"]], "user", 128, 3)
    made = defaults | {"bases": bases} | model.arguments
    assert {name: made[name] for name in defaults} == defaults
    assert made["bases"] == bases


@pytest.mark.parametrize("name", [name for name in MODELS if name != "residual"])
def test_a_model_is_built_as_the_config_says(name):
    config = ModelConfig(
        model=name, hidden=7, layers=3, dense=2, dropout=0.4, order="before",
        layer_norm=False, bias=True, transform_first="always", norm="batch", skip=True,
        jumping="max",
    )  # fmt: skip
    model = build_model(config, 5, 3, seed=0)
    assert type(model) is MODELS[name]
    assert model.arguments == {
        "in_features": 5, "hidden": 7, "classes": 3, "layers": 3, "dense": 2, "dropout": 0.4,
        "order": "before", "layer_norm": False, "bias": True, "activation": "relu",
        "transform_first": True, "nodes": 0, "learned_rows": False, "neighbour_labels": False,
        "label_hops": 1, "norm": "batch", "skip": True, "jumping": "max", "sparse_features": False,
        "node_embeddings": False, "linear_path": "never",
    }  # fmt: skip


def test_a_residual_model_has_its_own_activation_and_refuses_what_it_has_not():
    config = ModelConfig(model="residual", hidden=7, layers=3, dropout=0.4, norm="batch")
    model = build_model(config, 5, 3, seed=0)
    assert type(model) is MODELS["residual"]
    assert model.arguments["activation"] == "gelu"
    assert [type(norm).__name__ for norm in model.norms] == ["BatchNorm"] * 4
    for given in ({"order": "before"}, {"skip": True}, {"jumping": "cat"}):
        with refused():
            ModelConfig(model="residual", **given)
    with refused():
        ModelConfig(model="residual", transform_first="always")


def test_weights_come_from_the_seed_alone_and_no_random_number_is_used_up():
    torch.manual_seed(1)
    first = build_model(ModelConfig(), 5, 3, seed=4)
    following = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), following)
    again, other = (build_model(ModelConfig(), 5, 3, seed=seed) for seed in (4, 5))
    weights = [next(model.parameters()) for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    "given",
    [
        {"model": "sage"},
        {"order": "never"},
        {"norm": "group"},
        {"jumping": "lstm"},
        {"hidden": "wide"},
        {"layers": 2.5},
        {"dense": True},
        {"dropout": "some"},
        {"bias": "no"},
    ],
)
def test_a_setting_that_is_none_of_those_there_are_is_refused(given) -> None:
    with refused():
        ModelConfig(**given)


@pytest.mark.parametrize("sizes", [(2.5, 4, 3), (5, "4", 3), (5, 4, True)])
def test_a_model_made_by_hand_refuses_sizes_that_are_no_whole_numbers(sizes) -> None:
    with refused():
        MODELS["gcn"](*sizes)
