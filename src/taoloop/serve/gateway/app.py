"""The HTTP application: its routes, and what all requests have in common."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from taoloop.serve.gateway.errors import ApiError, ApiErrorRaised, error_for_exception
from taoloop.serve.gateway.http.cors import enable_cors
from taoloop.serve.gateway.observe.metrics import OTHER_LABEL
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.routes.chat import chat_completions
from taoloop.serve.gateway.routes.openapi_document import openapi_document
from taoloop.serve.gateway.routes.responses import responses
from taoloop.serve.gateway.routes.runs import answer_run, get_run

if TYPE_CHECKING:
    from taoloop.serve.gateway.observe.request_log import RequestRecord
    from taoloop.serve.gateway.snapshot import ConfigSnapshot

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")

Handler = Callable[[RequestContext], Awaitable[web.StreamResponse]]


class Gateway:
    """The application.

    Args:
        snapshot: The configuration that the next request gets; it is replaced when the files change.
        on_request: Called with the record of each request when it is over.
    """

    def __init__(
        self, snapshot: ConfigSnapshot, on_request: Callable[[RequestRecord], None] = lambda _record: None
    ) -> None:
        self.snapshot, self._on_request = snapshot, on_request
        self.is_ready = False  # the answer of `/readyz`
        self._active: dict[asyncio.Task[Any] | None, RequestContext] = {}
        self.app = web.Application(middlewares=[self._in_openai_form])
        for method, path, handler in ROUTES:
            handle = self._request_handler(path, handler)
            self.app.router.add_route(method, path, handle)
            if method == "GET":  # monitors often ask for no body (RFC 9110, section 9.1)
                self.app.router.add_route("HEAD", path, handle)
        self.cors_enabled = bool(snapshot.config.allow_origins)  # where it is off nothing is spent on it
        if self.cors_enabled:
            enable_cors(self.app, lambda: self.snapshot.config.allow_origins)

    def cancel_requests(self) -> None:
        """Stop all active requests now; their clients get an error that says so."""
        for task, context in self._active.items():
            if task is not None:
                context.is_shut_down = True
                task.cancel()

    def _request_handler(self, route: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            snapshot = self.snapshot
            context = RequestContext(request, snapshot, _request_id(request), is_ready=self.is_ready)
            snapshot.enter()
            task = asyncio.current_task()
            self._active[task] = context
            status = 499  # the client has left
            try:
                response = await _respond(context, handler)
                status = response.status
                return response
            finally:
                self._finish(context, route, status)
                self._active.pop(task, None)
                await snapshot.leave()

        return handle

    def _finish(self, context: RequestContext, route: str, status: int) -> None:
        record = context.finish(status)
        context.snapshot.accounts.metrics.request(route, status, record.seconds)
        self._on_request(record)

    @web.middleware
    async def _in_openai_form(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Errors of the framework (an unknown path, a wrong method) in the form of all other errors."""
        try:
            return await handler(request)
        except ApiErrorRaised as error:
            return error_response(error.error)
        except web.HTTPException as error:
            api_error = _routing_error(request, error)
            headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            if request.match_info.http_exception is None:  # it has reached a route, which logs it
                return error_response(api_error, headers)
            context = RequestContext(request, self.snapshot, _request_id(request))
            context.record_error(api_error)
            self._finish(context, OTHER_LABEL, api_error.status)
            return error_response(api_error, context.response_headers | headers)


async def _respond(context: RequestContext, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(context)
    except ApiErrorRaised as error:
        api_error = error.error
    except (web.HTTPException, ConnectionError):
        raise
    except asyncio.CancelledError:
        if not context.is_shut_down:
            raise
        api_error = context.absorb_shutdown()
    except Exception as error:  # noqa: BLE001  # a bug must not take its message to the client
        api_error = error_for_exception(error, context.record.request_id)
    context.record_error(api_error)
    return error_response(api_error, context.response_headers)


def error_response(error: ApiError, headers: dict[str, str] | None = None) -> web.Response:
    """An error as a response."""
    return web.Response(
        status=error.status,
        body=json.dumps(error.body, ensure_ascii=False).encode(errors="replace"),
        content_type="application/json",
        headers={**(headers or {}), **error.headers},
    )


def _routing_error(request: web.Request, error: web.HTTPException) -> ApiError:
    messages = {
        404: f"Unknown request URL: {request.method} {request.path}. {_suggestion(request.path)}",
        405: f"Not allowed to {request.method} on {request.path}.",
    }
    return ApiError(
        status=error.status,
        message=messages.get(error.status, error.reason),
        code={404: "unknown_url", 405: "method_not_allowed"}.get(error.status),
    )


def _suggestion(path: str) -> str:
    """A hint for an unknown path: most often a base URL has no `/v1`, has it twice, or ends in a slash."""
    plain = path.rstrip("/")
    for candidate in (plain, f"/v1{plain}", plain.removeprefix("/v1")):
        if any(candidate == known for _, known, _ in ROUTES):
            return f"Did you mean {candidate}?"
    return "See GET /openapi.json."


def _request_id(request: web.Request) -> str:
    client_id = request.headers.get("x-request-id", "")
    return client_id if _REQUEST_ID.fullmatch(client_id) else f"req_{secrets.token_hex(12)}"


# The small routes


async def models(context: RequestContext) -> web.Response:
    """`GET /v1/models`: the agents that this key may use."""
    data = [model_part(served.name) for served in context.permitted_agents()]
    return web.json_response({"object": "list", "data": data}, headers=context.response_headers)


async def model(context: RequestContext) -> web.Response:
    """`GET /v1/models/{model}`: one agent."""
    served = context.find_agent(context.request.match_info["model"])
    return web.json_response(model_part(served.name), headers=context.response_headers)


def model_part(name: str) -> dict[str, object]:
    """An agent in the form of a model in OpenAI's list."""
    return {"id": name, "object": "model", "created": _STARTED, "owned_by": "taoloop"}


_STARTED = int(time.time())


async def healthz(context: RequestContext) -> web.Response:
    """`GET /healthz`: the process lives."""
    return web.json_response({"status": "ok"}, headers=context.response_headers)


async def readyz(context: RequestContext) -> web.Response:
    """`GET /readyz`: 200 while the server accepts requests, 503 during start and shutdown."""
    status = 200 if context.is_ready else 503
    return web.json_response({"status": "ready" if context.is_ready else "not ready"}, status=status)


async def metrics(context: RequestContext) -> web.Response:
    """`GET /metrics`, for Prometheus."""
    page, content_type = context.snapshot.accounts.metrics.expose(context.request.headers.get("accept", ""))
    return web.Response(body=page, headers={"Content-Type": content_type})


async def openapi(context: RequestContext) -> web.Response:
    """`GET /openapi.json`: this API in OpenAPI 3.1."""
    return web.json_response(openapi_document(), headers=context.response_headers)


ROUTES: list[tuple[str, str, Handler]] = [
    ("POST", "/v1/chat/completions", chat_completions),
    ("POST", "/v1/responses", responses),
    ("GET", "/v1/runs/{run_id}", get_run),
    ("POST", "/v1/runs/{run_id}/approvals", answer_run),
    ("GET", "/v1/models", models),
    ("GET", "/v1/models/{model:.+}", model),
    ("GET", "/healthz", healthz),
    ("GET", "/readyz", readyz),
    ("GET", "/metrics", metrics),
    ("GET", "/openapi.json", openapi),
]
"""Method, path and handler of every route."""
