"""Writes the curve of a run as TensorBoard events: `tensorboard --logdir runs` shows it live.

fit(model, graph, config, on_epoch=TensorBoardLog("runs/mine").epoch)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.training.listener import Listener
from vrgcn.training.state import Epoch

FOLDER = "tensorboard"  # in the run's folder


class TensorBoardLog(Listener):
    """Writes a scalar for each number of an epoch, by its name: loss, val, seconds, staleness, ...

    folder: the folder of the run; the events go to `tensorboard` in it
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder) / FOLDER
        self._writer = self._open()

    def epoch(self, point: Epoch) -> None:
        for name, value in point.as_dict().items():
            if name != "epoch" and value is not None:
                self._writer.add_scalar(name, value, point.epoch)
        self._writer.flush()  # written epochs survive if the run is cut short

    def restore(self, curve: list[Epoch]) -> None:
        """Remove the events of later epochs after the run was restored to an earlier one."""
        self._writer.close()
        self._writer = self._open(purge_step=len(curve) + 1)

    def close(self) -> None:
        self._writer.close()

    def __enter__(self) -> TensorBoardLog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _open(self, **given: Any) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError(
                f"{setting('log', 'tensorboard', python='TensorBoardLog')} needs TensorBoard: "
                "pip install 'vrgcn[tensorboard]'"
            ) from None
        return SummaryWriter(str(self.folder), **given)
