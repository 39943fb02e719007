"""What the cards of a run, of several seeds and of a search have in common: the file, tables,
scores, settings that differ from the defaults, and commands."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from vrgcn import __version__
from vrgcn.files.printable import printable
from vrgcn.files.setting_names import flags_in_messages, setting
from vrgcn.files.writing import write_text
from vrgcn.runs.card_facts import Facts, code, source_text, split_text
from vrgcn.runs.config_file import build
from vrgcn.runs.folder import CARD, CARD_MARK, is_card
from vrgcn.runs.settings import NOTED, OF_COMMAND, Settings
from vrgcn.targets.usual import with_usual
from vrgcn.tasks.metrics import titled_metric

# Entries of config.toml that are no settings of a single run.
_BESIDE = (*NOTED, *OF_COMMAND, "baseline", "baselines", "average", "search", "trials")
_GRAPH = ("dataset", "graph")
_FENCE = "```"
STANDARD_ERROR = "± is a standard error, by the jackknife over groups of validation nodes"
VERSIONS = f"vrgcn {__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}"


def write_readme(
    folder: Path,
    opening: str,
    config: Mapping[str, Any],
    facts: Facts,
    sections: Mapping[str, Sequence[str]],
) -> None:
    """Write README.md of a folder of ours, all of it or nothing, unless the user wrote it.

    sections: by heading, the lines of a list, of a table or of code
    """
    file = folder / CARD
    if file.exists() and not is_card(file):
        return
    data = [source_text(config), *facts.size]
    sections = {"Data": data, "Split": [split_text(config), *facts.split], **sections}
    parts = [f"{CARD_MARK}\n# {_line(f'Model card: {folder.resolve().name}')}", _line(opening)]
    for heading, lines in sections.items():
        if lines:
            parts.append(f"## {heading}\n\n" + "\n".join(map(_item, lines)))
    text = "\n\n".join(parts) + "\n"
    write_text(file, printable(text, keep="\n"))  # names of folders may hold any bytes


def said(*sentences: tuple[object, str]) -> list[str]:
    """Return the sentences whose condition holds."""
    return [sentence for holds, sentence in sentences if holds]


def table(head: str, rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table in Markdown. head: its first line"""
    body = [f"| {' | '.join(cells)} |" for cells in rows]
    return [head, "|---" * (head.count("|") - 1) + "|", *body, ""]


def fenced(*commands: str) -> list[str]:
    """Return commands as a block of code in Markdown."""
    return ["\n".join([f"{_FENCE}sh", *commands, _FENCE])]


def score_text(metric: str, score: float | None, error: float | None = None) -> str:
    """Format a score of a metric with this title, and its error if that is known."""
    known = titled_metric(metric)
    if score is None:
        return "–"
    text = f"{score:.4f}" if known is None else known.text(score)
    return text if error is None else f"{text} ± {score_text(metric, error)}"


def _item(line: str) -> str:
    """Return a line of a section: of a table or of code as it is, any other as an item."""
    return line if not line or line.startswith(("|", _FENCE)) else f"- {_line(line)}"


def _line(text: str) -> str:
    return " ".join(text.split())


def settings_table(config: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ from the defaults, as lines of a table."""
    rows = [
        (name, code(_words(value)), "–" if usual is None else code(_words(usual)))
        for name, (value, usual) in _changed(config).items()
    ]
    if not rows:
        return ["all settings have their defaults"]
    note = "auto and – are defaults that the graph decides; all settings are in `config.toml`"
    return [*table("| setting | value | default |", rows), note]


def made_by(verb: str, config: Mapping[str, Any], **more: Any) -> list[str]:
    """Return the command that makes a run with this config again, and the versions it was made by.

    more: flags beside those of the config
    """
    source = config.get("graph") or config.get("dataset")
    flags = {name: value for name, (value, _) in _changed(config).items()} | more
    return [*fenced(command(verb, *said((source, str(source))), **flags)), "", VERSIONS]


def command(verb: str, /, *given: str, **flags: Any) -> str:
    """Return a command as it is typed in a shell, such as vrgcn train --hidden 64."""
    with flags_in_messages():
        words = [
            setting(name, value, typed=shlex.quote(value) if isinstance(value, str) else None)
            for name, value in flags.items()
        ]
    return " ".join(["vrgcn", verb, *map(shlex.quote, given), *words])


def _changed(config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ from their defaults, each with the default; those of the
    graph and its split are told elsewhere or come first."""
    usual = _usual(config.get("predict"))
    names = [name for name in usual | dict(config) if name not in (*_BESIDE, *_GRAPH)]
    return {
        name: (config.get(name), usual.get(name))
        for name in names
        if name in config and config[name] != usual.get(name)
    }


def _usual(predict: str | None) -> dict[str, Any]:
    given = {} if predict is None else {"predict": predict}
    found = build(Settings, with_usual(given)).as_written()
    return {name: value for name, value in found.items() if name != "predict"}


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
