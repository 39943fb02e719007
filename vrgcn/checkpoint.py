"""Saved models: one safetensors file with the weights and, as text, what is needed to build them.

Loading reads tensors and JSON, never pickled code.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from vrgcn.models import MODELS, GraphModel

FORMAT = "vrgcn-model"
VERSION = 1


def save_model(model: GraphModel, path: Path, details: dict[str, Any] | None = None) -> None:
    """Write the model to a file, all of it or nothing.

    details: anything JSON can hold that goes with the model, given back by `load_model`
    """
    names = {kind: name for name, kind in MODELS.items()}
    if type(model) not in names:
        raise TypeError(
            f"{type(model).__name__} is not one of vrgcn's models ({', '.join(MODELS)}); save a "
            "model of your own with safetensors.torch.save_model"
        )
    description = {
        "format": FORMAT,
        "version": VERSION,
        "model": names[type(model)],
        "arguments": model.arguments,
        "details": details or {},
    }
    weights = {
        name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()
    }
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(save(weights, metadata={FORMAT: json.dumps(description)}))
    os.replace(partial, path)


def load_model(path: Path) -> tuple[GraphModel, dict[str, Any]]:
    """The model of a file, in evaluation mode, and the details saved with it."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = (file.metadata() or {}).get(FORMAT)
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path}: not a safetensors file: {error}") from None
    if metadata is None:
        raise ValueError(f"{path}: was not written by vrgcn; it lacks the entry {FORMAT!r}")
    description = json.loads(metadata)
    if description["version"] != VERSION:
        raise ValueError(
            f"{path}: is of version {description['version']}, and this vrgcn reads {VERSION}"
        )
    model = MODELS[description["model"]](**description["arguments"])
    model.load_state_dict(weights)
    return model.eval(), description["details"]
