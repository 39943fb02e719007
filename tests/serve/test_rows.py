"""Questions about a time over HTTP: answers of the live model, before and after new facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.graph.timed import dated_graph
from tests.live.test_asking import day
from vrgcn import train
from vrgcn.data.store import save_graph
from vrgcn.serve.app import build_app
from vrgcn.serve.bodies import Limits
from vrgcn.serve.service import Service


@pytest.fixture(scope="module")
def of_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    save_graph(dated_graph(), folder / "graph")
    train(folder / "graph", out=folder / "run", epochs=2, hidden=6, threads=1)
    return folder / "run"


def test_rows_are_answered_by_the_facts_of_their_time(
    of_rows: Path, open_service: Callable[..., Service]
) -> None:
    service = open_service(of_rows)
    rows = [{"customer": "c3", "at": day(60)}, {"customer": "c3", "at": day(200)}]
    app = build_app(service, Limits(batch=3), None, loopback=True)
    with TestClient(app, base_url="http://localhost") as asking:
        before = asking.post("/rows", json={"rows": rows})
        assert before.status_code == 200
        share = service.live.ask(rows).probabilities[:, 1].tolist()
        assert [each["probabilities"]["1"] for each in before.json()["rows"]] == share
        fact = {"id": 900, "features": [9.0, -9.0], "date": day(150)}
        edge = {"source": "c3", "target": 900}
        changes = [
            {"change": "add_nodes", "rows": [fact], "kind": "order"},
            {"change": "add_edges", "rows": [edge], "relation": "customer-of-order"},
        ]
        assert asking.post("/changes", json={"changes": changes}).status_code == 201
        after = asking.post("/rows", json={"rows": rows}).json()
        assert after["change"] == 1
        assert after["rows"][0] == before.json()["rows"][0]
        assert after["rows"][1] != before.json()["rows"][1]
        for wrong in ([], rows * 2, [{"customer": "c3"}], [{"customer": "c3", "at": "soon"}]):
            assert asking.post("/rows", json={"rows": wrong}).status_code == 422
        assert "/rows" in asking.get("/openapi.json").json()["paths"]
        assert "POST /rows" in asking.get("/docs").text
    again = open_service(of_rows)  # from the journal
    assert again.live.ask(rows).probabilities[:, 1].tolist() != share
