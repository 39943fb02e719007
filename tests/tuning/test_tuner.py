"""A search on a tiny graph: what comes first, what is chosen, faults, time, going on."""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.cli.conftest import small_graph
from tests.messages import refused
from tests.training.test_objective import far_off
from vrgcn import Graph, TrainConfig, predict, tune
from vrgcn.models.config import ModelConfig
from vrgcn.runs.folder import LEADERBOARD
from vrgcn.runs.job import Job
from vrgcn.targets.opening import find_target
from vrgcn.tasks.metrics import accuracy
from vrgcn.training import clock as clocks
from vrgcn.training.divergence import DivergedError
from vrgcn.training.trainer import Trainer
from vrgcn.tuning import trials as module
from vrgcn.tuning.finishing import TuneResult
from vrgcn.tuning.halving import Halving
from vrgcn.tuning.leaderboard import Leaderboard, ranked
from vrgcn.tuning.members import Member
from vrgcn.tuning.session import Session
from vrgcn.tuning.space import SPACE, TriedSettings
from vrgcn.tuning.study import Tried

optuna = pytest.importorskip("optuna")

GRAPH = small_graph()
MODEL = ModelConfig(hidden=8)
CONFIG = TrainConfig(epochs=3, batch_size=32, learning_rate=0.002, seed=2)


def search(folder: Path | None = None, **given) -> TuneResult:
    """Search networks only."""
    return tune(GRAPH, MODEL, CONFIG, folder=folder, **({"trials": 4, "baselines": ()} | given))


def told(result: TuneResult) -> list[tuple]:
    """All of the trials but their seconds."""
    return [(t.number, t.state, t.val, t.values, t.epochs, t.reason) for t in result.trials]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> tuple[TuneResult, Path]:
    folder = tmp_path_factory.mktemp("search")
    return search(folder), folder


def test_the_settings_that_were_given_come_first_and_are_never_beaten_downwards(found) -> None:
    result, _ = found
    first = result.trials[0]
    values = TriedSettings(MODEL, CONFIG).values()
    given = {name: values[name] for name in SPACE}
    # The choices of auto and None on so small a graph.
    assert first.values == given | {"estimator": "exact", "weight_decay": 0.0}
    assert first.state == "complete"
    assert result.best.val >= first.val
    assert result.best == ranked(result.trials, lambda a, b: a > b)[0]


def test_the_best_is_the_model_of_its_trial_scored_on_the_test_nodes(found) -> None:
    result, folder = found
    assert result.result.val == result.best.val
    assert result.result.test is not None
    kept = json.loads((folder / "best" / "result.json").read_text())
    assert (kept["val"], kept["test"]) == (result.result.val, result.result.test)
    trial = folder / "trials" / f"trial-{result.best.number:03d}"
    for name in ("model.safetensors", "config.toml", "metrics.jsonl"):
        assert (folder / "best" / name).read_bytes() == (trial / name).read_bytes()
    outputs = predict(result.model, GRAPH, GRAPH.test)
    assert result.result.test == accuracy(outputs, GRAPH.labels[GRAPH.test])
    config = tomllib.loads((folder / "best" / "config.toml").read_text())
    assert all(config.get(name) == value for name, value in result.best.values.items())
    assert f"trial {result.best.number}" in str(result)


def test_a_search_that_goes_on_and_finds_better_settings_replaces_the_best(tmp_path) -> None:
    bad = replace(CONFIG, learning_rate=1e-9)

    def going_on(trials: int) -> TuneResult:
        return tune(GRAPH, MODEL, bad, folder=tmp_path, trials=trials, baselines=())

    assert going_on(1).best.number == 0
    of_the_first = tmp_path / "best" / "evaluation-test.json"
    of_the_first.write_text("{}")
    result = going_on(7)
    assert not of_the_first.exists()
    assert result.best.number > 0
    assert result.result.val == result.best.val
    config = tomllib.loads((tmp_path / "best" / "config.toml").read_text())
    assert config["learning_rate"] == result.best.values["learning_rate"] > 1e-9


