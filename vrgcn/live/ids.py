"""The user's ids of nodes, to be looked up one by one: those of the graph and those that came."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from torch import Tensor

Id = int | str


class IdIndex:
    """Places of ids in an array, found by halving: a few bytes for each id, whatever it is.

    ids: (nodes,) Arrow array of text or int64, all different; None: the numbers 0 to count - 1
    tidy: changes texts before they are compared, as the import did; None: they are taken as they
        are
    """

    def __init__(
        self, ids: pa.Array | None, count: int, tidy: Callable[[pa.Array], pa.Array] | None = None
    ) -> None:
        self.count = count
        self._tidy = tidy
        self.text = ids is not None and not pa.types.is_integer(ids.type)
        self._ids: Any = ids
        self._numbers = None
        if ids is None:
            return
        self._compared: Any = ids
        if self.text and tidy is not None:
            self._compared = tidy(ids)
        self._order = pc.sort_indices(self._compared).to_numpy()
        if not self.text:
            self._numbers = ids.to_numpy()[self._order]

    @property
    def following(self) -> int:
        """The number after all ids that are numbers."""
        if self._numbers is not None and self.count:
            return max(int(self._numbers[-1]) + 1, 0)
        return self.count

    def key(self, value: Any) -> Id | None:
        """An id as it is compared; None for a value that no node here can have."""
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
            return None
        if self.text:
            text = str(value)
            return text if self._tidy is None else self._tidy(pa.array([text]))[0].as_py()
        try:
            number = int(value)
        except ValueError:
            return None
        return number if str(number) == str(value) and abs(number) < 2**63 else None

    def find(self, key: Id) -> int | None:
        """The place of an id; None if there is none."""
        if self._ids is None:
            return key if isinstance(key, int) and 0 <= key < self.count else None
        if self._numbers is not None:
            at = int(np.searchsorted(self._numbers, key))
            there = at < self.count and self._numbers[at] == key
        else:
            at = bisect_left(range(self.count), key, key=self._at)
            there = at < self.count and self._at(at) == key
        return int(self._order[at]) if there else None

    def id(self, place: int) -> Id:
        """The id at a place."""
        return place if self._ids is None else self._ids[place].as_py()

    def ids(self, places: Tensor) -> pa.Array:
        """The ids at some places."""
        numbers = pa.array(places.numpy())
        return numbers if self._ids is None else self._ids.take(numbers)

    def _at(self, place: int) -> str:
        text: str = self._compared[int(self._order[place])].as_py()
        return text


class KindIds:
    """Ids of the nodes of one kind, and the slots that they have now.

    index: of the graph's own nodes
    first: slot of the first of them
    """

    def __init__(self, index: IdIndex, first: int) -> None:
        self.index = index
        self.first = first
        self.added: dict[Id, int] = {}  # their slots
        self.names: dict[int, Id] = {}  # by their slots
        self.gone: set[Id] = set()  # of the graph's own
        self.next = index.following

    def __len__(self) -> int:
        return self.index.count - len(self.gone) + len(self.added)

    def slot(self, key: Id) -> int | None:
        """The slot of a node that is there; None if it is not."""
        if key in self.added:
            return self.added[key]
        if key in self.gone:
            return None
        place = self.index.find(key)
        return None if place is None else self.first + place

    def id(self, slot: int) -> Id:
        """The id of a slot that has or had a node."""
        if slot in self.names:
            return self.names[slot]
        return self.index.id(slot - self.first)

    def add(self, key: Id, slot: int) -> None:
        self.added[key] = slot
        self.names[slot] = key
        if isinstance(key, int):
            self.next = max(self.next, key + 1)

    def remove(self, key: Id) -> None:
        if key in self.added:
            del self.added[key]
        else:
            self.gone.add(key)
