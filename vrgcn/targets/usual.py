"""Usual settings of each prediction; docs/guides/links.md has their scores. No torch here: the
command line reads settings before it loads anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vrgcn.files.settings import declarations
from vrgcn.models.config import ModelConfig
from vrgcn.targets.predicted import EDGES, kind_of
from vrgcn.targets.spec import PAIR_RATIO
from vrgcn.training.config import TrainConfig

# Links: pilots choose the model (runs/pair_settings.py), unless it or another setting that they
# compare is given. Then it is the GAE of Kipf and Welling in minibatches.
_COMPARED = [
    name
    for part in (ModelConfig, TrainConfig)
    for name, said in declarations(part).items()
    if said.compared
]
_LINKS: dict[str, Any] = {
    "ratio": PAIR_RATIO,
    "hidden": 64,
    "layer_norm": False,
    "epochs": 60,
}
_CHOSEN: dict[str, Any] = {"model": "auto", "dropout": None}
_GIVEN: dict[str, Any] = {"model": "gcn", "dropout": 0.0}
# Links between kinds are recommendations; minibatches of a given model are of pairs.
_BETWEEN_KINDS: dict[str, Any] = {"metric": "ndcg@20"}
_GIVEN_BETWEEN: dict[str, Any] = {"batch_size": 4096}
_VALUES: dict[str, Any] = {
    "ratio": PAIR_RATIO,
    "model": "graphsage",
    "layers": 1,
    "hidden": 128,
    "embedding": 64,
    "dropout": 0.5,
    "layer_norm": False,
    "node_embeddings": True,
    "decoder": "distmult",
    "batch_size": 4096,
    "epochs": 30,
}
_RELATIONS: dict[str, Any] = {
    "model": "graphsage",
    "layers": 0,
    "embedding": 128,
    "dropout": 0.3,
    "layer_norm": False,
    "decoder": "distmult",
    "negatives": 1000,
    "epochs": 60,
}


def with_usual(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name, with those that are usual for what they predict."""
    kind = kind_of(values.get("predict"))
    usual = {"labels": {}, "values": _VALUES, "relations": _RELATIONS}
    return {**(_of_links(values) if kind == "links" else usual[kind]), **values}


def _of_links(values: Mapping[str, Any]) -> dict[str, Any]:
    between = values["predict"] != EDGES
    found = _LINKS | (_BETWEEN_KINDS if between else {})
    if all(values.get(name) in (None, "auto") for name in _COMPARED):
        return found | _CHOSEN
    return found | _GIVEN | (_GIVEN_BETWEEN if between else {})
