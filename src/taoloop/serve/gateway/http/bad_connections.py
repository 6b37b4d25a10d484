"""Connections that send no valid request: the error they get, and what is logged. Nothing of what they sent."""

from __future__ import annotations

import json
import logging
from collections.abc import MutableMapping
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from taoloop.serve.gateway.errors import SERVER, ApiError

_INTERNAL_ERROR = 500
_MAX_REASON_CHARS = 100
_SAFE_REASONS = ("Received HTTPS ", "Duplicate ", "Missing ")
_CLIENT_ERRORS = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


class QuietConnectionLog(logging.LoggerAdapter[logging.Logger]):
    """Replaces the web server's own log.

    That one writes the invalid line, which may contain a key, with a traceback; anybody who sends garbage could fill a
    disk with it. Bugs keep their traceback.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger, {})

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Leave the message as it is."""
        return msg, kwargs

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
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to an invalid request; the connection ends with it."""
        super().handle_error(request, status, exc, message)  # it logs, and knows whether an answer has begun
        error = _connection_error(status, exc, message or "")
        response = web.Response(
            status=error.status, body=json.dumps(error.body).encode(), content_type="application/json"
        )
        response.force_close()
        return response


def _connection_error(status: int, error: BaseException | None, message: str) -> ApiError:
    if isinstance(error, LineTooLong):
        return ApiError(status=431, message="The address or a header is too long.", code="header_too_long")
    if status >= _INTERNAL_ERROR:
        return ApiError(status=status, message="The server failed.", kind=SERVER, code="internal_error")
    why, shows_bytes, _ = message.partition(":\n")
    is_safe = shows_bytes or why.startswith(_SAFE_REASONS)  # other reasons contain the invalid bytes
    text = f"This is not a valid HTTP request{f': {why[:_MAX_REASON_CHARS]}' if is_safe else ''}"
    return ApiError(status=status, message=f"{text.rstrip('.')}.", code="invalid_http")
