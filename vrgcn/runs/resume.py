"""Resuming a run: what its settings must still be, and whether anything is left to do.

No torch here: the user is told at once what cannot be resumed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vrgcn.files.setting_names import setting
from vrgcn.files.writing import remove_partial
from vrgcn.runs.folder import member_runs, read_config, unfinished
from vrgcn.runs.lock import locked
from vrgcn.runs.settings import BEFORE, GRAPH_CHECKSUM, Settings, is_longer, settings_changes


def refuse_changes(settings: Settings, folder: Path) -> None:
    """Refuse settings by which the run in a folder would be another one."""
    # A setting that is not in the file was None, or did not exist yet: at its default, but for a
    # few.
    before = type(settings)().as_written() | BEFORE | read_config(folder)
    changed = settings_changes(before, settings.as_written())
    if changed:
        raise ValueError(
            f"{setting('resume', True)}: {folder} cannot go on with other options: "
            f"{'; '.join(changed)}"
        )


def nothing_left(settings: Settings, folder: Path | None) -> bool:
    """Whether the run in a folder has finished and is not asked for more. Files that a process left
    which was killed at its very end are removed.

    folder: None where no run is to be resumed
    """
    if folder is None or unfinished(folder) is not None:
        return False
    runs, now = (folder, *member_runs(folder)), settings.as_written()
    # Each of several runs by itself: those that were to be made longer may not have been begun yet.
    if any(is_longer(before, now) for before in map(read_config, runs)):
        return False
    for run in runs:
        with locked(run):
            remove_partial(run)
    return True


def described(settings: Settings, checksum: str | None) -> dict[str, Any]:
    """The settings that config.toml of a run has, and, where the run drew a split, the checksum by
    which its graph is known again once it was moved.

    checksum: of the graph on disk, as it was opened
    """
    values = settings.as_dict()
    if settings.ratio is not None and settings.graph is not None:
        values[GRAPH_CHECKSUM] = checksum
    return values
