"""Messages name settings: no text outside the command line spells a flag, and the same mistake is
told as `--name` there and as `name=` in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import vrgcn as library
from tests.messages import refused
from vrgcn import Graph

PACKAGE = Path(library.__file__).parent
# Files that may spell flags: the command line, and the one function that spells them for it.
SPELLERS = ("cli", "files/setting_names.py")
FLAG = re.compile(r"(?<![\w-])--(?=[a-z{])")
# A whole command is typed in a shell, whoever reads of it: `vrgcn train --resume FOLDER`.
COMMAND = re.compile(r"vrgcn [a-z{}]+ (?:\{\} )*--[^;`\n]*")
# The way of Python stands beside it, because it is another function, not an argument.
BOTH = re.compile(r"--[a-z-]+[^;,]*, from Python ")


def sources() -> Iterator[Path]:
    """Modules whose texts people read in Python too."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(SPELLERS):
            yield path


def flags_in(source: str) -> Iterator[str]:
    """Every text that spells a flag, by line; docstrings are no messages. The values of an f-string
    are written as {}."""
    tree = ast.parse(source)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    pieces = {
        piece
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr)
        for piece in text.values
        if isinstance(piece, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values]
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings or node in pieces:
                continue
            text = node.value
        else:
            continue
        if FLAG.search(BOTH.sub("", COMMAND.sub("", text))):
            yield f"{node.lineno}: {text}"


def early_settings(source: str) -> Iterator[int]:
    """Lines that call `setting` when the module is imported: outside functions, or in a default."""
    tree = ast.parse(source)
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    late = set()
    for function in functions:
        body = [function.body] if isinstance(function, ast.Lambda) else function.body
        late |= {node for statement in body for node in ast.walk(statement)}
    for node in ast.walk(tree):
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if named and node.func.id == "setting" and node not in late:
            yield node.lineno


def test_no_text_outside_the_command_line_spells_a_flag() -> None:
    spelled = [
        f"{path.relative_to(PACKAGE)}:{text}"
        for path in sources()
        for text in flags_in(path.read_text())
    ]
    assert not spelled, "name the setting with `setting` instead:\n" + "\n".join(spelled)


def test_settings_are_spelled_when_a_message_is_made_not_when_a_module_is_imported() -> None:
    early = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sources()
        for line in early_settings(path.read_text())
    ]
    assert not early


@pytest.mark.parametrize(
    "source",
    [
        'raise ValueError("give --label COLUMN")',
        'raise ValueError(f"{name}: give --label")',
        'raise ValueError(f"--{name} is wrong")',
        'FLAGS = {"--edges": 1}',
        'note = "vrgcn train --resume x resumes it; or give --epochs"',
    ],
)
def test_a_flag_in_a_text_is_found(source: str) -> None:
    assert list(flags_in(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of --label."""',
        'text = "a -- b"',
        'text = f"vrgcn {command} --resume {folder} resumes it"',
        'text = "draw one: --ratio 0.6 0.2 0.2, from Python random_split(graph, ratio)"',
        'text = "------"',
    ],
)
def test_what_is_no_flag_or_may_be_one_is_let_through(source: str) -> None:
    assert not list(flags_in(source))


def test_a_setting_that_is_spelled_too_early_is_found() -> None:
    assert list(early_settings('TEXT = setting("label")')) == [1]
    assert list(early_settings('def f(name=setting("label")):\n    pass')) == [1]
    assert not list(early_settings('def f():\n    return setting("label")'))


# ------------------------------------------------------------------- the same mistake, two readers

Run = Callable[..., tuple[int, str, str]]


def graph() -> Graph:
    pandas = pytest.importorskip("pandas")
    return Graph.from_pandas(*tables(pandas), label="topic", ratio=(0.6, 0.2, 0.2))


def tables(pandas) -> tuple[object, object]:
    names = [f"p-{n}" for n in range(20)]
    nodes = pandas.DataFrame({"id": names, "x": range(20), "topic": ["a", "b"] * 10})
    edges = pandas.DataFrame({"source": names, "target": names[1:] + names[:1]})
    return nodes, edges


def test_an_import_tells_flags_and_frames_arguments(vrgcn: Run) -> None:
    pandas = pytest.importorskip("pandas")
    nodes, edges = tables(pandas)
    few = nodes[:3]
    few.to_csv("nodes.csv", index=False)
    edges.to_csv("edges.csv", index=False)
    code, _, err = vrgcn("import", "--nodes", "nodes.csv", "--edges", "edges.csv", "--out", "g")
    assert code == 1
    assert "leave such edges out with --unknown-nodes skip, or make nodes of them with" in err
    with refused():
        Graph.from_pandas(few, edges)
    code, _, err = vrgcn(
        *("import", "--nodes", "nodes.csv", "--edges", "edges.csv", "--out", "g"),
        *("--unknown-nodes", "skip", "--column", "x=text", "--fill", "x=mean"),
    )
    assert code == 1
    assert "--fill is for numbers" in err
    assert "give --column x=number" in err
    with refused():
        Graph.from_pandas(few, edges, unknown_nodes="skip", column="x=text", fill="x=mean")


def test_training_tells_flags_and_arguments(vrgcn: Run) -> None:
    library.save_graph(graph(), "g")
    code, _, err = vrgcn("train", "--graph", "g", "--out", "run", "--metric", "rmse")
    assert code == 1
    assert "metric 'rmse' (--metric) is for another task" in err
    with refused():
        library.train("g", out="run", metric="rmse")
    quick = {"epochs": 1, "hidden": 4}
    library.train("g", out="run", **quick)
    code, _, err = vrgcn("train", "--graph", "g", "--out", "run")
    assert code == 1
    assert (
        "--out: run exists already, and holds a run that has finished: --overwrite starts "
        "over, vrgcn train --resume run --epochs MORE resumes it"
    ) in err
    with refused(FileExistsError):
        library.train("g", out="run", **quick)


def test_predictions_tell_flags_and_arguments(vrgcn: Run) -> None:
    library.save_graph(graph(), "g")
    run = library.train("g", out="run", epochs=1, hidden=4)
    code, _, err = vrgcn("predict", "run", "--out", "p.csv", "--top", 3)
    assert code == 1
    assert "--top: must be between 1 and the number of classes, 2" in err
    found = library.predictions(run.saved, library.load_graph("g"))
    with refused():
        found.to_pandas(top=3)