def test_trials_are_runs_that_never_saw_the_test_nodes(found) -> None:
    result, folder = found
    for trial in result.trials:
        home = folder / "trials" / f"trial-{trial.number:03d}"
        run = json.loads((home / "result.json").read_text())
        assert run["test"] is None
        assert len((home / "metrics.jsonl").read_text().splitlines()) == trial.epochs
        assert run["val"] == trial.val
        assert (home / "checkpoints").exists() == (trial.state == "paused")
    about = json.loads((folder / "leaderboard.json").read_text())
    assert [t["val"] for t in about["trials"]] == [t.val for t in result.trials]
    assert about["metric"] == "accuracy"


class KilledError(Exception):
    pass


def test_cut_off_inside_a_trial_it_goes_on_to_the_same_trials(found, tmp_path, monkeypatch) -> None:
    shown = Leaderboard.epoch

    def die(self, number: int, epoch: int, *rest) -> None:
        if (number, epoch) == (2, 1):  # halving may pause it there
            raise KilledError
        shown(self, number, epoch, *rest)

    monkeypatch.setattr(Leaderboard, "epoch", die)
    with pytest.raises(KilledError):
        search(tmp_path)
    monkeypatch.setattr(Leaderboard, "epoch", shown)
    again = search(tmp_path)
    assert told(again) == told(found[0])
    assert again.result.test == found[0].result.test
    longer = search(tmp_path, trials=5)
    assert told(longer)[:4] == told(again)
    assert len(longer.trials) == 5


def test_a_trial_that_fails_has_a_reason_and_is_not_the_end(tmp_path, monkeypatch) -> None:
    run = Job.run
    faults = {
        "trial-001": DivergedError("the training loss became nan at epoch 1, step 2", "lower it"),
        "trial-002": MemoryError("there is not enough memory to train\nadvice"),
        "trial-003": RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
    }

    def failing(job: Job, folder: Path, *args, **kwargs):
        if folder.name in faults:
            raise faults[folder.name]
        return run(job, folder, *args, **kwargs)

    monkeypatch.setattr(Job, "run", failing)
    result = search(tmp_path, trials=5)
    states = [t.state for t in result.trials]
    assert states[:4] == ["complete", "failed", "failed", "failed"]
    assert "the training loss became nan at epoch 1, step 2" in result.trials[1].reason
    assert result.trials[2].reason == "there is not enough memory to train"
    faults["trial-005"] = RuntimeError("a defect of ours")
    with refused(RuntimeError):
        search(tmp_path, trials=6)


def test_a_search_in_which_everything_fails_gives_up_and_says_why(monkeypatch) -> None:
    monkeypatch.setattr(module, "free_memory", lambda: 1000)
    with refused():
        search(trials=30)


def test_what_lies_behind_is_paused_but_never_the_first(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Halving, "continues", lambda *_: False)
    result = search(tmp_path)
    assert [t.state for t in result.trials] == ["complete", "paused", "paused", "paused"]
    assert [t.epochs for t in result.trials] == [3, 1, 1, 1]
    run = json.loads((tmp_path / "trials" / "trial-001" / "result.json").read_text())
    assert run["stopped"] == "callback"


@pytest.fixture
def seconds(monkeypatch) -> list[float]:
    """A clock by hand: each epoch of a trial takes a second, and nothing else does."""
    now = [0.0]
    monkeypatch.setattr(clocks.time, "monotonic", lambda: now[0])
    for measured in ("stepped", "evaluated"):  # by another clock, which a busy machine slows down
        monkeypatch.setattr(clocks.Clock, measured, lambda self, seconds: None)
    step = Trainer._step

    def slow(self, batch) -> None:
        step(self, batch)
        now[0] += 1.0 / len(self.minibatches)

    monkeypatch.setattr(Trainer, "_step", slow)
    return now


def test_the_time_is_kept_with_a_little_for_the_end(tmp_path, seconds) -> None:
    result = search(tmp_path, trials=None, time_limit="12s")
    assert 9 <= seconds[0] <= 12  # a second and a hundredth are kept for files
    before = len(result.trials)
    seconds[0] = 0.0  # another process, which knows what was used
    assert len(search(tmp_path, trials=None, time_limit="12s").trials) == before
    assert len(search(tmp_path, trials=None, time_limit="18s").trials) > before


