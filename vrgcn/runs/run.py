"""A run that was written to a folder: its settings, its model, and the graph it was trained on.

torch is imported only when a run is opened, because the command line checks for runs before it
loads torch.
"""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal, overload

from vrgcn.data.sources import META, has_parts
from vrgcn.files.folder import FolderReplacedError
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.inference import MODEL
from vrgcn.runs.folder import BEST, METRICS, RESULT, member_runs, read_config, unfinished
from vrgcn.runs.settings import GRAPH_CHECKSUM
from vrgcn.targets.spec import TargetSpec

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from torch import Tensor

    from vrgcn.data.opening import Opened
    from vrgcn.graph.graph import Graph
    from vrgcn.inference.predictions import Predictions
    from vrgcn.inference.saved import SavedModel
    from vrgcn.live.explaining import Explanation
    from vrgcn.live.live import Live


_ATTEMPTS = 3  # attempts to read the options and the model of the same run


@dataclass(frozen=True)
class Run:
    """A run in its folder.

    config: its settings by name, as config.toml has them
    saved: its best model so far, with feature scaling, propagation and names of classes
    """

    folder: Path
    config: dict[str, Any]
    saved: SavedModel

    @property
    def target(self) -> TargetSpec:
        """What it predicts, and how that is split."""
        return TargetSpec.of(self.config)

    @property
    def finished(self) -> bool:
        """True if its training has ended."""
        return unfinished(self.folder) is None

    @property
    def result(self) -> dict[str, Any] | None:
        """The scores, epoch and seconds that result.json has; None before training has ended."""
        path = self.folder / RESULT
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    @property
    def curve(self) -> list[dict[str, Any]]:
        """The numbers of each epoch so far, as metrics.jsonl has them."""
        path = self.folder / METRICS
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        return [json.loads(line) for line in lines]

    def graph(self) -> Graph:
        """Return the graph that it was trained on, with features scaled as the model needs."""
        return open_run_graph(self, scored=False).graph

    @overload
    def predict(
        self, graph: Graph | None = None, nodes: Any = None, *, rows: None = None
    ) -> Tensor: ...

    @overload
    def predict(self, graph: Graph | None = None, *, rows: Any) -> Any: ...

    def predict(self, graph: Graph | None = None, nodes: Any = None, *, rows: Any = None) -> Any:
        """Return exact outputs (nodes, classes), before the softmax, for its own graph or another
        one.

        rows: a DataFrame of new rows with a time of their own, or the file or table that has them:
            a table of the same library with their predictions is returned, each by the facts that
            were known at its time
        """
        if rows is not None:
            from vrgcn.runs.predict_rows import predict_rows

            return predict_rows(self, rows, graph)
        return self.saved.predict(self.graph() if graph is None else graph, nodes)

    def predictions(
        self, graph: Graph | None = None, nodes: Any = None, *, kind: str | None = None
    ) -> Predictions:
        """Return exact predictions under the names of nodes and classes; see `vrgcn.predictions`.

        graph, nodes: as in `predict`; kind: of nodes, in a graph of several kinds
        """
        from vrgcn.inference.predictions import predictions

        return predictions(self.saved, self.graph() if graph is None else graph, nodes, kind=kind)

    def live(
        self, *, memory: Literal["ram", "disk"] = "ram", directory: str | Path | None = None
    ) -> Live:
        """Return the model on its own graph, which can then be changed; see `Live`.

        memory: "disk" for tables larger than memory, which lie in `directory`; None: in a hidden
            folder of the run, removed at the end
        """
        from vrgcn.data.tables.recipe_file import FILE, read_recipes
        from vrgcn.live.live import Live

        if memory not in ("ram", "disk"):
            raise InputError(f"memory {memory!r} is none of ram, disk")
        temporary = memory == "disk" and directory is None
        if temporary:
            directory = mkdtemp(prefix=".live-", dir=self.folder)
        place = Path(directory) if memory == "disk" and directory is not None else None
        graph = open_run_graph(self, directory=place, scored=False, scaled=False).graph
        _, folder, _ = graph_source(self.config)
        imported = folder is not None and (folder / FILE).is_file()
        recipes = read_recipes(folder) if imported and folder is not None else None
        live = Live(self.saved, graph, recipes=recipes, directory=place)
        if temporary and place is not None:
            weakref.finalize(live, shutil.rmtree, place, ignore_errors=True)
        return live

    def recommend(self, nodes: Any = None, top: int = 10, relation: str | None = None) -> pa.Table:
        """Return the best new partners of nodes, with rank and score; see `vrgcn.recommend`."""
        from vrgcn.runs.recommend import recommend

        return recommend(self, nodes, top=top, relation=relation).table

    def evaluate(self, **options: Any) -> dict[str, Any]:
        """Return the scores on each split, and write them to its folder; options as in
        `vrgcn.evaluate`."""
        from vrgcn.pages.evaluate import evaluate

        return dict(evaluate(self, **options).scores)

    def explain(
        self,
        nodes: Any,
        kind: str | None = None,
        *,
        most: int = 30,
        memory: Literal["ram", "disk"] = "ram",
    ) -> list[Explanation]:
        """Return what the predictions of some nodes of its own graph depend on; see `Live.explain`.

        nodes: an id, or several; memory: as in `live`
        """
        check_explained(self.folder, self.config)
        live = self.live(memory=memory)
        ids = [nodes] if isinstance(nodes, str) or not isinstance(nodes, Iterable) else nodes
        try:
            return [live.explain(node, kind, most) for node in ids]
        except InputError as error:
            raise InputError(f"{setting('nodes')}: {error}") from None

    def push_to_hub(
        self, name: str, *, private: bool = True, graph: bool = False, **given: Any
    ) -> str:
        """Upload the run to the Hugging Face Hub, for `load_run("hf://OWNER/NAME")`; return the
        address of the change. Its settings name files of this machine.

        name: OWNER/NAME of a model there, which is made if it does not exist
        private: of a model that is made
        graph: True to upload the graph too, if the folder of the run has it
        given: passed to `HfApi.upload_folder`, such as commit_message or token
        """
        from vrgcn.runs.hub import push_run

        return push_run(self, name, private=private, graph=graph, **given)

    def save_mlflow(self, path: str | Path) -> None:
        """Save the run and its graph as a model of MLflow, for `mlflow.pyfunc.load_model(path)`. It
        predicts for tables with a column `id`.

        path: a folder, which must not exist
        """
        from vrgcn.runs.pyfunc import save_mlflow

        save_mlflow(self, path)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        done = unfinished(self.folder)
        state = "finished" if done is None else f"not finished ({done})"
        return f"run {self.folder}, {state}"


