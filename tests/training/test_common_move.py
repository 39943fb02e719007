"""The common move of tables: measured in runs, which warn if it is large."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
import torch

from vrgcn import ESTIMATORS, Graph, TrainConfig, fit
from vrgcn.engine.estimators import find_estimator
from vrgcn.files.setting_names import flags_in_messages
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model
from vrgcn.training import common_move
from vrgcn.training.common_move import AGREE, OLD, common_square, old_tables
from vrgcn.training.state import Epoch

RAW = "few/corrected/corrected/raw"


def test_the_square_of_a_common_move_has_no_bias_for_the_number_of_rows() -> None:
    rows = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 1
    # All rows there are: those of other minibatches are as likely.
    products = [float(a @ b) for a, b in combinations(rows, 2)]
    assert common_square(rows) == pytest.approx(sum(products) / len(products))
    assert common_square(rows[:1]) == 0
    assert common_square(torch.ones(4, 2)) == pytest.approx(2)


def point(number: int, common: float | None) -> Epoch:
    return Epoch(number, 0.5, None, 1.0, 3.0, 0.0, 0.0, common_staleness=common)


def warnings(values: list[float | None], estimator: str = RAW) -> list[int]:
    """Epochs after which a run warns."""
    curve = [point(number, value) for number, value in enumerate(values, start=1)]
    made = find_estimator(estimator)
    return [n for n in range(1, len(curve) + 1) if old_tables(curve[:n], made) is not None]


def test_a_run_warns_once_after_some_epochs_in_a_row() -> None:
    old, sound = OLD + 0.1, OLD - 0.1
    assert AGREE == 3
    assert warnings([old, old, sound, old, old, old, old]) == [6]
    assert warnings([old, old, sound, None, old, sound]) == []
    assert warnings([old] * 5, "history") == []


def test_the_warning_says_what_to_do() -> None:
    curve = [point(number, 0.8) for number in range(1, 4)]
    with flags_in_messages():
        raw, moving = (old_tables(curve, find_estimator(name)) for name in (RAW, "two-way"))
    assert raw == (
        "the tables are too old to be trusted: after epoch 3 all rows together are off by 80% of "
        "their size; keep them in a moving frame (--estimator two-way), or lower the learning rate"
    )
    assert moving is not None
    assert moving.endswith("of their size; lower the learning rate")


def trained(estimator: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Epoch], list[str]]:
    generator = torch.Generator().manual_seed(0)
    graph = Graph(
        torch.randint(60, (2, 600), generator=generator),
        torch.randn(60, 4, generator=generator) + 1,
        torch.arange(60) % 2,
        train=torch.arange(60),
        undirected=True,
    )
    model = build_model(ModelConfig(model="gcn", hidden=8, dropout=0.0), 4, 2, 0)
    config = TrainConfig(estimator=estimator, epochs=4, batch_size=10, learning_rate=0.05)
    monkeypatch.setattr(common_move, "OLD", 0.02)
    notes: list[str] = []
    result = fit(model, graph, replace(config, diagnostics=0), on_note=notes.append)
    return result.curve, [note for note in notes if "too old" in note]


def test_a_frame_carries_what_all_rows_of_raw_tables_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    raw, warned = trained(RAW, monkeypatch)
    moving, silent = trained("two-way", monkeypatch)
    for before, after in zip(raw[1:], moving[1:], strict=True):
        assert before.common_staleness is not None
        assert after.common_staleness is not None
        assert after.common_staleness < 0.02 < before.common_staleness
    assert len(warned) == 1
    assert silent == []


def test_without_tables_there_is_nothing_common(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "exact" in ESTIMATORS
    curve, _ = trained("exact", monkeypatch)
    assert {(p.common_staleness, p.gradient_common_staleness) for p in curve} == {(None, None)}
