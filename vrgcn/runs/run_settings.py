"""Settings of `vrgcn train` and `vrgcn tune`: the model and the graph, the folder of the run, and
what a file or another run says; the words of the user override them.

No torch here: a folder that could not be written is refused before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Self, TypeVar, get_args

from vrgcn.data.sources import find_source, has_parts
from vrgcn.data.tables.spec import check_split_seed
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_toml
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.settings import AUTO, at_least, declarations, declared
from vrgcn.files.writing import check_utf8, check_writable, explained, make_folder
from vrgcn.runs.config_file import build, check_known, read_values, setting_types
from vrgcn.runs.folder import CONFIG, check_free, claimed, read_config, settings_file
from vrgcn.runs.resume import refuse_changes
from vrgcn.runs.settings import GRAPH_CHECKSUM, NOTED, Settings
from vrgcn.targets.spec import with_usual

_GRAPH = ("dataset", "graph")  # the options that name a graph
_NAMING = (*_GRAPH, "graph_or_dataset", "target")  # the options by which the user names a graph


def file_values(options: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings from the file `config`, or from the run `resume`.

    If a command takes a `target` and the target is a run, the run's own settings are included,
    except its graph, which is found through the run, and settings that have already taken effect.
    The graph in a file is left out if the user names one.

    options: the class of the settings
    given: the values that the user gives, by name
    """
    types = setting_types(options)
    named = any(given.get(name) is not None for name in _NAMING)
    left_out = (*NOTED, *(_GRAPH if named else ()))
    config, resumed, target = (given.get(name) for name in ("config", "resume", "target"))
    values: dict[str, Any] = {}
    # The target of `vrgcn bench` is a score, not a run.
    if isinstance(target, str) and (Path(target) / CONFIG).is_file():
        once = (name for name, said in declarations(options).items() if said.once)
        others = read_toml(Path(target) / CONFIG).keys() - types  # of the command that trained it
        values = _run_values(Path(target), options, (*left_out, *_GRAPH, *once, *others))
    if config is not None and resumed is not None:
        raise InputError(
            f"{setting('resume')} takes the run's own options: leave {setting('config')} out"
        )
    if config is not None:
        values |= _read_config_file(config, options, left_out)
    if resumed is not None:
        _check_command(resumed, searching="search" in types)
        values = _run_values(resumed, options, left_out)
    return values


