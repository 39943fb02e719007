"""A race that is run: what it trains, keeps, and hands over."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.baselines.problems import small
from tests.pairs.test_relations import BOUGHT, store
from tests.runs.test_auto_settings import few
from tests.runs.test_pair_candidates import settings
from tests.targets.test_links import communities
from vrgcn import Graph, train
from vrgcn.runs import candidates
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.runs.folder import CHECKPOINTS, METRICS, RACE, read_config
from vrgcn.runs.interrupts import Interrupted
from vrgcn.runs.job import job_of
from vrgcn.runs.racing import Raced, raced, run_race
from vrgcn.runs.run import Run
from vrgcn.runs.settings import Candidate, Settings
from vrgcn.training.clock import Clock
from vrgcn.training.divergence import DivergedError
from vrgcn.training.listener import Callbacks
from vrgcn.training.trainer import Trainer

QUICK: dict[str, Any] = {
    "diagnostics": 0,
    "threads": 1,
    "batch_size": 40,
    "patience": 8,
    "smooth": "never",
    "baseline": False,
}


@pytest.fixture(autouse=True)
def small_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are of a few numbers, and quick."""
    others = {
        "wide": ({"layers": 2, "hidden": 16, "dropout": 0.0}, {}),
        "residual": ({"model": "residual", "layers": 2, "hidden": 8}, {"learning_rate": 0.003}),
    }
    monkeypatch.setattr(candidates, "_OTHERS", others)


def vals(run: Run) -> list[Any]:
    return [point["val"] for point in run.curve]


def asked(**given: Any) -> Settings:
    known = {name: value for name, value in QUICK.items() if name != "baseline"}
    return Settings().changed({**known, **given})


def race(graph: Graph, found: Sequence[Candidate] = (), **given: Any) -> Raced:
    its = asked(**given)
    found = found or its.candidates(graph)
    return run_race(found, its.train, its.settled(graph, found[0]).prepare(graph))


def test_the_winner_makes_the_steps_of_a_run_of_its_settings(tmp_path: Path) -> None:
    given = {**QUICK, "epochs": 64}
    run = train(small(), out=tmp_path / "raced", **given)
    chosen = {
        name: run.config[name]
        for name in ("model", "hidden", "layers", "dropout", "learned_rows", "learning_rate")
    }
    alone = train(small(), out=tmp_path / "alone", **given, **chosen)
    assert torch.equal(run.predict(), alone.predict())
    assert vals(run) == vals(alone)
    assert len(run.result["compared"]) > 1
    assert run.result["race_seconds"] > 0
    assert alone.result["compared"] == {}
    assert not (run.folder / RACE).exists()


