"""Resuming a run: checks that its settings are unchanged, and whether anything is left to do.

Imports no torch, so that the user learns at once if a run cannot be resumed.
"""

from __future__ import annotations

from pathlib import Path

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import declarations
from vrgcn.files.writing import remove_partial
from vrgcn.runs.folder import locked, member_runs, read_config, unfinished
from vrgcn.runs.settings import Settings, is_longer, settings_changes


def refuse_changes(settings: Settings, folder: Path) -> None:
    """Raise if settings have changed that would make the run in a folder another one."""
    # A setting that is not in the file was None.
    before = type(settings)().as_written() | read_config(folder)
    changed = settings_changes(before, settings.as_written(), declarations(type(settings)))
    if changed:
        raise InputError(
            f"{setting('resume', True)}: {folder} cannot be resumed with other options: "
            f"{'; '.join(changed)}"
        )


def nothing_left(settings: Settings, folder: Path | None) -> bool:
    """Return True if the run in a folder has finished and no more is asked for. Files of a process
    that was killed at its very end are removed.

    folder: None if no run is to be resumed
    """
    if folder is None or unfinished(folder) is not None:
        return False
    runs, now = (folder, *member_runs(folder)), settings.as_written()
    # Check each of several runs by itself: those to be extended may not have been begun yet.
    said = declarations(type(settings))
    if any(is_longer(before, now, said) for before in map(read_config, runs)):
        return False
    for run in runs:
        with locked(run):
            remove_partial(run)
    return True
