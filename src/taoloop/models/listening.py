"""Telling whoever watches what a reply has so far. Who watches must not end what happens."""

from __future__ import annotations

import logging
from collections.abc import Callable

from taoloop.core.message import Delta

_LOG = logging.getLogger("taoloop")


class Listening:
    """Passes deltas on. A listener that raises is logged and not called again for this reply."""

    __slots__ = ("_on_delta",)

    def __init__(self, on_delta: Callable[[Delta], None] | None) -> None:
        self._on_delta = on_delta

    def tell(self, delta: Delta) -> None:
        """Pass one piece on."""
        if self._on_delta is None:
            return
        try:
            self._on_delta(delta)
        except Exception:  # noqa: BLE001  # it is the caller's own code
            self._on_delta = None
            _LOG.exception("a listener to a model's reply failed; it hears no more of this one")
