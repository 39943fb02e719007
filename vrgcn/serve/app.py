"""The HTTP interface of a service: routes, and what each request becomes.

Reads are answered from the tables of the live graph. Changes wait for the one writer; so many may
wait, and so long, and what is refused was not begun.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vrgcn.serve.answers import ProblemError, answer, on_failure, on_problem, refusal
from vrgcn.serve.bodies import Limits, read_body, whole
from vrgcn.serve.guard import Guard
from vrgcn.serve.metrics import TYPE
from vrgcn.serve.openapi import docs_page, openapi
from vrgcn.serve.schemas import bodies
from vrgcn.serve.service import Service

Endpoint = Callable[[Request], Awaitable[Response]]
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Path = tuple[str | int, ...]  # of a field
NEIGHBOURS = 5  # influential neighbours that a read names
_T = TypeVar("_T")
_KEY = 200  # characters of a client's key at most


def build_app(service: Service, limits: Limits, token: str | None, *, loopback: bool) -> Guard:
    """Return the app of a service.

    token: that requests must have; None: none
    loopback: True if the service is bound to this machine alone
    """
    routes = _Routes(service, limits, token is not None)
    app = Starlette(
        routes=routes.table(),
        exception_handlers={
            ProblemError: on_problem,
            HTTPException: _on_http,
            Exception: on_failure,
        },
        lifespan=routes.lifespan,
    )
    hosts = LOOPBACK if loopback and token is None else None
    return Guard(app, metrics=service.metrics, token=token, hosts=hosts, most=limits.open)


class _Routes:
    """The endpoints of a service."""

    def __init__(self, service: Service, limits: Limits, token: bool) -> None:
        self.service = service
        self.limits = limits
        self.token = token
        self.bodies = bodies(limits.batch)
        self.waiting = 0
        self._writer: asyncio.Lock
        self._thread: ThreadPoolExecutor
        self._folding: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._writer = asyncio.Lock()
        with ThreadPoolExecutor(1) as self._thread:  # reads may take all others
            yield
            async with self._writer:  # a change that has begun is finished
                pass

    def table(self) -> list[Route]:
        static = {
            "/": "page.html",
            "/page.js": "page.js",
            "/page.css": "page.css",
            "/favicon.ico": "icon.svg",
        }
        pages = [_route(path, "GET", partial(_static, name)) for path, name in static.items()]
        return [
            *pages,
            _route("/nodes", "POST", self.add_nodes),
            _route("/nodes/{id:path}", "GET", self.read),
            _route("/nodes/{id:path}", "PATCH", self.set_features),
            _route("/nodes/{id:path}", "DELETE", self.remove_node),
            _route("/edges", "POST", self.add_edges),
            _route("/edges", "DELETE", self.remove_edges),
            _route("/changes", "POST", self.several),
            _route("/what-if", "POST", self.what_if),
            _route("/rows", "POST", self.ask),
            _route("/recommend/{id:path}", "GET", self.recommend),
            _route("/explain/{id:path}", "GET", self.explain),
            _route("/about", "GET", self.about),
            _route("/healthz", "GET", self.healthz),
            _route("/metrics", "GET", self.metrics),
            _route("/openapi.json", "GET", self.openapi),
            _route("/docs", "GET", self.docs),
        ]

    async def read(self, request: Request) -> Response:
        count = whole(request, "neighbours", NEIGHBOURS, 0, 50)
        read = partial(self.service.read, *_node(request), count)
        known = read(kept=True)  # from tables, at once; what has to be computed has a thread
        return answer(known or await self._computed(read))

    async def recommend(self, request: Request) -> Response:
        count = whole(request, "k", 20, 1, 1000)
        find = partial(self.service.recommend, *_node(request), count)
        return answer(await self._computed(find))

    async def explain(self, request: Request) -> Response:
        explain = partial(self.service.explain, *_node(request))
        return answer(await self._computed(explain))

    async def _computed(self, work: Callable[[], Any]) -> Any:
        """Return the result of a computation in a thread; raise if it takes too long."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(work), self.limits.seconds)
        except TimeoutError:
            text = f"the answer took more than {self.limits.seconds:g} seconds"
            raise ProblemError(503, text, retry_after=5) from None

    async def add_nodes(self, request: Request) -> Response:
        body = await self._body(request)
        change = {"change": "add_nodes", "rows": body["nodes"], "kind": body.get("kind")}
        return await self._change(request, [change], lambda path: _of_one(path, "nodes"), 201)

    async def set_features(self, request: Request) -> Response:
        node, kind = _node(request)
        row = await self._body(request)
        if "id" in row:
            raise ProblemError(422, "the path names the node: leave it out", "id")
        change = {"change": "set_features", "rows": [row | {"id": node}], "kind": kind}
        return await self._change(request, [change], _of_path)

    async def remove_node(self, request: Request) -> Response:
        node, kind = _node(request)
        change = {"change": "remove_nodes", "ids": [node], "kind": kind}
        return await self._change(request, [change], _of_path)

    async def add_edges(self, request: Request) -> Response:
        return await self._edges(request, "add_edges", 201)

    async def remove_edges(self, request: Request) -> Response:
        return await self._edges(request, "remove_edges", 200)

    async def _edges(self, request: Request, name: str, status: int) -> Response:
        body = await self._body(request)
        change = {"change": name, "rows": body["edges"], "relation": body.get("relation")}
        return await self._change(request, [change], lambda path: _of_one(path, "edges"), status)

    async def several(self, request: Request) -> Response:
        changes = (await self._body(request))["changes"]
        return await self._change(request, changes, lambda path: ("changes", *path), 201)

    async def what_if(self, request: Request) -> Response:
        body = await self._body(request)
        ask = partial(self.service.what_if, body["changes"], body["ids"], body.get("kind"))
        with _fields(lambda path: ("changes", *path) if isinstance(path[0], int) else path):
            return answer(await self._computed(ask))

    async def ask(self, request: Request) -> Response:
        rows = (await self._body(request))["rows"]
        return answer(await self._computed(partial(self.service.ask, rows)))

    async def _body(self, request: Request) -> dict[str, Any]:
        """Return a request's body, which matches the schema of its route."""
        schema = self.bodies[request.method, request.scope["route_name"]]
        body = await read_body(request, schema, self.limits)
        rows = sum(len(each.get("rows") or each["ids"]) for each in body.get("changes", ()))
        if rows > self.limits.batch:
            most = f"{self.limits.batch:,}"
            raise ProblemError(422, f"has {rows:,} rows; at most {most} at once", "changes")
        return body

    async def _change(
        self,
        request: Request,
        changes: list[dict[str, Any]],
        field: Callable[[Path], Path],
        status: int = 200,
    ) -> Response:
        """Apply changes when it is their turn, and answer once they are in the journal.

        field: of the request, that a part of the changes comes from
        """
        key = request.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= _KEY:
            raise ProblemError(422, f"must have 1 to {_KEY} characters", "Idempotency-Key")
        began = time.monotonic()
        async with self._turn():
            left = max(0.0, self.limits.seconds - (time.monotonic() - began))
            with _fields(field):
                done = await self._write(partial(self.service.change, changes, key, left))
        if self.service.due:
            task = asyncio.create_task(self._fold())
            self._folding.add(task)
            task.add_done_callback(self._folding.discard)
        return answer(done, status)

    async def _write(self, work: Callable[[], _T]) -> _T:
        """Return the result of the writer's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """The writer's turn. Raises if too many wait, or if it takes too long."""
        if self.waiting >= self.limits.waiting:
            raise ProblemError(503, "too many changes wait; nothing was changed", retry_after=1)
        self.waiting += 1
        try:
            try:
                await asyncio.wait_for(self._writer.acquire(), self.limits.seconds)
            except TimeoutError:
                text = f"the writer was busy for {self.limits.seconds:g} seconds; nothing changed"
                raise ProblemError(503, text, retry_after=2) from None
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._writer.release()

    async def _fold(self) -> None:
        async with self._writer:
            if self.service.due:
                await self._write(self.service.fold)

    async def about(self, _: Request) -> Response:
        return answer(await self._computed(self.service.about))

    async def healthz(self, _: Request) -> Response:
        return answer({"status": "ok", "change": self.service.number})

    async def metrics(self, _: Request) -> Response:
        return Response(self.service.metrics.text(), media_type=TYPE)

    async def openapi(self, _: Request) -> Response:
        return answer(openapi(self.token, self.bodies))

    async def docs(self, _: Request) -> Response:
        return Response(docs_page(self.token, self.bodies), media_type="text/html")


