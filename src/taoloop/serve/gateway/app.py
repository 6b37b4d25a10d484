"""The HTTP application: its routes, what all requests have in common, and CORS."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from aiohttp import hdrs, web
from pydantic.json_schema import models_json_schema

import taoloop
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import random_hex
from taoloop.serve.gateway.a2a.card import CARD_PATH, agent_card, first_card
from taoloop.serve.gateway.a2a.route import call_a2a
from taoloop.serve.gateway.a2a.wire import RpcRequest, SendParams, TaskParams, error_response_body
from taoloop.serve.gateway.agui.encoder import error_body as agui_error_body
from taoloop.serve.gateway.agui.route import run_agui
from taoloop.serve.gateway.agui.run_input import RunAgentInput
from taoloop.serve.gateway.auth.admin_api import ADMIN_ROUTES, KeyChangeWire, NewKeyWire
from taoloop.serve.gateway.auth.login_pages import LOGIN_ROUTES
from taoloop.serve.gateway.auth.origins import ANY, origin_refused
from taoloop.serve.gateway.chat import chat_completions
from taoloop.serve.gateway.errors import ApiError, error_for_exception
from taoloop.serve.gateway.messages.encoder import error_body as messages_error_body
from taoloop.serve.gateway.messages.message_request import CountedRequest, MessagesRequest
from taoloop.serve.gateway.messages.route import count_message_tokens, create_message
from taoloop.serve.gateway.observe.metrics import OTHER_LABEL
from taoloop.serve.gateway.observe.readiness import ServerState
from taoloop.serve.gateway.observe.request_log import RequestRecord
from taoloop.serve.gateway.request_context import RequestContext, json_response
from taoloop.serve.gateway.request_schema import ChatRequest, ResponsesRequest
from taoloop.serve.gateway.responses import responses
from taoloop.serve.gateway.run_service import ConfigSnapshot
from taoloop.serve.gateway.runs import ApprovalWire, answer_run, get_run
from taoloop.tools.openapi.document import parse_values

_REF = "#/components/schemas/{model}"
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
        self.state: ServerState = "starting"
        self.has_drained = asyncio.Event()  # once it drains: no request is active
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

    def drain(self) -> None:
        """Take no more requests, and set `has_drained` once none is active."""
        self.state = "draining"
        self._check_drained()

    def _check_drained(self) -> None:
        if self.state == "draining" and not self._active:
            self.has_drained.set()

    def _request_handler(self, route: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            snapshot = self.snapshot
            context = RequestContext(request, snapshot, _request_id(request), state=self.state)
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
                self._check_drained()
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
        except ApiError as error:
            return error_response(error, path=request.path)
        except web.HTTPException as error:
            api_error = _routing_error(request, error)
            headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            if request.match_info.http_exception is None:  # it has reached a route, which logs it
                return error_response(api_error, headers, request.path)
            context = RequestContext(request, self.snapshot, _request_id(request))
            try:
                context.require_known_host()
            except ApiError as refused:
                api_error, headers = refused, {}
            context.record_error(api_error)
            self._finish(context, OTHER_LABEL, api_error.status)
            return error_response(api_error, context.response_headers | headers, request.path)


async def _respond(context: RequestContext, handler: Handler) -> web.StreamResponse:
    try:
        context.require_known_host()
        context.require_serving()
        await context.verify_token()
        return await handler(context)
    except (web.HTTPException, ConnectionError):
        raise
    except asyncio.CancelledError:
        if not context.is_shut_down:
            raise
        api_error = context.absorb_shutdown()
    except Exception as error:  # noqa: BLE001  # a bug must not take its message to the client
        api_error = context.final_error(error_for_exception(error, context.record.request_id))
    context.record_error(api_error)
    return error_response(api_error, context.response_headers, context.request.path)


def error_response(error: ApiError, headers: dict[str, str] | None = None, path: str = "") -> web.Response:
    """An error as a response, in the form of the protocol that the path of the request belongs to."""
    form = next((form for prefix, form in _ERROR_FORMS.items() if path.startswith(prefix)), None)
    body = error.body if form is None else form(error)
    return json_response(body, {**(headers or {}), **error.headers}, error.status)


_ERROR_FORMS: Mapping[str, Callable[[ApiError], dict[str, Any]]] = {
    "/v1/agui/": agui_error_body,
    "/v1/messages": messages_error_body,
    "/a2a/": error_response_body,
    CARD_PATH: error_response_body,
}
"""The forms of errors below these paths; anywhere else they have OpenAI's."""


