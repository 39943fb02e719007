"""The card of a run says what the run's files say, has no test score that was not asked for, and
leaves files of the user's alone."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import torch

from tests.runs.test_fit import graph
from vrgcn import Graph, load_run, save_graph, train
from vrgcn.cli.parsing import parse_with_files
from vrgcn.cli.train import TrainOptions
from vrgcn.inference.saved import SavedModel
from vrgcn.models.models import GCN
from vrgcn.runs.card import write_end
from vrgcn.runs.folder import CARD_MARK

SETTINGS = {"hidden": 8, "epochs": 2, "batch_size": 16, "diagnostics": 0}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    save_graph(graph(), tmp_path / "graph")
    return tmp_path / "graph"


def card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def test_a_card_has_data_split_scores_calibration_settings_and_versions(
    store: Path, tmp_path: Path
) -> None:
    run = train(store, out=tmp_path / "run", calibrate="always", **SETTINGS)
    text, result, found = card(tmp_path / "run"), run.result, graph()
    assert result is not None
    assert f"{found.num_nodes:,} nodes, {found.num_edges:,} entries" in text
    sizes = ", ".join(f"{name} {len(found.split(name))}" for name in ("train", "val", "test"))
    assert f"nodes: {sizes}" in text
    assert f"| validation | {result['val']:.4f} |" in text
    assert f"| test | {result['test']:.4f} |" in text
    assert run.saved.calibration is not None
    assert f"temperature {run.saved.calibration.temperature:.4g}" in text
    assert f"on {len(found.val)} validation nodes" in text
    most = re.search(r"coverages up to ([\d.]+)", text)
    assert most is not None
    run.saved.calibration.limit(float(most[1]))  # not rounded up to one that is refused
    assert "| hidden | `8` | `128` |" in text
    assert "| layers |" not in text  # as usual
    assert f"PyTorch {torch.__version__}" in text
    assert "vrgcn predict run --out predictions.parquet" in text


def test_the_command_of_a_card_makes_the_same_settings(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"ratio": (0.5, 0.25, 0.25), "split_seed": 3, "layer_norm": False, "fanout": (2, 3)}
    run = train(store, out=tmp_path / "run", **SETTINGS, **given)
    [line] = [line for line in card(tmp_path / "run").splitlines() if "vrgcn train " in line]
    _, _, *words = shlex.split(line)
    monkeypatch.chdir(tmp_path)
    options = parse_with_files(TrainOptions, words).checked()
    noted = {"chosen_estimator", "graph_checksum"}
    config = {name: value for name, value in run.config.items() if name not in noted}
    assert {name: options.as_written()[name] for name in config} == config


def test_a_run_without_test_nodes_says_so_and_has_no_test_score(tmp_path: Path) -> None:
    found = graph()
    found = found.with_splits({"train": found.train, "val": found.val})
    train(found, out=tmp_path / "run", **SETTINGS)
    text = card(tmp_path / "run")
    assert "| test | not scored |" in text
    assert "it is not known how well new nodes are predicted" in text


def test_a_card_goes_when_a_run_goes_on_and_comes_back_as_if_it_had_not_stopped(
    store: Path, tmp_path: Path
) -> None:
    whole = train(store, out=tmp_path / "a" / "run", **(SETTINGS | {"epochs": 3}))
    train(store, out=tmp_path / "b" / "run", **SETTINGS)
    seen: list[bool] = []

    def look(_: object) -> None:
        seen.append((tmp_path / "b" / "run" / "README.md").exists())

    train(store, out=tmp_path / "b" / "run", resume=True, epochs=3, on_epoch=look)
    assert seen
    assert not any(seen)
    assert whole.finished
    assert card(tmp_path / "a" / "run") == card(tmp_path / "b" / "run")


def test_a_readme_of_the_users_own_stays_and_a_card_is_overwritten(
    store: Path, tmp_path: Path
) -> None:
    train(store, out=tmp_path / "run", **SETTINGS)
    assert card(tmp_path / "run").startswith(CARD_MARK)
    train(store, out=tmp_path / "run", overwrite=True, **(SETTINGS | {"hidden": 4}))
    assert "| hidden | `4` | `128` |" in card(tmp_path / "run")
    (tmp_path / "run" / "README.md").write_text("# Mine\n")
    train(store, out=tmp_path / "run", overwrite=True, **SETTINGS)
    assert card(tmp_path / "run") == "# Mine\n"


def test_names_of_the_users_break_no_line_table_or_code_of_a_card(tmp_path: Path) -> None:
    saved = SavedModel(GCN(3, 4, 2), classes=["a`b|c", "two\nlines"])
    config = {"graph": "some `where`", "metric": "accuracy"}
    result = {"metric": "accuracy", "val": 0.5, "test": None, "epoch": 0}
    write_end(tmp_path, config, result, saved, {})
    text = card(tmp_path)
    assert "of 2: `a'b∣c`, `two\\nlines`" in text
    assert "graph `some 'where'`" in text
    long = SavedModel(GCN(3, 4, 2), classes=["x" * 10**6, "b"])
    write_end(tmp_path, config, result, long, {})
    assert len(card(tmp_path)) < 10_000


def test_a_card_of_pairs_names_the_relation_and_how_it_was_split(tmp_path: Path) -> None:
    every = torch.cartesian_prod(torch.arange(12), torch.arange(10))
    liked = every[every.sum(1) % 2 == 0]
    kinds = Graph.from_kinds({"user": 12, "item": 10}, {("user", "likes", "item"): liked.t()})
    train(
        kinds,
        out=tmp_path / "run",
        predict="user-likes-item",
        ratio=(0.6, 0.2, 0.2),
        **(SETTINGS | {"embedding": 4}),
    )
    text, result = card(tmp_path / "run"), load_run(tmp_path / "run").result
    assert result is not None
    assert "which nodes are linked, by the relation `user-likes-item`" in text
    assert "kinds of nodes: `user (12)`, `item (10)`" in text
    assert "pairs: train 36, val 12, test 12" in text
    assert "against leaks: " in text
    assert f"| test | {result['test']:.4f} |" in text
    assert "scores of pairs rank, and are no probabilities" in text
    assert "vrgcn predict run --pairs pairs.csv --out scored.parquet" in text
    assert "vrgcn recommend run" in text
    assert "from Python" not in text
    assert "probabilities have not" not in text
    assert "| predict | `user-likes-item` | – |" in text


def test_seeds_have_a_card_of_their_mean_and_deviation(vrgcn, store: Path, tmp_path: Path) -> None:
    flags = ("--hidden", 8, "--epochs", 2, "--seeds", 2, "--seed", 5)
    code, _, err = vrgcn("train", store, *flags, "--out", tmp_path / "runs")
    assert code == 0, err
    scores = [
        json.loads((tmp_path / "runs" / f"seed-{seed}" / "result.json").read_text())["test"]
        for seed in (5, 6)
    ]
    mean, spread = sum(scores) / 2, abs(scores[0] - scores[1]) / 2**0.5
    text = card(tmp_path / "runs")
    assert f" | {mean:.4f} ± {spread:.4f} |" in text
    assert "| [seed-5](seed-5/README.md) | " in text
    assert "vrgcn train --config runs/config.toml" in text
    assert "| seed | `6` | `0` |" in card(tmp_path / "runs" / "seed-6")


def test_a_folder_whose_name_is_no_text_has_a_card(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "caf\udce9"
    train(store, out=folder, **SETTINGS)
    assert card(folder).splitlines()[1] == "# Model card: caf\\udce9"
