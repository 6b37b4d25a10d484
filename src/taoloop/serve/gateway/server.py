"""The gateway as a process: it listens, reloads its files when they change, and shuts down without losing a run.

A connection that sends no valid request gets an error in the form of all other errors; nothing of what it sent is
logged or repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from taoloop.config.document import Stamp, file_stamp, track_files
from taoloop.errors import ConfigError, TaoError
from taoloop.journals.base import Journal
from taoloop.runtime.after.retention import RetentionTask
from taoloop.runtime.notifications.notice import inbox_link
from taoloop.runtime.notifications.notifier import NotificationTask
from taoloop.runtime.observation.telemetry import Telemetry
from taoloop.serve.gateway.a2a.push_configs import PushConfigs
from taoloop.serve.gateway.a2a.push_delivery import PushDelivery
from taoloop.serve.gateway.app import Gateway, error_response
from taoloop.serve.gateway.auth.panel_access import (
    PANEL_PATH,
    GatewayAccess,
    gateway_panel,
    redirect_to_panel,
)
from taoloop.serve.gateway.auto_resume import AutoResumer
from taoloop.serve.gateway.config.model import GatewayConfig
from taoloop.serve.gateway.config.tls import TlsFiles, load_certificate, server_context
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.observe.metrics import Metrics
from taoloop.serve.gateway.observe.readiness import StorageProbe
from taoloop.serve.gateway.observe.request_log import RequestRecord
from taoloop.serve.gateway.quotas import Quotas, RunAccounts, late_warnings
from taoloop.serve.gateway.repeats.ledger import RequestLedger
from taoloop.serve.gateway.run_service import ConfigSnapshot
from taoloop.serve.gateway.shared.conversations import Conversations
from taoloop.serve.gateway.shared.database import GatewayDatabase
from taoloop.serve.gateway.shared.managed_keys import ManagedKeys
from taoloop.serve.hosts import is_loopback

_LOG = logging.getLogger("taoloop.gateway")

POLL_INTERVAL_S = 1.0
"""How often the files are checked for changes, and the journal for waiting runs that were answered."""

_MAX_HEADER = 32 * 1024

_FINAL_TIMEOUT_S = 5.0
"""How long a stopped request may take to tell its client so."""

_NO_TIMEOUT_S = 86_400.0

IDLE_TIMEOUT_S = 75.0
"""How long a connection may send no complete request header; longer than proxies keep theirs open (60 s)."""


def require_keys_off_localhost(config: GatewayConfig) -> None:
    """Refuse to serve a network without keys.

    Raises:
        ConfigError: there is no key, and other machines can reach the address.
    """
    if not config.needs_key and not is_loopback(config.host):
        raise ConfigError(
            f"{config.host}:{config.port} can be reached from other machines, and the file names no keys.",
            hint="Put one under `keys` of a gateway file (`tao serve --new-key NAME`), or listen on 127.0.0.1.",
        )


class GatewayServer:
    """One gateway from start to shutdown.

    Args:
        config: The first configuration.
        journal: Keeps all runs.
        load: Reads the configuration again after a change; where it raises, the current one stays in use.
        quotas: Counts what keys use.
        telemetry: OpenTelemetry; None: off.
        on_request: Called with the record of each request when it is over.
        say: Called with each message about the server, such as a reload.
        idle_timeout_s: How long a connection may send no complete request header.
        poll_interval_s: How often the files are checked for changes, and the journal for runs that were answered.
        database: Keeps the keys that administrators manage, and requests that may be repeated; the caller closes it.
            None: there are no such keys, and requests are kept in memory.
    """

    def __init__(
        self,
        config: GatewayConfig,
        journal: Journal,
        *,
        load: Callable[[], GatewayConfig],
        quotas: Quotas,
        telemetry: Telemetry | None = None,
        on_request: Callable[[RequestRecord], None] = lambda _record: None,
        say: Callable[[str], None] = _LOG.warning,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        poll_interval_s: float = POLL_INTERVAL_S,
        database: GatewayDatabase | None = None,
    ) -> None:
        self._journal, self._load, self._say = journal, load, say
        self._idle_timeout_s, self._poll_interval_s = idle_timeout_s, poll_interval_s
        managed_keys = None if database is None else ManagedKeys(database, quotas.clock)
        metrics = Metrics()
        requests = GatewayDatabase() if database is None else database
        self._memory = requests if database is None else None
        ledger = RequestLedger(requests, quotas.clock)
        conversations = Conversations(requests, quotas.clock)
        self._accounts = RunAccounts(
            quotas=quotas,
            metrics=metrics,
            ledger=ledger,
            conversations=conversations,
            push_configs=PushConfigs(requests, quotas.clock),
            storage=StorageProbe(journal),
            telemetry=telemetry,
            managed_keys=managed_keys,
        )
        self._tls = None if config.tls is None else server_context(config.tls)
        self.gateway = Gateway(ConfigSnapshot(config, journal, self._accounts), on_request)
        self._panel_access = GatewayAccess(lambda: self.gateway.snapshot, quotas.clock)
        panel = gateway_panel(lambda: self.gateway.snapshot, journal, self._panel_access, quotas.clock)
        self.gateway.app.router.add_get(PANEL_PATH, redirect_to_panel)  # before the pages, which would take the path
        self.gateway.app.add_subapp(f"{PANEL_PATH}/", panel.app)
        self.stop, self.hurry = asyncio.Event(), asyncio.Event()
        self._reload = asyncio.Event()
        self._stamps = config.files

    async def serve(self, on_ready: Callable[[str], None] = lambda _: None) -> None:
        """Serve until `stop` is set; then active runs get `shutdown_s` to finish, and the others are stopped.

        Raises:
            ConfigError: the address cannot be listened on, or the configuration of an agent is wrong.
        """
        config = self.gateway.snapshot.config
        require_keys_off_localhost(config)
        await asyncio.to_thread(self.gateway.snapshot.warm_up)
        for warning in late_warnings(config):
            self._say(warning)
        runner = GatewayRunner(
            self.gateway.app,
            handler_cancellation=True,
            access_log=None,
            logger=QuietConnectionLog(_LOG, {}),
            keepalive_timeout=self._idle_timeout_s,
            shutdown_timeout=_NO_TIMEOUT_S,  # `_shut_down` counts the time itself, and tells clients
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        await runner.setup()
        site = web.TCPSite(runner, config.host, config.port, reuse_address=True, backlog=1024, ssl_context=self._tls)
        resumer = AutoResumer(lambda: self.gateway.snapshot)
        retention = RetentionTask(self._journal, lambda: self.gateway.snapshot.config.keep)
        notifications = NotificationTask(
            self._journal,
            lambda: self.gateway.snapshot.config.notify,
            link_to=self._inbox_link,
        )
        watching = asyncio.gather(
            self._watch_files(),
            resumer.poll(self._poll_interval_s),
            retention.repeat(),
            notifications.repeat(),
            PushDelivery(lambda: self.gateway.snapshot).repeat(self._poll_interval_s),
        )
        try:
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(
                    f"{config.host}:{config.port} cannot be listened on: {error.strerror or error}.",
                    hint="Choose another one with --port; 0 takes a free one.",
                ) from error
            self.gateway.state = "ready"
            on_ready(_url(config, runner))
            await self.stop.wait()
            grace_s = self.gateway.snapshot.config.limits.shutdown_s
            self._say(f"The server is shutting down; active runs have {grace_s:g} s to finish.")
        finally:
            self.gateway.drain()
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            await self._shut_down(runner, resumer)
            await self.gateway.snapshot.retire()
            if self._memory is not None:
                self._memory.close()

    def _inbox_link(self, run_id: str, call_id: str) -> str:
        """The address in the inbox of this gateway's panel; without `public_url` nobody knows it."""
        public_url = self.gateway.snapshot.config.public_url
        return inbox_link(f"{public_url}/panel" if public_url else "")(run_id, call_id)

    async def _shut_down(self, runner: web.AppRunner, resumer: AutoResumer) -> None:
        """Let active runs finish in time; the others, or all in a hurry, are stopped.

        Until then the server listens, so that a load balancer reads in `/readyz` that it drains, and no connection is
        refused.
        """
        shutdown_s = self.gateway.snapshot.config.limits.shutdown_s
        draining = asyncio.gather(self.gateway.has_drained.wait(), resumer.shut_down(shutdown_s))
        hurrying = asyncio.ensure_future(self.hurry.wait())
        await asyncio.wait((draining, hurrying), timeout=shutdown_s, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        self.gateway.cancel_requests()
        resumer.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINAL_TIMEOUT_S):
                await asyncio.gather(draining, runner.cleanup())
        draining.cancel()

    def panel_link(self, url: str) -> str:
        """Where the panel is, if the server is at `url`; without keys the link logs in."""
        token = "" if self._panel_access.needs_key else f"login?token={self._panel_access.token}"
        return f"{url}{PANEL_PATH}/{token}"

    def request_reload(self) -> None:
        """Reload the configuration now, as after SIGHUP."""
        self._reload.set()

    def request_stop(self) -> None:
        """End the server, as after SIGINT or SIGTERM: active runs get their time. A second call ends it at once."""
        (self.hurry if self.stop.is_set() else self.stop).set()

    async def _watch_files(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_interval_s):
                    await self._reload.wait()
            self._keep_places()
            stamps = await asyncio.to_thread(lambda: {path: file_stamp(path) for path in self._stamps})
            if self._reload.is_set() or stamps != self._stamps:
                self._reload.clear()
                await self._reload_config(stamps)

    def _keep_places(self) -> None:
        """Renew the lease of this process; a database that fails for a moment is asked again at the next poll."""
        try:
            self._accounts.quotas.renew()
        except TaoError as error:
            _LOG.warning("the places of active runs could not be renewed: %s", error)

    async def _reload_config(self, stamps: dict[Path, Stamp]) -> None:
        """Read the files and use the new configuration; a broken one changes nothing.

        `stamps` are those of the watched files by now. A file that changes while it is read is read again.
        """
        old = self.gateway.snapshot

        def load() -> GatewayConfig:
            with track_files() as files:
                try:
                    return self._load()
                finally:
                    stamps.update(files)

        try:
            config = await asyncio.to_thread(load)
            require_keys_off_localhost(config)
            new = ConfigSnapshot(config, self._journal, self._accounts)
            await asyncio.to_thread(new.warm_up)
            if self._tls is not None and config.tls is not None:
                server_context(config.tls)  # half of a renewed pair must not reach the context in use
                load_certificate(self._tls, config.tls)
        except Exception as error:  # noqa: BLE001  # no error may end the server, or prevent later reloads
            if not isinstance(error, (TaoError, OSError)):
                _LOG.exception("the configuration could not be read")
            self._accounts.metrics.reloaded(ok=False)
            self._stamps = stamps  # with those of the broken file, which may be a new one
            self._say(f"The changed configuration is not used; the previous one stays in use: {error}")
            return
        self._accounts.quotas.limits = config.limits
        self.gateway.snapshot, self._stamps = new, config.files
        self._accounts.metrics.reloaded(ok=True)
        address_changed = (config.host, config.port) != (old.config.host, old.config.port)
        notes = " A new address requires a restart." if address_changed else ""
        notes += _tls_note(old.config.tls, config.tls)
        notes += " A new `db` requires a restart." if config.db != old.config.db else ""
        if config.allow_origins and not self.gateway.cors_enabled:
            notes += " Allowing the first origin requires a restart."
        self._say(f"The changed configuration is in use.{notes}")
        new_warnings = [f"Warning: {warning}" for warning in config.warnings if warning not in old.config.warnings]
        for warning in (*new_warnings, *late_warnings(config)):
            self._say(warning)
        await old.retire()


