"""How many reads per second a service answers next to writes, measured with wrk over loopback.

    python -m lab.studies.serve_load --graph cora --seconds 20

Trains a model for a few epochs, serves it in a process of its own, writes at a fixed rate from
another one and reads with wrk (a Debian package) meanwhile. Prints reads per second, their
latencies, and every answer that was no success.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import vrgcn

_SCRIPT = """
local ids = {IDS}
local at = 0
request = function()
  at = at % #ids + 1
  return wrk.format("GET", "/nodes/" .. ids[at] .. "?neighbours=NEIGHBOURS")
end
"""


class Writer(threading.Thread):
    """Adds and removes one edge in turn, so many times a second, until it is stopped."""

    def __init__(self, address: str, nodes: int, rate: float) -> None:
        super().__init__()
        self.address, self.nodes, self.rate = address, nodes, rate
        self.times: list[float] = []
        self.failed: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        count = 0
        while not self.over.wait(1 / self.rate):
            source, target = (7 * (count // 2)) % self.nodes, (11 * (count // 2) + 3) % self.nodes
            edge = {"source": source, "target": target}
            method = "DELETE" if count % 2 else "POST"
            began = time.perf_counter()
            try:
                _ask(f"{self.address}/edges", method, {"edges": [edge]})
                self.times.append(time.perf_counter() - began)
            except urllib.error.HTTPError as error:
                self.failed.append(error.read().decode())
            count += 1


def _ask(address: str, method: str = "GET", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, method=method)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def measure(graph: str, seconds: int, rate: float, neighbours: int, connections: int) -> None:
    """Run the service, the writer and wrk, and print what they saw."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vrgcn.train(graph, out=folder / "run", epochs=3, smooth="never", threads=1)
        command = [sys.executable, "-m", "vrgcn", "serve", str(folder / "run"), "--port", "0"]
        with subprocess.Popen(
            [*command, "--threads", "1"], stdout=subprocess.PIPE, text=True
        ) as it:
            assert it.stdout is not None
            found = re.search(r"http://[^ ]+", it.stdout.readline())
            assert found is not None
            address = found[0]
            nodes = _ask(f"{address}/about")["nodes"]
            some = range(0, nodes, max(nodes // 1000, 1))
            for node in some:  # explanations of these are kept from now on
                _ask(f"{address}/nodes/{node}?neighbours={neighbours}")
            ids = "{" + ",".join(f'"{node}"' for node in some) + "}"
            text = _SCRIPT.replace("{IDS}", ids).replace("NEIGHBOURS", str(neighbours))
            (folder / "read.lua").write_text(text)
            writer = Writer(address, nodes, rate)
            writer.start()
            load = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
            done = subprocess.run(
                [*load, "-s", str(folder / "read.lua"), address],
                capture_output=True,
                text=True,
                check=True,
            )
            writer.over.set()
            writer.join()
            it.terminate()
    print(done.stdout)
    times = sorted(writer.times)
    print(f"{len(times)} writes in {seconds} s, {len(writer.failed)} failed", *writer.failed[:3])
    print(
        f"write p50 {1000 * times[len(times) // 2]:.1f} ms, p99 {1000 * times[-1]:.1f} ms at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=float, default=10.0, help="writes per second")
    parser.add_argument("--neighbours", type=int, default=0, help="influential ones per read")
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: apt install wrk")
    measure(**vars(options))


if __name__ == "__main__":
    main()
