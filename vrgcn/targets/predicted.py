"""What the setting `predict` names: the labels of nodes, a relation, or a column of a relation.

    None, churned, user.churned       labels of nodes, by the column that the import took them from
    edges, user-bought-item           which pairs are linked
    user-bought-item.rating           a column of a relation
    relations                         the edges of all relations

No torch here: the command line asks before it loads anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_json
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import OFF, declaration

if TYPE_CHECKING:
    from vrgcn.graph.graph import Graph

LABELS = "labels"  # their name where no import says it
EDGES, RELATIONS = "edges", "relations"
_PAIRS = re.compile(rf"({EDGES}|{RELATIONS})(\..+)?|[^-.]+-.+-[^-.]+(\..+)?")
_RECIPE = "import.json"
_SHOWN = 20


Kind = Literal["labels", "links", "values", "relations"]
_CALLED: dict[Kind, str] = {
    "labels": "labels of nodes",
    "links": "links",
    "values": "values of links",
    "relations": "relations",
}


def kind_of(predict: str | None) -> Kind:
    """Return the kind of target that a text names: what is no relation is a column of labels."""
    found = None if predict is None else _PAIRS.fullmatch(predict)
    if found is None:
        return "labels"
    if any(found.group(2, 3)):
        return "values"
    return "relations" if predict == RELATIONS else "links"


def predicts_labels(graph: Graph) -> bool:
    """Return True if labels of nodes are predicted in a graph that `open_target` returned, and no
    pairs."""
    return not (graph.pairs or graph.triples)


def check_used(settings: Any, kind: Kind) -> None:
    """Raise if a setting was given that means nothing for a kind of target. What turns a setting
    off is no mistake.

    settings: a dataclass whose fields declare the kinds that have them
    """
    for each in fields(settings):
        value, of = getattr(settings, each.name), declaration(each).of
        if is_dataclass(value):
            check_used(value, kind)
        elif of and kind not in of and value not in (each.default, *OFF):
            now = "pairs" if of == ("labels",) else _CALLED[kind]
            cure = f", or say what to predict ({setting('predict')})" if kind == "labels" else ""
            raise InputError(
                f"{setting(each.name, value)} is for {_called(of)}, and {now} are predicted: "
                f"leave it out{cure}"
            )


def _called(kinds: Sequence[str]) -> str:
    *first, last = (words for kind, words in _CALLED.items() if kind in kinds)
    if len(first) == 2 and "labels" not in kinds:
        return "pairs"
    return f"{', '.join(first)} and {last}" if first else last


def label_names(graph: Graph, folder: Path | None) -> list[str]:
    """Return the names of a graph's labels: their columns, with the kind where there are several.

    folder: of a graph on disk, which may say how it was imported
    """
    if graph.labels is None:
        return []
    kind = graph.target
    columns = _label_columns(folder, kind or "") or [LABELS]
    return columns if kind is None else [f"{kind}.{column}" for column in columns]


def _label_columns(folder: Path | None, table: str) -> list[str]:
    if folder is None or not (folder / _RECIPE).is_file():
        return []
    try:
        found: dict[str, Any] = read_json(folder / _RECIPE)
        tables = found.get("tables", [found])
        named = [each for each in tables if each.get("table", "") == table]
        return [str(column) for each in named for column in each.get("label", [])]
    except (ValueError, AttributeError, TypeError):
        return []  # what is damaged is told by those that need it


def offered(graph: Graph, folder: Path | None) -> list[str]:
    """Return everything that can be predicted in a graph, by the names that `predict` takes."""
    columns = [
        f"{relation}.{name}"
        for relation in graph.edges
        for name, column in graph.kept.get(relation, {}).items()
        if column.kind in ("number", "class")
    ]
    every = [RELATIONS] if graph.kinds.named else []
    return [*label_names(graph, folder), *graph.edges, *columns, *every]


def check_predicted(predict: str | None, graph: Graph, folder: Path | None) -> None:
    """Raise if `predict` names nothing that a graph has, and say what it offers."""
    if predict is None:
        return
    found = offered(graph, folder)
    known = {*found, *(name.rpartition(".")[2] for name in label_names(graph, folder))}
    if predict in known or _kept(predict, graph):
        return
    near = get_close_matches(predict, found, n=1)
    hint = f"; did you mean {setting('predict', near[0])}?" if near else ""
    shown = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
    offers = f"the graph offers {shown}" if found else "the graph has no labels and no edges"
    cure = "" if near else _cure(predict, graph)
    raise InputError(f"{setting('predict', predict)}: {offers}{hint}{cure}")


def _cure(predict: str, graph: Graph) -> str:
    """Say how to import a column that the graph does not keep, if the text may name one."""
    owner, _, column = predict.rpartition(".")
    of_nodes = owner in graph.kinds.names
    edges = [part.name for part in graph.relations.values() if owner in (part.triple[1], part.name)]
    if of_nodes:
        want = setting("label", predict, command="import")
    elif edges:
        want = setting("keep", predict, command="import")
    else:
        return ""
    return f"; to predict a column {column}, import the graph again with {want}"


def _kept(predict: str, graph: Graph) -> bool:
    """Return True for any column of a known relation: the split says which can be predicted."""
    return any(predict.startswith(f"{relation}.") for relation in graph.relations)
