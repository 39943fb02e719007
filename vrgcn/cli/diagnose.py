"""`vrgcn diagnose`: every estimator against the exact algorithm, as a table, a page and advice."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from rich.table import Table

from vrgcn.cli.notes import print_note
from vrgcn.cli.options import DiagnoseOptions
from vrgcn.diagnostics.advice import Advice, advise
from vrgcn.diagnostics.diagnosis import REFERENCE, Diagnosis, diagnose
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.engine.estimators import find_estimator
from vrgcn.files.printable import printable
from vrgcn.models.models import MODELS, GraphModel
from vrgcn.pages.costs import exact_advice
from vrgcn.pages.diagnosis import (
    COLUMNS,
    GRADIENT_TITLE,
    STALENESS_COLUMNS,
    conditions,
    gradient_columns,
    gradient_rows,
    page,
    quantities,
    rows,
    staleness_rows,
)
from vrgcn.pages.figures import check_figure
from vrgcn.pages.runs.records import read_metrics
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.runs.folder import DIAGNOSIS, METRICS, chosen_estimator
from vrgcn.runs.job import Job, prepare
from vrgcn.runs.run import open_run, open_run_graph, parts_of_run
from vrgcn.training.config import AUTO
from vrgcn.training.progress import filling_bars, progress_bar


def run_diagnose(options: DiagnoseOptions) -> None:
    """Train a few epochs, compare the estimators, print the tables and write the page."""
    use_threads(options.train.threads)
    folder = None if options.target is None else Path(options.target)
    out = options.out or _page(options, folder)
    check_figure(out, (".html", ".htm"))
    title, job = _of_graph(options) if folder is None else _of_run(options, folder)
    print(job.graph)
    if job.choice is not None:
        print(f"estimator {job.choice.estimator}: {job.choice.reason}")
    diagnosis = _diagnose(job, options)
    used = job.config.estimator
    costs = job.costs([used, REFERENCE])
    cheap = exact_advice(used, costs, REFERENCE)
    advice = advise(diagnosis, cheap)
    _print(diagnosis, advice)
    page(diagnosis, advice, title).write(out)
    print(f"page: {printable(out)}")


def _page(options: DiagnoseOptions, folder: Path | None) -> Path:
    if folder is not None:
        return folder / DIAGNOSIS
    name = options.dataset or (options.graph.name if options.graph else "graph")
    return Path("runs") / f"{name}-diagnosis.html"


def _of_run(options: DiagnoseOptions, folder: Path) -> tuple[str, Job]:
    """The title of the page, and the job that is diagnosed."""
    run = open_run(folder, find_device(options.train.device))
    model = run.saved.model
    if not isinstance(model, GraphModel):
        raise ValueError(
            f"{folder} holds no network that was trained by epochs, and so has no gradients to "
            "look at: name another run"
        )
    theirs = {
        **model.arguments,
        "model": next(name for name, kind in MODELS.items() if type(model) is kind),
    }
    for name, value in asdict(options.model).items():
        if theirs[name] != value:
            raise ValueError(
                f"--{name.replace('_', '-')} {value}: the run's model has {theirs[name]}; train "
                "another to change it"
            )
    # A run keeps no histories. An exact pass at its weights, and the epochs after it, stand for
    # those that it had.
    config = replace(options.train, warm_start=True)
    if config.estimator == AUTO:  # what it stood for when the run began
        config = replace(config, estimator=chosen_estimator(folder) or AUTO)
    opened = open_run_graph(run, options.dataset, options.graph, options.data_root)
    print_note(opened.note)
    if parts_of_run(folder, None, None) is not None:
        print_note(_copies(folder))
    return f"Diagnosis of the run {folder.name}", prepare(model, opened.graph, config)


def _copies(folder: Path) -> str | None:
    """What training in parts added to the staleness; here everything is in one process."""
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
    find_device(options.train.device)
    opened = options.open_graph(filling_bars())
    print_note(opened.note)
    name = options.dataset or options.graph
    return f"Diagnosis of {options.model.model} on {name}", options.prepare(opened.graph)


def _diagnose(job: Job, options: DiagnoseOptions) -> Diagnosis:
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


def _print(diagnosis: Diagnosis, advice: list[Advice]) -> None:
    print(conditions(diagnosis))
    print_table(_table(diagnosis))
    if diagnosis.estimators[REFERENCE].gradients.known:
        columns, found = gradient_columns(diagnosis), gradient_rows(diagnosis)
        print_table(text_table(GRADIENT_TITLE, columns, found))
    if diagnosis.staleness:
        title = "histories of a minibatch"
        print_table(text_table(title, STALENESS_COLUMNS, staleness_rows(diagnosis)))
    for name, why in diagnosis.impossible.items():
        print(f"{name}: not possible here: {printable(why)}")
    for piece in advice:
        print(f"advice: {piece}")


def _table(diagnosis: Diagnosis) -> Table:
    table = text_table("distance from the exact algorithm, relative", ("", *COLUMNS), (), names=2)
    for name, deviations in quantities(diagnosis).items():
        for place, row in enumerate(rows(deviations)):
            table.add_row("" if place else name, *row)
        table.add_section()
    return table
