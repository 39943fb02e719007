"""Pairs that are known and carry no messages: validation and test pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Ends = tuple[int, int]  # target and source, by slots


class HiddenPairs:
    """A set of pairs, by their sources."""

    def __init__(self, pairs: Iterable[Ends] = ()) -> None:
        self._targets: dict[int, set[int]] = {}
        for target, source in pairs:
            self._targets.setdefault(source, set()).add(target)

    def __contains__(self, pair: Ends) -> bool:
        return pair[0] in self._targets.get(pair[1], ())

    def __iter__(self) -> Iterator[Ends]:
        for source, targets in self._targets.items():
            yield from ((target, source) for target in targets)

    def of(self, source: int) -> list[int]:
        """The targets of a source."""
        return list(self._targets.get(source, ()))

    def forget(self, pairs: Iterable[Ends]) -> None:
        for target, source in pairs:
            self._targets.get(source, set()).discard(target)
