"""Settings say at their fields what is to be known of them: no other place lists their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import vrgcn
from vrgcn.cli.train import TrainOptions
from vrgcn.cli.tune import TuneOptions
from vrgcn.files.settings import declarations
from vrgcn.targets.predicted import Kind

PACKAGE = Path(vrgcn.__file__).parent
DECLARED = declarations(TrainOptions) | declarations(TuneOptions)
NAMES = {name for name, said in DECLARED.items() if not said.of_command}
FEW = 2  # names that a rule about them may have beside each other


def lists_of_names(source: str) -> Iterator[tuple[int, list[str]]]:
    """Every tuple, list or set of texts that has more than a few names of settings: its line and
    the names. One inside another, as in (*("epochs", "patience"), "threads"), counts as its own."""
    for node in ast.walk(ast.parse(source)):
        names = [name for name in _texts(node) if name in NAMES]
        if len(names) > FEW:
            yield node.lineno, names  # type: ignore[attr-defined]


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            inner = element.value if isinstance(element, ast.Starred) else element
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner.value
            elif isinstance(element, ast.Starred):
                yield from _texts(inner)


def test_no_place_lists_names_of_settings() -> None:
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {', '.join(names)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, names in lists_of_names(path.read_text(encoding="utf-8"))
    ]
    assert not found, "declare at the fields what these settings have in common:\n" + "\n".join(
        found
    )


@pytest.mark.parametrize(
    "source",
    [
        'FREE = ("epochs", "patience", "time_limit")',
        'FREE = {"epochs", "patience", "time_limit", "more"}',
        'FREE = (*("epochs", "patience"), "time_limit")',
        'for name in ["hidden", "layers", "dense"]: pass',
        'dict.fromkeys(("hidden", "layers", "dense"), 1)',
    ],
)
def test_a_list_of_names_is_found(source: str) -> None:
    assert list(lists_of_names(source))


def test_values_by_name_and_two_names_are_no_list() -> None:
    assert not list(lists_of_names('USUAL = {"hidden": 64, "layers": 2, "dense": 1}'))
    assert not list(lists_of_names('("dataset", "graph"), ("name", "out", "resume")'))


def test_settings_name_kinds_of_targets_that_there_are() -> None:
    assert {kind for said in DECLARED.values() for kind in said.of} == set(get_args(Kind))
