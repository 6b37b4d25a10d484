"""The pieces of a reply on their way to who listens, while the model is still writing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from taoloop.core.message import Delta

DeltaListener = Callable[[Delta], None]
"""Called with each piece of a reply, in the event loop, as soon as the model hands it over.

One that raises is logged, hears no more of that reply, and the run goes on.
"""

_LOG = logging.getLogger("taoloop")


class DeltaFanout:
    """Hands the pieces of one reply on, without a queue; `end` makes it deaf to a model that goes on all the same."""

    __slots__ = ("_listeners",)

    def __init__(self, listeners: Sequence[DeltaListener]) -> None:
        self._listeners = list(listeners)

    def __call__(self, delta: Delta) -> None:
        """Take one piece."""
        for listener in tuple(self._listeners):
            try:
                listener(delta)
            except Exception:  # noqa: BLE001  # who listens must not end what happens
                _LOG.exception("a listener to the pieces of a reply failed; it hears no more of this reply")
                self._listeners.remove(listener)

    def end(self) -> None:
        """The reply is there, or will never be."""
        self._listeners.clear()
