"""`vrgcn serve`: its checks, and a service that is started and stopped."""

from __future__ import annotations

import json
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.serve.conftest import papers  # noqa: F401
from tests.serve.served import served


def test_changes_survive_the_end_of_the_process(
    papers: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    state = ("--state", str(tmp_path / "state"))
    with served(papers, *state) as address:
        body = json.dumps({"year": 1800}).encode()
        asked = urllib.request.Request(f"{address}/nodes/p1", body, method="PATCH")
        asked.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["change"] == 1
        with urllib.request.urlopen(f"{address}/nodes/p1") as answer:
            changed = json.load(answer)
    with served(papers, *state) as address, urllib.request.urlopen(f"{address}/nodes/p1") as answer:
        again = json.load(answer)
    assert again["change"] == 1
    assert again["probabilities"] == pytest.approx(changed["probabilities"], abs=1e-6)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--host", "0.0.0.0"], "--token-file FILE"),
        (["--port", "70000"], "ports end at 65535"),
        (["--max-batch", "0"], "max_batch must be at least 1"),
        (["--max-seconds", "0"], "--max-seconds"),
        (["--token-file", "absent"], "--token-file"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    vrgcn,
    papers: Path,  # noqa: F811
    flags: list[str],
    text: str,
) -> None:
    code, _, err = vrgcn("serve", str(papers), *flags)
    assert code in (1, 2)
    assert text in err


def test_a_short_token_is_refused(vrgcn, papers: Path, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "token").write_text("short\n")
    code, _, err = vrgcn("serve", str(papers), "--token-file", str(tmp_path / "token"))
    assert code == 1
    assert "at least 16 ASCII characters" in err


def test_a_port_that_is_taken_is_named(vrgcn, papers: Path) -> None:  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = vrgcn("serve", str(papers), "--port", port)
    assert code == 1
    assert f"--port {port}" in err
