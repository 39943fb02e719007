"""A training run, one step at a time: the work of a step, between epochs, and at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from torch import Tensor, nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.setup import note_propagation
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.scaling import TrainedOn, note_trained_on
from vrgcn.training.clock import Clock, duration
from vrgcn.training.common_move import common_staleness, old_tables
from vrgcn.training.components import Components, build_components, look_at
from vrgcn.training.config import TrainConfig
from vrgcn.training.divergence import diverged, finite_weights
from vrgcn.training.listener import Listener, StopTraining
from vrgcn.training.monitor import Reading
from vrgcn.training.optimizer import Schedule, build_optimizer, clip_gradients
from vrgcn.training.result import Stopped, TrainResult
from vrgcn.training.state import Epoch, Progress, TrainState
from vrgcn.training.target import Target
from vrgcn.training.weight_average import WeightAverage


def note_training(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    propagation: PropagationLike | None = None,
) -> None:
    """Record on the model which graph and propagation it is trained with."""
    rule = config.propagation if propagation is None else propagation
    named = rule is None or isinstance(rule, str)
    note_trained_on(model, TrainedOn.of(graph, own_matrix=not named))
    if isinstance(rule, str):
        note_propagation(model, rule)


class Trainer:
    """Trains a model in place, with random numbers of its own.

    config: its estimator is named; `auto` is resolved before
    components: objects to work with, instead of those that one process builds from the config,
        `estimator` and `propagation`

    `advance` makes one step; between two steps `state` returns the run's state and `restore` sets
    it.
    """

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        config: TrainConfig,
        target: Target,
        *,
        estimator: Estimator | None = None,
        propagation: PropagationLike | None = None,
        components: Components | None = None,
        listener: Listener | None = None,
        directory: Path | None = None,
    ) -> None:
        note_training(model, graph, config, propagation)
        limit = config.time_limit
        self.clock = Clock(None if limit is None else duration(limit))
        self.model = model
        self.graph = graph
        self.config = config
        self.listener = listener or Listener()
        self.target = target
        self.target.prepare(model)
        if components is None:
            setup = look_at(model, graph, config, propagation)
            components = build_components(
                model,
                graph,
                config,
                self.target,
                setup,
                estimator=estimator,
                directory=directory,
            )
        self.minibatches = components.minibatches
        self.refreshed = components.refreshed
        self.monitor = components.monitor
        self.evaluation = components.evaluation
        self.random = components.random
        self.trained, self.visited = components.trained, components.visited
        self.validated = components.validated
        self.optimizer = build_optimizer(model, config)
        self._check_validated()
        self.schedule = Schedule(
            self.optimizer,
            config,
            len(self.minibatches),
            larger=self.target.better(1.0, 0.0),
        )
        self.average = None
        if config.average_weights:
            self.average = WeightAverage(model, len(self.minibatches))
        self.progress = Progress()
        self.best: dict[str, Tensor] | None = None
        self._stream: Iterator[Batch] | None = None
        self._asked_to_stop = False
        self._common: dict[str, float] = {}

    def _check_validated(self) -> None:
        """Raise or print a note on settings that need validation scores if there are none."""
        if self.validated:
            return
        missing = "waits for validation scores, and the graph has no validation nodes"
        if self.config.schedule == "plateau":
            raise InputError(
                f"schedule plateau ({setting('schedule')}) {missing}: choose cosine, or give it a "
                "val split"
            )
        if self.config.patience:
            self.listener.note(
                f"patience {self.config.patience} ({setting('patience')}) {missing}: training ends "
                "with its epochs or its time, and the last weights are kept"
            )

    def run(self) -> TrainResult:
        """Run the rest of the training; the model ends with the chosen weights."""
        while self.advance():
            pass
        return self.finish()

    def finish(self, check: Callable[[], None] | None = None) -> TrainResult:
        """Return the result of the training; the model gets the chosen weights.

        check: called after each chunk of nodes that is scored. If it raises, scoring ends and the
            model has the weights of the last step
        """
        if check is None:
            return self._finish()
        last = _copy(self.model)
        try:
            with self._checked(check):
                return self._finish()
        except BaseException:
            self.model.load_state_dict(last)
            raise

    @contextmanager
    def _checked(self, check: Callable[[], None]) -> Iterator[None]:
        """Call `check` after each chunk of the evaluations inside this context."""
        shown = self.evaluation.on_chunk

        def on_chunk(nodes: int) -> None:
            if shown is not None:
                shown(nodes)
            check()

        self.evaluation.on_chunk = on_chunk
        try:
            yield
        finally:
            self.evaluation.on_chunk = shown

    def _finish(self) -> TrainResult:
        progress, stopped = self.progress, self.stopped
        # The time limit came in the middle of an epoch: either of the first one, or of one whose
        # weights are kept whatever their score, even if none was scored yet.
        within = 0 < self.minibatches.position.place < len(self.minibatches)
        last = self.config.select == "last" or progress.best is None
        if not progress.curve or (within and last):
            with self.random.drawn():
                self._close_epoch(early=True)
        elif stopped == "callback" and not within and progress.curve[-1].val is None:
            with self.random.drawn():
                self._score_last()
        chosen = progress.curve[-1]
        if self.config.select == "best" and progress.best is not None and self.best is not None:
            chosen = progress.best
            self.model.load_state_dict(self.best)
        elif self.average is not None:
            with self._averaged():
                kept = _copy(self.model)
            self.model.load_state_dict(kept)
        self.model.eval()
        with self.random.drawn():
            val = chosen.val if chosen.val is not None else self._score("val")
            test = self._score("test")
            self._note_warning()
        return TrainResult(
            progress.curve,
            chosen.epoch,
            val,
            test,
            progress.seconds,
            progress.evaluation_seconds,
            progress.diagnostics_seconds,
            _copy(self.model),
            self.target.metric,
            progress.checkpoint_seconds,
            stopped or "epochs",
            race_seconds=progress.race_seconds,
            compared=progress.compared,
        )

    def _note_warning(self) -> None:
        """Pass on what the target found wrong with the outputs that it scored."""
        if self.target.warning is not None:
            self.listener.note(self.target.warning)

    def _score_last(self) -> None:
        """Evaluate the last epoch if `evaluate_every` skipped it, because it was not known to be
        the last."""
        with self._averaged():
            point = replace(self.progress.curve[-1], val=self._score("val"))
            self.progress.curve[-1] = point
            if self._is_best(point):
                self.listener.kept(point)

    @property
    def finished(self) -> bool:
        """True if no step is left."""
        return self.stopped is not None

    @property
    def stopped(self) -> Stopped | None:
        """The reason why training ended; None while it continues."""
        patience = self.config.patience
        done = len(self.progress.curve)
        if done == self.config.epochs:
            return "epochs"
        if patience and self.progress.behind >= patience and done >= self.progress.least:
            return "patience"
        if self._asked_to_stop:
            return "callback"
        # At least one step is made: otherwise there is nothing to keep.
        return "time" if self.minibatches.step and self.clock.over else None

    def advance(self) -> bool:
        """Make one step, with the work due before and after it; return False if none is left."""
        if self.finished:
            return False
        start = self.clock.now()
        self.model.train()
        with self.random.drawn():
            if self._stream is None:
                self._stream = self._open_epoch()
            batch = next(self._stream)
        self.progress.seconds += self.clock.now() - start
        self.listener.batch(batch)
        start = self.clock.now()
        with self.random.drawn():
            self._step(batch)
        took = self.clock.now() - start
        self.progress.seconds += took
        self.clock.stepped(took)
        place, steps = self.minibatches.position.place, len(self.minibatches)
        self.listener.step(place, steps)
        if place == steps:
            self._stream = None
            with self.random.drawn():
                self._close_epoch()
        return True

    def train_to(self, epochs: int) -> None:
        """Run until so many epochs are done, or the training is over."""
        while len(self.progress.curve) < epochs and self.advance():
            pass

    def announce(self, listener: Listener) -> None:
        """Call a listener with the epochs that were trained before it listened, and with the
        weights that would be kept."""
        progress = self.progress
        for point in progress.curve:
            try:
                listener.epoch(point)
            except StopTraining:
                self.stop()
        if progress.curve and (self.config.select == "last" or not self.validated):
            with self._averaged():
                listener.kept(progress.curve[-1])
        elif progress.best is not None and self.best is not None:
            last = _copy(self.model)
            self.model.load_state_dict(self.best)
            listener.kept(progress.best)
            self.model.load_state_dict(last)

    def stop(self) -> None:
        """Make no further step: the training ends as if this epoch had been the last."""
        self._asked_to_stop = True

    def state(self, *, copied: bool = True) -> TrainState:
        """Return everything the next step depends on.

        copied: False returns the tensors themselves, which the next step changes
        """
        self.progress.used = self.clock.used
        random = self.random.state_dict()
        random["minibatches"] = self.minibatches.generator.get_state()
        state = TrainState(
            self.model.state_dict(),
            self.optimizer.state_dict(),
            self.schedule.state_dict(),
            self.best,
            self.minibatches.histories.state_dict(),
            random,
            self.minibatches.position,
            self.progress,
            None if self.average is None else self.average.state_dict(),
        )
        return state.copy() if copied else state

    def restore(self, state: TrainState) -> None:
        """Set the trainer to a state that was taken from a run like this one."""
        histories = state.histories  # copied into the tables row by row, not first as a whole
        state = replace(state, histories={}).copy()
        self.model.load_state_dict(state.model)
        self.optimizer.load_state_dict(state.optimizer)
        self.schedule.load_state_dict(state.schedule)
        self.best = state.best
        if self.average is not None and state.average is not None:
            self.average.load_state_dict(state.average)
        self.minibatches.histories.load_state_dict(histories)
        self.minibatches.generator.set_state(state.random["minibatches"])
        self.minibatches.position = state.position
        self.progress = state.progress
        self.random.load_state_dict(state.random)
        self.clock.go_on(self.progress.used)
        self._stream = None
        self._asked_to_stop = False

    def _open_epoch(self) -> Iterator[Batch]:
        """Return the minibatches of the next epoch, or the rest of one that was begun."""
        batches = self.minibatches
        if batches.position.epoch > len(self.progress.curve):
            return batches.rest_of_epoch()
        if not self.progress.curve and self.config.warm_start and batches.estimator.history:
            batches.warm_start(self.model)
        if self.refreshed is not None:
            batches.refresh(self.model, self.refreshed)
        return iter(batches)

    def _close_epoch(self, *, early: bool = False) -> None:
        """Measure, evaluate and report the epoch; keep the weights if they are the best so far.

        early: True if the epoch ended before all of its minibatches
        """
        progress = self.progress
        if not finite_weights(self.model):
            self._diverge("the weights became infinite or NaN")
        reading = self._read_histories()
        with self._averaged():
            point = self._measure(reading, early=early)
            progress.curve.append(point)
            progress.loss, progress.sampled, progress.history_reads = 0.0, 0, 0
            self._common = {}
            if point.val is not None:
                self.schedule.evaluated(point.val)
            best = self._is_best(point)
            old = old_tables(progress.curve, self.minibatches.estimator)
            if old is not None:
                self.listener.note(old)
            try:
                self.listener.epoch(point)
            except StopTraining:
                self.stop()
            kept = best or self.config.select == "last" or not self.validated
            if kept:
                self.listener.kept(point)

    def _averaged(self) -> AbstractContextManager[None]:
        """Give the model the weights that are evaluated and kept, inside this context."""
        return nullcontext() if self.average is None else self.average.applied()

    def _read_histories(self) -> Reading:
        """Measure staleness and noise with the weights that write the histories."""
        start = self.clock.now()
        reading = self.monitor.after_epoch(self.minibatches.position.epoch)
        self.progress.diagnostics_seconds += self.clock.now() - start
        return reading

    def _measure(self, reading: Reading, *, early: bool) -> Epoch:
        """Return the point of the curve for the finished epoch."""
        progress, batches = self.progress, self.minibatches
        number = batches.position.epoch
        evaluate = early or number == self.config.epochs or number % self.config.evaluate_every == 0
        done = batches.position.place / len(batches)
        age = batches.mean_age()
        return Epoch(
            epoch=number,
            loss=progress.loss / (self.trained * done),
            val=self._score("val") if evaluate else None,
            seconds=progress.seconds,
            age=None if math.isnan(age) else age,
            sampled=progress.sampled / (self.visited * done),
            history_reads=progress.history_reads / (self.visited * done),
            staleness=reading.staleness,
            gradient_staleness=reading.gradient_staleness,
            gradient_noise=reading.gradient_noise,
            common_staleness=self._common.get("h"),
            gradient_common_staleness=self._common.get("g"),
        )

    def _is_best(self, point: Epoch) -> bool:
        progress = self.progress
        if point.val is None:
            return False
        best = None if progress.best is None else progress.best.val
        if best is not None and not self.target.better(point.val, best):
            progress.behind += 1
            return False
        progress.best, progress.behind, self.best = point, 0, _copy(self.model)
        return True

    def _step(self, batch: Batch) -> None:
        """Make one step on a minibatch."""
        if batch.needs_gradient:
            self.progress.loss += self._update(batch)
        else:  # the batch only refreshes histories
            batch.renew(self.model)
        if self.minibatches.position.place == len(self.minibatches):
            self._common = self._measure_common(batch)
        batch.commit()
        self.progress.sampled += batch.plan.sampled_edges
        self.progress.history_reads += batch.plan.history_reads

    def _measure_common(self, batch: Batch) -> dict[str, float]:
        """Return the common staleness of tables by kind; empty if it is not measured."""
        return common_staleness(batch)

    def _update(self, batch: Batch) -> float:
        """Update the weights; return the sum of the loss over the batch's training nodes."""
        outputs = batch.run(self.model)
        self.target.check_outputs(outputs)
        losses = self.target.losses(batch, outputs)
        self.optimizer.zero_grad()
        batch.mean(losses).backward()
        value = self._of_all(batch.counted(losses).item())
        if not math.isfinite(value):
            self._diverge(f"the training loss became {value}")
        if self.config.clip is not None:
            clip_gradients(self.model, self.config.clip)
        self.optimizer.step()
        self.schedule.updated(self.minibatches.step + 1)
        if self.average is not None:
            self.average.stepped(self.minibatches.step + 1)
        return value

    def _diverge(self, what: str) -> NoReturn:
        rate = self.optimizer.param_groups[0]["lr"]
        raise diverged(what, self.minibatches.position, rate)

    def _of_all(self, loss: float) -> float:
        """Return the loss; if several processes train together, the sum of their losses, after
        which the weights also hold the sum of their gradients."""
        return loss

    def _score(self, split: str) -> float | None:
        if not self.target.has(split):
            return None
        start = self.clock.now()
        outputs = self.evaluation.outputs(self.target.nodes(split))
        # NaN outputs would be assigned a class all the same. `predict` reports those of test nodes:
        # training is over.
        if split == "val" and not bool(outputs.isfinite().all()):
            self._diverge("outputs for the validation nodes became infinite or NaN")
        value = self.target.score_split(self.model, outputs, split)
        took = self.clock.now() - start
        self.progress.evaluation_seconds += took
        self.clock.evaluated(took)
        return value


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
