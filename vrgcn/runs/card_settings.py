"""What the card of a run says about its settings: those that differ from the defaults, as a table
and as a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from vrgcn.files.setting_names import flags_in_messages, setting
from vrgcn.runs.card_facts import code
from vrgcn.runs.config_file import build
from vrgcn.runs.settings import NOTED, OF_COMMAND, Settings, with_defaults

# Entries of config.toml that are no settings of a single run.
_BESIDE = (*NOTED, *OF_COMMAND, "baseline", "baselines", "average", "search", "trials")
_GRAPH = ("dataset", "graph")


def settings_table(config: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ from the defaults, as lines of a table."""
    changed = _changed(config)
    if not changed:
        return ["all settings have their defaults"]
    rows = [
        f"| {name} | {code(_value(value))} | {'–' if usual is None else code(_value(usual))} |"
        for name, (value, usual) in changed.items()
    ]
    note = "auto and – are defaults that the graph decides; all settings are in `config.toml`"
    return ["| setting | value | default |", "|---|---|---|", *rows, "", note]


def command_text(command: str, config: Mapping[str, Any], more: Iterable[str] = ()) -> str:
    """Return the words that make a run with this config again, such as vrgcn train --hidden 64."""
    with flags_in_messages():
        words = [
            setting(name, value, typed=_typed(value))
            for name, (value, _) in _changed(config).items()
        ]
    source = config.get("graph") or config.get("dataset")
    given = [] if source is None else [shlex.quote(str(source))]
    return " ".join([f"vrgcn {command}", *given, *words, *more])


def flags_text(**flags: Any) -> str:
    """Return flags with their values as they are typed in a shell."""
    with flags_in_messages():
        return " ".join(setting(name, value, typed=_typed(value)) for name, value in flags.items())


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
    found = build(Settings, with_defaults(given)).as_written()
    return {name: value for name, value in found.items() if name != "predict"}


def _value(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _typed(value: Any) -> str | None:
    """Return the value of a flag as it is typed in a shell; None if that needs nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return shlex.quote(str(value))
