"""`compare`: every difference of two recordings."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.golden.record import ABOUT

_HASH = re.compile(r"\b[0-9a-f]{16,64}\b")
# Entries of about.json that differ between recordings without changing bits.
_OWN = ("commit", "changed", "sections", "seconds", "cpu_seconds")


def compare(before: Path, after: Path, sections: Sequence[str], lines: int) -> int:
    """Print the differences of the recorded texts; return 1 if there are any, else 0.

    lines: how many to print of each difference
    """
    old, new = _texts(before, sections), _texts(after, sections)
    for line in _machines(before, after):
        print(line)
    differing = [name for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    for first, *others in _alike({name: _difference(old[name], new[name]) for name in differing}):
        print(f"\n{first}")
        print("\n".join(_shown(_difference(old[first], new[first]), lines)))
        if others:
            print("\n".join([f"  and in {len(others)} more, but for hashes:", *_indented(others)]))
    for title, names in ((f"only in {before}", gone), (f"only in {after}", come)):
        if names:
            print("\n".join([f"\n{title}", *_indented(names)]))
    if differing or gone or come:
        same = len(old.keys() & new.keys()) - len(differing)
        print(f"\n{len(differing)} differ, {len(gone)} gone, {len(come)} new, {same} the same")
        return 1
    print(f"no difference in {len(old)} files")
    return 0


def _texts(folder: Path, sections: Sequence[str]) -> dict[str, str]:
    if not (folder / ABOUT).is_file():
        raise ValueError(f"{folder} is no complete recording: it has no {ABOUT}")
    paths = [path for section in sections for path in (folder / section).rglob("*.txt")]
    if not paths:
        raise ValueError(f"{folder} holds no recording of {', '.join(sections)}")
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


def _difference(old: str, new: str) -> list[str]:
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]


def _alike(differences: dict[str, list[str]]) -> list[list[str]]:
    """Group the names of files that differ in the same lines except for hashes: one new entry in
    every model file is one difference, not two hundred."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, lines in differences.items():
        changed = tuple(_HASH.sub("", line) for line in lines if line[0] in "+-")
        groups.setdefault(changed, []).append(name)
    return list(groups.values())


def _shown(difference: list[str], most: int) -> Iterator[str]:
    yield from (f"  {line}" for line in difference[:most])
    if len(difference) > most:
        yield f"  ... {len(difference) - most} more lines (--lines {len(difference)})"


def _indented(names: Sequence[str]) -> list[str]:
    return [f"  {name}" for name in names]


def _machines(before: Path, after: Path) -> Iterator[str]:
    """Describe differences other than the code that may explain different bits."""
    old, new = (
        json.loads((folder / ABOUT).read_text(encoding="utf-8")) for folder in (before, after)
    )
    for folder, about in ((before, old), (after, new)):
        changed = f", with {len(about['changed'])} changed files" if about["changed"] else ""
        yield f"{folder}: commit {about['commit']}{changed}"
    for name in sorted((old.keys() | new.keys()) - set(_OWN)):
        if old.get(name) != new.get(name):
            yield f"note: {name} was {old.get(name)} and is {new.get(name)}: bits may differ"
