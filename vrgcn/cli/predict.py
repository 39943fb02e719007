"""`vrgcn predict`: a trained model, a graph, a file of predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.cli.notes import print_note
from vrgcn.cli.options import PredictOptions
from vrgcn.data.predictions import check_path, prediction_file
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.files.memory import memory_advice
from vrgcn.files.scratch import scratch_folder
from vrgcn.graph.names import Names
from vrgcn.inference.predict import check_outputs, exact_sweeps
from vrgcn.inference.saved import SavedModel
from vrgcn.training.progress import progress_bar
from vrgcn.training.runs import open_run, open_run_graph, parts_of_run


def run_predict(options: PredictOptions) -> None:
    """Predict and write; the file appears when it is whole."""
    with memory_advice(_too_large(options)):
        parts = parts_of_run(options.run, options.dataset, options.graph)
        if parts is None:
            _predict(options)
            return
        from vrgcn.cli.predict_parts import run_predict_parts

        run_predict_parts(options, parts)


def _predict(options: PredictOptions) -> None:
    use_threads(options.threads)
    run = open_run(options.run, find_device(options.device))
    saved = run.saved
    classes = None if saved.regression else class_names(saved)
    check_path(options.out, None if classes is None else len(classes), options.top)
    with _scratch(options.memory, options.out.parent) as folder:
        opened = open_run_graph(
            run,
            options.dataset,
            options.graph,
            options.data_root,
            None if folder is None else folder / "features.bin",
        )
        print_note(opened.note)
        graph = opened.graph
        nodes = None
        if options.nodes is not None:
            nodes = read_nodes(options.nodes, graph.names, graph.num_nodes)
        count = graph.num_nodes if nodes is None else len(nodes)
        sweeps = exact_sweeps(saved, graph, directory=folder)
        with (
            _progress(sweeps.work(nodes)) as advance,
            prediction_file(
                options.out,
                graph.names,
                classes,
                multilabel=saved.multilabel,
                count=count,
                top=options.top,
            ) as file,
        ):
            sweeps.on_chunk = advance
            for chunk, outputs in sweeps.stream(nodes):
                check_outputs(graph, chunk, outputs)
                file.write(chunk, outputs)
    print(f"exact predictions of {count:,} nodes written to {options.out}")


def _too_large(options: PredictOptions) -> str:
    lines = ["there is not enough memory to predict. What takes less:"]
    if options.memory == "ram":
        lines.append("  --memory disk: hidden layers and scaled features go to files beside --out")
    if options.nodes is None:
        lines.append("  --nodes FILE with some of the nodes: only what they depend on is computed")
    lines.append("  --threads 1: each thread works on a part of its own")
    return "\n".join(lines)


def class_names(saved: SavedModel) -> list[str]:
    return saved.classes or [str(i) for i in range(saved.num_classes or 0)]


def read_nodes(path: Path, names: Names, count: int) -> Tensor:
    """The nodes whose ids a text file lists, one a line."""
    try:
        # utf-8-sig: files of other systems may begin with a mark; split: an id may hold \u2028.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise FileNotFoundError(f"--nodes: there is no file {path}") from None
    except UnicodeDecodeError:
        raise ValueError(f"--nodes: {path} is not a text file in UTF-8") from None
    ids = [line for line in lines if line.strip()]
    if not ids:
        raise ValueError(f"--nodes: {path} names no nodes")
    return torch.from_numpy(names.places(ids, f"--nodes: {path}", count))


@contextmanager
def _scratch(memory: str, folder: Path) -> Iterator[Path | None]:
    """A folder for tables and scaled features, beside the predictions, gone afterwards; or None."""
    if memory == "ram":
        yield None
        return
    with scratch_folder(folder) as directory:
        yield directory


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; a function that moves it on."""
    with progress_bar() as progress:
        task = progress.add_task("predicting", total=total)
        yield lambda done: progress.advance(task, done)
