"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from vrgcn.serve.metrics import BUCKETS, Metrics


def test_counters_gauges_and_labels_are_lines_of_text() -> None:
    metrics = Metrics()
    metrics.counter("changes_total", "Changes.")
    metrics.counter("requests_total", "Requests.")
    metrics.gauge("waiting", "Changes that wait.", lambda: 3)
    metrics.count("requests_total", route='a"b\\c\n', status="200")
    metrics.count("requests_total", route='a"b\\c\n', status="200")
    lines = metrics.text().splitlines()
    assert "# TYPE changes_total counter" in lines
    assert "changes_total 0" in lines
    assert r'requests_total{route="a\"b\\c\n",status="200"} 2' in lines
    assert "waiting 3" in lines


def test_the_histogram_counts_up_to_each_bucket() -> None:
    metrics = Metrics()
    for seconds in (BUCKETS[0], 0.0011, 100.0):
        metrics.observe(seconds, route="/")
    text = metrics.text()
    assert 'vrgcn_request_seconds_bucket{route="/",le="0.0005"} 1' in text
    assert 'vrgcn_request_seconds_bucket{route="/",le="0.002"} 2' in text
    assert 'vrgcn_request_seconds_bucket{route="/",le="10.0"} 2' in text
    assert 'vrgcn_request_seconds_bucket{route="/",le="+Inf"} 3' in text
    assert 'vrgcn_request_seconds_count{route="/"} 3' in text
