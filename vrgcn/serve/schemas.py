"""JSON Schemas of requests' bodies: bodies are checked against them, and OpenAPI shows them.

Of JSON Schema they use type, const, properties, required, additionalProperties, items, minItems,
maxItems, and oneOf with a discriminator. Beyond it, texts must be Unicode, and numbers must be
finite and, if they are whole, have 64 bits.
"""

from __future__ import annotations

import json
from math import inf
from typing import Any, NoReturn

from vrgcn.serve.answers import ProblemError

Schema = dict[str, Any]

_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}
_SHOWN = 40  # characters of a value that an error shows

ID: Schema = {"type": ["string", "integer"]}
_TEXT: Schema = {"type": ["string", "null"]}
_SCALARS = ["string", "number", "boolean", "null"]
_CELL: Schema = {"type": [*_SCALARS, "array"], "items": {"type": _SCALARS}}
ROW: Schema = {"type": "object", "additionalProperties": _CELL}
_EDGE: Schema = ROW | {"properties": {"source": ID, "target": ID, "weight": _CELL}}


def bodies(batch: int) -> dict[tuple[str, str], Schema]:
    """Return the schema of each route that takes a body, by method and path.

    batch: rows of one request
    """
    nodes, edges, ids = (_list_of(item, batch) for item in (ROW, _EDGE, ID))
    changes = _list_of(
        {
            "type": "object",
            "discriminator": {"propertyName": "change"},
            "oneOf": [
                _change("add_nodes", rows=nodes, kind=_TEXT),
                _change("set_features", rows=nodes, kind=_TEXT),
                _change("remove_nodes", ids=ids, kind=_TEXT),
                _change("add_edges", rows=edges, relation=_TEXT),
                _change("remove_edges", rows=edges, relation=_TEXT),
            ],
        },
        batch,
    )
    of_edges = _object("edges", edges=edges, relation=_TEXT)
    return {
        ("POST", "/nodes"): _object("nodes", nodes=nodes, kind=_TEXT),
        ("PATCH", "/nodes/{id}"): ROW,
        ("POST", "/edges"): of_edges,
        ("DELETE", "/edges"): of_edges,
        ("POST", "/changes"): _object("changes", changes=changes),
        ("POST", "/rows"): _object("rows", rows=nodes),
        ("POST", "/what-if"): _object("changes", "ids", changes=changes, ids=ids, kind=_TEXT),
    }


def check(value: Any, schema: Schema, *path: str | int) -> None:
    """Raise if a value of JSON does not match a schema.

    path: of the value in the body
    """
    _check_type(value, schema, path)
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, list):
        _check_list(value, schema, path)
    elif isinstance(value, dict):
        if "oneOf" in schema:
            schema = _chosen(value, schema, path)
        _check_object(value, schema, path)
    elif isinstance(value, float) and not abs(value) < inf:
        _refuse("is too large for a number of 64 bits", path)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        _refuse("is a whole number of more than 64 bits", path)
    if "const" in schema and value != schema["const"]:
        _refuse(f"must be {schema['const']!r}, not {_shown(value)}", path)


def _check_type(value: Any, schema: Schema, path: tuple[str | int, ...]) -> None:
    types = schema.get("type")
    if types is None:
        return
    types = [types] if isinstance(types, str) else types
    mine = "null" if value is None else _TYPES.get(type(value), "object")
    if mine not in types and not (mine == "integer" and "number" in types):
        wanted = " or ".join(_WORDS[name] for name in types)
        _refuse(f"must be {wanted}, not {_shown(value)}", path)


def _check_list(values: list[Any], schema: Schema, path: tuple[str | int, ...]) -> None:
    if len(values) < schema.get("minItems", 0):
        _refuse("must not be empty", path)
    most = schema.get("maxItems", len(values))
    if len(values) > most:
        _refuse(f"has {len(values):,} items; at most {most:,} are taken at once", path)
    if values and set(map(type, values)) <= {int, float}:  # long lists of features, at once
        types = schema["items"].get("type", ())
        if "number" in types and min(values) >= -(2**63) and max(values) < 2**63:
            return
    for index, value in enumerate(values):
        check(value, schema["items"], *path, index)


def _check_object(value: dict[str, Any], schema: Schema, path: tuple[str | int, ...]) -> None:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            _refuse(f"is missing; it must be {_wanted(properties[name])}", (*path, name))
    for name, part in value.items():
        _check_text(name, (*path, name))
        own = properties.get(name, others)
        if own is False:
            _refuse(f"is no field here; there are {', '.join(properties)}", (*path, name))
        check(part, own, *path, name)


def _chosen(value: dict[str, Any], schema: Schema, path: tuple[str | int, ...]) -> Schema:
    """Return the one of several schemas that a field of the value names."""
    name = schema["discriminator"]["propertyName"]
    options: dict[str, Schema] = {
        each["properties"][name]["const"]: each for each in schema["oneOf"]
    }
    given = value.get(name)
    if not isinstance(given, str) or given not in options:
        _refuse(f"must be one of {', '.join(options)}, not {_shown(given)}", (*path, name))
    return options[given]


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        _refuse(f"is no Unicode text: {text[error.start]!r} is half of a character", path)


def _refuse(text: str, path: tuple[str | int, ...]) -> NoReturn:
    raise ProblemError(422, text if path else f"the body {text}", *path)


def _wanted(schema: Schema) -> str:
    types = schema.get("type", ())
    return " or ".join(_WORDS[name] for name in ([types] if isinstance(types, str) else types))


def _shown(value: Any) -> str:
    """Return a value as an error shows it; lists and objects may be large, so only their sort."""
    if isinstance(value, dict | list):
        return _WORDS[_TYPES.get(type(value), "object")]
    if isinstance(value, int) and abs(value) >= 2**63:
        return "a whole number of more than 64 bits"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _list_of(item: Schema, most: int) -> Schema:
    return {"type": "array", "minItems": 1, "maxItems": most, "items": item}


def _object(*required: str, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _change(name: str, **properties: Schema) -> Schema:
    needed = next(iter(properties))
    return _object("change", needed, change={"const": name}, **properties)
