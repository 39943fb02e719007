"""Imports inside `vrgcn`, and inside `lab`, point one way: down the lists below, never back up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import vrgcn

# Lowest first. A module imports its own folder and lower layers; folders of one layer do not
# import each other. Imports inside functions and under TYPE_CHECKING count like any other, and so
# do names of modules in texts, which are imported when something is run.
LAYERS = (
    ("files",),
    ("tasks",),
    ("graph",),
    ("engine", "models", "data"),  # data needs Graph alone, and a run opens the graph it is of
    ("pyg",),
    ("pairs",),
    ("triples",),
    ("leaks", "baselines"),
    ("inference",),
    ("live",),
    ("training",),
    ("targets",),
    ("costs",),
    ("runs",),
    ("distributed",),
    ("diagnostics", "scikit"),
    ("pages",),
    ("tuning",),
    ("serve",),
    ("cli",),
)
# The arrows that may point back, (importer, imported), each inside a function alone: class methods
# that people look for on Graph, and that are made of what lies above it; and the commands that open
# lab, which lies beside the package and is not installed with it.
DOORS = {
    ("vrgcn.graph.graph", "vrgcn.data.frames"),  # Graph.from_pandas, Graph.from_networkx
    ("vrgcn.runs.run", "vrgcn.pages.evaluate"),  # Run.evaluate
    ("vrgcn.cli.bench", "lab.bench.command"),
    ("vrgcn.cli.reproduce", "lab.paper.reproduce"),
}
# The folders of lab, the same way. Each may import all of vrgcn but its command line.
LAB_LAYERS = (("harness",), ("paper", "bench", "golden", "league"), ("studies",))
MODULE = re.compile(r"(vrgcn|lab)(\.\w+)+\.?")  # a text that is nothing else
LAYER = {folder: height for height, layer in enumerate(LAYERS) for folder in layer}
LAB_LAYER = {f"lab/{folder}": height for height, layer in enumerate(LAB_LAYERS) for folder in layer}
PACKAGE = Path(vrgcn.__file__).parent
ROOT = Path(__file__).resolve().parents[1]
LAB = ROOT / "lab"


class Arrow(NamedTuple):
    """An import of one module of vrgcn or lab by another, by its place in the source."""

    importer: str
    line: int
    imported: str
    on_load: bool = True  # False: inside a function


def arrows(source: str, importer: str) -> Iterator[Arrow]:
    """Every import of something in vrgcn or lab that a source makes.

    importer: the module's dotted name, such as vrgcn.graph.graph
    """
    tree = ast.parse(source)
    late = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        for name in imported_by(node, importer):
            if name.split(".")[0] in ("vrgcn", "lab") and name != "vrgcn.__version__":
                yield Arrow(importer, node.lineno, name, node not in late)


def imported_by(node: ast.AST, importer: str) -> list[str]:
    """The dotted names that a statement imports; of a text that names a module, as in
    `import_module("vrgcn.cli.train")`, something in it."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        parents = importer.split(".")[: -node.level] if node.level else []
        origin = ".".join([*parents, *([node.module] if node.module else [])])
        # `from vrgcn import data` and `from vrgcn.data import store` name modules too.
        return [f"{origin}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Constant) and MODULE.fullmatch(str(node.value)):
        return [f"{str(node.value).rstrip('.')}.*"]
    return []


def points_back(arrow: Arrow) -> bool:
    """Whether a module imports from a higher layer, or from another folder of its own. For vrgcn
    all of lab is a higher layer; for lab the command line is."""
    here, there = folder(arrow.importer), folder(arrow.imported)
    if here in LAB_LAYER and not there.startswith("lab"):
        return there == "cli"
    layers = LAB_LAYER if here in LAB_LAYER else LAYER
    return here != there and layers.get(there, len(layers)) >= layers[here]


def folder(module: str) -> str:
    """The folder of a module, of lab such as "lab/bench"; of a name that vrgcn itself exports,
    "vrgcn": the top of all."""
    package, *parts = module.split(".")
    if package == "lab":
        return "/".join(["lab", *parts[:1]])
    return parts[0] if parts and parts[0] in LAYER else "vrgcn"


def modules(package: Path = PACKAGE) -> Iterator[tuple[Path, str]]:
    """Every file of a package but its public surface, and its dotted name."""
    for path in sorted(package.rglob("*.py")):
        if path.parent != package:
            yield path, ".".join([package.name, *path.relative_to(package).with_suffix("").parts])


@cache
def all_arrows(package: Path = PACKAGE) -> list[Arrow]:
    return [
        arrow
        for path, name in modules(package)
        for arrow in arrows(path.read_text(encoding="utf-8"), name)
    ]


def ends(arrow: Arrow) -> tuple[str, str]:
    """The importing module, and the module whose name is imported."""
    return arrow.importer, arrow.imported.rpartition(".")[0]


def told(arrow: Arrow) -> str:
    """Return text such as vrgcn/graph/graph.py:7: graph imports vrgcn.engine.history.NEVER."""
    file = arrow.importer.replace(".", "/") + ".py"
    return f"{file}:{arrow.line}: {folder(arrow.importer)} imports {arrow.imported}"


def test_every_folder_of_the_package_has_a_layer() -> None:
    assert {name.split(".")[1] for _, name in modules()} == LAYER.keys()
    assert {folder(name) for _, name in modules(LAB)} == LAB_LAYER.keys()


def test_no_import_points_back() -> None:
    everything = all_arrows() + all_arrows(LAB)
    back = [arrow for arrow in everything if points_back(arrow) and ends(arrow) not in DOORS]
    assert not back, "these imports point back up the layers:\n" + "\n".join(map(told, back))


def test_doors_are_used_and_open_inside_functions_alone() -> None:
    through = [arrow for arrow in all_arrows() if ends(arrow) in DOORS]
    assert {ends(arrow) for arrow in through} == DOORS
    assert not [told(arrow) for arrow in through if arrow.on_load]


def test_no_two_folders_of_lab_have_a_module_of_the_same_name() -> None:
    names = [path.stem for path, _ in modules(LAB) if not path.stem.startswith("__")]
    assert sorted(set(names)) == sorted(names)


def test_the_golden_set_knows_no_module_of_the_package() -> None:
    golden = [arrow for arrow in all_arrows(LAB) if folder(arrow.importer) == "lab/golden"]
    assert len(golden) > 20
    assert not [told(arrow) for arrow in golden if arrow.imported.startswith("vrgcn.")]


def test_examples_do_without_the_command_line() -> None:
    scripts = list(ROOT.glob("examples/*.py"))
    assert scripts
    for path in scripts:
        imported = {arrow.imported for arrow in arrows(path.read_text(encoding="utf-8"), path.stem)}
        assert not [name for name in imported if folder(name) == "cli"], path


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("vrgcn.graph.graph", "import vrgcn.engine.history"),
        ("vrgcn.graph.graph", "from vrgcn.engine.history import NEVER"),
        ("vrgcn.graph.graph", "from vrgcn import engine"),
        ("vrgcn.graph.graph", "from ..engine import history"),
        ("vrgcn.graph.graph", "def late():\n    from vrgcn.cli.train import run"),
        ("vrgcn.graph.graph", "if TYPE_CHECKING:\n    from vrgcn.runs.fit import Epoch"),
        ("vrgcn.graph.graph", 'import_module("vrgcn.data.frames")'),
        ("vrgcn.graph.graph", 'import_module(f"vrgcn.data.{name}")'),
        ("vrgcn.engine.plan", "from vrgcn.models.models import GCN"),
        ("vrgcn.pages.page", "from vrgcn import fit"),
        ("vrgcn.data.store", "import vrgcn"),
        ("vrgcn.cli.train", "import lab"),
        ("vrgcn.cli.train", "from lab.harness.timing import ratio"),
        ("vrgcn.cli.train", 'import_module("lab.bench.command")'),
        ("lab.bench.step", "from vrgcn.cli.train import run"),
        ("lab.bench.step", "from lab.paper.settings import setting"),
        ("lab.harness.race", "from lab.bench.step import run"),
    ],
)
def test_an_import_of_a_higher_layer_is_caught(importer: str, source: str) -> None:
    assert [points_back(arrow) for arrow in arrows(source, importer)] == [True]


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("vrgcn.runs.fit", "from vrgcn.graph.graph import Graph"),
        ("vrgcn.runs.fit", "from vrgcn.training.config import TrainConfig"),
        ("vrgcn.runs.fit", "from . import config"),
        ("vrgcn.cli.train", "from vrgcn import data"),
        ("vrgcn.graph.graph", "from vrgcn import __version__"),
        ("vrgcn.graph.graph", "import torch"),
        ("lab.bench.step", "from vrgcn import fit"),
        ("lab.bench.step", "from vrgcn.pages.page import Page"),
        ("lab.bench.step", "from lab.harness.race import race"),
        ("vrgcn.graph.graph", '"""As vrgcn.data.frames does."""'),
    ],
)
def test_an_import_of_the_own_folder_or_a_lower_layer_is_not(importer: str, source: str) -> None:
    assert not any(points_back(arrow) for arrow in arrows(source, importer))


def test_an_arrow_is_told_by_file_line_and_what_is_imported() -> None:
    (arrow,) = arrows("x = 1\nfrom vrgcn.engine.history import NEVER\n", "vrgcn.graph.graph")
    assert told(arrow) == "vrgcn/graph/graph.py:2: graph imports vrgcn.engine.history.NEVER"


def test_no_two_public_classes_have_the_same_name() -> None:
    homes: dict[str, list[str]] = {}
    for path, module in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert not twice
