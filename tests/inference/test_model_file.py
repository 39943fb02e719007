"""Model files that say what cannot be: refused by the file's name, and nothing is built of them."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from tests.messages import refused
from vrgcn import Graph, predict
from vrgcn.files import tensors
from vrgcn.graph.scaling import Scaling
from vrgcn.inference import model_file
from vrgcn.inference.model_file import read_model_file, signed
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
    path: Path,
    description: dict | str | None = None,
    arguments: dict | str | None = None,
    stage: dict | None = None,
    place: int = 0,
    **tensors,
):
    """Write the file again with entries of its description, of its first stage or of the model's
    arguments and tensors changed, None: without; and its checksum with them, as somebody would who
    means harm."""
    with safe_open(path, framework="pt") as file:
        found = json.loads(file.metadata()["vrgcn-model"])
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if isinstance(description, dict):
        found |= description
        found = {key: value for key, value in found.items() if value != "absent"}
    if stage is not None and "stages" in found:
        found["stages"][place] |= stage
        kept = {key: value for key, value in found["stages"][place].items() if value != "absent"}
        found["stages"][place] = kept
    if arguments is not None:
        first = found["stages"][0]
        first["arguments"] = (
            arguments if isinstance(arguments, str) else first["arguments"] | arguments
        )
    held |= {name if name[0].isdigit() else f"0.{name}": value for name, value in tensors.items()}
    held = {name: value for name, value in held.items() if value is not None}
    text = description if isinstance(description, str) else json.dumps(signed(found, held))
    save_file(held, path, metadata={"vrgcn-model": text})


@pytest.fixture
def few_layers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses to build more than a few dense layers: a thousand million would take an hour."""
    build, count = nn.Linear.__init__, 0

    def counted(self: nn.Linear, *arguments: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        assert count < 10, "builds what the file claims"
        build(self, *arguments, **named)

    monkeypatch.setattr(nn.Linear, "__init__", counted)


FIRST = "model.layers.0.linears.0.weight"


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "["},
        {"description": "[" * 100_000},
        {"description": "[]"},
        {"description": "{}"},
        {"description": {"version": [1]}},
        {"description": {"stages": "absent"}},
        {"description": {"stages": []}},
        {"description": {"stages": [3]}},
        {"stage": {"name": "absent"}},
        {"stage": {"name": "smoothed"}},
        {"stage": {"name": ["exact"]}},
        {"stage": {"layers": 3}},
        {"stage": {"model": "absent"}},
        {"stage": {"model": "os.system"}},
        {"stage": {"model": ["gcn"]}},
        {"stage": {"propagation": "../x"}},
        {"stage": {"scaling": "none"}},
        {"description": {"task": 1}},
        {"description": {"task": "regression"}},
        {"description": {"classes": ["a", "b"]}},
        {"description": {"classes": ["a", "b", 7]}},
        {"description": {"features": ["w"]}},
        {"arguments": "all"},
        {"arguments": {"layers": 10**9}},
        {"arguments": {"dense": 2**40}},
        {"arguments": {"layers": True}},
        {"arguments": {"hidden": 10**11}},
        {"arguments": {"hidden": 7}},
        {"arguments": {"dropout": 1.0}},
        {"arguments": {"order": "between"}},
        {"arguments": {"bias": True}},
        {"arguments": {"layer_norm": False}},
        {"arguments": {"device": "cuda"}},
        {FIRST: None},
        {FIRST: torch.full((8, 8), math.nan)},
        {FIRST: torch.ones(8, 8).int()},
        {FIRST: torch.ones(8, 8).double()},
        {"1.extra": torch.ones(1)},
        {"model.extra": torch.ones(1)},
        {"model.output_scale.mean": torch.ones(())},
        {"scaling.mean": None},
        {"scaling.mean": torch.zeros(5)},
        {"scaling.mean": torch.zeros(4).int()},
        {"nodes.ids": torch.ones(3)},
        {"nodes.ids": torch.ones(3, 1).long()},
        {"scaling.deviation": torch.zeros(4)},
        {"scaling.deviation": torch.full((4,), math.inf)},
    ],
)
@pytest.mark.usefixtures("few_layers")
def test_a_file_that_cannot_be_is_refused(changes: dict, path: Path) -> None:
    change(path, **changes)
    with refused():
        load_model(path)


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(path: Path) -> None:
    right, whole = path.read_bytes(), read_model_file(path)
    told, refused = "", 0
    for place in range(len(right)):
        for bit in {0, place % 8}:  # each bit in one of eight bytes: every entry is longer
            damaged = bytearray(right)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                description, tensors = read_model_file(path)
            except ValueError as error:
                refused, told = refused + 1, f"{told}\n{error}"
                continue
            assert description == whole[0]
            assert tensors.keys() == whole[1].keys()
            assert all(torch.equal(value, whole[1][name]) for name, value in tensors.items())
    header = int.from_bytes(right[:8], "little")
    assert refused > len(right) - header  # every bit of the numbers, and more
    assert told.count("its checksum is another") > (len(right) - header) / 2


def test_the_checksum_is_what_the_documentation_says(path: Path) -> None:
    with safe_open(path, framework="pt") as file:
        said = json.loads(file.metadata()["vrgcn-model"])
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    checksum = said.pop("checksum")
    tensors = {
        name: ["F32", list(value.shape), hashlib.sha256(value.numpy().tobytes()).hexdigest()]
        for name, value in held.items()
    }
    text = json.dumps(
        {"description": said, "tensors": tensors}, sort_keys=True, separators=(",", ":")
    )
    assert hashlib.sha256(text.encode()).hexdigest() == checksum


def test_a_model_is_written_a_piece_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = torch.nn.Linear(64, 64)
            self.other = self.one  # safetensors' own writer refuses this
            self.register_buffer("seen", torch.ones(3, dtype=torch.bool))

    sizes: list[int] = []

    class Counted(io.BytesIO):
        def write(self, data) -> int:
            sizes.append(len(data))
            return super().write(data)

    @contextmanager
    def new_file(path: Path, *, size: int) -> Iterator[io.BytesIO]:
        file = Counted()
        yield file
        path.write_bytes(file.getvalue())

    monkeypatch.setattr(tensors, "PIECE", 1024)
    monkeypatch.setattr(model_file, "new_file", new_file)
    model = Tied()
    save_model(model, tmp_path / "m.safetensors")
    assert max(sizes[1:]) == 1024  # the header is first
    loaded = load_model(tmp_path / "m.safetensors", model=Tied).model.state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(value, loaded[name])


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
    with refused():
        load_model(tmp_path / "m.safetensors")


def test_a_model_of_any_form_predicts_the_same_from_its_file(tmp_path):
    torch.manual_seed(0)
    model = GraphSAGE(4, 8, 3, transform_first=True, norm="batch", skip=True, jumping="cat")
    x = (torch.rand(10, 4) * (torch.rand(10, 4) < 0.5)).to_sparse_csr()
    graph = Graph(torch.randint(10, (2, 30)), x)
    save_model(model, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors").model
    assert loaded.arguments == model.arguments
    assert torch.equal(predict(loaded, graph), predict(model, graph))
