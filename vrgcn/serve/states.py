"""The states of a journal: folders that `Live.save` wrote, whose notes name journal and change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import remove_folder, remove_partial
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live
from vrgcn.live.saving import read_description, verified_description
from vrgcn.serve.head import DamagedError
from vrgcn.serve.journal import Journal

STATE = "state-"


def save_state(journal: Journal, live: Live) -> str:
    """Write a state with all changes and read it again; return its name."""
    path = journal.folder / f"{STATE}{journal.number}"
    if path.exists():  # a fold that failed left it
        remove_folder(path)
    live.save(path, note=journal.note())
    try:
        verified_description(path, live.saved)
    except BaseException:
        remove_folder(path)
        raise
    return path.name


def open_state(journal: Journal, saved: SavedModel, directory: Path | None) -> Live:
    """Open the state that the head of a journal names. directory: as in `Live`"""
    head = journal.head
    assert head.state is not None
    path = journal.folder / head.state
    try:
        live = Live.open(path, saved, directory=directory)
    except (InputError, OSError) as error:
        raise DamagedError(str(error), journal.folder) from error
    if live.note != {"journal": head.journal, "change": head.folded, "hash": head.begin}:
        raise _foreign(path, live.note, journal)
    return live


def refuse_foreign_states(journal: Journal) -> None:
    """Refuse states that have changes which neither the journal nor its own state has."""
    for path in _others(journal):
        try:
            note = read_description(path)["note"]
        except (InputError, OSError) as error:
            raise DamagedError(str(error), journal.folder) from error
        if not _superseded(note, journal):
            raise _foreign(path, note, journal)


def remove_superseded(journal: Journal) -> None:
    """Remove what is left of folds: states but for that of the journal, logs, unfinished files."""
    journal.remove_superseded()
    remove_partial(journal.folder)
    for path in _others(journal):
        remove_folder(path)


def _others(journal: Journal) -> Iterator[Path]:
    for path in sorted(journal.folder.glob(f"{STATE}*")):
        if path.name != journal.head.state:
            yield path


def _superseded(note: Any, journal: Journal) -> bool:
    """True if the journal has all changes of a state with this note."""
    if not isinstance(note, dict) or note.get("journal") != journal.head.journal:
        return False
    change = note["change"]
    return change < journal.head.folded or note["hash"] == journal.hash_of(change)


def _foreign(path: Path, note: Any, journal: Journal) -> DamagedError:
    mine = isinstance(note, dict) and note.get("journal") == journal.head.journal
    problem = (
        f"has changes up to {note['change']}, and the journal does not have all of these: its "
        "files are older ones"
        if mine
        else "belongs to another journal than the one beside it"
    )
    return DamagedError(f"{path} {problem}", journal.folder)
