"""A large table of records of which a run uses few: each is copied when it is first asked for by its key."""

from __future__ import annotations

import copy
from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from typing import Any


class TauRecords(MutableMapping[str, Any]):  # it changes, so it has no hash
    """The records of a table, which every run finds as they were at first.

    What is asked for by its key is the run's own copy. Searching through all of them (`items`, `values`) shows those
    that the run has not asked for in their first state, which all runs share: a function that changes records must ask
    for them by key, as those of tau2-bench do.
    """

    def __init__(self, first: Mapping[str, Any]) -> None:
        self._first = first
        self._own: dict[str, Any] = {}
        self._edit: Callable[[Any], None] | None = None

    def edit(self, change: Callable[[Any], None]) -> None:
        """Change each record, at the latest when it is asked for."""
        self._edit = change
        for record in self._own.values():
            change(record)

    def __getitem__(self, key: str) -> Any:
        """The record, from now on this run's own."""
        if key not in self._own:
            self._own[key] = copy.deepcopy(self._first[key])
            if self._edit is not None:
                self._edit(self._own[key])
        return self._own[key]

    def __setitem__(self, key: str, record: Any) -> None:
        """Add or replace a record."""
        self._own[key] = record

    def __delitem__(self, key: str) -> None:
        """Refuse: nothing deletes a record here."""
        raise TypeError("records are not deleted")

    def __contains__(self, key: object) -> bool:
        """Whether there is such a record; it is not copied for that."""
        return key in self._own or key in self._first

    def __iter__(self) -> Iterator[str]:
        """The keys."""
        return iter(self._view())

    def __len__(self) -> int:
        """How many records there are."""
        return len(self._view())

    def _view(self) -> dict[str, Any]:
        return {**self._first, **self._own}

    def items(self) -> ItemsView[str, Any]:
        """The keys and records, to be read."""
        return self._view().items()

    def values(self) -> ValuesView[Any]:
        """The records, to be read."""
        return self._view().values()

    def __eq__(self, other: object) -> bool:
        """Whether two runs left the same records."""
        if not isinstance(other, TauRecords):
            return NotImplemented
        used = self._own.keys() | other._own.keys()
        return self.keys() == other.keys() and all(self[key] == other[key] for key in used)

    __hash__ = None  # type: ignore[assignment]  # as any mapping that changes
