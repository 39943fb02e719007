"""Bugs of vrgcn are not shown as mistakes of the user: a handler around our own functions catches
`InputError`, and not every ValueError, unless it reads what may hold anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import vrgcn

PACKAGE = Path(vrgcn.__file__).parent
WIDE = {"ValueError", "TypeError", "Exception", "BaseException"}
# Files whose handlers read bytes of others: damaged in any way, or written for somebody else.
READERS = {
    *(
        "data/named.py",
        "data/ogb.py",
        "data/raw_files.py",
        "data/store.py",
        "data/store_derived.py",
    ),
    *("data/tables/features.py", "data/tables/recipe_file.py"),
    *("files/parsing.py", "files/tensors.py", "inference/node_tables.py", "live/saving.py"),
    *("runs/checkpoint.py", "runs/checkpointing.py", "serve/journal.py", "targets/predicted.py"),
}
# They raise the same class again, with a name before it, or parse a date.
OTHERS = {"graph/from_kinds.py", "graph/until.py", "graph/validation.py"}


def wide_handlers(source: str) -> Iterator[int]:
    """Lines of handlers of wide errors around functions of ours."""
    tree = ast.parse(source)
    ours = {"self"} | {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vrgcn")
        for name in node.names
    }
    ours |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    for block in (node for node in ast.walk(tree) if isinstance(node, ast.Try)):
        inside = [part for statement in block.body for part in ast.walk(statement)]
        calls = {ast.unparse(p.func).split(".")[0] for p in inside if isinstance(p, ast.Call)}
        if not (calls & ours or any(isinstance(part, ast.Yield) for part in inside)):
            continue
        for handler in block.handlers:
            caught = (
                {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
                if (handler.type)
                else WIDE
            )
            again = any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(handler))
            if caught & WIDE and not again:
                yield handler.lineno


def test_no_handler_takes_a_bug_of_ours_for_a_mistake() -> None:
    wide = {
        path.relative_to(PACKAGE).as_posix(): list(wide_handlers(path.read_text(encoding="utf-8")))
        for path in PACKAGE.rglob("*.py")
    }
    assert {file for file, lines in wide.items() if lines} == READERS | OTHERS


def test_a_wide_handler_is_found() -> None:
    start = "from vrgcn.graph.graph import check\ntry:\n    {}\nexcept {} as error:\n    {}\n"
    for body, caught, then, lines in (
        ("check(1)", "ValueError", "print(error)", [4]),
        ("check(1)", "(OSError, TypeError)", "raise KeyError", [4]),
        ("check(1)", "InputError", "print(error)", []),
        ("check(1)", "Exception", "raise", []),
        ("float('x')", "ValueError", "print(error)", []),
    ):
        assert list(wide_handlers(start.format(body, caught, then))) == lines