def _routing_error(request: web.Request, error: web.HTTPException) -> ApiError:
    unknown = f"Unknown request URL: {request.method} {request.path}. {_suggestion(request.path)}"
    errors = {
        404: ("unknown_url", unknown),
        405: ("method_not_allowed", f"Not allowed to {request.method} on {request.path}."),
    }
    code, message = errors.get(error.status, (None, error.reason))
    return ApiError(status=error.status, message=message, code=code)


def _suggestion(path: str) -> str:
    """A hint for an unknown path: most often a base URL has no `/v1`, has it twice, or ends in a slash."""
    plain = path.rstrip("/")
    paths = {path for _, path, _ in ROUTES}
    match = next((known for known in (plain, f"/v1{plain}", plain.removeprefix("/v1")) if known in paths), None)
    return f"Did you mean {match}?" if match is not None else "See GET /openapi.json."


def _request_id(request: web.Request) -> str:
    client_id = request.headers.get("x-request-id", "")
    return client_id if _REQUEST_ID.fullmatch(client_id) else f"req_{random_hex(12)}"


# The small routes, and the description of all routes


async def models(context: RequestContext) -> web.Response:
    """`GET /v1/models`: the agents that this key may use."""
    data = [model_part(served.name) for served in context.permitted_agents()]
    return context.json_response({"object": "list", "data": data})


async def model(context: RequestContext) -> web.Response:
    """`GET /v1/models/{model}`: one agent."""
    served = context.find_agent(context.request.match_info["model"])
    return context.json_response(model_part(served.name))


def model_part(name: str) -> dict[str, object]:
    """An agent in the form of a model in OpenAI's list."""
    return {"id": name, "object": "model", "created": _STARTED, "owned_by": "taoloop"}


_STARTED = int(time.time())


async def healthz(context: RequestContext) -> web.Response:
    """`GET /healthz`: the process lives."""
    return context.json_response({"status": "ok"})


async def readyz(context: RequestContext) -> web.Response:
    """`GET /readyz`: 200 while the server takes requests; 503 at the start, while it drains or cannot store runs."""
    if context.state != "ready":
        return context.json_response({"status": "not ready", "reason": context.state}, 503)
    if not await context.snapshot.accounts.storage.works():
        return context.json_response({"status": "not ready", "reason": "storage"}, 503)
    return context.json_response({"status": "ready"})


async def metrics(context: RequestContext) -> web.Response:
    """`GET /metrics`, for Prometheus."""
    accounts = context.snapshot.accounts
    accounts.metrics.waiting(await accounts.questions.count(context.service.journal))
    agents = context.snapshot.config.agents
    accounts.metrics.endpoints({name: bind(served.agent).endpoint_health for name, served in agents.items()})
    page, content_type = accounts.metrics.expose(context.request.headers.get("accept", ""))
    return web.Response(body=page, headers={"Content-Type": content_type})


async def openapi(context: RequestContext) -> web.Response:
    """`GET /openapi.json`: this API in OpenAPI 3.1."""
    return context.json_response(openapi_document())


_REQUESTS = (
    ChatRequest,
    ResponsesRequest,
    RunAgentInput,
    MessagesRequest,
    CountedRequest,
    RpcRequest,
    SendParams,
    TaskParams,
    ApprovalWire,
    NewKeyWire,
    KeyChangeWire,
)
"""The requests of all routes, by the types that validate them."""