@pytest.mark.parametrize("make", [small, few])
def test_all_candidates_cost_at_most_half_more_than_the_winner(
    monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    """Counted: epochs that were really trained, and the work of each."""
    works: dict[int, float] = {}
    advance = Trainer.advance

    def counted(self: Trainer) -> bool:
        done = len(self.progress.curve)
        going = advance(self)
        works[id(self)] = works.get(id(self), 0) + (len(self.progress.curve) - done) * work(self)
        return going

    def work(trainer: Trainer) -> float:
        return job_works[numbers(trainer.model)]

    def numbers(model: torch.nn.Module) -> int:
        return sum(weight.numel() for weight in model.parameters())

    graph = make()
    found = asked().candidates(graph)
    job_works: dict[Any, float] = {}
    for each in found:
        job = job_of(each, graph)
        assert numbers(job.model) not in job_works
        job_works[numbers(job.model)] = job.epoch_work()
    monkeypatch.setattr(Trainer, "advance", counted)
    _, job, begun = race(graph, found)
    assert begun is not None
    job.train(begun=begun)
    assert len(works) > 1
    assert sum(works.values()) <= 1.5 * works[id(begun.trainer)]


class Cut(Callbacks):
    """Sends SIGINT, or fails, after a number of steps of all candidates together."""

    def __init__(self, at: int, kill: bool = False) -> None:
        super().__init__()
        self.left, self.kill = at, kill

    def step(self, done: int, total: int) -> None:
        self.left -= 1
        if not self.left:
            if self.kill:
                raise RuntimeError("killed")
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("at", [1, 3, 4, 5, 6])
@pytest.mark.parametrize("kill", [False, True])
def test_a_race_that_was_stopped_at_any_step_ends_in_the_same_bits(
    tmp_path: Path, at: int, kill: bool
) -> None:
    graph, its = small(), asked(checkpoint_every="1")
    found = its.candidates(graph)

    def once(folder: Path, cut: Cut | None = None) -> Raced:
        usual = its.settled(graph, found[0]).prepare(graph)
        return run_race(found, its.train, usual, folder=folder, listener=cut)

    whole = once(tmp_path / "whole")
    with pytest.raises(RuntimeError if kill else Interrupted):
        once(tmp_path / "cut", Cut(at, kill))
    again = once(tmp_path / "cut")
    assert again.candidate == whole.candidate
    states = [each.begun.trainer.state() for each in (whole, again) if each.begun is not None]
    assert len(states) == 2
    assert states[0].position == states[1].position
    assert states[0].progress.compared == states[1].progress.compared
    for name, weight in states[0].model.items():
        assert torch.equal(weight, states[1].model[name])
    for name, table in states[0].histories.items():
        assert torch.equal(table, states[1].histories[name])


def test_a_run_that_was_stopped_in_its_race_resumes(tmp_path: Path) -> None:
    given = {**QUICK, "epochs": 64}
    whole = train(small(), out=tmp_path / "whole", **given)
    step = Trainer.advance

    def stop(self: Trainer, seen: list[int] = []) -> bool:  # noqa: B006 - counts its calls
        seen.append(1)
        if len(seen) == 5:
            signal.raise_signal(signal.SIGINT)
        return step(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "advance", stop)
        with pytest.raises(Interrupted):
            train(small(), out=tmp_path / "cut", **given)
    assert read_config(tmp_path / "cut")["model"] == "auto"
    assert not (tmp_path / "cut" / METRICS).exists()
    cut = train(out=tmp_path / "cut", resume=True)
    assert torch.equal(cut.predict(), whole.predict())
    assert cut.result["compared"] == whole.result["compared"]
    assert vals(cut) == vals(whole)
    assert not (tmp_path / "cut" / RACE).exists()


@pytest.mark.parametrize("seeds", [{}, {"seeds": 2}])
@pytest.mark.parametrize("after", ["write", "remove_folder"])
def test_a_run_that_was_killed_when_its_race_was_over_resumes_with_the_winner(
    tmp_path: Path, after: str, seeds: dict[str, int]
) -> None:
    given = {**QUICK, "epochs": 64, "checkpoint_every": "1", **seeds}
    whole = train(small(), out=tmp_path / "whole", **given)
    write = Checkpoints.write

    def killed(folder: Path) -> None:
        raise RuntimeError(f"killed before {folder} is removed")

    def written(self: Checkpoints) -> bool:
        if self.folder.name == CHECKPOINTS:
            raise RuntimeError("killed before the winner has a checkpoint")
        return write(self)

    with pytest.MonkeyPatch.context() as patch:
        if after == "write":
            patch.setattr(Checkpoints, "write", written)
        else:
            patch.setattr("vrgcn.runs.job.remove_folder", killed)
        with pytest.raises(RuntimeError, match="killed"):
            train(small(), out=tmp_path / "cut", **given)
    cut = train(out=tmp_path / "cut", resume=True)
    assert torch.equal(cut.predict(), whole.predict())
    assert cut.result["compared"] == whole.result["compared"] != {}
    assert vals(cut) == vals(whole)
    assert read_config(tmp_path / "cut")["model"] == "graphsage"
    assert not (tmp_path / "cut" / RACE).exists()


def test_a_race_of_one_candidate_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("vrgcn.runs.racing._TABLES", 0)  # others take too much memory
    run = train(small(), out=tmp_path / "run", **QUICK, epochs=64)
    assert run.result["compared"] == {}
    assert read_config(run.folder)["model"] == "graphsage"
    assert not (run.folder / RACE).exists()


def test_a_finished_run_that_is_made_longer_compares_nothing_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = train(small(), out=tmp_path / "run", **QUICK, epochs=64)
    compared = first.result["compared"]
    monkeypatch.setattr("vrgcn.runs.training.run_race", None)  # would fail
    longer = train(out=tmp_path / "run", resume=True, epochs=70, patience=20)
    assert longer.config["model"] == first.config["model"]
    assert longer.result["compared"] == compared
    assert "chosen by a race, validation scores: " in (longer.folder / "README.md").read_text()


def test_on_epoch_gets_the_curve_of_the_winner_only(tmp_path: Path) -> None:
    seen: list[Any] = []
    run = train(small(), out=tmp_path / "run", **QUICK, epochs=64, on_epoch=seen.append)
    assert [point.epoch for point in seen] == [*range(1, len(seen) + 1)]
    assert [point.val for point in seen] == vals(run)


def test_seeds_share_one_race(tmp_path: Path) -> None:
    run = train(small(), out=tmp_path / "all", **QUICK, epochs=64, seeds=2, seed=4)
    folders = [run.folder.parent / f"seed-{seed}" for seed in (4, 5)]
    results = [json.loads((folder / "result.json").read_text()) for folder in folders]
    assert [bool(result["compared"]) for result in results] == [True, False]
    assert len({read_config(folder)["model"] for folder in folders}) == 1
    assert read_config(tmp_path / "all")["model"] == read_config(folders[0])["model"]


def test_labels_of_test_nodes_do_not_reach_the_choice() -> None:
    graph = few()
    assert graph.labels is not None
    other = graph.labels.clone()
    other[graph.test] = 2 - other[graph.test]
    found = [race(each) for each in (graph, few(labels=other))]
    scores = [each.begun.trainer.progress.compared for each in found if each.begun is not None]
    assert found[0].candidate == found[1].candidate
    assert scores[0] == scores[1]
    assert len(scores[0]) == 2


def test_candidates_share_averages_of_features() -> None:
    its, graph = asked(), small()
    usual, larger = (job_of(each, graph).setup for each in its.candidates(graph)[:2])
    assert larger.sharing(usual).averages is usual.averages
    gcn = job_of(asked(model="gcn").candidates(graph)[0], graph).setup
    assert gcn.sharing(usual) is gcn  # another matrix
    other = job_of(its.candidates(graph)[0], small(nodes=120)).setup
    assert other.sharing(usual) is other


def test_a_candidate_that_diverges_is_out_and_the_last_one_is_left() -> None:
    graph = small()
    usual, *others = asked().candidates(graph)
    wild = [replace(each, train=replace(each.train, learning_rate=1e30)) for each in others]
    notes: list[str] = []
    its = asked()
    job = its.settled(graph, usual).prepare(graph)
    found = run_race([usual, *wild], its.train, job, listener=Callbacks(on_note=notes.append))
    assert found.candidate is usual
    assert any("is out of the race" in note for note in notes)
    last = race(graph, [wild[0], replace(wild[0], name="another")])
    with pytest.raises(DivergedError):
        last.job.train(begun=last.begun)


def test_a_time_limit_ends_the_race_at_its_half(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def tick() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(Clock, "now", staticmethod(tick))
    found = race(small(), time_limit="60s")
    assert found.begun is not None
    assert 30 < found.begun.trainer.clock.used < 60
    assert found.job.train(begun=found.begun).stopped == "time"


def test_links_race_for_a_model_and_then_for_a_way_to_train_it(tmp_path: Path) -> None:
    graph = communities()
    its = settings(epochs=30, hidden=8, embedding=8, patience=4, threads=1)
    first = raced(its, graph)
    assert raced(its, graph).candidate == first.candidate
    assert first.begun is not None
    compared = first.begun.trainer.progress.compared
    assert "gcn" in compared
    assert any(" by " in name for name in compared if "lift" not in name)
    assert first.candidate.train.estimator != "auto"
    result = first.job.train(begun=first.begun)
    assert result.compared == compared


def test_a_race_of_links_is_kept_by_the_run(tmp_path: Path) -> None:
    given = {"hidden": 8, "embedding": 8, "epochs": 30, "threads": 1, "diagnostics": 0}
    split = {"ratio": (0.7, 0.15, 0.15), "scaling": "none"}
    run = train(store(), out=tmp_path / "run", predict=BOUGHT, **split, **given)
    kept = read_config(run.folder)
    assert kept["model"] != "auto"
    assert (run.folder / CHECKPOINTS).is_dir()
    again = train(store(), out=tmp_path / "run", resume=True, epochs=31)
    assert read_config(again.folder)["pair_batches"] == kept["pair_batches"]
