"""The page of `vrgcn report` is a table of panels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import small_graph
from vrgcn.data.store import save_graph
from vrgcn.pages.page import Page
from vrgcn.pages.runs import report
from vrgcn.pages.runs.report import PANELS, Reported


def test_a_panel_is_a_function_and_a_line(
    vrgcn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_graph(small_graph(), tmp_path / "graph")
    for estimator in ("exact", "cvd"):
        flags = ("--graph", "graph", "--epochs", 1, "--hidden", 4, "--estimator", estimator)
        assert vrgcn("train", *flags, "--out", f"runs/{estimator}")[0] == 0

    def sizes(page: Page, runs: Reported) -> None:
        page.heading("Sizes")
        page.table(["run", "hidden"], [[r.label, str(r.config["hidden"])] for r in runs.records])
        runs.notes.append("sizes are shown")

    monkeypatch.setattr(report, "PANELS", (sizes, *PANELS))
    code, out, _ = vrgcn("report", "runs/exact", "runs/cvd", "--no-scores")
    assert code == 0
    assert out == "note: sizes are shown\nreport of 2 runs: report.html\n"
    page = (tmp_path / "report.html").read_text()
    assert "<td>exact</td><td>4</td>" in page
    assert page.index(">Sizes<") < page.index(">Results<") < page.index(">Options<")
