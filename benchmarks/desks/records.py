"""A large table of records of which a run uses few: each is copied when it is first asked for by its key."""

from __future__ import annotations

import pickle
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class Records(dict[str, Any]):
    """The records of a table, which every run finds as they were at first.

    What is asked for by its key is the run's own copy. Searching through all of them (`items`, `values`) shows those
    that the run has not asked for in their first state, which all runs share: a function that changes records must ask
    for them by key, as those of tau2-bench do.
    """

    def __init__(self, first: Mapping[str, Any], packed: Mapping[str, bytes]) -> None:
        super().__init__()
        self._first, self._packed = first, packed
        self._edit: Callable[[Any], None] | None = None

    def edit(self, change: Callable[[Any], None]) -> None:
        """Change each record, at the latest when it is asked for."""
        self._edit = change
        for key in super().keys():
            change(self[key])

    def __missing__(self, key: str) -> Any:
        """A copy of the record, from now on this run's own."""
        record = pickle.loads(self._packed[key])
        if self._edit is not None:
            self._edit(record)
        self[key] = record
        return record

    def get(self, key: str, default: Any = None) -> Any:
        """The record, or the default."""
        return self[key] if key in self else default

    def __contains__(self, key: object) -> bool:
        """Whether there is such a record."""
        return super().__contains__(key) or key in self._packed

    def __iter__(self) -> Iterator[str]:
        """The keys."""
        return iter(self.view())

    def __reversed__(self) -> Iterator[str]:
        """The keys, the last first."""
        return reversed(self.view())

    def __len__(self) -> int:
        """How many records there are."""
        return len(self.view())

    def view(self) -> dict[str, Any]:
        """All records, to be read: the run's own where it has any."""
        return {**self._first, **dict(super().items())}

    def keys(self) -> KeysView[str]:
        """The keys."""
        return self.view().keys()

    def items(self) -> ItemsView[str, Any]:
        """The keys and records, to be read."""
        return self.view().items()

    def values(self) -> ValuesView[Any]:
        """The records, to be read."""
        return self.view().values()

    def __eq__(self, other: object) -> bool:
        """Whether two runs left the same records."""
        if not isinstance(other, Records):
            return NotImplemented
        used = dict.keys(self) | dict.keys(other)
        return self.view().keys() == other.view().keys() and all(self[key] == other[key] for key in used)

    __hash__ = None  # type: ignore[assignment]  # as of any dict


def pack(first: Mapping[str, Any]) -> Callable[[], Records]:
    """What gives each run its own table of these records."""
    packed = {key: pickle.dumps(record) for key, record in first.items()}
    return lambda: Records(first, packed)
