"""One request on its way through the gateway: who asks, what it may use, and what is told of it afterwards."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from taoloop.core.events import Event
from taoloop.errors import JournalError, JournalFull, JournalLocked, Refused, TaoError
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.config.api_keys import presented_key
from taoloop.serve.gateway.config.origins import is_foreign, origin_refused
from taoloop.serve.gateway.errors import LIMITED, SERVER, UNKNOWN_KEY, ApiError, ApiErrorRaised
from taoloop.serve.gateway.http.http_io import read_body

if TYPE_CHECKING:
    from taoloop.serve.gateway.config.model import ApiKey, GatewayConfig, ServedAgent
    from taoloop.serve.gateway.observe.otel import RunSpans
    from taoloop.serve.gateway.run_service import RunRequest, RunResponse, Service
    from taoloop.serve.gateway.snapshot import ConfigSnapshot

_FIELD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of fields that can stand in a header; a client can call a field whatever it likes."""

_LOG = logging.getLogger("taoloop.gateway")

_JOURNAL_RETRY_S = 5.0

_CODES = {"runs": "server_busy", "requests": "rate_limit_exceeded", "tokens": "rate_limit_exceeded"}


class RequestContext:
    """One request, from its key to its line in the log.

    `config` and all that belongs to it stay those that were valid when the request came.
    """

    def __init__(self, request: web.Request, snapshot: ConfigSnapshot, request_id: str) -> None:
        self.request, self.snapshot, self.request_id = request, snapshot, request_id
        self.response_headers: dict[str, str] = {"x-request-id": request_id}
        self.started_at = time.perf_counter()
        self.first_piece_s: float | None = None
        self.agent_name = ""
        self.run_id = ""
        self.run_response: RunResponse | None = None
        self.error: ApiError | None = None
        self.client_has_left = False
        self.is_shut_down = False
        self.is_ready = True
        self._key: ApiKey | None = None
        self._listeners: list[Callable[[Event], None]] = []
        self._spans: RunSpans | None = None

    @property
    def config(self) -> GatewayConfig:
        """What the file said when the request came."""
        return self.snapshot.config

    @property
    def service(self) -> Service:
        """What runs agents."""
        return self.snapshot.service

    @property
    def key(self) -> ApiKey | None:
        """Whose request it is; None where nobody needs a key.

        Raises:
            RequestRefused: the request has no key, or one that is not known.
        """
        if not self.config.keys:
            return None
        if self._key is None:
            presented = presented_key(self.request.headers)
            self._key = self.snapshot.keys.find(presented)
            if self._key is None:
                problem = "no API key" if presented is None else "an unknown API key"
                message = f"The request has {problem}. Send `Authorization: Bearer KEY`."
                error = ApiError(status=401, message=message, kind=UNKNOWN_KEY, code="invalid_api_key")
                raise ApiErrorRaised(error)
        return self._key

    async def read_body(self) -> bytes:
        """The body, once it is known who asks.

        Raises:
            RequestRefused: the key is unknown, the body is too large or too slow, or it is that of another site's page
                that may not call (where nobody needs a key, nothing else would keep it from setting agents to work).
        """
        if self.key is None and is_foreign(self.request.headers, self.config.allow_origins):
            raise origin_refused(self.request.headers)
        return await read_body(self.request, self.config.limits)

    def find_agent(self, model: str) -> ServedAgent:
        """The agent that answers for `model`.

        Raises:
            RequestRefused: there is none that this key may use.
        """
        served, key = self.config.agent_for(model), self.key
        if served is None or (key is not None and key.agents and served.name not in key.agents):
            message = f"The model `{model[:200]}` does not exist or you do not have access to it. See GET /v1/models."
            raise ApiErrorRaised(ApiError(status=404, message=message, param="model", code="model_not_found"))
        self.agent_name = served.name
        return served

    def permitted_agents(self) -> list[ServedAgent]:
        """The agents that this key may use."""
        key = self.key
        return [
            served
            for served in self.config.agents.values()
            if key is None or not key.agents or served.name in key.agents
        ]

    @contextmanager
    def run_slot(self, served: ServedAgent) -> Iterator[None]:
        """Take a place for a run, and count what it used when it ends.

        Raises:
            RequestRefused: there is no place, or the key has used up what it may.
        """
        metrics = self.snapshot.metrics
        try:
            quota_use = self.snapshot.quotas.enter(self.key)
        except Refused as error:
            metrics.refused(error.why)
            kind, code = (LIMITED, _CODES.get(error.why, "insufficient_quota"))
            raise ApiErrorRaised(
                ApiError(status=429, message=error.message, kind=kind, code=code, retry_after_s=error.retry_after_s)
            ) from None
        started_at, model = time.perf_counter(), bind(served.agent).model.spec
        with quota_use:
            run_metrics = metrics.run(served.name, [tool.name for tool in served.agent.toolbox], model)
            self._listeners = [quota_use.on_event, run_metrics.on_event]
            try:
                yield
            finally:
                response = self.run_response
                status = "failed" if response is None else str(response.agent["status"])
                trace = None if response is None else response.trace
                if self.first_piece_s is not None:
                    run_metrics.first_token(self.first_piece_s)
                run_metrics.end(status, time.perf_counter() - started_at, trace)
                if self._spans is not None:
                    self._spans.end(status, trace)

    def report_ignored_fields(self, names: Sequence[str]) -> None:
        """Say in a header which fields of the request have no effect."""
        if names:
            self.response_headers["x-taoloop-ignored"] = ",".join(name for name in names if _FIELD.fullmatch(name))[
                :500
            ]

    def assign_run_id(self, run_request: RunRequest, new_id: str) -> str:
        """The id of the run that answers; from here on it stands in headers and logs."""
        self.run_id = run_request.run or new_id
        self.response_headers["x-taoloop-run-id"] = self.run_id
        if (telemetry := self.snapshot.telemetry) is not None:
            served = run_request.served
            model, headers = bind(served.agent).model.spec, self.request.headers
            self._spans = telemetry.run(served.name, model=model, run_id=self.run_id, headers=headers)
            self._listeners.append(self._spans.on_event)
        return self.run_id

    def on_event(self, event: Event) -> None:
        """Count what happens in the run."""
        for listener in self._listeners:
            listener(event)

    def record_first_piece(self) -> None:
        """Something goes out: the time to the first piece is known."""
        if self.first_piece_s is None:
            self.first_piece_s = time.perf_counter() - self.started_at

    def record_response(self, response: RunResponse) -> RunResponse:
        """Keep what came of it."""
        self.run_response = response
        self.error = response.error
        return response

    def record_error(self, error: ApiError) -> None:
        """The stream ended with an error."""
        self.error = error

    def shutdown_error(self) -> ApiError:
        """What the client is told when the server ends before the answer. The cancellation of its task ends here."""
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        resume_hint = f"; the run can be resumed (run {self.run_id})" if self.run_id else ""
        return ApiError(
            status=503, message=f"The server ended before the answer{resume_hint}.", kind=SERVER, code="run_stopped"
        )

    def record_disconnect(self) -> None:
        """The client went away."""
        self.client_has_left = True


def error_for_exception(error: Exception, request_id: str) -> ApiError:
    """What a client is told of a bug or a journal out of order: where to look, and nothing else. The log has it all."""
    if not isinstance(error, TaoError):
        _LOG.error("request %s failed", request_id, exc_info=error)
    else:
        _LOG.error("request %s: %s: %s", request_id, type(error).__name__, error)
    if isinstance(error, (JournalLocked, JournalFull)) or type(error) is JournalError:
        message = f"The server cannot keep its runs at the moment; its log has the reason under {request_id}."
        return ApiError(status=503, message=message, kind=SERVER, code=error.code, retry_after_s=_JOURNAL_RETRY_S)
    return ApiError(
        status=500,
        message=f"The server failed; its log has the reason under {request_id}.",
        kind=SERVER,
        code="internal_error",
    )
