"""`evaluate`: scores a trained model on each split, and on each class or beside simple rules."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from vrgcn.data.edge_tables import with_given_negatives
from vrgcn.engine.devices import use_threads
from vrgcn.files.wording import print_note
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import check_all_outputs
from vrgcn.inference.saved import model_labels
from vrgcn.pages.compared import evaluate_edges, find_edge_page
from vrgcn.pages.evaluation import Evaluation, evaluate_nodes, find_page, find_split
from vrgcn.runs.exact import ALL, opened_sweeps
from vrgcn.runs.run import Run, load_run
from vrgcn.targets.scored import scored_edges


def evaluate(
    run: Run | str | Path,
    *,
    dataset: str | None = None,
    graph: Graph | str | Path | None = None,
    data_root: str | Path | None = None,
    split: Literal["train", "val", "test"] | None = None,
    out: str | Path | None = None,
    negatives: str | Path | None = None,
    memory: Literal["ram", "disk"] = "ram",
    device: str = "cpu",
    threads: int | None = None,
    verbose: bool = False,
) -> Evaluation:
    """Score a run's model, as `vrgcn evaluate` does; write a page and the numbers.

    run: a run or its folder
    dataset, graph: a graph in place of the run's own; data_root: folder of raw files
    split: the one to show in detail; None: test, else val, else train
    out: the page, .html; for labels also a picture, .png, .svg or .pdf; None: a page in the run's
        folder
    memory: "disk" keeps tables in files; device, threads: of the computation
    negatives: table of pairs that are no edges, to compare the pairs of the split with
    verbose: print what people should know before they read the scores, and show progress
    """
    use_threads(threads)
    path = None if out is None else Path(out)
    opened = run if isinstance(run, Run) else load_run(run, device)
    with opened_sweeps(
        opened,
        None,
        ALL,
        beside=opened.folder if path is None else path.parent,
        graph=graph,
        dataset=dataset,
        data_root=data_root,
        memory=memory,
        scored=True,
        verbose=verbose,
    ) as asked:
        if verbose:
            for stage in opened.saved.stages:
                print_note(stage.caution)
        known, sweeps = asked.graph, asked.sweeps
        edges = scored_edges(known)
        if edges is None:
            labels = model_labels(opened.saved, known)
            find_page(path, opened, find_split(split, known))  # fail early, not late
            outputs = sweeps.outputs(None)
            check_all_outputs(sweeps, None, outputs)
            return evaluate_nodes(opened, known, outputs, labels, split=split, out=path)
        name = edges.find_split(split)
        find_edge_page(path, opened, name)
        if negatives is not None:
            given = with_given_negatives(known, {name: Path(negatives)})
            edges = scored_edges(given) or edges
        return evaluate_edges(opened, edges, sweeps.outputs(None), name, path)
