"""A small run of imported tables, and a service of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import vrgcn
from tests.serve.papers import SPLITS, write_papers
from vrgcn.cli import main
from vrgcn.serve.app import build_app
from vrgcn.serve.bodies import Limits
from vrgcn.serve.service import Service, opened_service


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on twelve papers in two communities, and of its graph beside it."""
    return write_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on items, which have no labels, and users who bought them."""
    folder = tmp_path_factory.mktemp("shop")
    items = [f"i{number},{number}.5" for number in range(6)]
    users = [f"{n},{20 + n},{('no', 'yes')[n % 2]},{SPLITS[n // 2 % 4]}" for n in range(12)]
    bought = [f"{n},i{(n + step) % 6}" for n in range(12) for step in (0, 2)]
    for name, head, rows in (
        ("item", "id,price", items),
        ("user", "id,age,churned,split", users),
        ("bought", "user,item", bought),
    ):
        (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    nodes = ["--nodes", f"item={folder / 'item.csv'}", f"user={folder / 'user.csv'}"]
    edges = ["--edges", f"user-bought-item={folder / 'bought.csv'}"]
    label = ["--label", "user.churned", "--split", "user.split"]
    main(["import", *nodes, *edges, *label, "--out", str(folder / "graph")])
    settings: dict[str, Any] = {"epochs": 2, "smooth": "never", "learned_rows": False}
    vrgcn.train(folder / "graph", out=folder / "run", **settings)
    return folder / "run"


@pytest.fixture
def open_service(papers: Path, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """A function that opens the service of a run with the state in the test's folder; the one
    that it opened before is closed."""
    with ExitStack() as stack:

        def opened(run: Path = papers, **settings: Any) -> Service:
            stack.close()
            settings = {"checkpoint_every": 0} | settings
            return stack.enter_context(opened_service(run, tmp_path / "state", **settings))

        yield opened


@pytest.fixture
def client(open_service: Callable[..., Service]) -> Iterator[TestClient]:
    """A client of the service."""
    app = build_app(open_service(), Limits(body=2000, batch=3), None, loopback=True)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as found:
        yield found


@pytest.fixture(autouse=True)
def _no_state_left(tmp_path: Path) -> Iterator[None]:
    yield
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
