"""CORS: what browsers must be told before a page of another origin may call the gateway and read its answers.

All paths are alike, those that do not exist included: their errors say what is wrong with a base URL. Source: the Fetch
Standard, section "HTTP CORS protocol".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from aiohttp import hdrs, web

from taoloop.serve.gateway.config.origins import ANY, origin_refused

_PREFLIGHT_MAX_AGE_S = 600
"""How long a browser may remember the answer to a preflight request."""

_SAFELISTED_HEADERS = frozenset(
    {"cache-control", "content-language", "content-type", "expires", "last-modified", "pragma"}
)
"""Headers of an answer that a page may read without being told so."""


def enable_cors(app: web.Application, allowed_origins: Callable[[], Collection[str]]) -> None:
    """Let the pages of some origins call every path of `app` with any header, and read every answer.

    Never with credentials: a key travels in a header, and there are no cookies. `allowed_origins` is called for each
    request, so that a changed configuration applies at once.
    """

    def is_allowed(origin: str | None) -> bool:
        origins = allowed_origins()
        return origin is not None and (origin in origins or ANY in origins)

    @web.middleware
    async def answer_preflight(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer what a browser asks before the actual request, before any key is checked."""
        if not _is_preflight(request):
            return await handler(request)
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None or not is_allowed(origin):
            raise origin_refused(request.headers)
        headers = {
            hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: request.headers[hdrs.ACCESS_CONTROL_REQUEST_METHOD],
            hdrs.ACCESS_CONTROL_MAX_AGE: str(_PREFLIGHT_MAX_AGE_S),
        }
        if names := _requested_headers(request):
            headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = ",".join(names)
        return web.Response(headers=headers)

    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None and is_allowed(origin) and not _is_preflight(request):
            names = sorted(name for name in response.headers if name.lower() not in _SAFELISTED_HEADERS)
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = ",".join(dict.fromkeys(names))
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)  # keeps caches from giving one origin the answer of another

    app.middlewares.append(answer_preflight)
    app.on_response_prepare.append(add_headers)


def _is_preflight(request: web.Request) -> bool:
    return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers


def _requested_headers(request: web.Request) -> list[str]:
    """The headers that the page wants to send, each once, in lower case as browsers write them."""
    names = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "").split(",")
    return list(dict.fromkeys(name.strip(" \t").lower() for name in names if name.strip(" \t")))
