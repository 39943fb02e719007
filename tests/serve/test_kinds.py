"""A served graph of several kinds: users who have labels, and items that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from vrgcn.serve.app import build_app
from vrgcn.serve.bodies import Limits
from vrgcn.serve.service import Service

BOUGHT = {"user": 1, "item": "i1"}


@pytest.fixture
def client(open_service: Callable[..., Service], shop: Path) -> Iterator[TestClient]:
    app = build_app(open_service(shop), Limits(), None, loopback=True)
    with TestClient(app, base_url="http://localhost") as found:
        yield found


def test_the_description_says_which_kinds_have_predictions(client: TestClient) -> None:
    about = client.get("/about").json()
    assert about["kinds"] == ["item", "user"]
    assert about["predicted"] == ["user"]


def test_nodes_without_predictions_have_neighbours(client: TestClient) -> None:
    found = client.get("/nodes/i0?kind=item").json()
    assert (found["id"], found["kind"]) == ("i0", "item")
    assert not {"label", "value", "probabilities"} & set(found)
    assert found["neighbours"] == [
        {"id": number, "kind": "user", "effect": None} for number in (0, 4, 6, 10)
    ]
    assert client.get("/nodes/i0?kind=item&neighbours=2").json()["neighbours"][1]["id"] == 4
    refused = client.get("/explain/i0?kind=item")
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "kind")


def test_an_id_is_what_the_table_has_in_every_answer(client: TestClient) -> None:
    ids: list[Any] = [client.get(path).json()["id"] for path in ("/nodes/1", "/explain/1")]
    new = {"nodes": [{"id": "20", "age": 3}], "kind": "user"}
    add = {"change": "add_edges", "rows": [BOUGHT]}
    ids += client.post("/nodes", json=new).json()["added"]
    ids += [each["id"] for each in client.get("/nodes/i1?kind=item").json()["neighbours"]]
    asked = {"changes": [add], "ids": ["1", 20], "kind": "user"}
    ids += [each["id"] for each in client.post("/what-if", json=asked).json()["nodes"]]
    assert ids == [1, 1, 20, 1, 5, 7, 11, 1, 20]


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "text"),
    [
        ("GET", "/nodes/1?kind=usr", None, "kind", "did you mean 'user'"),
        ("POST", "/nodes", {"nodes": [{"id": 30, "age": 3}], "kind": "usr"}, "kind", "'user'"),
        ("POST", "/edges", {"edges": [BOUGHT], "relation": "likes"}, "relation", "'likes'"),
        ("POST", "/edges", {"edges": [BOUGHT | {"item": 3}]}, "edges[0].item", "no node 3"),
        ("POST", "/edges", {"edges": [{"user": 1}]}, "edges[0].item", "target of the edge"),
        ("POST", "/edges", {"edges": [BOUGHT | {"weight": 2}]}, "edges[0].weight", "no weights"),
        ("POST", "/what-if", {"changes": [], "ids": [1]}, "changes", "empty"),
        (
            *("POST", "/what-if"),
            {"changes": [{"change": "add_edges", "rows": [BOUGHT]}], "ids": [1], "kind": "item"},
            *("ids[0]", "no node 1"),
        ),
    ],
)
def test_mistakes_name_the_field(
    client: TestClient, method: str, path: str, body: Any, field: str, text: str
) -> None:
    answer = client.request(method, path, **({} if body is None else {"json": body}))
    assert answer.status_code in (404, 422), answer.text
    error = answer.json()["error"]
    assert error["field"] == field
    assert text in error["message"]
