"""The interface of the service in OpenAPI 3.1, and a page that shows it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from vrgcn import __version__
from vrgcn.serve.schemas import Schema

Bodies = Mapping[tuple[str, str], Schema]

_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "A node's id, as in the imported table; answers have a number if ids are "
    "numbers.",
}
_KIND = {
    "name": "kind",
    "in": "query",
    "schema": {"type": "string"},
    "description": "Kind of the node, in a graph of several kinds; the labelled kind if absent.",
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 200},
    "description": "A key of the client's own: a change that comes again with its key is applied "
    "once.",
}
_ERRORS = {
    "400": "The body is not JSON, or the request is not valid HTTP.",
    "401": "The token is missing or wrong.",
    "404": "The graph has no such node.",
    "408": "The request took too long to send.",
    "409": "The key came with another change before.",
    "413": "The body is too large.",
    "415": "The body is not declared as JSON.",
    "422": "A field is wrong; the error names it.",
    "431": "The headers are too long.",
    "503": "Too many requests wait; try again after the seconds of Retry-After.",
    "507": "The disk is full, and nothing was changed; Retry-After says when to try again.",
}


def _query(name: str, least: int, most: int, default: int, text: str) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return {"name": name, "in": "query", "schema": schema, "description": text}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _operation(
    text: str,
    answers: str,
    errors: tuple[str, ...] = (),
    parameters: tuple[dict[str, Any], ...] = (),
    success: str = "200",
    media: str = "application/json",
) -> dict[str, Any]:
    ok = {"description": answers, "content": {media: {"schema": {}}}}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    refused = {code: {"description": _ERRORS[code], "content": error} for code in errors}
    operation: dict[str, Any] = {"summary": text, "responses": {success: ok, **refused}}
    if parameters:
        operation["parameters"] = list(parameters)
    return operation


_READ = ("401", "404", "422", "503")
_ASK = ("400", "401", "404", "408", "413", "415", "422", "503")
_WRITE = (*_ASK, "409", "431", "507")
_CHANGED = "The number of the change, and how many rows were computed anew."

_PATHS: dict[str, dict[str, Any]] = {
    "/nodes/{id}": {
        "get": _operation(
            "Predict a node, exactly.",
            "Label or value, probabilities, the time of computation, influential neighbours.",
            _READ,
            (_ID, _KIND, _query("neighbours", 0, 50, 5, "Influential neighbours to name.")),
        ),
        "patch": _operation("Set some columns of a node.", _CHANGED, _WRITE, (_ID, _KIND, _KEY)),
        "delete": _operation("Remove a node and its edges.", _CHANGED, _WRITE, (_ID, _KIND, _KEY)),
    },
    "/nodes": {
        "post": _operation(
            "Add nodes: rows with the columns of the imported table.",
            _CHANGED,
            _WRITE,
            (_KEY,),
            "201",
        )
    },
    "/edges": {
        "post": _operation("Add edges.", _CHANGED, _WRITE, (_KEY,), "201"),
        "delete": _operation("Remove edges.", _CHANGED, _WRITE, (_KEY,)),
    },
    "/changes": {
        "post": _operation(
            "Apply several changes together: all of them or none.",
            _CHANGED,
            _WRITE,
            (_KEY,),
            "201",
        )
    },
    "/what-if": {
        "post": _operation(
            "Predict nodes as if some changes were made; nothing is changed.",
            "The prediction of each node before and after; null before for a node that they add.",
            _ASK,
        )
    },
    "/rows": {
        "post": _operation(
            "Predict rows with a time of their own, by the facts known then; nothing is stored.",
            "The prediction of each row, in their order.",
            _ASK,
        )
    },
    "/recommend/{id}": {
        "get": _operation(
            "Find the best new partners of a node, by a model that predicts pairs.",
            "Ids and scores, best first; known pairs are left out.",
            _READ,
            (_ID, _KIND, _query("k", 1, 1000, 20, "How many.")),
        )
    },
    "/explain/{id}": {
        "get": _operation(
            "Leave out each neighbour and column in turn, exactly.",
            "The changes of the predicted class's probability, or of the value.",
            _READ,
            (_ID, _KIND),
        )
    },
    "/about": {"get": _operation("Describe the served graph.", "Sizes, task, kinds.", ("401",))},
    "/healthz": {"get": _operation("Say whether the service answers.", "Its newest change.")},
    "/metrics": {
        "get": _operation("Counts and times.", "Prometheus text.", ("401",), media="text/plain")
    },
}


def openapi(token: bool, bodies: Bodies) -> dict[str, Any]:
    """Return the description.

    token: True if requests need one
    bodies: schemas by method and path
    """
    error = {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "required": ["message"],
                "properties": {"message": {"type": "string"}, "field": {"type": "string"}},
            }
        },
    }
    description: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "vrgcn serve",
            "version": __version__,
            "description": "Exact predictions of a graph neural network for a graph that changes.",
        },
        "paths": _paths(bodies),
        "components": {"schemas": {"Error": error}},
    }
    if token:
        description["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"}
        }
        description["security"] = [{"token": []}]
    return description


def _paths(bodies: Bodies) -> dict[str, dict[str, Any]]:
    paths: dict[str, dict[str, Any]] = {}
    for path, operations in _PATHS.items():
        for method, operation in operations.items():
            schema = bodies.get((method.upper(), path))
            body = {} if schema is None else {"requestBody": _body(schema)}
            paths.setdefault(path, {})[method] = {**operation, **body}
    return paths


def docs_page(token: bool, bodies: Bodies) -> str:
    """Return a page that lists the paths, readable without a network."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>vrgcn serve: the interface</title><link rel="stylesheet" href="/page.css"></head>'
        "<body><header><h1>The interface</h1>"
        '<p><a href="/">The graph</a> · <a href="/openapi.json">OpenAPI</a></p></header>'
    ]
    if token:
        parts.append("<p>Requests need the header <code>Authorization: Bearer TOKEN</code>.</p>")
    for path, operations in _paths(bodies).items():
        for method, operation in operations.items():
            parts.append(_section(path, method, operation))
    return "".join(parts) + "</body></html>"


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = [
        (each["name"], each["in"], each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        names = ", ".join(schema.get("properties", {"columns of the node": None}))
        rows.append((names, "body", "JSON object"))
    rows += [(code, "answer", each["description"]) for code, each in operation["responses"].items()]
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    title = html.escape(f"{method.upper()} {path}")
    text = html.escape(operation["summary"])
    return f"<section><h2><code>{title}</code></h2><p>{text}</p><table>{cells}</table></section>"
