"""`audit`: looks for leaks in a graph that is split as a run would split it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrgcn.data.opening import open_graph
from vrgcn.data.sources import find_source
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.leaks import Finding, Later, find_leaks
from vrgcn.runs.config_file import build, check_known, setting_types
from vrgcn.targets.opening import check_trainable, open_target
from vrgcn.targets.spec import TargetSpec


@dataclass(frozen=True)
class Audit:
    """The findings of an audit.

    graph: with its split; findings: possible leaks, the severe ones first; note: about the graph,
        None if there is none
    """

    graph: Graph
    findings: list[Finding]
    note: str | None = None

    def write(self, path: str | Path) -> None:
        """Write the findings as JSON."""
        findings = [finding.as_dict() for finding in self.findings]
        values = {"graph": repr(self.graph), "findings": findings}
        write_text(Path(path), json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def audit(
    graph: Graph | str | Path | None = None,
    *,
    dataset: str | None = None,
    data_root: str | Path | None = None,
    **target: Any,
) -> Audit:
    """Look for leaks in a graph and its split, as `vrgcn audit` does.

    graph: a `Graph`, the folder that `vrgcn import` wrote, or the name of a data set
    dataset: the name of a data set, in place of `graph`; data_root: folder of its raw files
    target: what to predict and how to split the data, as `train` takes it: predict="edges",
        ratio=(0.6, 0.2, 0.2), train_until="2026-06". Nothing: the labels, or the pairs that the
        graph was split for
    """
    types = setting_types(TargetSpec)
    for name in target:
        check_known(name, types)
    spec = build(TargetSpec, target)
    whole, folder, note = _opened(graph, dataset, None if data_root is None else Path(data_root))
    split = open_target(spec, whole, folder)
    check_trainable(split, folder)
    later = None
    if spec.train_until is not None:
        later = Later.of(whole, folder, spec.train_until, spec.time_column)
    return Audit(split, find_leaks(split, later=later), note)


def _opened(
    graph: Graph | str | Path | None, dataset: str | None, data_root: Path | None
) -> tuple[Graph, Path | None, str | None]:
    """Return the graph as it is stored, its folder, and a note on it."""
    if isinstance(graph, Graph):
        return graph, None, None
    folder, word = (graph, None) if isinstance(graph, Path) else (None, graph)
    source = find_source(dataset, folder, word)
    opened = open_graph(*source, data_root)
    return opened.graph, source.graph, opened.note
