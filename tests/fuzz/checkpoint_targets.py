"""Checkpoints of every kind of run: of labels, pairs, values and triples, of networks, learned rows
and users' own models.

Two checkpoints are damaged by bytes, or are put in each other's place. What is resumed ends in the
weights of the run that was not interrupted, from the older checkpoint with a note; or it is
refused.
"""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from torch import nn

from tests.fuzz.model_targets import case
from tests.fuzz.mutations import bytes_changed, json_changed
from tests.fuzz.target import Target
from vrgcn.files.checksums import file_checksum
from vrgcn.runs.checkpoint import HISTORIES, STATE, SUMS, WEIGHTS, check_sums, checkpoints_in
from vrgcn.runs.fit import fit
from vrgcn.training.config import TrainConfig
from vrgcn.training.divergence import DivergedError

_SHARED = {"loss": "softmax", "negative_sampling": "shared"}
# Models of `CASES`, and settings of their training.
RUNS: dict[str, TrainConfig] = {
    name: TrainConfig(epochs=3, batch_size=batch, diagnostics=0, estimator=estimator, **given)
    for name, batch, estimator, given in (
        ("learned rows", 4, "two-way", {}),
        ("relational", 4, "cvd", {"optimizer": "sgd"}),
        ("labels of neighbours", 8, "cvd", {"average_weights": False}),
        ("PyG", 8, "two-way", {"history_dtype": "float16"}),
        ("pairs", 32, "two-way", {}),
        ("recommender", 32, "exact", _SHARED),
        ("pairs of kinds", 8, "cvd", {}),
        ("ratings", 4, "exact", {}),
        ("classes of pairs", 4, "cvd", {}),
        ("triples", 256, "exact", {}),
        ("triples of rows", 256, "exact", {}),
    )
}


def _trained(name: str, folder: Path, on_note: Callable[[str], None]) -> nn.Module:
    graph, saved = case(name)
    model = copy.deepcopy(saved.model)
    fit(model, graph, RUNS[name], resume=folder, checkpoint_every=1, on_note=on_note)
    return model


@cache
def _right(name: str) -> dict[str, torch.Tensor]:
    """The weights of the run without interruption."""
    graph, saved = case(name)
    model = copy.deepcopy(saved.model)
    fit(model, graph, RUNS[name], on_note=lambda note: None)
    return model.state_dict()


def _make(folder: Path) -> None:
    for name in RUNS:
        (folder / name).mkdir()
        _trained(name, folder / name, lambda note: None)
        assert len(checkpoints_in(folder / name)) == 2
        _right(name)


def _damage(folder: Path, draw: random.Random) -> None:
    for checkpoint in checkpoints_in(folder)[: draw.choice((1, 1, 1, 2))]:
        file = draw.choice(sorted(checkpoint.iterdir()))
        change = draw.random()
        if change < 0.1:
            file.unlink()
        elif change < 0.15:
            shutil.rmtree(checkpoint)
        elif change < 0.3:  # files of another checkpoint, or of the same
            others = sorted(path for path in folder.rglob("*") if path.is_file())
            file.write_bytes(draw.choice(others).read_bytes())
        else:
            file.write_bytes(bytes_changed(file.read_bytes(), draw))


def _damage_signed(folder: Path, draw: random.Random) -> None:
    """Damage a checkpoint and write the checksums again."""
    path = checkpoints_in(folder)[0]
    file = path / draw.choice([WEIGHTS, HISTORIES, STATE, STATE, STATE])
    data = file.read_bytes()
    if file.name == STATE and draw.random() < 0.8:
        file.write_bytes(json_changed(data, draw))
    else:
        file.write_bytes(bytes_changed(data, draw))
    sums = {name: file_checksum(path / name) for name in (WEIGHTS, HISTORIES, STATE)}
    (path / SUMS).write_text("".join(f"{sums[name]}  {name}\n" for name in sums))


def _is_damaged(path: Path) -> bool:
    try:
        check_sums(path)
    except ValueError:
        return True
    return False


def _resume(folder: Path) -> None:
    there, notes = checkpoints_in(folder), list[str]()
    damaged = [path for path in there if _is_damaged(path)]
    model = _trained(folder.name, folder, notes.append)
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, _right(folder.name)[name]), name
    if damaged == there[:1]:
        assert any(there[0].name in note and "in its place" in note for note in notes), notes


def _resume_signed(folder: Path) -> None:
    with suppress(DivergedError):  # weights that were made infinite: explained
        _trained(folder.name, folder, lambda note: None)


CHECKPOINTS: dict[str, Target] = {
    "checkpoints": Target(_make, _damage, _resume, each=True),
    "signed checkpoints": Target(_make, _damage_signed, _resume_signed, each=True),
}
