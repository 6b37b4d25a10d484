"""The panel as a process of its own: `tao panel`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aiohttp import web

from taoloop.errors import ConfigError
from taoloop.serve.panel.app import Panel

_LOG = logging.getLogger("taoloop.panel")

_SHUTDOWN_S = 5.0


class PanelServer:
    """Serves a panel until it is told to stop."""

    def __init__(self, panel: Panel, host: str, port: int) -> None:
        self._panel, self._host, self._port = panel, host, port
        self.stop = asyncio.Event()

    async def serve(self, on_ready: Callable[[str], None] = lambda _url: None) -> None:
        """Listen; `on_ready` gets the address once the pages can be opened.

        Raises:
            ConfigError: the address cannot be listened on.
        """
        runner = web.AppRunner(
            self._panel.app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S
        )
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port, reuse_address=True)
        try:
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(
                    f"{self._host}:{self._port} cannot be listened on: {error.strerror or error}.",
                    hint="Choose another one with --port; 0 takes a free one.",
                ) from error
            host = f"[{self._host}]" if ":" in self._host else self._host
            on_ready(f"http://{host}:{runner.addresses[0][1]}")
            await self.stop.wait()
        finally:
            await runner.cleanup()
