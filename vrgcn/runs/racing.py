"""Runs a race between candidates: each is a training of equal right, and the winner's continues.

Candidates train in turns, as `race.py` says. Each has its own random numbers, optimiser, histories
and checkpoints, so it makes the same steps as a run of its settings alone, and the winner's epochs
are the beginning of its curve. The checkpoints of all candidates are the state of the race.

Where links are predicted there are two races: of models, then of the ways to train the winner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from vrgcn.costs.out_of_memory import memory_explained
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.runs.candidates import ways
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.runs.folder import RACE
from vrgcn.runs.interrupts import Interrupted, StopRequest, stop_requests
from vrgcn.runs.job import Begun, Job, job_of
from vrgcn.runs.race import SHARE, Outcome, Race, Racer
from vrgcn.runs.settings import Candidate, Settings
from vrgcn.targets.scored import scored_edges, validated
from vrgcn.training.config import TrainConfig
from vrgcn.training.divergence import DivergedError
from vrgcn.training.listener import Listener, Listeners
from vrgcn.training.progress import working
from vrgcn.training.state import Epoch
from vrgcn.training.trainer import Trainer

_STEPS = 40  # of the usual candidate in the first round
_TIME = 0.5  # share of a time limit after which a race ends
_TABLES = 2**31  # bytes of tables and weights of all candidates together
_THERE = ("edges", "features")  # entries of a cost that candidates share


class Raced(NamedTuple):
    """The winner of a race: its settings, its job, and its training so far; None if nothing was
    compared."""

    candidate: Candidate
    job: Job
    begun: Begun | None


@dataclass(eq=False)
class _Entrant:
    """A candidate, how the rules see it, and its training once it has begun.

    home: of its checkpoints; None if none are kept
    """

    candidate: Candidate
    job: Job
    racer: Racer
    home: Path | None
    begun: Begun | None = None
    kept: Checkpoints | None = None

    @property
    def curve(self) -> list[Epoch]:
        return [] if self.begun is None else self.begun.trainer.progress.curve

    @property
    def seconds(self) -> float:
        """Seconds of its training so far, with evaluations and checkpoints."""
        if self.begun is None:
            return 0.0
        took = self.begun.trainer.progress
        return took.seconds + took.evaluation_seconds + took.checkpoint_seconds


class _Apart(Listener):
    """Passes on what concerns the process. The epochs of a candidate are not the run's yet."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.hears_notes = listener.hears_notes

    def epoch(self, point: Epoch) -> None:
        self.listener.checkpoint()

    def step(self, done: int, total: int) -> None:
        self.listener.step(done, total)

    def checkpoint(self) -> None:
        self.listener.checkpoint()

    def note(self, text: str) -> None:
        self.listener.note(text)


def raced(settings: Settings, graph: Graph, *, verbose: bool = False) -> Raced:
    """Return the winner among the candidates that settings stand for; `job.train(begun=begun)`
    continues it.

    graph: as `open_graph` returned it
    """
    found = settings.candidates(graph)
    usual = settings.settled(graph, found[0]).prepare(graph)
    return run_race(found, settings.train, usual, verbose=verbose)


def run_race(
    found: Sequence[Candidate],
    given: TrainConfig,
    usual: Job,
    *,
    folder: Path | None = None,
    listener: Listener | None = None,
    verbose: bool = False,
) -> Raced:
    """Train candidates side by side; return the one that continues.

    found: the usual one first, whose job is given; given: the settings of the training that they
        were made of
    folder: of the run, where a race that was stopped has its checkpoints; None: nothing is kept,
        and a signal ends the process
    listener: called with steps and notes, and before checkpoints
    verbose: show the epochs of all
    """
    if len(found) == 1:
        return Raced(found[0], usual, None)
    with ExitStack() as stack:
        stop = None if folder is None else stack.enter_context(stop_requests())
        home = None if folder is None else folder / RACE
        racing = _Racing(usual, home, _Apart(listener or Listener()), verbose, stop)
        return racing.run(found, given)


