"""Pages of the site that are made of code: the reference, the examples, the notebook; and
docstrings in the form that Sphinx reads."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import vrgcn
from vrgcn.cli import COMMANDS
from vrgcn.cli.help import ALL, command_help, layers

_FIELD = re.compile(r"^(\w+(?:, \w+)*): (.*)")
# Names of the reference by chapter; those that no chapter has come last.
CHAPTERS = {
    "Graphs": ("Graph", "Blocks", "load_graph", "save_graph", "load_dataset", "random_split"),
    "Training": ("train", "fit", "TrainConfig", "ModelConfig", "TrainResult", "load_run", "Run"),
    "Prediction": ("predict", "predictions", "Predictions", "embeddings", "Live"),
    "Reading a run": ("audit", "Audit", "evaluate", "Evaluation", "explain", "recommend", "report"),
    "Models": ("GCN", "GraphSAGE", "MLP", "Dropout", "PairModel"),
    "scikit-learn": ("VRGCNClassifier", "VRGCNRegressor", "VRGCNRecommender"),
}


def write(folder: Path, examples: Path) -> None:
    """Write the generated pages, each only if it has changed."""
    folder.mkdir(exist_ok=True)
    _write(folder / "api.md", _reference())
    _write(folder / "commands.md", _commands())
    _write(folder / "examples.md", _examples(examples))
    _write(folder / "notebook.md", _notebook(examples / "first-graph.ipynb"))


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _reference() -> str:
    names = [name for name in vrgcn.__all__ if not name.startswith("_")]
    chapters = {title: [n for n in some if n in names] for title, some in CHAPTERS.items()}
    placed = {name for some in chapters.values() for name in some}
    chapters["Further"] = sorted(set(names) - placed)
    parts = ["# Python", "", "All public names of `vrgcn`."]
    for title, some in chapters.items():
        parts += ["", f"## {title}"]
        for name in some:
            kind = _directive(getattr(vrgcn, name))
            parts += ["", f"### {name}", "", "```{eval-rst}", f".. {kind}:: vrgcn.{name}", "```"]
    return "\n".join(parts) + "\n"


def _commands() -> str:
    parts = ["# Commands", "", "What `vrgcn COMMAND --help all` prints, for each command."]
    for name, command in COMMANDS.items():
        layer = ALL if layers(command.options) else ""
        text = command_help(command.options, name, command.summary, layer)
        parts += ["", f"## vrgcn {name}", "", "```text", text, "```"]
    return "\n".join(parts) + "\n"


def _directive(value: Any) -> str:
    if isinstance(value, type):
        return "autoclass"
    return "autofunction" if callable(value) else "autodata"


def _examples(folder: Path) -> str:
    parts = ["# Examples", "", "Complete programs, which the tests run."]
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        said = (ast.get_docstring(ast.parse(text)) or path.stem).splitlines()[0]
        parts += ["", f"## {path.name}", "", said, "", "```python", text.rstrip(), "```"]
    return "\n".join(parts) + "\n"


def _notebook(path: Path) -> str:
    """The notebook as text: its cells, without the outputs of a run."""
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts += (
            [source, ""] if cell["cell_type"] == "markdown" else ["```python", source, "```", ""]
        )
    return "\n".join(parts)


def as_rest(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring of ours into reStructuredText: `name: text` is a list, indented parts are
    literal."""
    lines[:] = [] if what == "data" else _rest("\n".join(lines)).split("\n")


def _rest(text: str) -> str:
    blocks = [block for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip()]
    return "\n\n".join(map(_block, blocks)) + "\n"


def _block(block: str) -> str:
    lines = block.split("\n")
    if lines[0].startswith("    "):
        return "::\n\n" + "\n".join(f"    {line}" for line in lines)
    if not _FIELD.match(lines[0]):
        return _inline(" ".join(line.strip() for line in lines))
    fields: list[str] = []
    for line in lines:
        found = _FIELD.match(line)
        if found:
            fields.append(f"* **{found[1]}**: {found[2]}")
        else:
            fields[-1] += " " + line.strip()
    return "\n".join(field[:2] + _inline(field[2:]) for field in fields)


def _inline(text: str) -> str:
    """Code in single backticks becomes code; stars and bars outside of it are themselves."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(_part(part) for part in parts)


def _part(part: str) -> str:
    if part.startswith("`"):
        return f"`{part}`"
    bold = re.sub(r"\*(?!\*)(?<!\*\*)", r"\\*", part) if "**" not in part else part
    return re.sub(r"(?<=\w)_(?!\w)", r"\\_", bold).replace("|", r"\|")