def test_where_the_epochs_take_longer_than_the_time_several_are_tried_and_the_best_resumed(
    seconds,
) -> None:
    """The first has a fifth of 24 seconds; others are judged after 3 epochs; in the last six
    seconds none begins, and the best is resumed, be it one that had its share."""
    long = TrainConfig(epochs=100, patience=12, batch_size=32, seed=2)
    result = tune(GRAPH, MODEL, long, time_limit="24s", baselines=())
    assert 22 <= seconds[0] <= 24
    others = result.trials[1:]
    assert len(others) >= 2
    assert all(t.epochs >= 3 for t in others)
    assert {t.state for t in result.trials} == {"paused"}
    assert sum(t.epochs for t in result.trials) == pytest.approx(seconds[0], abs=1)
    best = max(result.trials, key=lambda t: t.val)
    assert best.val == result.best.val


def test_a_trial_that_had_its_share_continues_with_a_longer_limit(tmp_path, seconds) -> None:
    long = TrainConfig(epochs=20, patience=0, batch_size=32, seed=2)
    given = {"baselines": (), "trials": 1, "folder": tmp_path}
    cut = tune(GRAPH, MODEL, long, time_limit="12s", **given).trials[0]
    assert (cut.state, cut.reason) == ("paused", "the time was over")
    whole = tune(GRAPH, MODEL, long, time_limit="40s", **given).trials[0]
    assert (whole.state, whole.epochs, whole.reason) == ("complete", 20, None)
    assert seconds[0] == pytest.approx(20.0)  # no epoch was trained twice


def test_what_the_end_costs_is_kept_of_the_time(monkeypatch) -> None:
    """10 of 100 seconds were used; a model predicts all nodes in 1.4 times the seconds of the
    validation nodes, and the present trial these once more."""
    trials = [
        Tried(number, "complete", 0.8 + number / 100, predicting_seconds=0.5 + number)
        for number in range(12)
    ]
    monkeypatch.setattr("vrgcn.tuning.session.tried", lambda study: trials)
    session = object.__new__(Session)
    session.study, session.graph, session.baselines = None, GRAPH, {}
    session.target = find_target(GRAPH, CONFIG)
    session.clock = SimpleNamespace(limit=100.0, used=10.0)
    monkeypatch.setattr(Session, "members", lambda self: [])
    assert session.left == pytest.approx(100 - 10 - 2.0)
    members = [Member(trial, Path()) for trial in trials]
    monkeypatch.setattr(Session, "members", lambda self: members)
    session.__dict__["metric_seconds"] = 0.001
    of_ten = 1.4 * sum(0.5 + number for number in range(2, 12)) + 11.5
    scores = 12 * 20 + 12 * (20 * 10 + 1)  # standard errors, and bags of few validation nodes
    assert session.left == pytest.approx(100 - 10 - 2.0 - of_ten - 0.001 * scores)


@pytest.mark.parametrize("names", [("layers", "estimator"), ("layers",)])
def test_auto_is_settled_for_each_trial_by_its_own_settings(
    tmp_path, monkeypatch, names: tuple[str, ...]
) -> None:
    def choose(model, graph, config):
        return replace(config, estimator="cvd" if len(model.layers) > 2 else "exact"), None

    monkeypatch.setattr(module, "choose_estimator", choose)
    search(tmp_path, trials=2, search=names)
    trials = [tmp_path / "trials" / f"trial-00{number}" / "config.toml" for number in (0, 1)]
    configs = [tomllib.loads(path.read_text()) for path in trials]
    assert [(c["layers"], c["estimator"]) for c in configs] == [(2, "exact"), (3, "cvd")]


def test_trials_are_compared_by_their_best_epoch_so_far(tmp_path, monkeypatch) -> None:
    told: list[tuple[int, float]] = []
    report = optuna.Trial.report

    def listen(self, value: float, step: int) -> None:
        told.append((step, value))
        report(self, value, step)

    monkeypatch.setattr(optuna.Trial, "report", listen)
    wild = TrainConfig(
        epochs=12, batch_size=8, learning_rate=0.3, seed=2, average_weights=False
    )  # its scores swing
    tune(GRAPH, MODEL, wild, trials=1, folder=tmp_path, baselines=())
    lines = (tmp_path / "trials" / "trial-000" / "metrics.jsonl").read_text().splitlines()
    scores = [json.loads(line)["val"] for line in lines]
    assert scores != sorted(scores)
    assert told == list(enumerate(accumulate(scores, max), start=1))