class _Racing:
    """A race while it runs.

    usual: the job of the first candidate, whose P X others share
    home: a folder for each candidate's checkpoints is in there
    """

    def __init__(
        self,
        usual: Job,
        home: Path | None,
        listener: Listener,
        verbose: bool,
        stop: StopRequest | None,
    ) -> None:
        self.graph, self.usual, self.home = usual.graph, usual, home
        self.listener, self.verbose, self.stop = listener, verbose, stop
        self.entrants: list[_Entrant] = []
        edges = scored_edges(usual.graph)
        self.links = edges is not None and edges.kind == "links"
        self.tables = 0
        self.scores: dict[str, float] = {}

    def run(self, found: Sequence[Candidate], given: TrainConfig) -> Raced:
        field = self._enter_all(found)
        winner, note = self._race(field, SHARE / 2 if self.links else SHARE)
        others = ways(winner.candidate, winner.job, given, self.graph) if self.links else []
        if others:
            winner.candidate, *others = others
            winner.racer = replace(winner.racer, name=winner.candidate.name, gain=0.0)
            winner, then = self._race([winner, *self._enter_all(others)])
            note += f"; minibatches of {then}" if then else ""
        if note:
            self.listener.note(f"chosen by a race: {note}; {setting('model')} skips it")
        return self._handed_over(winner)

    def _enter_all(self, found: Sequence[Candidate]) -> list[_Entrant]:
        """Return entrants, each restored if its training was stopped."""
        with working("counting the work of each candidate", shown=self.verbose):
            entered = [e for each in found if (e := self._enter(each)) is not None]
        for entrant in entered:
            if entrant.home is not None and checkpoints_in(entrant.home):
                self._begin(entrant)
        return entered

    def _enter(self, candidate: Candidate) -> _Entrant | None:
        """Return an entrant; None if it cannot train here or takes too much memory beside the
        others."""
        try:
            job = self.usual if not self.entrants else job_of(candidate, self.graph)
            cost = job.costs([job.config.estimator])[job.config.estimator]
        except (InputError, LookupError):
            if not self.entrants:
                raise
            return None
        own = cost.total_memory - sum(cost.memory.get(name, 0) for name in _THERE)
        if self.entrants and self.tables + own > _TABLES:
            return None
        self.tables += own
        job = replace(job, setup=job.setup.sharing(self.usual.setup))
        train, work = job.config, job.epoch_work()
        racer = Racer(
            candidate.name,
            work,
            train.epochs,
            train.patience or 0,
            train.evaluate_every,
            work if self.links else 1.0,
            candidate.gain,
        )
        home = None if self.home is None else self.home / str(len(self.entrants))
        entrant = _Entrant(candidate, job, racer, home)
        self.entrants.append(entrant)
        return entrant

    def _race(self, field: Sequence[_Entrant], share: float = SHARE) -> tuple[_Entrant, str]:
        """Return the winner, and what is to be said of the comparison.

        share: of the winner's work that this race and those before may cost
        """
        named = {e.racer.name: e for e in field}
        metric = self.usual.target.metric
        out = [e for e in self.entrants if e not in field]
        spent = sum(e.racer.work * len(e.curve) for e in out)
        steps = self.usual.costs([self.usual.config.estimator])[self.usual.config.estimator].steps
        first = max(2, math.ceil(_STEPS / steps / self.usual.config.evaluate_every))
        racers = [e.racer for e in field]
        rules = Race(racers, metric, validated(self.graph), first, spent, share)
        while True:
            curves = {name: e.curve for name, e in named.items()}
            found = rules.next(curves, over=self._over())
            if isinstance(found, Outcome):
                break
            entrant, before = named[found.name], len(curves[found.name])
            try:
                self._train(entrant, found.epochs)
            except (DivergedError, MemoryError) as error:
                rules.failed.add(found.name)
                if len(rules.failed) == len(field):
                    raise
                self.listener.note(f"{found.name} is out of the race: {error}")
            else:
                assert len(entrant.curve) > before or self._over()
        winner = named[found.winner]
        if len(found.scores) < 2:
            return winner, ""
        self.scores |= found.scores
        texts = {name: metric.text(score) for name, score in found.scores.items()}
        mine = f"{found.winner}, validation {metric.title} {texts.pop(found.winner)}"
        return winner, f"{mine} ({', '.join(f'{name} {text}' for name, text in texts.items())})"

    def _over(self) -> bool:
        """True if the time limit leaves no more time for a race."""
        trainers = [e.begun.trainer for e in self.entrants if e.begun is not None]
        limits = [t.clock for t in trainers if t.clock.limit is not None]
        return any(clock.used > _TIME * (clock.limit or 0.0) for clock in limits)

    def _train(self, entrant: _Entrant, epochs: int) -> None:
        """Train a candidate until it has so many epochs."""
        job = entrant.job
        with memory_explained(self.graph, job.config, job.model):
            begun = entrant.begun or self._begin(entrant)
            with begun.progress or nullcontext():
                while len(entrant.curve) < epochs and not (begun.trainer.finished or self._over()):
                    self._train_epoch(entrant, begun.trainer)

    def _train_epoch(self, entrant: _Entrant, trainer: Trainer) -> None:
        epochs = len(entrant.curve) + 1
        if entrant.kept is None or self.stop is None:
            trainer.train_to(epochs)
            return
        try:
            entrant.kept.train_to(epochs, self.stop)
        except Interrupted:
            for other in self.entrants:
                if other.kept is not None and other is not entrant:
                    other.kept.write()
            raise

    def _begin(self, entrant: _Entrant) -> Begun:
        job = entrant.job
        progress = job.progress(entrant.racer.name) if self.verbose else None
        told = self.listener if progress is None else Listeners(self.listener, progress)
        with progress or nullcontext():
            entrant.begun = begun = job.begin(told, progress)
        earlier = [e.begun.trainer.clock.used for e in self.entrants if e.begun is not None]
        begun.trainer.clock.go_on(max(earlier))
        if entrant.home is not None:
            entrant.kept = Checkpoints(begun.trainer, entrant.home)
            entrant.kept.resume()
        return begun

    def _handed_over(self, winner: _Entrant) -> Raced:
        """Return the winner, whose state says from now on what it was compared with."""
        begun = winner.begun
        if begun is None:
            return Raced(winner.candidate, winner.job, None)
        progress = begun.trainer.progress
        progress.compared = dict(self.scores)
        others = sum(e.racer.work * len(e.curve) for e in self.entrants if e is not winner)
        progress.least = winner.racer.least(others)
        progress.race_seconds = sum(e.seconds for e in self.entrants if e is not winner)
        used = [e.begun.trainer.clock.used for e in self.entrants if e.begun is not None]
        begun.trainer.clock.go_on(max(used))
        if begun.progress is not None:
            begun.progress.alone()
        return Raced(winner.candidate, winner.job, begun._replace(home=self.home))
