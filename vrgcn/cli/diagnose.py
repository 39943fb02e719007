"""`vrgcn diagnose`: compares every estimator with the exact algorithm in a table, a page and
advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from vrgcn.cli.command import Options
from vrgcn.cli.flags import Positional, TextOf
from vrgcn.data.sources import find_source
from vrgcn.data.tables.spec import check_split_seed
from vrgcn.engine.estimators import ESTIMATORS, find_estimator
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO
from vrgcn.files.wording import print_note, printable
from vrgcn.files.writing import PAGES, check_suffix, check_writable
from vrgcn.models.config import ModelConfig
from vrgcn.runs.folder import CONFIG, DIAGNOSIS, METRICS, chosen_estimator, read_config
from vrgcn.runs.run import check_run, parts_of_run
from vrgcn.runs.run_settings import RunSettings
from vrgcn.runs.settings import Settings
from vrgcn.targets.spec import TargetSpec
from vrgcn.training.config import TrainConfig

if TYPE_CHECKING:
    from vrgcn.diagnostics.diagnosis import Diagnosis
    from vrgcn.runs.job import Job


@dataclass(frozen=True)
class DiagnoseOptions(Settings, Options):
    """Flags of `vrgcn diagnose`."""

    """Group diagnosis: what is measured, and the page."""
    target: Positional[str | None] = None
    """Run to diagnose, or a graph to train on first.

    The folder of a run, whose model and settings are used unless flags override them; or a graph,
    by its folder or name, on which the model that the options describe is trained first."""
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=3))

    """Group diagnosis."""
    compare: tuple[str, ...] = tuple(name for name in ESTIMATORS if name != "exact")
    """Estimators to measure, by name or composition.

    exact and the one that trains are always measured."""
    passes: int = 100
    """Repeated passes of each estimator.

    Each has new samples and dropout masks. More passes show smaller biases."""
    out: Path | None = None
    """Web page to write (.html).

    None: diagnosis.html in the run's folder; for a graph, runs/GRAPH-diagnosis.html."""
    config: Annotated[Path | None, TextOf(RunSettings, "config")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.compare:
            try:
                find_estimator(name)
            except InputError as error:
                raise InputError(f"compare: {error}") from None
        if self.passes < 2:  # checked before a graph is opened or downloaded
            raise InputError(f"passes must be at least 2 to tell a variance, not {self.passes}")

    def checked(self) -> Self:
        """Find the graph, unless the target is a run; refuse settings that the run decides."""
        if self.out is not None:
            check_suffix(self.out, PAGES)
            check_writable(self.out.parent)
        if self.target is not None and (Path(self.target) / CONFIG).is_file():
            self._check_run(Path(self.target))
            return self
        check_split_seed(self.spec.split_seed, self.spec.ratio)
        dataset, graph = find_source(self.dataset, self.graph, self.target)
        return replace(self, dataset=dataset, graph=graph, target=None)

    def _check_run(self, run: Path) -> None:
        check_run(run)
        if parts_of_run(run, None, None) is not None:
            if self.dataset is None and self.graph is None:
                raise InputError(
                    f"{run} was trained on the parts of a graph: name the graph that they were "
                    "made of, by --graph or --dataset"
                )
        elif self.dataset is not None:
            raise InputError(
                f"{run} is a run, which is diagnosed on its own graph: leave --dataset away; "
                "--graph says where the graph is now, if it was moved"
            )
        find_source(self.dataset, self.graph, needed=False)
        _check_own_split(self, run)


def _check_own_split(options: DiagnoseOptions, run: Path) -> None:
    """Refuse a target, split or scaling other than the run's, because its model was trained with
    those."""
    config = read_config(run)
    theirs = asdict(TargetSpec.of(config)) | {"scaling": config.get("scaling", "auto")}
    for name, now in (asdict(options.spec) | {"scaling": options.scaling}).items():
        if now != theirs[name]:
            raise InputError(
                f"--{name.replace('_', '-')}: {run} is a run, which is diagnosed with its own "
                f"({theirs[name]}); leave it out, or name the graph to train another model on it"
            )


def run(options: DiagnoseOptions) -> None:
    """Train a few epochs, compare the estimators, print the tables and write the page."""
    from vrgcn.costs.epoch_cost import exact_advice
    from vrgcn.diagnostics.advice import advise
    from vrgcn.diagnostics.diagnosis import REFERENCE
    from vrgcn.engine.devices import use_threads
    from vrgcn.pages.diagnosis import page, print_diagnosis
    from vrgcn.pages.figures import check_figure

    use_threads(options.train.threads)
    folder = None if options.target is None else Path(options.target)
    out = options.out or _page(options, folder)
    check_figure(out, PAGES)
    title, job = _of_graph(options) if folder is None else _of_run(options, folder)
    print(job.graph)
    if job.choice is not None:
        print(f"estimator {job.choice.estimator}: {job.choice.reason}")
    diagnosis = _diagnose(job, options)
    used = job.config.estimator
    costs = job.costs([used, REFERENCE])
    cheap = exact_advice(used, costs, REFERENCE)
    advice = advise(diagnosis, cheap)
    print_diagnosis(diagnosis, advice)
    page(diagnosis, advice, title).write(out)
    print(f"page: {printable(out)}")


def _page(options: DiagnoseOptions, folder: Path | None) -> Path:
    if folder is not None:
        return folder / DIAGNOSIS
    name = options.dataset or (options.graph.name if options.graph else "graph")
    return Path("runs") / f"{name}-diagnosis.html"


def _of_run(options: DiagnoseOptions, folder: Path) -> tuple[str, Job]:
    """Return the title of the page and the job to diagnose."""
    from vrgcn.engine.devices import find_device
    from vrgcn.models.models import GraphModel
    from vrgcn.models.relational import RelationalModel
    from vrgcn.pairs.model import PairModel
    from vrgcn.runs.job import prepare
    from vrgcn.runs.run import open_run, open_run_graph

    run = open_run(folder, find_device(options.train.device))
    model = run.saved.model
    if not isinstance(model, GraphModel | RelationalModel | PairModel):
        raise InputError(
            f"{folder} holds no network that was trained by epochs, and so has no gradients to "
            "look at: name another run"
        )
    theirs = asdict(ModelConfig()) | run.config
    for name, value in asdict(options.model).items():
        if theirs[name] != value:
            raise InputError(
                f"--{name.replace('_', '-')} {value}: the run's model has {theirs[name]}; train "
                "another to change it"
            )
    # A run keeps no histories. An exact pass with its weights and a few epochs replace them.
    config = replace(options.train, warm_start=True)
    if config.estimator == AUTO:  # use the estimator that the run chose when it began
        config = replace(config, estimator=chosen_estimator(folder) or AUTO)
    opened = open_run_graph(run, options.dataset, options.graph, options.data_root)
    print_note(opened.note)
    if parts_of_run(folder, None, None) is not None:
        print_note(_copies(folder))
    return f"Diagnosis of the run {folder.name}", prepare(model, opened.graph, config)


def _copies(folder: Path) -> str | None:
    """Return the staleness added by training in parts; one process adds none."""
    from vrgcn.pages.runs.records import read_metrics

    points, _ = read_metrics(folder / METRICS)
    kept = [point for point in points if point.get("halo_staleness") is not None]
    if not kept:
        return None
    last = kept[-1]
    return (
        f"in its epoch {last['epoch']} copies of other processes' histories were "
        f"{last['halo_age']:.1f} steps old (originals {last['age']:.1f}) and "
        f"{last['halo_staleness']:.2f} from them, relative to their size; what is measured here "
        "is without that"
    )


def _of_graph(options: DiagnoseOptions) -> tuple[str, Job]:
    from vrgcn.engine.devices import find_device
    from vrgcn.training.progress import filling_bars

    find_device(options.train.device)
    opened = options.open_graph(filling_bars())
    print_note(opened.note)
    name = options.dataset or options.graph
    return f"Diagnosis of {options.model.model} on {name}", options.prepare(opened.graph)


def _diagnose(job: Job, options: DiagnoseOptions) -> Diagnosis:
    from vrgcn.diagnostics.diagnosis import diagnose
    from vrgcn.training.progress import progress_bar

    with progress_bar() as progress:
        training = progress.add_task("training", total=None)
        measuring = progress.add_task("measuring", total=None)
        steps = 0

        def on_step(done: int, in_epoch: int) -> None:
            nonlocal steps
            steps += 1
            progress.update(training, completed=steps, total=in_epoch * job.config.epochs)

        return diagnose(
            job.model,
            job.graph,
            job.config,
            estimators={
                name: find_estimator(name) for name in (*options.compare, job.config.estimator)
            },
            passes=options.passes,
            on_step=on_step,
            on_pass=lambda done, total: progress.update(measuring, completed=done, total=total),
        )
