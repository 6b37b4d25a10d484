"""Connections that bring no request: what they are told, and what is logged of them. Nothing of what they sent."""

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
    """Takes the place of the web server's own log.

    That one writes the offending line, in which a key may stand, with a traceback; whoever sends garbage could fill a
    disk with it. What is a bug keeps its traceback.
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
    """The runner of an application whose connections are told in the form of all other errors what is wrong.

    The web server's own answer is a plain text that shows the offending bytes, in which a key may stand.
    """

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.__class__ = _Server  # the one that an application makes cannot be told which connections to make
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
        """The answer to what is no request; the connection ends with it."""
        super().handle_error(request, status, exc, message)  # which logs it, and knows whether an answer has begun
        error = _connection_error(status, exc, message or "")
        response = web.Response(
            status=error.status, body=json.dumps(error.body).encode(), content_type="application/json"
        )
        response.force_close()
        return response


def _connection_error(status: int, error: BaseException | None, message: str) -> ApiError:
    if isinstance(error, LineTooLong):
        return ApiError(status=431, message="The address or a header is longer than is taken.", code="header_too_long")
    if status >= _INTERNAL_ERROR:
        return ApiError(status=status, message="The server failed.", kind=SERVER, code="internal_error")
    why, shows_bytes, _ = message.partition(":\n")
    is_safe = shows_bytes or why.startswith(_SAFE_REASONS)  # others have the offending bytes in their midst
    text = f"This is no HTTP request that can be read{f': {why[:_MAX_REASON_CHARS]}' if is_safe else ''}"
    return ApiError(status=status, message=f"{text.rstrip('.')}.", code="invalid_http")
