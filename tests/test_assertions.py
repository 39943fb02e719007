"""Every test checks something: it, or a function of the tests that it uses, has an assertion."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
_RAISES = {"pytest.raises", "pytest.warns", "pytest.fail", "refused"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def names_of(path: Path) -> dict[str, tuple[Path, str | ast.AST]]:
    """What a module's names stand for: its own functions, classes and values, and those that it
    imports from other modules of the tests, by their file and name."""
    names: dict[str, tuple[Path, str | ast.AST]] = {}
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = path, node
            names |= {f"self.{x.name}": (path, x) for x in methods(node)}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {x.id: (path, node) for x in targets if isinstance(x, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            module = TESTS.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
            if module.is_file():
                names |= {x.asname or x.name: (module, x.name) for x in node.names}
            for x in node.names:
                inside = module.with_suffix("") / f"{x.name}.py"
                if inside.is_file():
                    names |= {f"{x.asname or x.name}.{y}": (inside, y) for y in names_of(inside)}
        elif isinstance(node, ast.Import):
            for x in node.names:
                module = TESTS.joinpath(*x.name.split(".")[1:]).with_suffix(".py")
                if x.name.startswith("tests.") and module.is_file():
                    names |= {f"{x.asname or x.name}.{y}": (module, y) for y in names_of(module)}
    return names


def methods(node: ast.AST) -> list[ast.FunctionDef]:
    return [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.FunctionDef)]


def asserts(path: Path, node: ast.AST, seen: set[ast.AST]) -> bool:
    """If a part of a module of the tests has an assertion, or uses what has one."""
    seen.add(node)
    for part in ast.walk(node):
        if isinstance(part, ast.Assert):
            return True
        if isinstance(part, ast.Call):
            called = ast.unparse(part.func)
            if called in _RAISES or called.rpartition(".")[2].startswith("assert_"):
                return True
        if isinstance(part, ast.Name | ast.Attribute):
            file, found = names_of(path).get(ast.unparse(part), (path, ""))
            if isinstance(found, str):
                found = names_of(file).get(found, (file, ""))[1]
            if isinstance(found, ast.AST) and found not in seen and asserts(file, found, seen):
                return True
    return False


def test_every_test_asserts() -> None:
    silent = [
        f"{path.relative_to(TESTS)}:{node.lineno} {node.name}"
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.startswith("test_") and not asserts(path, node, set())
    ]
    assert not silent


def test_a_test_asserts_itself_or_by_what_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(
        "def check(): assert 1\n"
        "CHECKS = {1: check}\n"
        "def test_itself(): assert 1\n"
        "def test_by_a_function(): CHECKS[1]()\n"
        "def test_by_an_error():\n"
        "    with refused(): pass\n"
        "def test_not(): print(CHECKED)\n"
    )
    tests = [x for x in tree(path).body if isinstance(x, ast.FunctionDef) and x.name != "check"]
    assert [asserts(path, test, set()) for test in tests] == [True, True, True, False]
