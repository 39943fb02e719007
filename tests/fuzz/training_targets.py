"""Files that training writes: run folders and options."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path

from tests.fuzz.mutations import bytes_changed, json_changed, value_changed
from tests.fuzz.target import Target
from vrgcn.cli.train import TrainOptions
from vrgcn.pages.page import Page
from vrgcn.pages.runs.records import read_runs
from vrgcn.pages.runs.tables import show_options, show_results
from vrgcn.runs.config_file import read_values, write_settings
from vrgcn.runs.settings import NOTED


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


TRAINING: dict[str, Target] = {
    "run": Target(_make_run, _damage_run, _read_run),
    "options": Target(_make_options, _damage_run, _read_config),
}
