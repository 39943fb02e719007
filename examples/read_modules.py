"""The modules of a Python package and their imports as two tables, read and not run:
python examples/read_modules.py torch_geometric FOLDER"""

import ast
import csv
import importlib.util
import random
import sys
from pathlib import Path

COLUMNS = ("id", "lines", "functions", "classes", "documented", "uses", "part")


def name_of(file: Path, root: Path) -> str:
    """The dotted name of a module, without the package: nn.conv.gat_conv."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or root.name


def imported(tree: ast.Module, name: str, is_package: bool) -> set[str]:
    """Full dotted names that a module imports; of `from a import b` both a and a.b."""
    found = set()
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def tables_of(root: Path) -> tuple[list[list[object]], list[tuple[str, str]]]:
    """The rows of both tables."""
    files = {name_of(file, root): file for file in sorted(root.rglob("*.py"))}
    modules: list[list[object]] = []
    imports: list[tuple[str, str]] = []
    for name, file in files.items():
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source)
        kinds = [type(node) for node in ast.walk(tree)]
        full = root.name if name == root.name else f"{root.name}.{name}"
        wanted = imported(tree, full, file.name == "__init__.py")
        own = f"{root.name}."
        inside = {other.removeprefix(own) for other in wanted if other.startswith(own)}
        others = {other.partition(".")[0] for other in wanted} - {root.name, ""}
        documented = "no" if ast.get_docstring(tree) is None else "yes"
        counts = (kinds.count(ast.FunctionDef), kinds.count(ast.ClassDef))
        folders = file.relative_to(root).parts[:-1]
        part = folders[0] if folders else ""  # a module at the top belongs to no part
        size = len(source.splitlines())
        modules.append([name, size, *counts, documented, "|".join(sorted(others)), part])
        imports += [(name, other) for other in sorted(inside) if other in files and other != name]
    random.Random(0).shuffle(modules)  # sorted by folder, the order of the rows would tell the part
    return modules, imports


def main(package: str, folder: Path) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"there is no package {package}"
    assert spec.origin is not None, f"{package} has no files"
    modules, imports = tables_of(Path(spec.origin).parent)
    folder.mkdir(parents=True, exist_ok=True)
    tables = (("modules.csv", COLUMNS, modules), ("imports.csv", ("source", "target"), imports))
    for file, columns, rows in tables:
        with open(folder / file, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([columns, *rows])
    print(f"{package}: {len(modules):,} modules and {len(imports):,} imports in {folder}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
