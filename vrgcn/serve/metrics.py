"""Counts and times of a service in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from threading import Lock

TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper ends of the histogram's buckets, in seconds.
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters, a histogram of request times, and gauges that are read when they are asked for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, Counter[Labels]] = {}
        self._help: dict[str, str] = {}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._buckets: dict[Labels, list[int]] = {}
        self._sums: Counter[Labels] = Counter()

    def counter(self, name: str, text: str) -> None:
        """Declare a counter; it is 0 until it is counted."""
        self._help[name] = text
        self._counts[name] = Counter()

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Declare a gauge whose value a function returns."""
        self._help[name] = text
        self._gauges[name] = value

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        with self._lock:
            self._counts[name][tuple(labels.items())] += by  # type: ignore[assignment]

    def observe(self, seconds: float, **labels: str) -> None:
        """Add the time of one request to the histogram."""
        key = tuple(labels.items())
        with self._lock:
            buckets = self._buckets.setdefault(key, [0] * (len(BUCKETS) + 1))
            buckets[bisect_left(BUCKETS, seconds)] += 1
            self._sums[key] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """All metrics, a line each."""
        lines: list[str] = []
        with self._lock:
            for name, counts in self._counts.items():
                lines += _head(name, self._help[name], "counter")
                values = counts or {(): 0}
                lines += [f"{name}{_shown(labels)} {value:g}" for labels, value in values.items()]
            lines += self._histogram("vrgcn_request_seconds", "Seconds from request to answer.")
        for name, value in self._gauges.items():
            lines += [*_head(name, self._help[name], "gauge"), f"{name} {value():g}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str, text: str) -> list[str]:
        lines = _head(name, text, "histogram")
        for labels, buckets in self._buckets.items():
            total = 0
            for end, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                total += count
                lines.append(f"{name}_bucket{_shown((*labels, ('le', end)))} {total}")
            lines.append(f"{name}_sum{_shown(labels)} {self._sums[labels]:.6g}")
            lines.append(f"{name}_count{_shown(labels)} {total}")
        return lines


def _head(name: str, text: str, kind: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    texts = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return "{" + ",".join(texts) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
