"""What can be told of a command's options before torch is loaded: whether the graph, the run and
the files are there, and whether --out can be written.

Whoever mistypes a path is told so at once. Each command checks again what it opens.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vrgcn.cli.options import (
    DemoOptions,
    DiagnoseOptions,
    EvaluateOptions,
    ExactOptions,
    GenerateOptions,
    ImportOptions,
    InfoOptions,
    PartitionOptions,
    PredictOptions,
    ReorderOptions,
    ReportOptions,
    RunOptions,
    TrainOptions,
)
from vrgcn.data.sources import Source, check_graph, find_source, has_parts
from vrgcn.data.tables.spec import check_split_seed
from vrgcn.pages.destination import check_suffix, check_writable
from vrgcn.runs.folder import CONFIG, check_free, read_config
from vrgcn.runs.resume import refuse_changes
from vrgcn.runs.run import check_run, parts_of_run

FIGURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")


@singledispatch
def check(options: Any) -> Any:
    """The same options, a graph that was given by one word as --graph or --dataset; an error where
    something is not there or not to be written."""
    return options


@check.register
def _(options: RunOptions) -> RunOptions:
    parts = isinstance(options, TrainOptions)
    dataset, graph = find_source(
        options.dataset, options.graph, options.graph_or_dataset, parts=parts
    )
    for flag, path in (("--graph", graph), ("--data-root", options.data_root)):
        if path is not None:
            check_utf8(path.resolve(), flag, "config.toml")
    check_writable(options.out or options.resume or Path("runs"))
    if options.resume is not None:
        if options.out is not None or options.name is not None or options.overwrite:
            raise ValueError(
                "--resume goes on in the run's own folder: no --out, --name, --overwrite"
            )
        refuse_changes(options, options.resume)
    # Of several processes, the first looks at the folder, before it writes to it.
    if not has_parts(graph) and options.out is not None and options.out.is_dir():
        check_free(options.out, options.overwrite)
    return replace(options, dataset=dataset, graph=graph, graph_or_dataset=None)


@check.register
def _(options: PartitionOptions) -> PartitionOptions:
    dataset, graph = find_source(options.dataset, options.graph, options.graph_or_dataset)
    if options.out.exists():
        raise FileExistsError(f"--out: {options.out} exists already; choose another folder")
    check_writable(options.out.parent)
    check_method(options.method)
    return replace(options, dataset=dataset, graph=graph, graph_or_dataset=None)


@check.register
def _(options: InfoOptions) -> InfoOptions:
    dataset, graph = find_source(options.dataset, options.graph, options.graph_or_dataset)
    return replace(options, dataset=dataset, graph=graph, graph_or_dataset=None)


@check.register
def _(options: DiagnoseOptions) -> DiagnoseOptions:
    if options.out is not None:
        check_suffix(options.out, PAGES)
        check_writable(options.out.parent)
    target, source = options.target, Source(options.dataset, options.graph)
    if target is not None and (Path(target) / CONFIG).is_file():
        check_run(Path(target))
        if parts_of_run(Path(target), None, None) is not None:
            if source == (None, None):
                raise ValueError(
                    f"{target} was trained on the parts of a graph: name the graph that they were "
                    "made of, by --graph or --dataset"
                )
        elif source.dataset is not None:
            raise ValueError(
                f"{target} is a run, which is diagnosed on its own graph: leave --dataset away; "
                "--graph says where the graph is now, if it was moved"
            )
        find_source(*source, needed=False)
        _check_own_split(options, Path(target))
        return options
    check_split_seed(options.split_seed, options.ratio)
    dataset, graph = find_source(options.dataset, options.graph, target)
    return replace(options, dataset=dataset, graph=graph, target=None)


def _check_own_split(options: DiagnoseOptions, run: Path) -> None:
    """Refuse another split and another scaling than the run's: its model was trained with these."""
    own = read_config(run)
    for name, default in (("ratio", None), ("split_seed", 0), ("scaling", "auto")):
        before, now = own.get(name, default), getattr(options, name)
        if (list(now) if isinstance(now, tuple) else now) != before:
            raise ValueError(
                f"--{name.replace('_', '-')}: {run} is a run, which is diagnosed with its own "
                f"({before}); leave it out, or name the graph to train another model on it"
            )


@check.register
def _(options: ExactOptions) -> ExactOptions:
    check_run(options.run)
    parts = isinstance(options, PredictOptions)
    find_source(options.dataset, options.graph, needed=False, parts=parts)
    if options.nodes is not None:
        check_file(options.nodes, "--nodes")
    check_suffix(options.out, (".parquet", ".csv", ".npy"))
    if options.out.exists():
        raise FileExistsError(f"--out: {options.out} exists already; choose another name")
    check_writable(options.out.parent)
    return options


@check.register
def _(options: EvaluateOptions) -> EvaluateOptions:
    check_run(options.run)
    find_source(options.dataset, options.graph, needed=False, parts=True)
    if options.out is not None:
        check_suffix(options.out, FIGURES)
        check_writable(options.out.parent)
    return options


@check.register
def _(options: ReportOptions) -> ReportOptions:
    check_suffix(options.out, PAGES)
    check_writable(options.out.parent)
    for folder in options.runs:
        if not folder.is_file():  # `runs/*` names pages and pictures too
            read_config(folder)
    return options


@check.register
def _(options: DemoOptions) -> DemoOptions:
    check_suffix(options.out, FIGURES)
    check_writable(options.out.parent)
    return options


@check.register
def _(options: ImportOptions) -> ImportOptions:
    files = {"edges": options.edges, "nodes": options.nodes, "features-file": options.features_file}
    for name, path in files.items():
        if path is not None:
            check_file(path, f"--{name}")
            check_utf8(path, f"--{name}", "PyArrow")
    if options.like is not None:
        check_graph(options.like, "--like: ")
    if options.out.exists():
        raise FileExistsError(f"--out: {options.out} exists already; choose another folder")
    check_writable(options.out.parent)
    return options


@check.register
def _(options: GenerateOptions) -> GenerateOptions:
    check_new(options.out)
    return options


@check.register
def _(options: ReorderOptions) -> ReorderOptions:
    check_graph(options.graph)
    check_new(options.out)
    check_method(options.method)
    return options


def check_method(method: str) -> None:
    """Refuse to divide a graph by a package that is not there."""
    if method == "metis" and find_spec("pymetis") is None:
        raise ValueError(
            "--method metis: needs pymetis: pip install 'vrgcn[partition]', or choose ldg"
        )


def check_new(folder: Path) -> None:
    """Refuse a folder for a graph that is there already or cannot be made."""
    if folder.exists():
        raise FileExistsError(f"--out: {folder} exists already; choose another name")
    check_writable(folder.parent)


def check_file(path: Path, flag: str) -> None:
    """Refuse a file that is not there."""
    if path.is_dir():
        raise IsADirectoryError(f"{flag}: {path} is a folder; name a file")
    if not path.exists():
        raise FileNotFoundError(f"{flag}: there is no file {path}")


def check_utf8(path: Path, flag: str, reader: str) -> None:
    """Refuse a path that a reader of texts alone cannot hold."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{flag}: {path} is not UTF-8, and {reader} takes no other paths: rename it"
        ) from None
