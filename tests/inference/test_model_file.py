"""Model files that say what cannot be: refused by the file's name, and nothing is built of them."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from vrgcn.graph.scaling import Scaling
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.models.models import GraphSAGE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model of two layers, standardised features, names."""
    scaling = Scaling("standard", torch.zeros(4), torch.ones(4))
    model = GraphSAGE(4, 8, 3, layers=2)
    saved = SavedModel(model, "mean", scaling, False, ["a", "b", "c"], list("wxyz"))
    save_model(saved, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def change(
    path: Path, description: dict | str | None = None, arguments: dict | None = None, **tensors
):
    """Write the file again with entries of its description and tensors changed; None: without."""
    with safe_open(path, framework="pt") as file:
        found = json.loads(file.metadata()["vrgcn-model"])
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if isinstance(description, dict):
        found |= description
        found = {key: value for key, value in found.items() if value != "absent"}
    found["arguments"] = (
        arguments if isinstance(arguments, str) else found["arguments"] | (arguments or {})
    )
    held = {name: value for name, value in (held | tensors).items() if value is not None}
    text = description if isinstance(description, str) else json.dumps(found)
    save_file(held, path, metadata={"vrgcn-model": text})


FIRST = "model.layers.0.linears.0.weight"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"description": "["}, "not valid JSON"),
        ({"description": "[" * 100_000}, "not valid JSON: it is nested too deeply"),
        ({"description": "[]"}, "must be an object"),
        ({"description": "{}"}, "is of version None"),
        ({"description": {"version": [1]}}, r"is of version \[1\]"),
        ({"description": {"model": "absent"}}, "lacks model"),
        ({"description": {"model": "os.system"}}, "model must be one of gcn, graphsage, mlp"),
        ({"description": {"model": ["gcn"]}}, "model must be one of"),
        ({"description": {"propagation": "../x"}}, "propagation must be one of"),
        ({"description": {"scaling": "none"}}, "scaling 'none' has the tensors"),
        ({"description": {"multilabel": 1}}, "multilabel must be true or false"),
        ({"description": {"regression": True}}, "a model of numbers has one output"),
        ({"description": {"classes": ["a", "b"]}}, "names 2 classes, and the model has 3"),
        ({"description": {"classes": ["a", "b", 7]}}, "classes must be a list of names"),
        ({"description": {"features": ["w"]}}, "names 1 features, and the model has 4"),
        ({"arguments": "all"}, "arguments must be an object"),
        ({"arguments": {"layers": 10**9}}, "claims 1,000,000,000 dense layers and has 4 tensors"),
        ({"arguments": {"dense": 2**40}}, "claims 2,199,023,255,552 dense layers"),
        ({"arguments": {"layers": True}}, "layers must be a count"),
        ({"arguments": {"hidden": 10**11}}, r"layers\.0.* is \(8, 8\), and .* \(100000000000, 8\)"),
        ({"arguments": {"hidden": 7}}, "and the model that the file describes has"),
        ({"arguments": {"dropout": 1.0}}, "dropout must be at least 0 and below 1"),
        ({"arguments": {"order": "between"}}, "order must be one of"),
        ({"arguments": {"bias": True}}, "lacks the weights 'layers.0.linears.0.bias'"),
        ({"arguments": {"layer_norm": False}}, "has no weights 'layers.0.norms.0.bias'"),
        ({"arguments": {"device": "cuda"}}, "no model has 'device'"),
        ({FIRST: None}, "lacks the weights 'layers.0.linears.0.weight'"),
        ({FIRST: torch.full((8, 8), math.nan)}, f"{FIRST} holds NaN"),
        ({FIRST: torch.ones(8, 8).int()}, f"{FIRST} holds torch.int32"),
        ({FIRST: torch.ones(8, 8).double()}, "weights of several types"),
        ({"model.extra": torch.ones(1)}, "has no weights 'extra'"),
        ({"model.output_scale.mean": torch.ones(())}, "has no weights 'output_scale.mean'"),
        ({"scaling.mean": None}, "scaling 'standard' has the tensors"),
        ({"scaling.mean": torch.zeros(5)}, r"scaling.mean is \(5,\), and the model takes 4"),
        ({"scaling.deviation": torch.zeros(4)}, "scaling.deviation must be above 0"),
        ({"scaling.deviation": torch.full((4,), math.inf)}, "scaling.deviation holds NaN or inf"),
    ],
)
def test_a_file_that_cannot_be_is_refused(changes: dict, message: str, path: Path) -> None:
    change(path, **changes)
    start = time.monotonic()
    with pytest.raises(ValueError, match=rf"m\.safetensors.*{message}"):
        load_model(path)
    assert time.monotonic() - start < 10  # a thousand million layers would take an hour


def test_what_is_changed_to_itself_is_read(path: Path) -> None:
    before = load_model(path)
    change(path)
    after = load_model(path)
    assert before.classes == after.classes == ["a", "b", "c"]
    for name, value in before.model.state_dict().items():
        assert torch.equal(value, after.model.state_dict()[name])
    assert all(p.requires_grad and p.device.type == "cpu" for p in after.model.parameters())


@pytest.mark.parametrize(
    "scale",
    [
        {"model.output_scale.mean": None},
        {"model.output_scale.deviation": torch.zeros((), dtype=torch.float64)},
    ],
)
def test_half_a_unit_and_a_unit_of_zero_are_refused(scale: dict, tmp_path: Path) -> None:
    model = GraphSAGE(4, 8, 1)
    model.set_output_scale(3.0, 2.0)
    save_model(SavedModel(model, "mean", regression=True), tmp_path / "m.safetensors")
    assert load_model(tmp_path / "m.safetensors").regression
    change(tmp_path / "m.safetensors", **scale)
    with pytest.raises(ValueError, match=r"m\.safetensors.*output_scale"):
        load_model(tmp_path / "m.safetensors")
