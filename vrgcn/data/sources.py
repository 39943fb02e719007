"""Sources of graphs: the name of a data set, or a folder. Imports no torch: the command line checks
whether a graph exists before it loads anything."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from vrgcn.data import DATASETS, OGB
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting

META = "meta.json"  # in the folder of a graph
PARTS = "parts.json"  # in the folder of its parts, one for each process


class GraphSource(NamedTuple):
    """One of the two: a data set by name, or a folder."""

    dataset: str | None
    graph: Path | None


def find_source(
    dataset: str | None,
    graph: Path | None,
    word: str | None = None,
    *,
    needed: bool = True,
    parts: bool = False,
) -> GraphSource:
    """The graph that is meant; an error where none is, or more than one.

    word: either of them, whichever there is
    needed: False where a graph need not be given
    parts: whether the folder of a graph's parts will do
    """
    given = [
        text
        for text, value in (
            (word, word),
            (setting("dataset", dataset), dataset),
            (setting("graph", graph), graph),
        )
        if value is not None and text is not None
    ]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)}: give one graph, not {len(given)}")
    if word is not None:
        return _of_word(word, parts)
    if dataset is not None:
        _check_name(dataset)
    if graph is not None:
        check_graph(graph, f"{setting('graph')}: ", parts=parts)
    if not given and needed:
        raise InputError(
            "give a graph: the folder that `vrgcn import` wrote "
            f"({setting('graph', Placeholder('FOLDER'))}), or the name of a data set "
            f"({setting('dataset', Placeholder('NAME'))}; `vrgcn datasets` lists them)"
        )
    return GraphSource(dataset, graph)


def has_parts(folder: Path | None) -> bool:
    """Whether a folder has the parts of a graph."""
    return folder is not None and (folder / PARTS).is_file()


def check_graph(folder: Path, flag: str = "", *, parts: bool = False) -> None:
    """Refuse what is no graph on disk. flag: by which it was given, to begin the error with"""
    if has_parts(folder):
        if parts:
            return
        raise InputError(
            f"{flag}{folder} has the parts of a graph, which vrgcn train, predict and evaluate "
            "take, started by torchrun; name the graph that they were made of"
        )
    if folder.is_file():
        raise NotADirectoryError(f"{flag}{folder} is a file, not the folder of a graph{_import()}")
    if not folder.is_dir():
        raise FileNotFoundError(f"{flag}there is no folder {folder}{_import()}")
    if not (folder / META).is_file():
        raise FileNotFoundError(f"{flag}{folder} is no graph: it has no {META}{_import()}")


def _of_word(word: str, parts: bool = False) -> GraphSource:
    folder = Path(word)
    named = is_name(word)
    if named and (folder / META).is_file():
        raise InputError(
            f"{word} is a data set, and a graph in a folder here: say "
            f"{setting('dataset', word, python=f'load_dataset({word!r})')} or "
            f"{setting('graph', word, python=repr(f'./{word}'))}"
        )
    if named:
        return GraphSource(word, None)
    if folder.exists():
        check_graph(folder, parts=parts)
        return GraphSource(None, folder)
    close = get_close_matches(word, DATASETS, n=1)
    hint = f"; did you mean {close[0]}?" if close else _import()
    raise FileNotFoundError(f"there is no folder {word}, and no data set of that name{hint}")


def is_name(word: str) -> bool:
    """Whether a data set is called so."""
    return word in DATASETS or (word.startswith(OGB) and word != OGB)


def _check_name(dataset: str) -> None:
    if is_name(dataset):
        return
    if Path(dataset).is_dir():
        raise InputError(
            f"{dataset} is a folder, not the name of a data set: say {setting('graph', dataset)}"
        )
    close = get_close_matches(dataset, DATASETS, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(DATASETS)}, {OGB}*"
    raise InputError(f"there is no dataset {dataset!r}{hint}")


def _import() -> str:
    return "; `vrgcn import` makes a graph of tables, `vrgcn datasets` lists those with a name"
