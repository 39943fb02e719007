"""The page of the league and the summary's part say what the records say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.harness.blocks import read_block, write_block
from lab.harness.records import read_lines
from lab.league.publish import (
    BEFORE,
    BLOCK,
    PAGE,
    RECORDS,
    ROOT,
    SUMMARY,
    page,
    publish,
    summary_part,
)
from lab.league.scores import Scores
from lab.league.table import score_table, tune_table
from tests.messages import refused


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.skipif(not (ROOT / RECORDS).is_file(), reason="the league has no records in docs yet")
def test_the_pages_say_what_the_records_say() -> None:
    records = read_lines(ROOT / RECORDS)
    assert text(ROOT / PAGE) == page(records)
    assert read_block(text(ROOT / SUMMARY), BLOCK) == summary_part(records)


def test_what_is_published_is_the_same_when_it_is_published_again(
    records: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / SUMMARY).parent.mkdir(parents=True)
    (tmp_path / SUMMARY).write_text(f"# vrgcn\n\nFirst.\n\n{BEFORE}\n\nLast.\n", encoding="utf-8")
    publish(records, tmp_path)
    written = [text(tmp_path / name) for name in (RECORDS, PAGE, SUMMARY)]
    assert read_lines(tmp_path / RECORDS) == records
    assert tune_table(Scores(records, 3)) in written[1]
    assert score_table(Scores(records, 3)) in written[1]
    assert "commit 1a2b3c4" in written[1]
    assert "2 real graphs, 3 splits each" in written[2]
    assert "2 real graphs, 1 to 3 splits each" in summary_part(records[:-2])
    assert written[2].startswith("# vrgcn\n\nFirst.\n\n<!-- league -->\n## Beside simple baselines")
    assert written[2].endswith(f"<!-- end of league -->\n\n{BEFORE}\n\nLast.\n")
    assert "is above it on 1, level with\nit (within one standard error) on 0" in written[2]
    publish(read_lines(tmp_path / RECORDS), tmp_path)
    assert [text(tmp_path / name) for name in (RECORDS, PAGE, SUMMARY)] == written
    assert (tmp_path / "docs/images/league.png").is_file()


def test_a_block_needs_its_place() -> None:
    assert read_block("no block", "mine") is None
    with refused():
        write_block("# Page\n", "mine", "text", "## End")
