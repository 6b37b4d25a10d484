"""The gateway as a process: listens, takes up changes of its files, and ends without losing a run."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from taoloop.config.document import Stamp, file_stamp, track_files
from taoloop.errors import ConfigError, TaoError
from taoloop.serve.gateway.app import Gateway
from taoloop.serve.gateway.auto_resume import AutoResumer
from taoloop.serve.gateway.http.bad_connections import GatewayRunner, QuietConnectionLog
from taoloop.serve.gateway.observe.metrics import Metrics
from taoloop.serve.gateway.quotas import Quotas
from taoloop.serve.gateway.snapshot import ConfigSnapshot
from taoloop.serve.gateway.unpriced_budgets import unenforceable_budgets

if TYPE_CHECKING:
    from taoloop.journals.base import Journal
    from taoloop.serve.gateway.config.model import GatewayConfig
    from taoloop.serve.gateway.observe.otel import Telemetry
    from taoloop.serve.gateway.request_context import RequestContext

_LOG = logging.getLogger("taoloop.gateway")

WATCH_S = 1.0
"""How often the files are looked at for changes."""

_MAX_HEADER = 32 * 1024

_LAST_S = 3.0
"""How long what was stopped may take to tell its client so."""

_LONG_S = 86_400.0

IDLE_S = 75.0
"""How long a connection may bring no whole header of a request; longer than proxies keep theirs open (60 s)."""


def require_keys_off_localhost(config: GatewayConfig) -> None:
    """Refuse to serve everybody who can reach an address of another machine's network.

    Raises:
        ConfigError: there is no key, and the address is not one of this machine alone.
    """
    if config.keys or config.host == "localhost":
        return
    try:
        is_local = ipaddress.ip_address(config.host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise ConfigError(
            f"{config.host}:{config.port} can be reached from other machines, and the file names no keys.",
            hint="Put one under `keys` of a gateway file (`tao serve --new-key NAME`), or listen on 127.0.0.1.",
        )


class GatewayServer:
    """One gateway from its start to its end.

    `load` reads the configuration anew; what it raises leaves the old one in force.
    """

    def __init__(
        self,
        config: GatewayConfig,
        journal: Journal,
        *,
        load: Callable[[], GatewayConfig],
        allowances: Quotas,
        telemetry: Telemetry | None = None,
        on_visit: Callable[[RequestContext, int], None] = lambda _visit, _status: None,
        say: Callable[[str], None] = _LOG.warning,
        idle_s: float = IDLE_S,
    ) -> None:
        self._journal, self._load, self._say, self._idle_s = journal, load, say, idle_s
        self._allowances, self._metrics, self._telemetry = allowances, Metrics(), telemetry
        self.gateway = Gateway(self._standing(config), on_visit)
        self.stop, self.hurry = asyncio.Event(), asyncio.Event()
        self._reload = asyncio.Event()
        self._files = config.files
        self._seen = _stamps(config.files)

    async def serve(self, on_ready: Callable[[str], None] = lambda _: None) -> None:
        """Serve until `stop` is set; then runs under way get their time, and what is left of them is stopped.

        Raises:
            ConfigError: the address cannot be listened on, or an agent cannot be what the file says.
        """
        config = self.gateway.standing.config
        require_keys_off_localhost(config)
        await asyncio.to_thread(self.gateway.standing.warm_up)
        for name in config.services.unused():
            self._say(f"{config.path.name}: {name}: no model and no OpenAPI tool is at this host.")
        self._warn_of_budgets(config)
        runner = GatewayRunner(
            self.gateway.app,
            handler_cancellation=True,
            access_log=None,
            logger=QuietConnectionLog(_LOG),
            keepalive_timeout=self._idle_s,
            shutdown_timeout=_LONG_S,  # this process counts the time itself, and tells who is cut off
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        await runner.setup()
        site = web.TCPSite(runner, config.host, config.port, reuse_address=True, backlog=1024)
        waker = AutoResumer(lambda: self.gateway.standing)
        watching = asyncio.gather(self._watch(), waker.watch())
        try:
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(
                    f"{config.host}:{config.port} cannot be listened on: {error.strerror or error}.",
                    hint="Take another one with --port; 0 takes a free one.",
                ) from error
            self.gateway.is_ready = True
            on_ready(_url(config.host, runner))
            await self.stop.wait()
            left = self.gateway.standing.config.limits.shutdown_s
            self._say(f"The server ends; runs under way have {left:g} s to finish.")
        finally:
            self.gateway.is_ready = False
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            await self._end(runner, waker)
            await self.gateway.standing.retire()

    async def _end(self, runner: web.AppRunner, waker: AutoResumer) -> None:
        """Take no more requests, and give runs under way their time; what is left then, or in a hurry, is stopped."""
        shutdown_s = self.gateway.standing.config.limits.shutdown_s
        ending = asyncio.gather(runner.cleanup(), waker.end(shutdown_s))
        hurrying = asyncio.ensure_future(self.hurry.wait())
        await asyncio.wait((ending, hurrying), timeout=shutdown_s, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        self.gateway.cut()
        waker.cut()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await ending

    def ask_reload(self) -> None:
        """Read the configuration anew now, as after SIGHUP."""
        self._reload.set()

    def listen_to_signals(self) -> None:
        """SIGINT and SIGTERM end the server, a second one at once; SIGHUP makes it read its file anew."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            (self.hurry if self.stop.is_set() else self.stop).set()

        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, end)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, self.ask_reload)

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCH_S):
                    await self._reload.wait()
            now = await asyncio.to_thread(_stamps, self._files)
            if not self._reload.is_set() and now == self._seen:
                continue
            self._reload.clear()
            read = {**now, **await self._take_up()}  # as they were when they were read: what changed since is read anew
            fresh = await asyncio.to_thread(_stamps, self._files)
            self._seen = {path: read.get(path, stamp) for path, stamp in fresh.items()}

    async def _take_up(self) -> Mapping[Path, Stamp]:
        """Read the files, and put what they say in the place of what was; a broken change changes nothing.

        Gives the files that were read, as they were then.
        """
        old = self.gateway.standing
        tried: dict[Path, Stamp] = {}

        def load() -> GatewayConfig:
            with track_files() as files:
                try:
                    return self._load()
                finally:
                    tried.update(files)

        try:
            config = await asyncio.to_thread(load)
            require_keys_off_localhost(config)
            new = self._standing(config)
            await asyncio.to_thread(new.warm_up)
        except Exception as error:  # noqa: BLE001  # whatever it is must not end the server, nor all later changes
            if not isinstance(error, (TaoError, OSError)):
                _LOG.exception("the configuration could not be read")
            self._metrics.reloaded(ok=False)
            self._files = tuple(dict.fromkeys((*old.config.files, *tried)))  # what is mended may be a new one
            self._say(f"The changed configuration is not used; the one before it goes on: {error}")
            return tried
        self._allowances.renew(config.limits)
        self.gateway.standing, self._files = new, config.files
        self._metrics.reloaded(ok=True)
        moved = (config.host, config.port) != (old.config.host, old.config.port)
        rest = " Another address takes a restart." if moved else ""
        rest += " Another `db` takes a restart." if config.db != old.config.db else ""
        if config.allow_origins and not self.gateway.knows_origins:
            rest += " To let pages of other origins in where none was let in before takes a restart."
        self._say(f"The changed configuration is in use.{rest}")
        for warning in config.warnings:
            if warning not in old.config.warnings:
                self._say(f"Warning: {warning}")
        self._warn_of_budgets(config)
        await old.retire()
        return tried

    def _warn_of_budgets(self, config: GatewayConfig) -> None:
        for warning in unenforceable_budgets(config):
            self._say(warning)

    def _standing(self, config: GatewayConfig) -> ConfigSnapshot:
        return ConfigSnapshot(config, self._journal, self._allowances, self._metrics, self._telemetry)


def _stamps(files: tuple[Path, ...]) -> Mapping[Path, Stamp]:
    return {path: file_stamp(path) for path in files}


def _url(host: str, runner: web.AppRunner) -> str:
    port = runner.addresses[0][1]  # the one that was taken for 0
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
