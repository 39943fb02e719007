"""`tune`: finds settings that score well on a graph; `vrgcn tune` is this function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from vrgcn.engine.devices import find_device
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import declarations
from vrgcn.files.wording import print_note, printable
from vrgcn.graph.graph import Graph
from vrgcn.graph.visible import rules_of
from vrgcn.models.config import ModelConfig
from vrgcn.runs.config_file import flatten, write_settings
from vrgcn.runs.folder import BEST, CONFIG, RESULT, remove_card
from vrgcn.runs.run_settings import given_settings
from vrgcn.runs.settings import NOTED, Settings
from vrgcn.runs.training import end_told, graph_in, own_folder
from vrgcn.training.clock import Clock
from vrgcn.training.config import TrainConfig
from vrgcn.training.progress import filling_bars
from vrgcn.tuning.finishing import TuneResult
from vrgcn.tuning.settings import TuneSettings
from vrgcn.tuning.space import SPACE, searched
from vrgcn.tuning.study import check_optuna
from vrgcn.tuning.tune import search_models


def tune(
    graph: Graph | str | Path | None = None,
    model: ModelConfig | str | None = None,
    config: TrainConfig | str | Path | None = None,
    *,
    trials: int | None = None,
    time_limit: str | None = None,
    search: Sequence[str] = tuple(SPACE),
    baselines: bool | Sequence[Any] | None = None,
    folder: str | Path | None = None,
    out: str | Path | None = None,
    name: str | None = None,
    resume: bool | str | Path = False,
    overwrite: bool = False,
    verbose: bool = False,
    on_note: Callable[[str], None] = print,
    **settings: Any,
) -> TuneResult:
    """Search for models that score well on the validation nodes: baselines first, then networks,
    and finally an average of the models that predict best together.

    A `Graph` is searched unchanged, unless `out`, `name`, `resume` or settings by name are given.
    Then the search is the one of `vrgcn tune`: the graph is split and scaled as the settings say,
    and the search is written to a folder with everything that `vrgcn report` and `predict` need.

    graph: a `Graph`, the folder that `vrgcn import` wrote, or the name of a data set; None: the one
        of the file `config`, or of the search that is resumed
    model, config: the settings that are tried first, and of all that is not searched; None: those
        that `vrgcn train` takes, or compares, on this graph.
        `model` may also be its name, and `config` a TOML file with settings
    trials: how many at most; None: 40, or as many as the time allows
    time_limit: of all of it, such as "5m"; None: that of the config
    search: settings to vary, names of `tuning.space.SPACE`
    baselines: names of `vrgcn.baselines.RECIPES`, and estimators of scikit-learn, which are fitted
        on [X, P X, P P X, log(1 + degree)] and predict the nodes of this graph alone; None, True:
        all names that can be fitted here; (), False: none
    folder: of a search in an unchanged `Graph`; a stopped search resumes from what is there, and
        another one, of another graph or other settings, is refused. None: nothing is kept but what
        is returned
    out, name, resume, overwrite: the folder of the search, as `vrgcn.train` takes them
    verbose: print what `vrgcn tune` prints, and show progress
    on_note: called with notes on a `Graph` that is searched as it is
    settings: any of `vrgcn tune`, by name: hidden=64, ratio=(0.6, 0.2, 0.2)
    """
    recipes = None if isinstance(baselines, bool) else baselines
    wanted = baselines if isinstance(baselines, bool) else baselines is None or bool(baselines)
    train = config if isinstance(config, TrainConfig) else None
    file = config if isinstance(config, str | Path) else None
    home = {"out": out, "name": name, "overwrite": overwrite, "config": file}
    given = {key: value for key, value in home.items() if value} | settings
    if isinstance(model, str):
        given["model"], model = model, None
    own = graph if isinstance(graph, Graph) else None
    if own is not None and not given and resume is False:
        return search_models(
            own,
            model,
            train,
            trials=trials,
            time_limit=time_limit,
            search=search,
            baselines=recipes if wanted else (),
            folder=folder,
            verbose=verbose,
            on_note=on_note,
        )
    if folder is not None:
        raise InputError(f"{setting('folder')}: with other settings the folder is {setting('out')}")
    lengths = {"trials": trials, "time_limit": time_limit}
    given |= {key: value for key, value in lengths.items() if value is not None}
    if tuple(search) != tuple(SPACE):
        given["search"] = tuple(search)
    if not wanted:
        given["baselines"] = False
    for part in (model, train):
        given = ({} if part is None else flatten(part)) | given
    asked = given_settings(TuneSettings, graph, given, resume=resume, kept=own is not None)
    return run_search(asked, own, baselines=recipes, verbose=verbose)[0]


def run_search(
    settings: TuneSettings,
    graph: Graph | None = None,
    *,
    baselines: Sequence[Any] | None = None,
    verbose: bool = False,
    begun: float | None = None,
) -> tuple[TuneResult, Path]:
    """Search as the settings say, or resume a search, in a folder of its own, which is returned
    with the result.

    graph: is written to that folder; None: the settings name one
    baselines: in place of all of them
    verbose: print what happens, and show progress
    begun: a time by `Clock.now` from which the time limit counts; None: this one, so that opening
        the graph counts
    """
    begun = Clock.now() if begun is None else begun
    check_optuna()
    find_device(settings.train.device)
    with ExitStack() as stack:
        folder = None
        if graph is not None:
            folder = stack.enter_context(own_folder(settings))
            settings = replace(settings, dataset=None, graph=graph_in(folder, graph))
        opened = settings.open_graph(filling_bars() if verbose else None)
        folder = folder or stack.enter_context(settings.folder())
        if verbose:
            _print_begin(settings, opened.graph, opened.note, folder)
        values = settings.described(opened.checksum)

        def begin() -> None:
            (folder / BEST / RESULT).unlink(missing_ok=True)  # unfinished from here on
            remove_card(folder)
            write_settings(folder / CONFIG, values)

        if settings.resume is None:
            begin()  # first of all: the settings mark the folder as ours if we are killed
        with end_told(folder, "tune") if verbose else nullcontext():
            result = search_models(
                opened.graph,
                settings.model,
                settings.train,
                trials=settings.trials,
                search=settings.search,
                baselines=baselines if settings.baselines else (),
                folder=folder,
                options={k: v for k, v in values.items() if k in (*NOTED, *declarations(Settings))},
                verbose=verbose,
                on_begin=begin,
                on_note=print_note,
                begun=begun,
            )
    return result, folder


def _print_begin(settings: TuneSettings, graph: Graph, note: str | None, folder: Path) -> None:
    """Print what is searched, on which graph."""
    scaling = "none" if graph.scaling is None else graph.scaling.kind
    names = searched(settings.search, settings.spec.kind)
    print(f"{graph}\nfeatures scaled: {scaling}, searching {', '.join(names)}")
    print(f"writing to {printable(folder)}")
    print_note(note)
    if graph.visible is not None:
        print(f"no leaks: {'; '.join(rules_of(graph))}; baselines are fitted to the past")
    elif rules_of(graph):
        print(f"no leaks: {'; '.join(rules_of(graph))}")