@cache
def openapi_document() -> dict[str, Any]:
    """The API of this server in OpenAPI 3.1: routes and answers from `openapi.yaml`, requests from their types."""
    document: dict[str, Any] = parse_values(files(__package__).joinpath("openapi.yaml").read_bytes(), "openapi.yaml")
    document["info"]["version"] = taoloop.__version__
    error = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].setdefault("default", {"description": "The error", "content": error})
    models = [(model, "validation") for model in _REQUESTS]
    _, generated = models_json_schema(models, ref_template=_REF)  # type: ignore[arg-type]  # the mode is a literal
    schemas = document["components"]["schemas"] = {**generated["$defs"], **document["components"]["schemas"]}
    for model in (ChatRequest, ResponsesRequest):  # an unsupported field may have a value without effect
        narrower = {name: {"enum": [*allowed]} for name, (allowed, _) in model.unsupported.items()}
        schemas[model.__name__]["properties"] |= narrower
    schemas["ChatRequest"]["properties"]["messages"]["minItems"] = 1
    return document


ROUTES: list[tuple[str, str, Handler]] = [
    ("POST", "/v1/chat/completions", chat_completions),
    ("POST", "/v1/responses", responses),
    ("POST", "/v1/agui/{agent}", run_agui),
    ("POST", "/v1/messages", create_message),
    ("POST", "/v1/messages/count_tokens", count_message_tokens),
    ("GET", CARD_PATH, first_card),
    ("GET", f"/a2a/{{agent}}{CARD_PATH}", agent_card),
    ("POST", "/a2a/{agent}", call_a2a),
    ("GET", "/v1/runs/{run_id}", get_run),
    ("POST", "/v1/runs/{run_id}/approvals", answer_run),
    ("GET", "/v1/models", models),
    ("GET", "/v1/models/{model:.+}", model),
    ("GET", "/healthz", healthz),
    ("GET", "/readyz", readyz),
    ("GET", "/metrics", metrics),
    ("GET", "/openapi.json", openapi),
    *ADMIN_ROUTES,
    *LOGIN_ROUTES,
]
"""Method, path and handler of every route."""


# CORS

_PREFLIGHT_MAX_AGE_S = 600
"""How long a browser may remember the answer to a preflight request."""

_SAFELISTED_HEADERS = frozenset(
    {"cache-control", "content-language", "content-type", "expires", "last-modified", "pragma"}
)
"""Headers of an answer that a page may read without being told so."""


def enable_cors(app: web.Application, allowed_origins: Callable[[], Collection[str]]) -> None:
    """CORS: let the pages of some origins call every path of `app` with any header, and read every answer.

    All paths are alike, those that do not exist included: their errors say what is wrong with a base URL. Never with
    credentials: a key travels in a header, and there are no cookies. `allowed_origins` is called for each request, so
    that a changed configuration applies at once. Source: the Fetch Standard, section "HTTP CORS protocol".
    """

    def allowed_origin(request: web.Request) -> str | None:
        origin, origins = request.headers.get(hdrs.ORIGIN), allowed_origins()
        return origin if origin is not None and (origin in origins or ANY in origins) else None

    @web.middleware
    async def answer_preflight(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer what a browser asks before the actual request, before any key is checked."""
        if not _is_preflight(request):
            return await handler(request)
        if (origin := allowed_origin(request)) is None:
            raise origin_refused(request.headers)
        headers = {
            hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: request.headers[hdrs.ACCESS_CONTROL_REQUEST_METHOD],
            hdrs.ACCESS_CONTROL_MAX_AGE: str(_PREFLIGHT_MAX_AGE_S),
        }
        requested = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "").split(",")
        names = dict.fromkeys(name.strip(" \t").lower() for name in requested if name.strip(" \t"))
        if names:  # each once, in lower case as browsers write them
            headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = ",".join(names)
        return web.Response(headers=headers)

    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        if (origin := allowed_origin(request)) is not None and not _is_preflight(request):
            names = sorted(name for name in response.headers if name.lower() not in _SAFELISTED_HEADERS)
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = ",".join(dict.fromkeys(names))
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)  # keeps caches from giving one origin the answer of another

    app.middlewares.append(answer_preflight)
    app.on_response_prepare.append(add_headers)


def _is_preflight(request: web.Request) -> bool:
    return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
