"""Sends the curve of a run to Weights & Biases or to MLflow, where the user asks for it.

Nothing is sent unless a setting names a project or an experiment; where it goes is for the
tracker's own variables to say (WANDB_MODE, MLFLOW_TRACKING_URI). An error of a tracker is told
once, and the training continues without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol

from vrgcn.files.parsing import read_json
from vrgcn.files.writing import write_text
from vrgcn.training.listener import Listener
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch

FILE = "tracking.json"  # in the run's folder: the names that trackers gave the run
_SHOWN = 200  # characters of an error
_PARAMS = 90  # settings that MLflow takes at once, at most 100


class Tracked(Protocol):
    """A run at a tracker. id: by which it is resumed"""

    id: str

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Send the numbers of an epoch."""

    def finish(self, numbers: Mapping[str, float]) -> None:
        """Send the scores of the run."""

    def close(self, failed: bool) -> None:
        """End the run there."""


class WandbRun:
    """A run of a project of Weights & Biases; its files are in the run's folder."""

    def __init__(
        self, project: str, folder: Path, config: Mapping[str, Any], known: str | None
    ) -> None:
        import wandb

        self._run = wandb.init(
            project=project,
            name=folder.resolve().name,
            config=dict(config),
            dir=str(folder),
            id=known,
            resume="allow" if known is not None else None,
            reinit="create_new",
        )
        self.id = str(self._run.id)

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        self._run.log(dict(numbers), step=epoch)

    def finish(self, numbers: Mapping[str, float]) -> None:
        self._run.summary.update(dict(numbers))

    def close(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


class MlflowRun:
    """A run of an experiment of MLflow."""

    def __init__(
        self, experiment: str, folder: Path, config: Mapping[str, Any], known: str | None
    ) -> None:
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient()
        self._sent = 0  # epochs that were sent before the run was stopped
        if known is not None:
            self.id = known
            self._client.update_run(known, status="RUNNING")
            history = self._client.get_metric_history(known, "loss")
            self._sent = max((each.step for each in history), default=0)
            return
        found = self._client.get_experiment_by_name(experiment)
        place = self._client.create_experiment(experiment) if found is None else found.experiment_id
        self.id = self._client.create_run(place, run_name=folder.resolve().name).info.run_id
        params = [Param(name, str(value)) for name, value in config.items()]
        for start in range(0, len(params), _PARAMS):
            self._client.log_batch(self.id, params=params[start : start + _PARAMS])

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        if epoch <= self._sent:  # a resumed run has the same numbers once more
            return
        for name, value in numbers.items():
            self._client.log_metric(self.id, name, value, step=epoch)

    def finish(self, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._client.log_metric(self.id, name, value)

    def close(self, failed: bool) -> None:
        self._client.set_terminated(self.id, "FAILED" if failed else "FINISHED")


# The setting, which is also the package: the tracker's name, and what opens a run there.
Opener = Callable[[str, Path, Mapping[str, Any], "str | None"], Tracked]
TRACKERS: dict[str, tuple[str, Opener]] = {
    "wandb": ("Weights & Biases", WandbRun),
    "mlflow": ("MLflow", MlflowRun),
}


class TrackerLog(Listener):
    """Sends each number of an epoch by its name, and in the end the scores.

    name: of TRACKERS; home: the project or the experiment
    folder: of the run; config: its settings
    note: called with the first error of the tracker, after which nothing more is sent
    """

    def __init__(
        self,
        name: str,
        home: str,
        folder: Path,
        config: Mapping[str, Any],
        note: Callable[[str], None],
    ) -> None:
        self._title, opener = TRACKERS[name]
        self._note = note
        self._run: Tracked | None = None
        known = _known(folder)
        config = {key: value for key, value in config.items() if value is not None}

        def open_run() -> None:
            self._run = opener(home, folder, config, known.get(name))
            write_text(folder / FILE, json.dumps(known | {name: self._run.id}) + "\n")

        self._safely(open_run)

    def epoch(self, point: Epoch) -> None:
        numbers = {
            name: float(value)
            for name, value in point.as_dict().items()
            if name != "epoch" and value is not None
        }
        self._tell(lambda run: run.log(numbers, point.epoch))

    def finish(self, result: TrainResult) -> None:
        """Send the scores of the kept model."""
        scores = {"best_val": result.val, "test": result.test, "best_epoch": result.epoch}
        numbers = {name: float(value) for name, value in scores.items() if value is not None}
        self._tell(lambda run: run.finish(numbers))

    def __enter__(self) -> TrackerLog:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        self._tell(lambda run: run.close(kind is not None))

    def _tell(self, send: Callable[[Tracked], None]) -> None:
        run = self._run
        if run is not None:
            self._safely(lambda: send(run))

    def _safely(self, send: Callable[[], None]) -> None:
        """Run `send`; after an error nothing more is sent."""
        try:
            send()
        except Exception as error:  # whatever the tracker's own code raises
            self._run = None
            reason = shorten((str(error).splitlines() or [""])[0], _SHOWN, placeholder=" ...")
            self._note(
                f"{self._title} does not answer as it should, and gets nothing more of this run "
                f"({type(error).__name__}: {reason}); training continues"
            )


def _known(folder: Path) -> dict[str, str]:
    """The names that trackers gave the run in a folder before."""
    with suppress(OSError, ValueError):
        found = read_json(folder / FILE)
        if isinstance(found, dict):
            return {str(name): str(value) for name, value in found.items()}
    return {}
