"""What is logged of connections that bring no request: that it happened and why, and nothing of what they sent."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_OF_CLIENTS = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


class ConnectionLog(logging.LoggerAdapter[logging.Logger]):
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
        if isinstance(exc_info, _OF_CLIENTS):
            self.logger.debug("a connection brought no request that can be read: %s", type(exc_info).__name__)
        else:
            self.logger.error(str(msg), *args, exc_info=exc_info)