def load_run(folder: str | Path, device: str = "cpu") -> Run:
    """Load the run in a folder that `vrgcn train` or `vrgcn.train` wrote, finished or not.

    folder: or hf://OWNER/NAME, a run that `Run.push_to_hub` uploaded
    """
    from vrgcn.engine.devices import find_device
    from vrgcn.runs.hub import SCHEME, fetch_run

    if isinstance(folder, str) and folder.startswith(SCHEME):
        folder = fetch_run(folder)
    return open_run(Path(folder), find_device(device))


def open_run(folder: Path, device: torch.device) -> Run:
    """Open the run in a folder that `vrgcn train` wrote."""
    from vrgcn.inference.saved import load_model

    for _ in range(_ATTEMPTS):
        config = check_run(folder)
        saved = load_model(folder)
        # Another run may have taken the folder's name, or started in it, between the two reads.
        if check_run(folder) == config:
            saved.model.to(device)
            return Run(folder, config, saved)
    raise FolderReplacedError(
        f"{folder} is replaced by other runs while it is read: run the command again once they are "
        "written"
    )


def check_run(folder: Path) -> dict[str, Any]:
    """Raise if a folder has no trained model; return the options that the run was started with."""
    config = read_config(folder)
    several = member_runs(folder)
    if several:
        best = folder / BEST
        one = best if (best / MODEL).is_file() else several[0]
        raise InputError(f"{folder} holds {len(several)} runs: name one, such as {one}")
    if not (folder / MODEL).is_file():
        done = unfinished(folder)
        why = "it was deleted or moved"
        if done is not None:
            why = (
                f"its training has kept none yet, and has not finished ({done}); vrgcn train "
                f"--resume {folder} resumes it"
            )
        raise FileNotFoundError(f"{folder} has no {MODEL}: {why}")
    return config


