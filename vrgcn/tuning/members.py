"""Members: the models that a search has fitted or trained, each in a folder, and their predictions
of the validation nodes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrgcn.baselines import Recipe
from vrgcn.baselines.problem import Problem
from vrgcn.files.memory import is_out_of_memory
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_json
from vrgcn.files.tensors import read_tensors, size_of, write_tensors
from vrgcn.files.writing import new_file, write_text
from vrgcn.graph.graph import Graph
from vrgcn.inference import MODEL
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.runs.card import facts_of, write_end
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import CONFIG, RESULT
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.training.clock import Clock
from vrgcn.tuning.study import Tried

VALIDATION = "validation.safetensors"
_OUTPUTS = "outputs"
GROUPS = 20  # groups of validation nodes that are left out in turn, for the standard error


@dataclass(frozen=True)
class Member:
    """A model in its folder, and the search's data about it."""

    tried: Tried
    folder: Path

    @property
    def name(self) -> str:
        """Name of the folder, which identifies the member in averages."""
        return self.tried.folder

    def load(self) -> SavedModel:
        return load_model(self.folder / MODEL)

    def validation_outputs(self, graph: Graph) -> Tensor:
        """Return outputs (validation nodes, width), predicted once and kept beside the model."""
        file = self.folder / VALIDATION
        if not file.is_file():
            keep_outputs(self.folder, predict(self.load(), graph, graph.val, kind="all"))
        return read_tensors(file)[_OUTPUTS]


def keep_outputs(folder: Path, outputs: Tensor) -> None:
    """Keep a model's outputs for the validation nodes beside it."""
    named = {_OUTPUTS: outputs}
    with new_file(folder / VALIDATION, size=size_of(named)) as opened:
        write_tensors(opened, named)


def fit_baseline(
    name: str,
    recipe: Recipe,
    problem: Problem,
    graph: Graph,
    folder: Path,
    *,
    metric: LabelMetric,
    options: Mapping[str, Any],
    stopped: Callable[[], bool],
) -> Tried | None:
    """Fit a baseline and keep it in a folder; the result comes last. What is its own fault is told,
    not raised.

    graph: with labels, whose validation nodes score it
    options: what config.toml says beside its name
    stopped: whether the search has to stop; then nothing is kept, and None returned
    """
    clock, predicting = Clock(), 0.0
    saved, val, reason = None, None, None
    folder.mkdir(parents=True, exist_ok=True)
    # First: the options mark the folder as ours if we are killed.
    config = {**options, "baseline": name}
    write_settings(folder / CONFIG, config)
    try:
        saved = fit_recipe(recipe, problem)
        if stopped():
            return None
        save_model(saved, folder / MODEL)
        assert graph.labels is not None
        before = clock.used
        outputs = predict(load_model(folder / MODEL), graph, graph.val, kind="all")
        predicting = clock.used - before
        val = metric.compute(outputs, graph.labels[graph.val])
        keep_outputs(folder, outputs)
    except (MemoryError, FloatingPointError, InputError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not is_out_of_memory(error):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
    state = "complete" if reason is None else "failed"
    tried = Tried(-1, state, val, {}, 0, clock.used, reason, name, predicting)  # type: ignore[arg-type]
    told = asdict(tried) | {"metric": metric.title, "test": None, "stopped": "fitted"}
    told |= {"epoch": 0, "evaluation_seconds": 0.0}  # as those of runs have them
    if saved is not None and reason is None:
        write_end(folder, config, told, saved, facts_of(graph))
    else:
        write_text(folder / RESULT, json.dumps(told, indent=2) + "\n")
    return tried


def fitted_baseline(folder: Path) -> Tried | None:
    """Return the baseline that `fit_baseline` kept in a folder; None if it has not finished."""
    file = folder / RESULT
    if not file.is_file():
        return None
    told = read_json(file)
    return Tried(**{entry.name: told[entry.name] for entry in fields(Tried)})


def standard_error(metric: LabelMetric, outputs: Tensor, labels: Tensor) -> float | None:
    """Return the standard error of a score by the jackknife: groups of nodes are left out in turn.
    None if the score does not exist for each.

    outputs, labels: of the nodes that are scored
    """
    count = min(GROUPS, len(outputs))
    if count < 2:
        return None
    order = torch.randperm(len(outputs), generator=torch.Generator().manual_seed(0))
    scores = []
    for group in range(count):
        kept = torch.ones(len(outputs), dtype=torch.bool)
        kept[order[group::count]] = False
        scores.append(metric.compute(outputs[kept], labels[kept]))
    mean = math.fsum(scores) / count
    spread = (count - 1) / count * math.fsum((score - mean) ** 2 for score in scores)
    return None if math.isnan(spread) else math.sqrt(spread)
