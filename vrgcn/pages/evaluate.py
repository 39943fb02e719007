"""`evaluate`: scores a trained model on each split, and on each class or beside simple rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from vrgcn.data.edge_tables import with_given_negatives
from vrgcn.data.sources import find_source
from vrgcn.engine.devices import use_threads
from vrgcn.files.scratch import table_folder
from vrgcn.inference.predict import exact_sweeps, predict
from vrgcn.inference.saved import model_labels
from vrgcn.pages.compared import evaluate_edges
from vrgcn.pages.evaluation import Evaluation, evaluate_nodes, find_picture, find_split
from vrgcn.runs.run import Run, load_run, open_run_graph
from vrgcn.targets.scored import scored_edges


def evaluate(
    run: Run | str | Path,
    *,
    dataset: str | None = None,
    graph: str | Path | None = None,
    data_root: str | Path | None = None,
    split: Literal["train", "val", "test"] | None = None,
    out: str | Path | None = None,
    negatives: str | Path | None = None,
    memory: Literal["ram", "disk"] = "ram",
    device: str = "cpu",
    threads: int | None = None,
    on_note: Callable[[str], None] | None = None,
    on_fill: Callable[[str, float], None] | None = None,
) -> Evaluation:
    """Score a run's model, as `vrgcn evaluate` does; write the numbers and, for labels, a picture.

    run: a run or its folder
    dataset, graph: a graph in place of the run's own; data_root: folder of raw files
    split: the one to show in detail; None: test, else val, else train
    out: file for the picture, .png, .svg or .pdf; None: in the run's folder
    memory: "disk" keeps tables in files; device, threads: of the computation
    negatives: table of pairs that are no edges, to compare the pairs of the split with
    on_note: called with what people should know before they read the scores
    on_fill: called with the progress of files that are written beside a graph on disk
    """
    use_threads(threads)
    folder, picture, root = _path(graph), _path(out), _path(data_root)
    find_source(dataset, folder, needed=False)
    opened = run if isinstance(run, Run) else load_run(run, device)
    place = opened.folder if picture is None else picture.parent
    with table_folder(memory, place) as tables:
        scored = open_run_graph(opened, dataset, folder, root, tables, on_fill)
        for note in (scored.note, *(stage.caution for stage in opened.saved.stages)):
            if note is not None and on_note is not None:
                on_note(note)
        known = scored.graph
        edges = scored_edges(known)
        if edges is None:
            labels = model_labels(opened.saved, known)
            find_picture(picture, opened, find_split(split, known))  # fail early, not late
            outputs = predict(opened.saved, known, kind="all", directory=tables)
            return evaluate_nodes(opened, known, outputs, labels, split=split, out=picture)
        name = edges.find_split(split)
        if negatives is not None:
            given = with_given_negatives(known, {name: Path(negatives)})
            edges = scored_edges(given) or edges
        everything = exact_sweeps(opened.saved, known, directory=tables).outputs(None)
        return evaluate_edges(opened, edges, everything, name)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