def _route(path: str, method: str, endpoint: Endpoint) -> Route:
    name = path.replace(":path", "")

    async def named(request: Request) -> Response:
        request.scope["route_name"] = name
        return await endpoint(request)

    return Route(path, named, methods=[method], name=f"{method} {name}")


async def _static(name: str, _: Request) -> Response:
    kinds = {
        "html": "text/html",
        "js": "text/javascript",
        "css": "text/css",
        "svg": "image/svg+xml",
    }
    text = files("vrgcn.serve").joinpath("static", name).read_text(encoding="utf-8")
    return Response(text, media_type=kinds[name.rpartition(".")[2]])


def _node(request: Request) -> tuple[str, str | None]:
    """The id and the kind that a request names."""
    return request.path_params["id"], request.query_params.get("kind")


@contextmanager
def _fields(field: Callable[[Path], Path]) -> Iterator[None]:
    """Name fields of the request in errors about parts of changes that are raised inside."""
    try:
        yield
    except ProblemError as error:
        if error.path and error.status != 409:
            error.path = field(error.path)
        raise


def _of_one(path: Path, rows: str) -> Path:
    """The field of a body that is one change. rows: the field that has its rows"""
    return (rows, *path[2:]) if path[1] == "rows" else path[1:]


def _of_path(path: Path) -> Path:
    """The field of a change of the node that the path names: a column of its only row, its kind or
    itself."""
    if path[1] in ("rows", "ids"):
        return path[3:] or ("id",)
    return path[1:]


async def _on_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = {404: "there is nothing at this path; /docs lists what there is"}
    response = refusal(ProblemError(error.status_code, text.get(error.status_code, error.detail)))
    response.headers.update(error.headers or {})
    return response
