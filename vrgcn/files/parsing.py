"""JSON and TOML that may hold anything: every refusal is a `ValueError` with the file's name."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any


def read_json(file: Path) -> Any:
    """What a JSON file holds."""
    return parse_json(file.read_bytes(), str(file))


def parse_json(text: str | bytes, where: str) -> Any:
    """What a JSON text says; `where` names it in errors."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{where} is not valid JSON: it is nested too deeply") from None
    except ValueError as error:  # of JSON, of UTF-8, or a number of thousands of digits
        raise ValueError(f"{where} is not valid JSON: {error}") from None


def read_toml(file: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{file}: not a TOML file: it is nested too deeply") from None
    except ValueError as error:  # of TOML, of UTF-8, or a number of thousands of digits
        raise ValueError(f"{file}: not a TOML file: {error}") from None
