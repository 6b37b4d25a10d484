"""Pauses between the tries to reach a server: longer after each failure, and never without end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from taoloop.errors import McpFailed

if TYPE_CHECKING:
    from taoloop.tools.mcp.settings import McpServer

_FIRST_S, _LONGEST_S = 0.2, 60.0
_PATIENCE_S = 5.0  # a pause up to this is waited out; above it, the server counts as away
_SETTLED_S = 30.0  # after this a connection counts as good, and the next pause is the first again


class ReconnectBackoff:
    """How often a server failed in a row, and when the next try is due."""

    def __init__(self) -> None:
        self._failures, self._due = 0, 0.0

    def ended(self, lived_s: float) -> None:
        """Note the end of a connection that lived so long; 0 if it did not come about."""
        self._failures = 1 if lived_s > _SETTLED_S else self._failures + 1
        self._due = time.monotonic() + min(_LONGEST_S, _FIRST_S * 2 ** (self._failures - 1))

    async def wait(self, server: McpServer) -> None:
        """Wait until the next try is due.

        Raises:
            McpFailed: that is too long.
        """
        remaining_s = self._due - time.monotonic()
        if remaining_s > _PATIENCE_S:
            raise McpFailed(
                f"{server.display_name} failed {self._failures} times in a row; "
                f"the next try is in {remaining_s:.0f} s.",
                code="server_away",
                retryable=True,
                hint="Use another tool, or tell the user.",
            )
        await asyncio.sleep(max(0.0, remaining_s))