def _run_values(folder: Path, options: type, left_out: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of a run."""
    _refuse_fitted(folder / CONFIG)
    return read_values(settings_file(folder), options, left_out)


def _read_config_file(path: Path, options: type, left_out: tuple[str, ...]) -> dict[str, Any]:
    try:
        _refuse_fitted(path)
        return read_values(path, options, left_out)
    except FileNotFoundError:
        raise FileNotFoundError(f"{setting('config')}: there is no file {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{setting('config')}: {path} is a folder; name a file") from None


def _refuse_fitted(path: Path) -> None:
    """Refuse the settings of a model that was not trained in epochs."""
    for kind, words in (("baseline", "a baseline"), ("average", "an average of models")):
        if kind in read_toml(path):
            raise InputError(
                f"{path} is of {words}, and not of a network that was trained by epochs: name a "
                "run that was, such as one of a search's trials"
            )


def _check_command(folder: Path, *, searching: bool) -> None:
    """Refuse to resume a search as a training run, and a training run as a search."""
    searched = "search" in read_config(folder)
    if searched == searching:
        return
    kinds = ("search", "training run") if searched else ("training run", "search")
    command = "tune" if searched else "train"
    function = f"vrgcn.{command}(resume={str(folder)!r})"
    there = setting("resume", True, typed=folder, command=command, python=function)
    raise InputError(
        f"{setting('resume')}: {folder} is a {kinds[0]}, and no {kinds[1]}: {there} resumes it"
    )


R = TypeVar("R", bound="RunSettings")

RUNS = Path("runs")  # the folder of runs without --out


@dataclass(frozen=True)
class RunSettings(Settings):
    """The model, the graph and the folder of the run."""

    """Group run: folder, options from a file, and logs."""
    name: str | None = declared(None, of_command=True)
    """Name of the run. None: made of graph, model and estimator."""
    out: Path | None = declared(None, of_command=True)
    """Folder to write the run to.

    It must not exist yet. None: runs/NAME."""
    resume: Path | None = declared(None, of_command=True)
    """Folder of a run to resume.

    The run was stopped or killed. It resumes with its own options from its newest checkpoint. With
    more --epochs, a finished run can be resumed too."""
    overwrite: bool = declared(False, of_command=True)
    """Start over if the folder already holds a run.

    The files of that run are removed first."""
    config: Path | None = declared(None, of_command=True)
    """TOML file that may set any of these options; flags override it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume is None:  # older runs may have been started without a seed
            check_split_seed(self.spec.split_seed, self.spec.ratio)

    def checked(self) -> Self:
        """Raise if the folder could not be written or holds another run."""
        for name, path in (("graph", self.graph), ("data_root", self.data_root)):
            if path is not None:
                check_utf8(path.resolve(), setting(name), "config.toml")
        check_writable(self.out or self.resume or RUNS)
        if self.resume is not None:
            if self.out is not None or self.name is not None or self.overwrite:
                others = (setting("out"), setting("name"), setting("overwrite", True))
                raise InputError(
                    f"{setting('resume')} goes on in the run's own folder: no {', '.join(others)}"
                )
            refuse_changes(self, self.resume)
        # With several processes, only the first checks the folder, before it writes to it.
        if not has_parts(self.graph) and self.out is not None and self.out.is_dir():
            check_free(self.out, self.overwrite)
        return self

    @property
    def graph_name(self) -> str:
        """Name of the graph, for the names of runs on it."""
        return self.dataset or (self.graph.name if self.graph else "")

    def usual_name(self, estimator: str) -> str:
        """Return the default name of a run. estimator: the one that the run uses"""
        predicted = "" if self.spec.labels else f"{self.spec.predict}-"
        if self.model.model == AUTO:  # a race chooses the estimator too
            return f"{self.graph_name}-{predicted}{AUTO}"
        if self.model.is_baseline:
            return f"{self.graph_name}-{self.model.model}"
        name = f"{self.graph_name}-{predicted}{self.model.model}"
        return f"{name}-{estimator.replace('/', '-')}" if self.looks_at_neighbours else name

    @property
    def looks_at_neighbours(self) -> bool:
        """True if P is not the identity. For an MLP it is, and the estimator plays no part."""
        from vrgcn.models.models import MODELS

        kind = MODELS.get(self.model.model)  # LightGCN is none of them
        meant = None if kind is None else kind.propagation
        return (self.train.propagation or meant) != "identity"

    def described(self, checksum: str | None) -> dict[str, Any]:
        """Return the settings for config.toml, and what identifies the graph after a move.

        checksum: of the graph on disk, as it was opened
        """
        values = self.as_dict()
        if self.graph is not None:
            values[GRAPH_CHECKSUM] = checksum
        return values

    @contextmanager
    def folder(self, estimator: str | None = None) -> Iterator[Path]:
        """Yield the folder of the run, locked for this process: a new one, one that is started
        over, or the one to resume.

        estimator: the one that the run uses, for its name
        """
        folder = self.resume or self.out or self._named(estimator or self.train.estimator)
        with claimed(folder, resume=self.resume is not None, overwrite=self.overwrite) as claim:
            yield claim

    def _named(self, estimator: str) -> Path:
        """Return the folder of the run's name, or a new one with a number if the name is taken."""
        name = self.usual_name(estimator) if self.name is None else self.name
        folder, number = RUNS / name, 1
        if self.overwrite:
            return folder
        with explained(folder):
            make_folder(folder.parent)
        while True:
            try:
                with explained(folder):
                    folder.mkdir()  # only one process succeeds
            except FileExistsError:
                number += 1
                folder = RUNS / f"{name}-{number}"
            else:
                return folder


@dataclass(frozen=True)
class TrainSettings(RunSettings):
    """Settings of `vrgcn train`."""

    """Group run."""
    seeds: int | None = declared(None, resume="given", lengthens=True, whole=True)
    """Number of runs that differ only in the seed.

    The first one has --seed. Each run gets a folder inside the run's folder, and a table shows
    their means and standard deviations. --time-limit applies to each run."""
    log: Literal["none", "tensorboard"] = declared("none", resume="always", whole=True)
    """Also write the curve as TensorBoard events, to `tensorboard` in the run's folder."""
    wandb: str | None = declared(None, resume="always", whole=True)
    """Also send the curve, the settings and the scores to Weights & Biases, as a run of this
    project. WANDB_MODE=offline keeps them in the run's folder."""
    mlflow: str | None = declared(None, resume="always", whole=True)
    """Also send the curve, the settings and the scores to MLflow, as a run of this experiment,
    where MLFLOW_TRACKING_URI says."""

    """Group evaluation."""
    baseline: bool = declared(True, of_command=True)
    """Fit a few quick baselines after the training, a tenth of its work, and print the best score,
    and whether it is better than the trained model's. Where edges are predicted, simple rules are
    scored."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, seeds=self.seeds)

    def checked(self) -> Self:
        """Raise, too, if the package of a tracker is missing, and if a baseline is to be trained as
        a network is."""
        if self.model.is_baseline:
            if not self.spec.labels:
                raise InputError(
                    f"{setting('model', self.model.model)} is a baseline, which predicts labels of "
                    f"nodes: leave {setting('predict')} out, or take a network"
                )
            for name, given in (("seeds", self.seeds), ("inductive", self.train.inductive)):
                if given:
                    raise InputError(
                        f"{setting('model', self.model.model)} is a baseline, which is fitted once "
                        f"to the whole graph: leave {setting(name)} out"
                    )
        for name in ("wandb", "mlflow"):
            if getattr(self, name) is not None and find_spec(name) is None:
                raise InputError(f"{setting(name)}: needs {name}: pip install 'vrgcn[{name}]'")
        return super().checked()


def given_settings(
    kind: type[R],
    graph: object,
    values: Mapping[str, Any],
    *,
    resume: bool | str | Path,
    kept: bool = False,
) -> R:
    """Return the settings that arguments of Python stand for, as a command builds them of flags.

    graph: a folder, the name of a data set, a `Graph`, or None
    values: the other arguments by name
    resume: the folder of a run to resume; True: that of `out`
    kept: True for a `Graph`, which will be written to the folder of the run
    """
    types = setting_types(kind)
    given = {
        name: _as_path(value, types[name])
        for name, value in values.items()
        if check_known(name, types)
    }
    if resume is not False:
        folder = given.pop("out", None) if resume is True else Path(resume)
        if folder is None:
            name = setting("out", Placeholder("FOLDER"))
            raise InputError(f"{setting('resume', True)}: say which run to resume: {name}")
        given["resume"] = folder
    if kept:
        given |= {"dataset": None, "graph": None}
    elif graph is not None:
        given |= _source(graph, given)
    read = file_values(kind, given) | given
    settings = build(kind, read if "resume" in given else with_usual(read))
    if not kept:
        find_source(settings.dataset, settings.graph)
    return settings.checked()


def _source(graph: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that name the graph of a word or a folder."""
    if not isinstance(graph, str | Path):
        raise TypeError(
            "graph takes a Graph, the folder that `vrgcn import` wrote, or the name of a data set, "
            f"not {type(graph).__name__}; Graph.from_pyg, from_pandas and from_tables make a Graph"
        )
    return find_source(given.get("dataset"), None, str(graph))._asdict()


def _as_path(value: Any, hint: Any) -> Any:
    """Return a text as a path if the setting is one."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return Path(value) if isinstance(value, str) and Path in kinds else value
