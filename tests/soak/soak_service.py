"""A service under attack: half-sent requests, invented methods, odd bodies.

It answers others meanwhile, its log and metrics stay short, and no mistake of a client is a 500.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.serve.papers import write_papers
from tests.serve.served import served

HALF_SENT, INVENTED, BODIES = 1_100, 400, 20_000
FILES = 1024  # that the service may have open: fewer than there are half-sent requests
SLOWEST = 5.0  # seconds that /healthz may take under attack
LOG, METRICS = 20_000, 20_000  # characters

EDGE = {"source": "p0", "target": "p1", "weight": 1.0}
NODE = {"id": "n", "year": 2001, "field": "x"}
PATHS: dict[tuple[str, str], Any] = {
    ("POST", "/nodes"): {"nodes": [NODE], "kind": None},
    ("PATCH", "/nodes/p1"): {"year": 1990},
    ("POST", "/edges"): {"edges": [EDGE], "relation": None},
    ("DELETE", "/edges"): {"edges": [EDGE]},
    ("POST", "/changes"): {
        "changes": [
            {"change": "remove_nodes", "ids": ["none"], "kind": None},
            {"change": "add_edges", "rows": [EDGE], "relation": None},
        ]
    },
    ("POST", "/what-if"): {"changes": [{"change": "add_edges", "rows": [EDGE]}], "ids": ["p1"]},
}
_MARK = "here"
ODD = (
    *("null", "true", "-1", "3", "0.5", "1e400", "-1e400", "9" * 400, str(2**63), '""', "[]", "{}"),
    *('"\\ud800"', '"p1"', "[[1]]", '{"a": 1}', '[{"\\ud800": 1}]', "NaN", f'"{"x" * 5000}"', "]"),
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bodies", type=int, default=BODIES)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vrgcn-service-") as name:
        run = write_papers(Path(name))
        flags = ("--state", f"{name}/state", "--max-seconds", "3", "--max-body", "20000")
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, most))
        with served(run, *flags, logged=LOG) as address:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * FILES, most), most))
            for sent in (b"GET / HTTP/1.1\r\nHost: loc", _head("POST", "/edges", 100) + b"{"):
                _attack(address, sent)
            _invent(address)
            _send_odd(address, random.Random(asked.seed), asked.bodies)
            metrics = len(_ask(address, "GET", "/metrics")[1])
            assert metrics < METRICS, metrics
            print(f"/metrics has {metrics:,} characters")
    return 0


def _attack(address: str, sent: bytes) -> None:
    """Hold half-sent requests open, and ask for /healthz beside them."""
    slowest = 0.0
    with ExitStack() as stack:
        for number in range(HALF_SENT):
            with suppress(ConnectionError):  # it was closed to make room
                stack.enter_context(_connected(address)).sendall(sent)
            if number % 50 == 0:
                slowest = max(slowest, _healthy(address))
        for _ in range(20):
            slowest = max(slowest, _healthy(address))
    assert slowest < SLOWEST, slowest
    print(f"{HALF_SENT:,} half-sent requests: /healthz took {slowest:.3f} s at most")


def _healthy(address: str) -> float:
    began = time.monotonic()
    assert _ask(address, "GET", "/healthz")[0] == 200
    return time.monotonic() - began


def _invent(address: str) -> None:
    """Send methods of 30 kB, and short ones that are as unknown."""
    for number in range(INVENTED):
        for method in (f"M{number}-{'x' * 30_000}", f"M{number}"):
            with _connected(address) as client:
                client.sendall(_head(method, "/", 0))
                assert client.recv(100).split()[1] in (b"405", b"431")
    print(f"{2 * INVENTED:,} invented methods were refused")


def _send_odd(address: str, chance: random.Random, count: int) -> None:
    """Send bodies that are right but for one value or name."""
    seen: Counter[int] = Counter()
    for number in range(count):
        (method, path), right = chance.choice(list(PATHS.items()))
        text = json.dumps(right)
        text = _with_odd(text, chance)
        status, answer = _ask(address, method, path, text.encode())
        seen[status] += 1
        assert status < 500, (number, method, path, text[:500], answer)
        if status >= 400:
            error = json.loads(answer)["error"]
            assert len(answer) < 4_000, (number, text[:500])
            assert "--" not in error["message"], error
    print(f"{count:,} odd bodies: {dict(sorted(seen.items()))}")


def _with_odd(text: str, chance: random.Random) -> str:
    """Replace a value or a name; sometimes cut the text."""
    found = json.loads(text)
    at = found
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = chance.choice(keys)
        if isinstance(at[key], dict | list) and at[key] and chance.random() < 0.7:
            at = at[key]
            continue
        if isinstance(at, dict) and chance.random() < 0.3:
            at[_MARK] = at.pop(key)
        else:
            at[key] = _MARK
        break
    odd = chance.choice(ODD)
    name = odd if odd.startswith('"') else json.dumps(odd)
    text = json.dumps(found).replace(f'"{_MARK}":', f"{name}:").replace(f'"{_MARK}"', odd)
    return text if chance.random() < 0.9 else text[: chance.randrange(len(text))]


def _head(method: str, path: str, length: int) -> bytes:
    lines = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{lines}Content-Length: {length}\r\n\r\n".encode()


@contextmanager
def _connected(address: str) -> Iterator[socket.socket]:
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as client:
        yield client


def _ask(address: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


if __name__ == "__main__":
    sys.exit(main())
