"""`vrgcn train --model NAME` for a baseline: fitted at once, and kept in the folder of a run like a
network. `predict`, `evaluate`, `serve` and `report` take it."""

from __future__ import annotations

from pathlib import Path

from vrgcn.baselines import RECIPES
from vrgcn.baselines.past import past_of
from vrgcn.baselines.problem import Problem
from vrgcn.data.opening import Opened
from vrgcn.engine.devices import use_threads
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import print_note, printable, seconds_text
from vrgcn.graph.graph import Graph
from vrgcn.inference import MODEL
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.saved import save_model
from vrgcn.runs.card import facts_of, write_end
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import CONFIG
from vrgcn.runs.last_word import scores_of, scores_text
from vrgcn.runs.run_settings import TrainSettings
from vrgcn.runs.stages import calibrate_run
from vrgcn.tasks import find_task
from vrgcn.training.clock import Clock
from vrgcn.training.progress import working


def fit_run(settings: TrainSettings, opened: Opened, folder: Path, *, verbose: bool) -> None:
    """Fit the baseline that the settings name, and write it and its scores to a folder."""
    graph, name, start = opened.graph, settings.model.model, Clock.now()
    recipe = RECIPES[name]
    _check(name, graph)
    use_threads(settings.train.threads)
    if verbose:
        print(f"{graph}\n{name}: {recipe.words}, writing to {printable(folder)}")
    config = settings.described(opened.checksum) | {"baseline": name}
    write_settings(folder / CONFIG, config)
    metric = find_task(graph.task).find_metric(settings.train.metric)
    with working(f"fitting {recipe.words}", shown=verbose):
        seed = settings.train.seed
        past = graph if graph.visible is None else past_of(graph, seed)
        saved = fit_recipe(recipe, Problem.of(past, metric, seed))
        seconds = Clock.now() - start
        scores = scores_of(saved, graph, metric)
        note = print_note if verbose else lambda text: None
        saved = calibrate_run(saved, graph, settings.calibrate, note)
        save_model(saved, folder / MODEL)
    result = {
        "metric": metric.title,
        "epoch": 0,
        "val": scores.get("val"),
        "test": scores.get("test"),
        "seconds": seconds,
        "evaluation_seconds": Clock.now() - start - seconds,
        "stopped": "fitted",
    }
    write_end(folder, config, result, saved, facts_of(graph))
    if verbose:
        print(f"{scores_text(metric, scores)} ({seconds_text(seconds)})")
        print(f"written to {printable(folder)}")


def _check(name: str, graph: Graph) -> None:
    """Raise if a baseline cannot be fitted to a graph."""
    recipe, model = RECIPES[name], setting("model", name)
    if not recipe.suits(graph):
        raise InputError(f"{model} reads labels of neighbours, and no edge leaves {graph.target!r}")
    if not recipe.available:
        packages = " or ".join(recipe.packages)
        raise InputError(f"{model} needs {packages}: pip install 'vrgcn[sklearn]'")
