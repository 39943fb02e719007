"""Files that training writes: models, run folders, options and checkpoints."""

from __future__ import annotations

import json
import random
import tomllib
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.fuzz.mutations import bytes_changed, json_changed, value_changed
from tests.fuzz.target import Target, damage_any, some_graph
from vrgcn.cli.train import TrainOptions
from vrgcn.files.checksums import file_checksum
from vrgcn.graph.scaling import Scaling
from vrgcn.inference.model_file import signed
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.models.models import GCN, GraphSAGE
from vrgcn.pages.page import Page
from vrgcn.pages.runs.records import read_runs
from vrgcn.pages.runs.tables import show_options, show_results
from vrgcn.runs.checkpoint import (
    HISTORIES,
    STATE,
    SUMS,
    WEIGHTS,
    load_checkpoint,
    save_checkpoint,
)
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.runs.config_file import read_values, write_settings
from vrgcn.runs.identity import identity
from vrgcn.runs.settings import NOTED
from vrgcn.training.config import TrainConfig
from vrgcn.training.divergence import DivergedError
from vrgcn.training.listener import Callbacks
from vrgcn.training.trainer import Trainer


def _make_model(folder: Path) -> None:
    scaling = Scaling("standard", torch.zeros(5), torch.ones(5))
    saved = SavedModel(GCN(5, 4, 3), "gcn", scaling, False, ["a", "b", "c"], list("vwxyz"))
    save_model(saved, folder / "m.safetensors")


def _damage_signed_model(folder: Path, draw: random.Random) -> None:
    """Damage a model and write the checksum again, or remove it as in older files."""
    file = folder / "m.safetensors"
    with safe_open(file, framework="pt") as opened:
        description = json.loads(opened.metadata()["vrgcn-model"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    name = draw.choice(sorted(tensors))
    if draw.random() < 0.3:
        tensors[name] = draw.choice(
            [
                tensors[name][:-1],
                tensors[name] / 0,
                tensors[name].int(),
                torch.zeros(()),
                tensors[name].half(),
            ]
        ).contiguous()
    else:
        description = value_changed(description, draw)
    if isinstance(description, dict):
        description = signed(description, tensors)
        if draw.random() < 0.3:
            del description["checksum"]
    save_file(tensors, file, metadata={"vrgcn-model": json.dumps(description)})


def _read_model(folder: Path) -> None:
    saved = load_model(folder / "m.safetensors")
    with suppress(ValueError):  # columns of other names, or numbers that overflow: explained
        predict(saved, some_graph("named"))


def _make_run(folder: Path) -> None:
    run = folder / "run"
    run.mkdir()
    write_settings(
        run / "config.toml", {"graph": folder / "graph", "epochs": 3, "estimator": "cvd"}
    )
    point = {"epoch": 1, "loss": 1.5, "val": 0.5, "seconds": 0.1, "age": 2.0, "sampled": 1.0}
    lines = [json.dumps(point | {"epoch": epoch, "seconds": epoch / 10}) for epoch in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    result = {"metric": "accuracy", "epoch": 2, "val": 0.5, "test": 0.25, "seconds": 0.3}
    (run / "result.json").write_text(json.dumps(result | {"evaluation_seconds": 0.1}))


def _make_options(folder: Path) -> None:
    _make_run(folder)
    for name in ("metrics.jsonl", "result.json"):
        (folder / "run" / name).unlink()


def _damage_run(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted((folder / "run").iterdir()))
    data = file.read_bytes()
    if file.suffix == ".json" and draw.random() < 0.7:
        file.write_bytes(json_changed(data, draw))
    elif file.suffix == ".jsonl" and draw.random() < 0.7:
        lines = data.splitlines()
        place = draw.randrange(len(lines))
        lines[place] = json_changed(lines[place], draw)
        file.write_bytes(b"\n".join(lines) + b"\n")
    elif file.suffix == ".toml" and draw.random() < 0.7:
        _write_toml(file, value_changed(tomllib.loads(data.decode()), draw))
    else:
        file.write_bytes(bytes_changed(data, draw))


def _write_toml(file: Path, value: object) -> None:
    """JSON is TOML but for null, NaN and the outermost object."""
    entries = value.items() if isinstance(value, dict) else [("value", value)]
    lines = [f"{json.dumps(key)} = {json.dumps(entry)}" for key, entry in entries]
    file.write_text("\n".join(lines).replace("NaN", "nan").replace("Infinity", "inf"))


def _read_run(folder: Path) -> None:
    records = read_runs([folder / "run"])
    page = Page("runs")
    show_results(page, records)
    show_options(page, records)
    page.html()


def _read_config(folder: Path) -> None:
    read_values(folder / "run" / "config.toml", TrainOptions, NOTED)


def _read_checkpoint(folder: Path) -> None:
    load_checkpoint(next(folder.iterdir()))


def _small_trainer() -> Trainer:
    torch.manual_seed(0)
    config = TrainConfig(estimator="two-way", epochs=2, batch_size=4, diagnostics=0)
    told = Callbacks(on_note=lambda note: None)
    return Trainer(GraphSAGE(5, 4, 3), some_graph("names"), config, listener=told)


def _make_checkpoint(folder: Path) -> None:
    trainer = _small_trainer()
    for _ in range(len(trainer.minibatches) + 1):
        trainer.advance()
    save_checkpoint(folder, trainer.state(), identity(trainer))


def _damage_signed(folder: Path, draw: random.Random) -> None:
    """Damage a checkpoint and write the checksums again."""
    path = next(folder.iterdir())
    file = path / draw.choice([WEIGHTS, HISTORIES, STATE, STATE, STATE])
    data = file.read_bytes()
    if file.name == STATE and draw.random() < 0.8:
        file.write_bytes(json_changed(data, draw))
    else:
        file.write_bytes(bytes_changed(data, draw))
    sums = {name: file_checksum(path / name) for name in (WEIGHTS, HISTORIES, STATE)}
    (path / SUMS).write_text("".join(f"{sums[name]}  {name}\n" for name in sums))


def _resume(folder: Path) -> None:
    trainer = _small_trainer()
    kept = Checkpoints(trainer, folder)
    kept.resume()
    with suppress(DivergedError):  # weights that were made infinite: explained
        trainer.run()


TRAINING: dict[str, Target] = {
    "model": Target(_make_model, damage_any, _read_model, sealed=True),
    "signed model": Target(_make_model, _damage_signed_model, _read_model),
    "run": Target(_make_run, _damage_run, _read_run),
    "options": Target(_make_options, _damage_run, _read_config),
    "checkpoint": Target(_make_checkpoint, damage_any, _read_checkpoint, sealed=True),
    "signed checkpoint": Target(_make_checkpoint, _damage_signed, _resume),
}