def _tls_note(old: TlsFiles | None, new: TlsFiles | None) -> str:
    if (old is None) != (new is None):
        return " Turning TLS on or off requires a restart."
    client_ca_changed = old is not None and new is not None and old.client_ca != new.client_ca
    return " A new `client_ca` requires a restart." if client_ca_changed else ""


def _url(config: GatewayConfig, runner: web.AppRunner) -> str:
    port = runner.addresses[0][1]  # the actual one, where 0 was asked for
    scheme = "http" if config.tls is None else "https"
    return f"{scheme}://[{config.host}]:{port}" if ":" in config.host else f"{scheme}://{config.host}:{port}"


# Connections that send no valid request

_INTERNAL_ERROR = 500
_MAX_REASON_CHARS = 100
_SAFE_REASONS = ("Received HTTPS ", "Duplicate ", "Missing ")
_CLIENT_ERRORS = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


class QuietConnectionLog(logging.LoggerAdapter[logging.Logger]):
    """Replaces the web server's own log.

    That one writes the invalid line, which may contain a key, with a traceback; anybody who sends garbage could fill a
    disk with it. Bugs keep their traceback.
    """

    def exception(self, msg: object, *args: object, exc_info: Any = True, **_: Any) -> None:
        """A connection failed."""
        if isinstance(exc_info, _CLIENT_ERRORS):
            self.logger.debug("a connection brought no request that can be read: %s", type(exc_info).__name__)
        else:
            self.logger.error(str(msg), *args, exc_info=exc_info)


class GatewayRunner(web.AppRunner):
    """The runner of an application whose connections get their errors in the form of all other errors.

    The web server's own answer is a plain text with the invalid bytes, which may contain a key.
    """

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.__class__ = _Server  # an application has no setting for the class of its connections
        return server


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The answer to an invalid request; the connection ends with it."""
        super().handle_error(request, status, exc, message)  # it logs, and knows whether an answer has begun
        error = _connection_error(status, exc, message or "")
        response = error_response(error)
        response.force_close()
        return response


def _connection_error(status: int, error: BaseException | None, message: str) -> ApiError:
    if isinstance(error, LineTooLong):
        return ApiError(status=431, message="The address or a header is too long.", code="header_too_long")
    if status >= _INTERNAL_ERROR:
        return ApiError(status=status, message="The server failed.", code="internal_error")
    why, shows_bytes, _ = message.partition(":\n")
    is_safe = shows_bytes or why.startswith(_SAFE_REASONS)  # other reasons contain the invalid bytes
    text = f"This is not a valid HTTP request{f': {why[:_MAX_REASON_CHARS]}' if is_safe else ''}"
    return ApiError(status=status, message=f"{text.rstrip('.')}.", code="invalid_http")
