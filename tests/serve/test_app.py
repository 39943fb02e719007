"""Requests and their answers."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import vrgcn
from vrgcn.serve.app import build_app
from vrgcn.serve.bodies import Limits
from vrgcn.serve.service import Service

NEW = {"id": "new", "year": 2001, "field": "y"}
EDGE = {"source": "p0", "target": "p1", "weight": 1}
ADD = {"change": "add_edges", "rows": [EDGE]}
JSON = {"content-type": "application/json"}


def _expected(papers: Path, change: Callable[[Any], None], node: str) -> dict[str, float]:
    """What a live model answers in Python after the same changes."""
    live = vrgcn.load_run(papers).live()
    change(live)
    found = live.predict(node)
    return dict(zip(found.classes or [], found.probabilities[0].tolist(), strict=True))


def test_a_node_is_read_with_label_probabilities_and_time(client: TestClient, papers: Path) -> None:
    found = client.get("/nodes/p3").json()
    expected = _expected(papers, lambda live: None, "p3")
    assert found["probabilities"] == pytest.approx(expected, abs=1e-7)
    assert found["label"] == max(expected, key=expected.__getitem__)
    assert found["id"] == "p3"
    assert found["computed"].endswith("+00:00")


def test_changes_are_seen_by_the_next_read(client: TestClient, papers: Path) -> None:
    added = client.post("/nodes", json={"nodes": [NEW]})
    assert added.status_code == 201
    assert added.json()["change"] == 1
    assert added.json()["added"] == ["new"]
    client.post("/edges", json={"edges": [{"source": "new", "target": "p1", "weight": 1}]})
    client.patch("/nodes/p1", json={"year": 1900})
    client.request("DELETE", "/edges", json={"edges": [{"source": "p1", "target": "p3"}]})
    client.delete("/nodes/p5")

    def same(live: Any) -> None:
        live.add_nodes(NEW)
        live.add_edges(("new", "p1", 1))
        live.set_features({"id": "p1", "year": 1900})
        live.remove_edges(("p1", "p3"))
        live.remove_nodes("p5")

    for node in ("new", "p1", "p3", "p7"):
        found = client.get(f"/nodes/{node}").json()["probabilities"]
        assert found == pytest.approx(_expected(papers, same, node), abs=1e-6), node
    assert client.get("/nodes/p5").status_code == 404
    assert client.get("/healthz").json() == {"status": "ok", "change": 5}


def test_several_changes_are_applied_together_or_not_at_all(client: TestClient) -> None:
    before = client.get("/nodes/p1").json()["probabilities"]
    edge = {"change": "add_edges", "rows": [{"source": "new", "target": "p1", "weight": 1}]}
    node = {"change": "add_nodes", "rows": [NEW]}
    refused = client.post("/changes", json={"changes": [node, edge, edge | {"relation": "r"}]})
    assert refused.status_code == 422
    assert client.get("/nodes/new").status_code == 404
    assert client.get("/nodes/p1").json()["probabilities"] == before
    assert client.post("/changes", json={"changes": [node, edge]}).status_code == 201
    assert client.get("/nodes/new").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field", "text"),
    [
        ("GET", "/nodes/nobody", None, 404, "id", "no node 'nobody'"),
        ("GET", "/nodes/p1?kind=user", None, 422, "kind", "no kinds"),
        ("DELETE", "/nodes/nobody", None, 422, "id", "no node 'nobody'"),
        ("GET", "/nodes/p1?neighbours=many", None, 422, "neighbours", "whole number"),
        ("GET", "/nowhere", None, 404, None, "/docs"),
        ("PUT", "/nodes/p1", {}, 405, None, "Method Not Allowed"),
        ("POST", "/nodes", [], 422, None, "must be an object"),
        ("POST", "/nodes", {}, 422, "nodes", "must be a list"),
        ("POST", "/nodes", {"nodes": [3]}, 422, "nodes[0]", "must be an object"),
        ("POST", "/nodes", {"nodes": [NEW] * 4}, 422, "nodes", "at most 3"),
        ("POST", "/nodes", {"nodes": [NEW], "sort": 1}, 422, "sort", "no field here"),
        ("POST", "/nodes", {"nodes": [NEW], "kind": 1}, 422, "kind", "text"),
        ("POST", "/nodes", {"nodes": [{"id": "p1", "year": 1}]}, 422, "nodes[0].id", "p1"),
        ("POST", "/nodes", {"nodes": [{"year": 1}]}, 422, "nodes[0].id", "needs an id"),
        ("POST", "/nodes", {"nodes": [{"id": "q"}]}, 422, "nodes[0].year", "lack 2"),
        (
            *("POST", "/nodes", {"nodes": [NEW, NEW | {"id": "q", "year": "soon"}]}),
            *(422, "nodes[1].year", "holds text"),
        ),
        ("POST", "/nodes", {"nodes": [NEW | {"year": 10**400}]}, 422, "nodes[0].year", "64 bits"),
        ("POST", "/nodes", {"nodes": [NEW | {"year": 2**63}]}, 422, "nodes[0].year", "64 bits"),
        ("POST", "/nodes", {"nodes": [NEW | {"\ud800": 1}]}, 422, "nodes[0].\\ud800", "Unicode"),
        ("POST", "/nodes", {"nodes": [NEW | {"id": "\ud800"}]}, 422, "nodes[0].id", "Unicode"),
        ("POST", "/nodes", {"\ud800": 1, "nodes": [NEW]}, 422, "\\ud800", "Unicode"),
        ("PATCH", "/nodes/p1", {"\ud800": 1}, 422, "\\ud800", "Unicode"),
        ("POST", "/edges", {"edges": [{"source": "p1"}]}, 422, "edges[0].target", "target"),
        ("POST", "/edges", {"edges": [EDGE | {"target": "q"}]}, 422, "edges[0].target", "'q'"),
        ("POST", "/edges", {"edges": [EDGE | {"weight": 10**400}]}, 422, "edges[0].weight", "bits"),
        ("POST", "/edges", {"edges": [EDGE | {"weight": 1e300}]}, 422, "edges[0].weight", "1e+300"),
        ("POST", "/edges", {"edges": [EDGE | {"weight": -1}]}, 422, "edges[0].weight", "negative"),
        ("POST", "/edges", {"edges": [EDGE], "relation": "r"}, 422, "relation", "no relations"),
        ("DELETE", "/edges", {"edges": [EDGE]}, 422, "edges[0]", "no such edge"),
        ("PATCH", "/nodes/p1", {"yaer": 3}, 422, "yaer", "yaer"),
        ("PATCH", "/nodes/p1", {"year": "soon"}, 422, "year", "holds text"),
        ("PATCH", "/nodes/p1", {"id": "p2", "year": 3}, 422, "id", "the path names"),
        ("PATCH", "/nodes/nobody", {"year": 3}, 422, "id", "nobody"),
        ("POST", "/changes", {"changes": [3]}, 422, "changes[0]", "an object"),
        ("POST", "/changes", {"changes": [{}]}, 422, "changes[0].change", "add_nodes"),
        (
            *("POST", "/changes", {"changes": [{"change": "add_nodes", "rows": 3}]}),
            *(422, "changes[0].rows", "a list"),
        ),
        (
            *("POST", "/changes", {"changes": [{"change": "remove_nodes", "ids": True}]}),
            *(422, "changes[0].ids", "a list, not true"),
        ),
        (
            *("POST", "/changes", {"changes": [{"change": "remove_nodes", "ids": ["q"]}]}),
            *(422, "changes[0].ids[0]", "'q'"),
        ),
        (
            *("POST", "/changes", {"changes": [{"change": "add_edges", "rows": [EDGE] * 2}] * 2}),
            *(422, "changes", "at most 3"),
        ),
        (
            *("POST", "/what-if", {"ids": ["p1"], "changes": [{"change": "add_edges", "rows": 1}]}),
            *(422, "changes[0].rows", "a list"),
        ),
        (
            *("POST", "/what-if", {"ids": ["q"], "changes": [ADD]}),
            *(404, "ids[0]", "no node 'q'"),
        ),
    ],
)
def test_mistakes_are_answered_with_the_field_and_what_is_wrong(
    client: TestClient, method: str, path: str, body: Any, status: int, field: str, text: str
) -> None:
    sent = {} if body is None else {"content": json.dumps(body), "headers": JSON}
    answer = client.request(method, path, **sent)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error.get("field") == field
    assert text in error["message"]
    assert not [advice for advice in ("--", "drop=") if advice in error["message"]]
    assert client.get("/healthz").json()["change"] == 0


def test_bodies_that_are_no_json_or_too_large_are_refused(client: TestClient) -> None:
    for body in (b"{", b'{"a": NaN}', b"[" * 1999, b'{"a": "\xff"}', b"[" + b"9" * 1900):
        assert client.post("/nodes", content=body, headers=JSON).status_code == 400
    parts = iter([b" " * 1500] * 2)  # without Content-Length
    assert client.post("/nodes", content=parts, headers=JSON).status_code == 413
    assert client.post("/nodes", content=b" " * 2001, headers=JSON).status_code == 413
    assert client.post("/nodes", content=b"{}").status_code == 415
    huge = b'{"nodes": [{"id": "n", "year": 1e400, "field": "x"}]}'
    answer = client.post("/nodes", content=huge, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "nodes[0].year")


def test_errors_repeat_little_of_what_was_sent(open_service: Callable[..., Service]) -> None:
    long = "x" * 900_000
    app = build_app(open_service(), Limits(), None, loopback=True)
    with TestClient(app, base_url="http://localhost") as client:
        for body in (
            {long: 1},
            {"nodes": long},
            {"nodes": [NEW], "kind": long},
            {"nodes": [NEW | {"year": long}]},
            {"nodes": [NEW | {"id": "p1", long: 1}]},
        ):
            answer = client.post("/nodes", json=body)
            assert answer.status_code == 422
            assert len(answer.content) < 3000
        edges = {"edges": [EDGE | {"target": long}]}
        assert len(client.post("/edges", json=edges).content) < 3000
        assert len(client.patch("/nodes/p1", json={long: 1}).content) < 3000


def test_what_if_predicts_and_changes_nothing(client: TestClient, papers: Path) -> None:
    edge = {"source": "new", "target": "p1", "weight": 1}
    changes = [
        {"change": "add_nodes", "rows": [NEW]},
        {"change": "add_edges", "rows": [edge]},
    ]
    before = client.get("/nodes/p1").json()
    asked = client.post("/what-if", json={"changes": changes, "ids": ["p1", "new"]})
    assert asked.status_code == 200
    assert asked.json()["change"] == 0

    def same(live: Any) -> None:
        live.add_nodes(NEW)
        live.add_edges(edge)

    first, second = asked.json()["nodes"]
    assert (first["id"], second["id"]) == ("p1", "new")
    assert first["before"]["probabilities"] == before["probabilities"]
    for found in (first, second):
        wanted = _expected(papers, same, found["id"])
        assert found["after"]["probabilities"] == pytest.approx(wanted, abs=1e-6)
    assert first["after"] != first["before"]
    assert second["before"] is None
    assert client.get("/nodes/p1").json() == before
    assert client.get("/nodes/new").status_code == 404
    assert client.get("/healthz").json()["change"] == 0
    assert "vrgcn_journal 0" in client.get("/metrics").text


def test_what_if_of_nodes_that_would_be_gone_is_refused(client: TestClient) -> None:
    body = {"changes": [{"change": "remove_nodes", "ids": ["p1"]}], "ids": ["p3", "p1"]}
    answer = client.post("/what-if", json=body)
    assert answer.status_code == 404
    assert answer.json()["error"]["field"] == "ids[1]"
    assert client.get("/nodes/p1").status_code == 200


def test_a_full_disk_is_no_failure_of_ours(
    open_service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = open_service()
    app = build_app(service, Limits(), None, loopback=True)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        before = client.get("/about").json()

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "no space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            answer = client.post("/nodes", json={"nodes": [NEW]})
        assert answer.status_code == 507
        assert answer.headers["retry-after"]
        assert "nothing was changed" in answer.json()["error"]["message"]
        assert str(service.journal.path.parent) not in answer.text
        assert client.get("/about").json() == before
        assert client.post("/nodes", json={"nodes": [NEW]}).status_code == 201


def test_the_most_influential_neighbours_are_named_and_follow_changes(
    client: TestClient, papers: Path
) -> None:
    live = vrgcn.load_run(papers).live()
    for _ in range(2):  # computed, and then kept
        found = client.get("/nodes/p1?neighbours=3").json()["neighbours"]
        effects = live.explain("p1").neighbours.effects[:3]
        assert [each["id"] for each in found] == [each.id for each in effects]
        assert [each["effect"] for each in found] == pytest.approx([-e.change for e in effects])
    edge = {"source": "p1", "target": "p0", "weight": 5.0}
    client.post("/edges", json={"edges": [edge]})
    live.add_edges(edge)
    found = client.get("/nodes/p1?neighbours=1").json()["neighbours"]
    assert found[0]["effect"] == pytest.approx(-live.explain("p1").neighbours.effects[0].change)
    assert client.get("/nodes/p1?neighbours=0").json()["neighbours"] == []


def test_an_explanation_is_that_of_python(client: TestClient, papers: Path) -> None:
    found = client.get("/explain/p1").json()
    expected = vrgcn.load_run(papers).live().explain("p1").to_dict()
    assert found["predicted"] == expected["predicted"]
    assert found["columns"]["total"] == pytest.approx(expected["columns"]["total"], abs=1e-6)
    assert {each["column"] for each in found["columns"]["effects"]} <= {"year", "field"}


def test_the_graph_is_described(client: TestClient) -> None:
    described = client.get("/about").json()
    assert described == {
        "nodes": 12,
        "edges": 24,
        "kinds": [],
        "predicted": [],
        "relations": [],
        "weighted": True,
        "task": "classes",
        "change": 0,
    }


def test_recommendations_need_a_model_of_pairs(client: TestClient) -> None:
    answer = client.get("/recommend/p1")
    assert answer.status_code == 422
    assert "no pairs" in answer.json()["error"]["message"]


def test_a_key_applies_a_change_once(client: TestClient) -> None:
    edge = {"edges": [EDGE]}
    key = {"Idempotency-Key": "k1"}
    assert client.post("/edges", json=edge, headers=key).json()["change"] == 1
    again = client.post("/edges", json=edge, headers=key).json()
    assert again == {"change": 1, "repeated": True}
    other = {"edges": [EDGE | {"target": "p3"}]}
    refused = client.post("/edges", json=other, headers=key)
    assert refused.status_code == 409
    assert refused.json()["error"]["field"] == "Idempotency-Key"


def test_requests_need_the_token_if_there_is_one(open_service: Callable[..., Service]) -> None:
    app = build_app(open_service(), Limits(), "secret-secret-secret", loopback=True)
    with TestClient(app) as client:
        given = ("Bearer other", "secret", "Bearer", "Bearer secret", "Bearer secret-secret-secre")
        for headers in ({}, *({"Authorization": text} for text in given)):
            answer = client.get("/nodes/p1", headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        good = {"Authorization": "Bearer secret-secret-secret"}
        assert client.get("/nodes/p1", headers=good).status_code == 200
        assert client.get("/healthz").status_code == 200
        assert client.get("/metrics").status_code == 401


def test_another_host_name_is_refused_without_a_token(client: TestClient) -> None:
    wrong = ("attacker.example", "[::1]evil", "[::1", "::1", "[::1]:80evil", "localhost:80:80", "")
    for host in (*wrong, "localhost@evil", "[localhost]", "evil[::1]"):
        assert client.get("/about", headers={"host": host}).status_code == 421, host
    for host in ("[::1]:8000", "[::1]", "localhost", "LOCALHOST:80", "127.0.0.1:"):
        assert client.get("/about", headers={"host": host}).status_code == 200, host


def test_too_many_open_requests_are_answered_with_503(
    open_service: Callable[..., Service],
) -> None:
    app = build_app(open_service(), Limits(open=0), None, loopback=True)
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.get("/nodes/p1")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200


def test_too_many_waiting_changes_are_answered_with_503_and_not_applied(
    open_service: Callable[..., Service],
) -> None:
    app = build_app(open_service(), Limits(waiting=0), None, loopback=True)
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post("/edges", json={"edges": [EDGE]})
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert client.get("/healthz").json()["change"] == 0


def test_a_failure_tells_nothing_of_the_machine(
    open_service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = open_service()

    def fails(*_: Any) -> None:
        raise OSError(f"{service.journal.path} cannot be written")

    monkeypatch.setattr(service.journal, "append", fails)
    app = build_app(service, Limits(), None, loopback=True)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        answer = client.post("/edges", json={"edges": [EDGE]})
        assert answer.status_code == 500
        assert str(service.journal.folder) not in answer.text
        assert client.get("/healthz").json()["change"] == 0


def test_the_interface_describes_itself(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    routes = {
        (path.replace("{id:path}", "{id}"), method.lower())
        for route in client.app.app.routes  # type: ignore[attr-defined]
        for path, method in [(route.path, next(iter(route.methods - {"HEAD"})))]
    }
    own = {"/", "/page.js", "/page.css", "/favicon.ico", "/docs", "/openapi.json"}
    listed = {(path, method) for path, each in described["paths"].items() for method in each}
    assert listed == {(path, method) for path, method in routes if path not in own}
    page = client.get("/docs").text
    assert all(path in page for path in described["paths"])


def test_metrics_count_requests_and_changes(client: TestClient) -> None:
    client.get("/nodes/p1")
    client.post("/edges", json={"edges": [EDGE]})
    lines = client.get("/metrics").text.splitlines()
    assert 'vrgcn_requests_total{method="GET",route="/nodes/{id}",status="200"} 1' in lines
    assert "vrgcn_changes_total 1" in lines
    assert "vrgcn_change 1" in lines


def test_methods_and_paths_that_clients_invent_are_one_label(client: TestClient) -> None:
    for number in range(20):
        client.request(f"M{number}-{'x' * 3000}", "/nodes/p1")
        client.get(f"/path-{number}")
    text = client.get("/metrics").text
    assert 'vrgcn_requests_total{method="other",route="other",status="405"} 20' in text
    assert 'vrgcn_requests_total{method="GET",route="other",status="404"} 20' in text
    assert len(text) < 10_000


def test_a_client_that_leaves_is_no_failure(client: TestClient) -> None:
    """Its body ends early: nobody sees the answer, and the log has no traceback."""

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    answers: list[Any] = []

    async def sent(message: Any) -> None:
        answers.append(message)

    async def asked() -> None:
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/edges", "query_string": b""}
        scope |= {"headers": headers, "http_version": "1.1", "root_path": "", "scheme": "http"}
        await client.app(scope, gone, sent)

    assert client.portal is not None
    client.portal.call(asked)
    assert answers[0]["status"] == 400


def test_the_page_has_an_icon(client: TestClient) -> None:
    answer = client.get("/favicon.ico")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
