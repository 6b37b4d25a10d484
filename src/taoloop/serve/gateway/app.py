"""The HTTP side: which path does what, and what every request has in common."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from taoloop.serve.gateway.errors import ApiError, ApiErrorRaised
from taoloop.serve.gateway.observe.metrics import OTHER
from taoloop.serve.gateway.request_context import RequestContext, failure
from taoloop.serve.gateway.routes.chat import chat_completions
from taoloop.serve.gateway.routes.openapi_document import openapi_document
from taoloop.serve.gateway.routes.responses import responses
from taoloop.serve.gateway.routes.runs import approve, run

if TYPE_CHECKING:
    from taoloop.serve.gateway.snapshot import ConfigSnapshot

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")

Handler = Callable[[RequestContext], Awaitable[web.StreamResponse]]


class Gateway:
    """The application. `standing` is what the next request gets; `is_ready` is what `/readyz` says.

    `knows_origins`: pages of other origins can be allowed. Where the first configuration names none, nothing is spent
    on that, and a later one cannot bring it in.
    """

    def __init__(
        self, standing: ConfigSnapshot, on_visit: Callable[[RequestContext, int], None] = lambda _visit, _status: None
    ) -> None:
        self.standing, self._on_visit = standing, on_visit
        self.is_ready = False
        self._under_way: dict[asyncio.Task[Any] | None, RequestContext] = {}
        self.app = web.Application(middlewares=[self._in_openai_form])
        for method, path, handler in ROUTES:
            handle = self._handled(path, handler)
            self.app.router.add_route(method, path, handle)
            if method == "GET":  # what watches a server often asks for no body (RFC 9110, section 9.1)
                self.app.router.add_route("HEAD", path, handle)
        self.knows_origins = bool(standing.config.allow_origins)
        if self.knows_origins:
            from taoloop.serve.gateway.http.cors import allow_pages  # noqa: PLC0415  # few need it

            allow_pages(self.app, lambda: self.standing.config.allow_origins)

    def cut(self) -> None:
        """Stop all that is under way, now; its clients are told so."""
        for task, visit in self._under_way.items():
            if task is not None:
                visit.is_cut = True
                task.cancel()

    def _handled(self, route: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            standing = self.standing
            visit = RequestContext(request, standing, _request_id(request))
            visit.is_ready = self.is_ready
            standing.enter()
            task = asyncio.current_task()
            self._under_way[task] = visit
            status = 499  # the client is gone
            try:
                response = await self._answered(visit, handler)
                status = response.status
                return response
            finally:
                standing.metrics.request(route, status, time.perf_counter() - visit.began)
                self._on_visit(visit, status)
                self._under_way.pop(task, None)
                await standing.leave()

        return handle

    async def _answered(self, visit: RequestContext, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(visit)
        except ApiErrorRaised as error:
            visit.refused(error.refusal)
            return refused(error.refusal, visit.headers)
        except (web.HTTPException, ConnectionError):
            raise
        except asyncio.CancelledError:
            if not visit.is_cut:
                raise
            refusal = visit.shutdown_error()
        except Exception as error:  # noqa: BLE001  # a bug must not take the reason to the client
            refusal = failure(error, visit.request_id)
        visit.refused(refusal)
        return refused(refusal, visit.headers)

    @web.middleware
    async def _in_openai_form(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """What the framework itself refuses (an unknown path, a wrong method), in the form of all other errors."""
        try:
            return await handler(request)
        except ApiErrorRaised as error:
            return refused(error.refusal)
        except web.HTTPException as error:
            refusal = _no_route(request, error)
            headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            if request.match_info.http_exception is None:  # it has come to a route, which tells of it
                return refused(refusal, headers)
            visit = RequestContext(request, self.standing, _request_id(request))
            visit.refused(refusal)
            self.standing.metrics.request(OTHER, refusal.status, time.perf_counter() - visit.began)
            self._on_visit(visit, refusal.status)
            return refused(refusal, visit.headers | headers)


def refused(refusal: ApiError, headers: dict[str, str] | None = None) -> web.Response:
    """A refusal as a response."""
    return web.Response(
        status=refusal.status,
        body=json.dumps(refusal.body, ensure_ascii=False).encode(errors="replace"),
        content_type="application/json",
        headers={**(headers or {}), **refusal.headers},
    )


def _no_route(request: web.Request, error: web.HTTPException) -> ApiError:
    messages = {
        404: f"Unknown request URL: {request.method} {request.path}. {_way_out(request.path)}",
        405: f"Not allowed to {request.method} on {request.path}.",
    }
    return ApiError(
        status=error.status,
        message=messages.get(error.status, error.reason),
        code={404: "unknown_url", 405: "method_not_allowed"}.get(error.status),
    )


def _way_out(path: str) -> str:
    """What to do about an unknown path: most often a base URL has no `/v1`, has it twice, or ends in a slash."""
    plain = path.rstrip("/")
    for meant in (plain, f"/v1{plain}", plain.removeprefix("/v1")):
        if any(meant == known for _, known, _ in ROUTES):
            return f"Did you mean {meant}?"
    return "See GET /openapi.json."


def _request_id(request: web.Request) -> str:
    given = request.headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(12)}"


# The small routes


async def models(visit: RequestContext) -> web.Response:
    """`GET /v1/models`: the agents that this key may use."""
    data = [model_part(served.name) for served in visit.may_use()]
    return web.json_response({"object": "list", "data": data}, headers=visit.headers)


async def model(visit: RequestContext) -> web.Response:
    """`GET /v1/models/{model}`."""
    served = visit.served(visit.request.match_info["model"])
    return web.json_response(model_part(served.name), headers=visit.headers)


def model_part(name: str) -> dict[str, object]:
    """An agent as a model in a list."""
    return {"id": name, "object": "model", "created": _STARTED, "owned_by": "taoloop"}


_STARTED = int(time.time())


async def healthz(visit: RequestContext) -> web.Response:
    """`GET /healthz`: the process lives."""
    return web.json_response({"status": "ok"}, headers=visit.headers)


async def readyz(visit: RequestContext) -> web.Response:
    """`GET /readyz`: 200 while requests are taken, 503 before that and at the end."""
    status = 200 if visit.is_ready else 503
    return web.json_response({"status": "ready" if visit.is_ready else "not ready"}, status=status)


async def metrics(visit: RequestContext) -> web.Response:
    """`GET /metrics`, for Prometheus."""
    page, content_type = visit.standing.metrics.expose(visit.request.headers.get("accept", ""))
    return web.Response(body=page, headers={"Content-Type": content_type})


async def openapi(visit: RequestContext) -> web.Response:
    """`GET /openapi.json`."""
    return web.json_response(openapi_document(), headers=visit.headers)


ROUTES: list[tuple[str, str, Handler]] = [
    ("POST", "/v1/chat/completions", chat_completions),
    ("POST", "/v1/responses", responses),
    ("GET", "/v1/runs/{run_id}", run),
    ("POST", "/v1/runs/{run_id}/approvals", approve),
    ("GET", "/v1/models", models),
    ("GET", "/v1/models/{model:.+}", model),
    ("GET", "/healthz", healthz),
    ("GET", "/readyz", readyz),
    ("GET", "/metrics", metrics),
    ("GET", "/openapi.json", openapi),
]
"""Method, path and what answers."""
