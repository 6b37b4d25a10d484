"""A journal that dies at a chosen append, as a process does that is killed there."""

from __future__ import annotations

from collections.abc import Sequence

from taoloop import MemoryJournal
from taoloop.core.events import Event
from taoloop.journals.base import Artifact, Lease


class Killed(BaseException):
    """The process died."""


class KillingJournal(MemoryJournal):
    """Dies at its append number `at`, before or after it has stored the events; those of inner runs count as well."""

    at, appends, after = -1, 0, False

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """Append, or die."""
        self.appends += 1
        if 0 < self.at < self.appends + (not self.after):  # a dead process writes nothing more
            raise Killed
        await super().append(lease, events, artifacts)
        if self.appends == self.at:
            raise Killed