def graph_source(config: dict[str, Any]) -> tuple[str | None, Path | None, Path | None]:
    """Return the source of a run's graph: the name of the data set, or the folder, and the root of
    the raw files."""
    graph, root = (Path(config[key]) if key in config else None for key in ("graph", "data_root"))
    return config.get("dataset"), graph, root


def parts_of_run(folder: Path, dataset: str | None, graph: Path | None) -> Path | None:
    """Return the folder of a graph's parts, if the caller asks for parts or the run was trained on
    them; None for a whole graph."""
    if dataset is None and graph is None:
        _, graph, _ = graph_source(read_config(folder))
    return graph if has_parts(graph) else None


def open_run_graph(
    run: Run,
    dataset: str | None = None,
    graph: Path | None = None,
    data_root: Path | None = None,
    directory: Path | None = None,
    on_fill: Callable[[str, float], None] | None = None,
    *,
    scored: bool = True,
    scaled: bool = True,
) -> Opened:
    """Open the requested graph, or else the run's own, with features scaled as the model needs.

    A split that the run drew is drawn again, also if its own graph is requested from another place.
    Another graph keeps its own split.

    directory: keep scaled features in a file, there or beside the graph, instead of in memory
    on_fill: called with the progress of files that are written there
    scored: True if the splits are used, so that notes on them matter
    scaled: False to leave the features as they are
    """
    from vrgcn.data.opening import open_graph
    from vrgcn.targets.opening import open_target

    own_dataset, own_graph, own_root = graph_source(run.config)
    if dataset is None and graph is None:
        dataset, graph = own_dataset, own_graph
        _check_there(run.folder, own_graph)
    memory: Literal["ram", "disk"] = "ram" if directory is None else "disk"
    opened = open_graph(dataset, graph, data_root or own_root, memory=memory, on_fill=on_fill)
    own = _is_own_graph(run.config, dataset, graph, opened.checksum)
    spec = run.target if own else run.target.elsewhere()
    opened = opened._replace(graph=open_target(spec, opened.graph, graph))
    notes = [] if opened.note is None else [opened.note]
    drawn = run.target.split_name.removeprefix("split ")
    if scored and not own and run.target.labels and drawn:
        notes.append(
            f"the run drew its own split, {drawn}; this graph is scored by its own, whose test "
            "nodes the model may have been trained on"
        )
    done = unfinished(run.folder)
    if done is not None:
        notes.append(
            f"the training of {run.folder} has not finished ({done}): this is its best model so "
            f"far; vrgcn train --resume {run.folder} resumes it"
        )
    fitted = opened.graph
    if scaled:
        file = None if directory is None else directory / "features.bin"
        fitted = run.saved.prepare(opened.graph, file)
    return opened._replace(graph=fitted, note="; ".join(notes) or None)


def check_explained(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise if a run predicts no labels of nodes, which alone are explained."""
    if not TargetSpec.of(config).labels:
        raise InputError(f"{folder} predicts pairs, and no labels of nodes to explain")


def _is_own_graph(
    config: dict[str, Any], dataset: str | None, graph: Path | None, checksum: str | None
) -> bool:
    """Return True if the graph with this checksum is the one that the run was trained on, wherever
    it lies now."""
    own_dataset, own, _ = graph_source(config)
    if graph is None:
        return dataset == own_dataset
    if own is None:
        return False
    if graph.resolve() == own.resolve():
        return True
    noted = config.get(GRAPH_CHECKSUM)
    return noted is not None and checksum == noted


def _check_there(run: Path, graph: Path | None) -> None:
    """Raise if a run's own graph was moved or deleted."""
    if graph is not None and not (has_parts(graph) or (graph / META).is_file()):
        raise FileNotFoundError(
            f"the graph of run {run} was in {graph}; say where it is now with {setting('graph')}"
        )
