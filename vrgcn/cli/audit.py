"""`vrgcn audit`: looks for leaks in a graph and its split, before anyone trusts a score."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vrgcn.cli.command import Options
from vrgcn.cli.notes import print_note
from vrgcn.cli.shared_flags import DataRoot, Dataset, GraphFolder, GraphOrDataset, with_graph
from vrgcn.data.tables.spec import check_split_seed
from vrgcn.files.printable import printable
from vrgcn.pages.destination import check_suffix, check_writable
from vrgcn.runs.settings import Settings
from vrgcn.targets.spec import TargetSpec

if TYPE_CHECKING:
    from vrgcn.audit.finding import Finding
    from vrgcn.graph.graph import Graph


@dataclass(frozen=True)
class AuditOptions(Options):
    """Flags of `vrgcn audit`."""

    graph_or_dataset: GraphOrDataset = None
    dataset: Dataset = None
    graph: GraphFolder = None
    data_root: DataRoot = None
    spec: TargetSpec = field(default_factory=TargetSpec)
    strict: bool = False
    """Exit with 1 if anything is found, for scripts."""
    json: Path | None = None
    """File for the findings, as JSON."""

    def checked(self) -> Self:
        """Resolve the graph; raise if the file could not be written."""
        check_split_seed(self.spec.split_seed, self.spec.ratio)
        if self.json is not None:
            check_suffix(self.json, (".json",))
            check_writable(self.json.parent)
        return with_graph(self)

    def settings(self) -> Settings:
        """The settings of a run on the same graph, with the same split."""
        return Settings(
            dataset=self.dataset,
            graph=self.graph,
            data_root=self.data_root,
            spec=self.spec,
            scaling="none",
            verify=False,
        )


def run(options: AuditOptions) -> None:
    """Print what looks like a leak, the severe first."""
    import sys

    from vrgcn.audit import Later, audit
    from vrgcn.data.opening import open_graph

    opened = options.settings().open_graph()
    print_note(opened.note)
    print(opened.graph)
    later = None
    until = options.spec.train_until
    if until is not None:
        whole = open_graph(options.dataset, options.graph, options.data_root).graph
        later = Later.of(whole, options.graph, until, options.spec.time_column)
    found = audit(opened.graph, later=later)
    for finding in found:
        print(f"{finding.severity}: {printable(finding.text)}\n  {printable(finding.advice)}")
    high = sum(finding.severity == "high" for finding in found)
    print(f"{len(found)} findings, {high} of them severe" if found else "no leak was found")
    if options.json is not None:
        _write(options.json, opened.graph, found)
        print(f"written to {printable(options.json)}")
    if options.strict and found:
        sys.exit(1)


def _write(path: Path, graph: Graph, found: list[Finding]) -> None:
    import json

    from vrgcn.files.writing import write_text

    values = {"graph": repr(graph), "findings": [finding.as_dict() for finding in found]}
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
