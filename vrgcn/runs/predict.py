"""`predict`: exact outputs of a model, and of a run also a file of predictions; `vrgcn predict` is
this function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Literal, overload

from vrgcn.data.databases.url import Place, place
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import print_note, printable
from vrgcn.files.writing import check_suffix
from vrgcn.runs.run import Run, open_run
from vrgcn.targets.spec import TargetSpec

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vrgcn.data.id_columns import NamingColumns
    from vrgcn.data.predictions import Writer
    from vrgcn.graph.graph import Graph
    from vrgcn.graph.propagation import PropagationLike
    from vrgcn.inference.saved import SavedModel
    from vrgcn.runs.embedded import Embedded


@dataclass(frozen=True)
class Predicted:
    """The predictions of a run.

    what: a description; out: the file or table with them; None: they
    were not written
    outputs: (nodes, classes), or the scores of pairs; None: they were written
    rule: how labels were chosen, if not by the larger probability
    """

    what: str
    out: Place | None = None
    outputs: Tensor | None = None
    rule: str | None = None

    def __str__(self) -> str:
        where = "" if self.out is None else f" written to {printable(str(self.out))}"
        return f"exact {self.what}{where}" + ("" if self.rule is None else f"\n{self.rule}")


def check_predicts(
    folder: Path,
    config: Mapping[str, Any],
    *,
    out: Place | None,
    pairs: Place | None,
    of_labels: Mapping[str, Any],
    rows: Any = None,
) -> None:
    """Raise if a run predicts no pairs and some are given, or the other way round, or if its
    predictions could not be written as they are wanted.

    of_labels: nodes, top, coverage and threshold, as `predict` takes them
    """
    for name in ("coverage", "threshold"):
        value = of_labels[name]
        ends = value in (0, 1) and name == "coverage"
        if value is not None and (not 0 <= value <= 1 or ends):
            raise InputError(f"{setting(name)} lies between 0 and 1, not {value:g}")
    if of_labels["coverage"] is not None and isinstance(out, Path) and out.suffix == ".npy":
        raise InputError(f"{setting('coverage')} adds columns: use .parquet or .csv")
    target = TargetSpec.of(config)
    if rows is not None and not target.labels:
        raise InputError(f"{setting('rows')}: {folder} predicts pairs, and no rows")
    for name, value in {"nodes": of_labels["nodes"], "pairs": pairs}.items():
        if rows is not None and value is not None:
            raise InputError(f"{setting('rows')} and {setting(name)}: give one of them")
    if not target.labels and not pairs:
        raise InputError(
            f"{folder} predicts pairs of {target.predict}: give them by "
            f"{setting('pairs', Placeholder('FILE'))}, or let `vrgcn recommend` find the best for "
            "each node"
        )
    if target.labels and pairs:
        raise InputError(f"{setting('pairs')}: {folder} predicts labels of nodes, and no pairs")
    if not pairs:
        return
    for name, value in of_labels.items():
        if value is not None:
            raise InputError(
                f"{setting(name)} is for labels of nodes: leave it out with {setting('pairs')}"
            )
    if isinstance(out, Path):
        check_suffix(out, (".parquet", ".csv"))


@overload
def predict(
    model: nn.Module | SavedModel,
    graph: Graph,
    nodes: Any = None,
    *,
    kind: str | None = None,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    on_chunk: Callable[[int], None] | None = None,
) -> Tensor: ...


@overload
def predict(
    model: Run | str | Path,
    graph: Graph | str | Path | None = None,
    nodes: Any = None,
    *,
    kind: str | None = None,
    out: str | Place | None = None,
    append: bool = False,
    pairs: str | Place | None = None,
    rows: Any = None,
    top: int | None = None,
    coverage: float | None = None,
    threshold: float | None = None,
    dataset: str | None = None,
    data_root: str | Path | None = None,
    memory: Literal["ram", "disk"] = "ram",
    device: str = "cpu",
    threads: int | None = None,
    verbose: bool = False,
) -> Predicted: ...


def predict(
    model: nn.Module | SavedModel | Run | str | Path,
    graph: Graph | str | Path | None = None,
    nodes: Any = None,
    *,
    kind: str | None = None,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    on_chunk: Callable[[int], None] | None = None,
    out: str | Place | None = None,
    append: bool = False,
    pairs: str | Place | None = None,
    rows: Any = None,
    top: int | None = None,
    coverage: float | None = None,
    threshold: float | None = None,
    dataset: str | None = None,
    data_root: str | Path | None = None,
    memory: Literal["ram", "disk"] = "ram",
    device: str = "cpu",
    threads: int | None = None,
    verbose: bool = False,
) -> Tensor | Predicted:
    """Predict exactly. A model gives its outputs (nodes, classes), one row for each node asked for,
    in that order; a run what `vrgcn predict` writes, or its outputs if no file is named.

    model: a run or its folder; a saved model, as `load_model` returns it, for a graph as it was
        loaded; or a bare one for a graph whose features are as it was trained on them
    graph: a `Graph`, or for a run the folder of one; None: the run's own
    nodes: numbers, or for a run the path of a text file with an id in each line; None: all nodes
    kind: of the nodes, in a graph of several kinds, where `nodes` are numbers within it; None: the
        kind that has labels
    propagation, directory, on_chunk: of a model, see `vrgcn.inference.predict`

    The others are for a run:

    out: .parquet, .csv or .npy file, or the address of a table, for predictions under the names of
        nodes and classes; append: add rows to a table that exists
    pairs: file or table with the ids of the pairs to score, for a run that predicts pairs; their
        scores are returned or written
    rows: file, table or DataFrame of new rows with a time of their own, for a run on such rows:
        each is predicted by the facts that were known at its time
    top, coverage, threshold: what is written of each node, as the flags of `vrgcn predict`
    dataset, data_root: a data set in place of the run's graph, and the folder of its raw files
    memory: "disk" keeps tables in files; device, threads: of the computation
    verbose: print notes and show progress
    """
    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.inference.predict import predict as outputs_of

    use_threads(threads)
    if not isinstance(model, Run | str | Path):
        _refuse_others(out=out, pairs=pairs, rows=rows, dataset=dataset, data_root=data_root)
        return outputs_of(
            model,
            graph,  # type: ignore[arg-type]  # which refuses what is no graph
            nodes,
            kind=kind,
            propagation=propagation,
            directory=directory,
            on_chunk=on_chunk,
        )
    run = model if isinstance(model, Run) else open_run(Path(model), find_device(device))
    target = None if out is None else place(str(out))
    table = None if pairs is None else place(str(pairs))
    columns = {"top": top, "coverage": coverage, "threshold": threshold}
    if target is None and any(value is not None for value in columns.values()):
        raise InputError(
            f"{', '.join(setting(name) for name in columns)} are for a file: give {setting('out')}"
        )
    check_predicts(
        *(run.folder, run.config),
        out=target,
        pairs=table,
        of_labels={"nodes": nodes, **columns},
        rows=rows,
    )
    asking = _Asking(run, graph, dataset, data_root, memory, verbose)
    if rows is not None:
        return asking.rows(target, append, rows, columns)
    if target is None:
        return asking.outputs(nodes, kind) if table is None else asking.scores(table)
    return asking.write(target, append, table, nodes, kind, columns)


@dataclass(frozen=True)
class _Asking:
    """A run that is asked for predictions, and the graph that they are on."""

    run: Run
    graph: Graph | str | Path | None
    dataset: str | None
    data_root: str | Path | None
    memory: Literal["ram", "disk"]
    verbose: bool

    def sweeping(self, nodes: Any, kind: str | None, out: Place | None) -> Any:
        """Return a context with sweeps; temporary files lie beside the output."""
        from vrgcn.runs.exact import opened_sweeps

        return opened_sweeps(
            self.run,
            nodes,
            kind,
            beside=out.parent if isinstance(out, Path) else Path(gettempdir()),
            graph=self.graph,
            dataset=self.dataset,
            data_root=self.data_root,
            memory=self.memory,
            verbose=self.verbose,
        )

    def outputs(self, nodes: Any, kind: str | None) -> Predicted:
        """Return the outputs for nodes."""
        from vrgcn.inference.predict import check_all_outputs
        from vrgcn.runs.exact import shown

        with (
            self.sweeping(nodes, kind, None) as opened,
            shown("predicting", opened.sweeps.work(opened.nodes), self.verbose) as advance,
        ):
            opened.sweeps.on_chunk = advance
            outputs: Tensor = opened.sweeps.outputs(opened.nodes)
            check_all_outputs(opened.sweeps, opened.nodes, outputs)
            kept = outputs.clone() if self.memory == "disk" else outputs  # its file goes
            return Predicted(f"outputs for {opened.count:,} nodes", outputs=kept)

    def scores(self, pairs: Place) -> Predicted:
        """Return the scores of the pairs in a table."""
        with self._scored(pairs, None) as (embedded, rows, scores):
            words = f"{embedded.edges.noun} of {len(rows):,} {embedded.edges.word}"
            return Predicted(words, outputs=scores)

    def write(
        self,
        out: Place,
        append: bool,
        pairs: Place | None,
        nodes: Any,
        kind: str | None,
        columns: Mapping[str, Any],
    ) -> Predicted:
        """Write the predictions; the file or table appears once it is complete."""
        from vrgcn.data.databases.sending import destination
        from vrgcn.data.edge_tables import edge_file

        with destination(out, append=append) as path:
            if pairs is None:
                return self._write_nodes(out, path, nodes, kind, **columns)
            with self._scored(pairs, out) as (embedded, rows, scores):
                batch = embedded.edges.written(embedded.graph, rows, scores)
                with edge_file(path, batch.schema) as writer:
                    writer.write_batch(batch)
            return Predicted(f"{embedded.edges.noun} of {len(rows):,} {embedded.edges.word}", out)

    def rows(
        self, out: Place | None, append: bool, rows: Any, columns: Mapping[str, Any]
    ) -> Predicted:
        """Write the predictions of new rows, or return their outputs."""
        from vrgcn.data.databases.sending import destination
        from vrgcn.runs.exact import shown
        from vrgcn.runs.predict_rows import ask

        if self.dataset is not None:
            raise InputError(f"{setting('rows')}: a data set has no rows; leave it out")
        asked = ask(self.run, rows, self.graph)
        if self.verbose:
            for note in asked.asked.notes:
                print_note(note)
        what = f"{len(asked.asked):,} rows"
        with shown("predicting", len(asked.asked), self.verbose) as advance:
            if out is None:
                return Predicted(f"outputs for {what}", outputs=asked.outputs(advance))
            with destination(out, append=append) as path:
                writing = self._writing(path, asked.columns, len(asked.asked), **columns)
                with writing as (file, rule):
                    for chunk, outputs in asked.stream(advance):
                        file.write(chunk, outputs)
        return Predicted(f"predictions of {what}", out, rule=rule)

    def _write_nodes(
        self, out: Place, path: Path, nodes: Any, kind: str | None, **columns: Any
    ) -> Predicted:
        from vrgcn.inference.predict import check_outputs
        from vrgcn.runs.exact import shown

        self._check_written(path, **columns)
        with self.sweeping(nodes, kind, out) as opened:
            sweeps = opened.sweeps
            with (
                shown("predicting", sweeps.work(opened.nodes), self.verbose) as advance,
                self._writing(path, opened.ids, opened.count, **columns) as (file, rule),
            ):
                sweeps.on_chunk = advance
                for chunk, outputs in sweeps.stream(opened.nodes):
                    check_outputs(opened.graph, chunk, outputs)
                    file.write(chunk, outputs)
        return Predicted(f"predictions of {opened.count:,} nodes", out, rule=rule)

    def _check_written(
        self, path: Path, top: int | None, coverage: float | None, threshold: float | None
    ) -> None:
        """Raise before the work if the predictions could not be written as they are wanted."""
        from vrgcn.data.predictions import check_prediction
        from vrgcn.inference.regions import model_region
        from vrgcn.tasks import find_task

        saved = self.run.saved
        check_prediction(path, find_task(saved.task), len(class_names(saved)), top)
        if coverage is not None:
            model_region(saved, coverage)
        chosen_threshold(self.run.folder, saved, threshold)

    @contextmanager
    def _writing(
        self,
        path: Path,
        ids: NamingColumns,
        count: int,
        top: int | None,
        coverage: float | None,
        threshold: float | None,
    ) -> Iterator[tuple[Writer, str | None]]:
        """Yield a writer of so many predictions, and how labels are chosen."""
        from vrgcn.data.predictions import prediction_file
        from vrgcn.inference.regions import model_region
        from vrgcn.tasks import find_task

        saved = self.run.saved
        task, classes = find_task(saved.task), class_names(saved)
        self._check_written(path, top, coverage, threshold)
        chosen = chosen_threshold(self.run.folder, saved, threshold)
        rule = None if top is not None else threshold_rule(path, classes, chosen, threshold)
        with prediction_file(
            *(path, ids, task, classes),
            count=count,
            top=top,
            region=None if coverage is None else model_region(saved, coverage),
            threshold=chosen,
        ) as file:
            yield file, rule

    @contextmanager
    def _scored(self, pairs: Place, out: Place | None) -> Iterator[tuple[Embedded, Tensor, Tensor]]:
        """Yield the embedded run, the pairs of a table and their scores."""
        from vrgcn.pairs.model import PairModel
        from vrgcn.runs.embedded import embed_run
        from vrgcn.runs.exact import ALL, shown

        model = self.run.saved.model
        assert isinstance(model, PairModel)
        with (
            self.sweeping(None, ALL, out) as opened,
            shown("embedding", opened.sweeps.work(None), self.verbose) as advance,
        ):
            embedded = embed_run(model, opened.graph, opened.sweeps, advance)
            rows = embedded.edges.read(pairs, embedded.graph)
            scores = embedded.edges.scorer(embedded.decoder, embedded.embeddings).score(rows).cpu()
            yield embedded, rows, scores


def chosen_threshold(folder: Path, saved: SavedModel, threshold: float | None) -> float | None:
    """Return the probability from which on the second of two classes is the label: the one that is
    asked for, or the model's; None if there is none."""
    if threshold is None:
        return None if saved.calibration is None else saved.calibration.threshold
    names = class_names(saved)
    if saved.multilabel or len(names) != 2:
        known = f"{len(names)} classes" if names else "numbers"
        raise InputError(
            f"{setting('threshold')} is for two classes, and {folder} predicts {known}"
        )
    return threshold


def threshold_rule(
    out: Path, classes: list[str], chosen: float | None, asked: float | None
) -> str | None:
    """Say how labels were chosen, if not by the larger probability."""
    if chosen is None or out.suffix == ".npy":
        return None
    why = "" if asked is not None else ", chosen for its F1 on validation nodes"
    return (
        f"label is {printable(classes[1])} from probability {chosen:.3g} on{why}; "
        f"{setting('threshold', 0.5)} takes the more probable class"
    )


def class_names(saved: SavedModel) -> list[str]:
    """Return the names of the classes that a model knows; empty if it does not predict classes."""
    from vrgcn.tasks import find_task

    if not find_task(saved.task).has_classes:
        return []
    return saved.classes or [str(i) for i in range(saved.num_classes or 0)]


def _refuse_others(**given: Any) -> None:
    """Raise for arguments that only a run takes."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{setting(name)} is for a run: give its folder, or load_run(folder), as the model"
            )