def test_numbers_are_tuned_towards_the_smallest_error() -> None:
    result = tune(far_off(), MODEL, CONFIG, trials=3, search=("layers", "hidden"), baselines=())
    errors = [t.val for t in result.trials if t.state == "complete"]
    assert result.best.val == min(errors)


def test_without_optuna_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with refused():
        search()


def test_what_cannot_be_tuned_is_refused() -> None:
    with refused():
        tune(GRAPH.with_splits({"train": GRAPH.train}))
    with refused():
        search(time_limit="5")
    with refused():
        search(trials=0)


@pytest.mark.parametrize(
    ("graph", "model", "config", "names"),
    [
        (small_graph(seed=1), MODEL, CONFIG, SPACE),
        (GRAPH, ModelConfig(hidden=16), CONFIG, SPACE),
        (GRAPH, MODEL, replace(CONFIG, epochs=9), SPACE),
        (GRAPH, MODEL, replace(CONFIG, metric="macro-f1"), SPACE),
        (GRAPH, MODEL, CONFIG, ("hidden",)),
    ],
)
def test_a_folder_with_another_search_is_refused(found, graph, model, config, names) -> None:
    _, folder = found
    before = (folder / LEADERBOARD).read_text()
    with refused():
        tune(graph, model, config, folder=folder, search=tuple(names), trials=5, baselines=())
    assert (folder / LEADERBOARD).read_text() == before


def test_other_threads_and_limits_are_the_same_search(found) -> None:
    result, folder = found
    again = tune(GRAPH, MODEL, replace(CONFIG, threads=1), folder=folder, trials=4, baselines=())
    assert told(again) == told(result)


def test_optunas_own_log_is_quiet(found, capfd, tmp_path) -> None:
    before = optuna.logging.get_verbosity()
    search(tmp_path, trials=1)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert optuna.logging.get_verbosity() == before


def test_a_trial_has_the_score_of_the_model_that_it_keeps_be_it_the_last(tmp_path) -> None:
    wild = TrainConfig(
        epochs=3, batch_size=8, learning_rate=0.3, seed=2, select="last", average_weights=False
    )  # its scores swing
    result = tune(GRAPH, MODEL, wild, trials=1, folder=tmp_path, baselines=())
    lines = (tmp_path / "trials" / "trial-000" / "metrics.jsonl").read_text().splitlines()
    scores = [json.loads(line)["val"] for line in lines]
    assert scores[-1] < max(scores)
    assert result.best.val == result.result.val == scores[-1]


def test_epochs_before_a_rollback_are_no_part_of_a_trial(monkeypatch) -> None:
    update, done = Trainer._update, [0]

    def lost(self, batch) -> float:
        done[0] += 1
        if done[0] == 3:  # in the third epoch, which begins again with the first
            raise DivergedError("the training loss became nan", "")
        return update(self, batch)

    monkeypatch.setattr(Trainer, "_update", lost)
    config = replace(CONFIG, batch_size=999, on_nan="rollback", checkpoint_every="0")
    result = tune(GRAPH, MODEL, config, trials=1, baselines=(), on_note=lambda note: None)
    (trial,) = result.trials
    assert done[0] == CONFIG.epochs + 3
    assert trial.epochs == CONFIG.epochs


def test_a_trial_that_is_cut_before_its_first_evaluation_has_a_score(seconds) -> None:
    seldom = TrainConfig(epochs=100, evaluate_every=100, batch_size=32, seed=2)
    result = tune(GRAPH, MODEL, seldom, time_limit="24s", trials=2, baselines=())
    assert all(t.val is not None for t in result.trials if t.epochs)
    assert result.trials[0].epochs > 0


def test_rows_with_a_time_but_no_validation_are_refused_with_dates_to_give() -> None:
    people = pa.table({"id": ["a", "b"]})
    asked = pa.table({"person": ["a", "b"], "at": ["2024-01-01", "2024-03-01"], "label": [0, 1]})
    bought = pa.table({"person": ["a", "b"], "date": ["2023-12-01", "2023-12-02"]})
    graph = Graph.from_tables(
        {"person": people, "order": bought},
        {("order", "by", "person"): bought},
        dated={"order": "date"},
        rows=("person", asked, "at"),
        label="label",
        train_until="2024-01-31",
        val_until="2024-02-15",
    )
    with refused():
        tune(graph, trials=1)
