"""Flags that `vrgcn train` and `vrgcn tune` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_utf8
from vrgcn.cli.shared_flags import ConfigFile, GraphOrDataset, with_graph
from vrgcn.data.sources import has_parts
from vrgcn.data.tables.spec import check_split_seed
from vrgcn.files.mistakes import InputError
from vrgcn.pages.destination import check_writable
from vrgcn.runs.folder import check_free
from vrgcn.runs.resume import refuse_changes
from vrgcn.runs.settings import Settings


@dataclass(frozen=True)
class RunOptions(Settings, Options):
    """The model, the graph and the folder of the run."""

    """Group graph."""
    graph_or_dataset: GraphOrDataset = None

    """Group run: folder, options from a file, and logs."""
    name: str | None = None
    """Name of the run. None: made of graph, model and estimator."""
    out: Path | None = None
    """Folder to write the run to.

    It must not exist yet. None: runs/NAME."""
    resume: Path | None = None
    """Folder of a run to resume.

    The run was stopped or killed. It resumes with its own options from its newest checkpoint. With
    more --epochs, a finished run can be resumed too."""
    overwrite: bool = False
    """Start over if the folder already holds a run.

    The files of that run are removed first."""
    config: ConfigFile = None

    beside: ClassVar[tuple[str, ...]] = (
        *("graph_or_dataset", "name", "out", "resume", "overwrite", "config"),
    )
    # True if the command also accepts a graph in parts.
    takes_parts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.resume is None:  # older runs may have been started without a seed
            check_split_seed(self.spec.split_seed, self.spec.ratio)

    def checked(self) -> Self:
        """Resolve the graph; raise if the folder could not be written or holds another run."""
        found = with_graph(self, parts=self.takes_parts)
        for flag, path in (("--graph", found.graph), ("--data-root", self.data_root)):
            if path is not None:
                check_utf8(path.resolve(), flag, "config.toml")
        check_writable(self.out or self.resume or Path("runs"))
        if self.resume is not None:
            if self.out is not None or self.name is not None or self.overwrite:
                raise InputError(
                    "--resume goes on in the run's own folder: no --out, --name, --overwrite"
                )
            refuse_changes(self, self.resume)
        # With several processes, only the first checks the folder, before it writes to it.
        if not has_parts(found.graph) and self.out is not None and self.out.is_dir():
            check_free(self.out, self.overwrite)
        return found

    @property
    def graph_name(self) -> str:
        """Name of the graph, for the names of runs on it."""
        return self.dataset or (self.graph.name if self.graph else "")

    def usual_name(self, estimator: str) -> str:
        """Return the default name of a run. estimator: the one that the run uses"""
        predicted = "" if self.spec.labels else f"{self.spec.predict}-"
        name = f"{self.graph_name}-{predicted}{self.model.model}"
        return f"{name}-{estimator.replace('/', '-')}" if self.looks_at_neighbours else name

    @property
    def looks_at_neighbours(self) -> bool:
        """True if P is not the identity. For an MLP it is, and the estimator plays no part."""
        from vrgcn.models.models import MODELS

        kind = MODELS.get(self.model.model)  # LightGCN is none of them
        meant = None if kind is None else kind.propagation
        return (self.train.propagation or meant) != "identity"
