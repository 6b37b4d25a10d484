"""CORS: what browsers must be told before a page of another origin may call the gateway and read its answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from taoloop.errors import MissingExtra
from taoloop.serve.gateway.config.origins import origin_refused

try:
    from aiohttp_cors import CorsConfig, ResourceOptions
    from aiohttp_cors.abc import AbstractRouterAdapter
except ImportError as error:  # this module is imported only where an origin is allowed
    raise MissingExtra(
        "To let pages of other origins call it the gateway needs the package aiohttp-cors, which is not installed.",
        hint="Install the extra: pip install 'taoloop[serve]'",
    ) from error

if TYPE_CHECKING:
    Preflight = Callable[[web.Request], Awaitable[web.StreamResponse]]

_PREFLIGHT_KEPT_S = 600
"""How long a browser need not ask again."""

_OPTIONS: ResourceOptions = ResourceOptions(  # type: ignore[no-untyped-call]  # half of the library is typed
    allow_headers="*", expose_headers="*", allow_credentials=False, max_age=_PREFLIGHT_KEPT_S
)
"""Any header may be sent, all may be read. Never credentials: a key travels in a header, and there are no cookies."""


def allow_pages(app: web.Application, allowed: Callable[[], Collection[str]]) -> None:
    """Let the pages of `allowed` origins call every path of `app`, and read what is wrong with a path as well.

    It is asked anew at each request, so that a changed configuration holds at once.
    """
    paths = _EveryPath(allowed)
    CorsConfig(app, router_adapter=paths).add(None)
    app.on_response_prepare.append(_varies)
    app.middlewares.append(paths.answer_preflight)


async def _varies(_: web.Request, response: web.StreamResponse) -> None:
    """Keep caches from giving one origin the answer of another."""
    response.headers.add(hdrs.VARY, hdrs.ORIGIN)


class _EveryPath(AbstractRouterAdapter):
    """All paths alike, those that do not exist included: their errors tell what is wrong with a base URL."""

    def __init__(self, allowed: Callable[[], Collection[str]]) -> None:
        self._allowed = allowed
        self._preflight: Preflight | None = None

    @property
    def answer_preflight(self) -> Any:
        """The middleware that answers what a browser asks ahead, before any key is looked for."""

        @web.middleware
        async def middleware(request: web.Request, handler: Preflight) -> web.StreamResponse:
            if self._preflight is None or not self.is_preflight_request(request):
                return await handler(request)
            try:
                return await self._preflight(request)
            except web.HTTPForbidden:
                raise origin_refused(request.headers) from None

        return middleware

    def add_preflight_handler(self, _: object, handler: Preflight, __: bool = False) -> None:
        """Take what answers them."""
        self._preflight = handler

    def set_config_for_routing_entity(self, *_: object) -> None:
        """All paths have the same."""

    def is_preflight_request(self, request: web.Request) -> bool:
        """Whether a browser asks ahead."""
        return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers

    def is_cors_enabled_on_request(self, _: web.Request) -> bool:
        """It is everywhere."""
        return True

    async def get_preflight_request_config(self, *_: object) -> Mapping[str, ResourceOptions]:
        """What holds for each origin; which methods a path has, the request itself is told."""
        return self._options()

    def get_non_preflight_request_config(self, _: web.Request) -> Mapping[str, ResourceOptions]:
        """The same."""
        return self._options()

    def _options(self) -> Mapping[str, ResourceOptions]:
        return dict.fromkeys(self._allowed(), _OPTIONS)
