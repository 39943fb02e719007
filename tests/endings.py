"""Endings of commands without seconds: the same, however often they were killed."""

from __future__ import annotations

import json
from pathlib import Path

from vrgcn.runs.checkpoint import checkpoints_in, load_checkpoint
from vrgcn.runs.folder import member_runs


def run_ending(run: Path) -> tuple[object, ...]:
    """Metrics, result, model and options of one run."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(text) for text in (*lines, (run / "result.json").read_text())]
    kept = [{k: v for k, v in r.items() if not k.endswith("seconds")} for r in records]
    return kept, (run / "model.safetensors").read_bytes(), (run / "config.toml").read_text()


def ending(folder: Path) -> dict[str, object]:
    """All runs of a folder and the trials of a search; checkpoints that are there are whole."""
    runs = member_runs(folder) or [folder]
    found: dict[str, object] = {str(run.relative_to(folder)): run_ending(run) for run in runs}
    for run in runs:
        for path in checkpoints_in(run / "checkpoints"):
            load_checkpoint(path)
    board = folder / "leaderboard.json"
    if board.exists():
        trials = json.loads(board.read_text())["trials"]
        found["trials"] = [
            {k: v for k, v in t.items() if not k.endswith("seconds")} for t in trials
        ]
    for run in (*folder.glob("baselines/*"), folder / "average"):
        if run.is_dir():
            found[str(run.relative_to(folder))] = fitted_ending(run)
    return found


def fitted_ending(run: Path) -> dict[str, object]:
    """All files of a baseline or an average; of its result all but the seconds."""
    found: dict[str, object] = dict(contents(run))
    result = json.loads((run / "result.json").read_text())
    return found | {"result.json": {k: v for k, v in result.items() if not k.endswith("seconds")}}


def contents(path: Path) -> dict[str, bytes]:
    """A file, or all files of a folder, by name."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}
