"""One request on its way through the gateway: who sent it, which agent it may use, and the record that is logged."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from taoloop.core.events import Event
from taoloop.core.trace import Trace
from taoloop.errors import Refused
from taoloop.runtime.engine.clock import new_run_id, within
from taoloop.serve.gateway.a2a.push_configs import PushConfigs
from taoloop.serve.gateway.auth.keys import ApiKey, presented_key, require_active
from taoloop.serve.gateway.auth.origins import host_refused, is_foreign, origin_refused
from taoloop.serve.gateway.auth.tokens import is_token
from taoloop.serve.gateway.config.model import GatewayProtocol, ServedAgent
from taoloop.serve.gateway.errors import ApiError, error_for_exceeded_quota
from taoloop.serve.gateway.observe.readiness import ServerState
from taoloop.serve.gateway.observe.request_log import RequestRecord
from taoloop.serve.gateway.quotas import RunRecorder
from taoloop.serve.gateway.repeats.ledger import RequestLedger
from taoloop.serve.gateway.run_effects import EffectWatch
from taoloop.serve.gateway.run_request import RunRequest
from taoloop.serve.gateway.run_response import RunResponse
from taoloop.serve.gateway.run_service import ConfigSnapshot
from taoloop.serve.gateway.shared.conversations import Conversations
from taoloop.serve.gateway.shared.managed_keys import ManagedKeys

_LOG = logging.getLogger("taoloop.gateway")

_FIELD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of fields that may be in a header; a client can call a field whatever it likes."""

_OTHER_ROUTE = "other"
"""The route of a request whose path nothing serves. The path itself may hold anything, so the log does not have it."""

_PROBE_ROUTES = ("/healthz", "/readyz")
_OPEN_TO_THE_END = (*_PROBE_ROUTES, "/metrics")


class RequestContext:
    """One request, from its key to its line in the log.

    The configuration is the one from when the request came, whatever is loaded meanwhile.
    """

    recorder: RunRecorder
    """Records the run, once it is admitted."""

    effects: EffectWatch | None = None
    """What the run has changed, once it is admitted."""

    def __init__(
        self, request: web.Request, snapshot: ConfigSnapshot, request_id: str, *, state: ServerState = "starting"
    ) -> None:
        self.request, self.snapshot = request, snapshot
        self.config, self.service = snapshot.config, snapshot.service
        self.state: ServerState = state  # of the server, when the request came
        self.response_headers: dict[str, str] = {"x-request-id": request_id}
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else _OTHER_ROUTE
        self.record = RequestRecord(request_id=request_id, method=request.method, route=route)
        self.is_shut_down = False  # the server ends now, and cancels the task of this request
        self._token_key: ApiKey | ApiError | None = None
        self._started_at = time.perf_counter()

    @cached_property
    def key(self) -> ApiKey | None:
        """The key of the client; None where nobody needs one.

        Raises:
            ApiError: the request has no key, or one that is not known, has expired or is blocked; or its token is
                not accepted.
        """
        if not self.config.needs_key:
            return None
        if isinstance(self._token_key, ApiError):
            raise self._token_key
        presented = presented_key(self.request.headers)
        key = self._token_key or self.snapshot.find_key(presented)
        if key is None:
            problem = "no API key" if presented is None else "an unknown API key"
            message = f"The request has {problem}. Send `Authorization: Bearer KEY`."
            raise ApiError(status=401, message=message, code="invalid_api_key")
        require_active(key, self.now())
        return key

    async def verify_token(self) -> None:
        """Verify the token of the client, where it has one in place of a key; `key` gives what came of it."""
        verifier = self.snapshot.tokens
        if verifier is None or self.record.route in _PROBE_ROUTES:
            return
        presented = presented_key(self.request.headers)
        if presented is not None and is_token(presented):
            try:
                self._token_key = await verifier.verify(presented)
            except ApiError as error:
                self._token_key = error

    def now(self) -> float:
        """The time by the server's clock, in seconds since the epoch."""
        return self.snapshot.accounts.quotas.clock.now()

    @property
    def managed_keys(self) -> ManagedKeys:
        """The keys that administrators manage.

        Raises:
            ApiError: this server has no database for them.
        """
        if self.snapshot.accounts.managed_keys is None:
            raise ApiError(status=503, message="This server has no database for keys.", code="no_key_database")
        return self.snapshot.accounts.managed_keys

    @property
    def conversations(self) -> Conversations:
        """The conversations that clients name."""
        return self.snapshot.accounts.conversations

    @property
    def push_configs(self) -> PushConfigs:
        """Where the states of A2A tasks are pushed to."""
        return self.snapshot.accounts.push_configs

    @property
    def ledger(self) -> RequestLedger:
        """The requests whose runs may change something."""
        return self.snapshot.accounts.ledger

    def require_serving(self) -> None:
        """Refuse a request to a server that drains; probes and metrics are answered to the end.

        Raises:
            ApiError: it drains.
        """
        if self.state == "draining" and self.record.route not in _OPEN_TO_THE_END:
            message = "The server is shutting down and takes no more requests. Another instance may answer."
            self.response_headers["Connection"] = "close"
            raise ApiError(status=503, message=message, code="server_draining", retry_after_s=1.0)

    def require_known_host(self) -> None:
        """Refuse a request under another name than the server's, which a page can give to this machine.

        With keys every name is served: no page has one. Probes may come under any name; they learn and start nothing.

        Raises:
            ApiError: nobody needs a key, and the header `Host` names neither this machine nor an allowed host.
        """
        if self.config.needs_key or self.record.route in _PROBE_ROUTES:
            return
        if not self.snapshot.hosts.accepts(self.request.headers.get("Host")):
            raise host_refused(self.request.headers)

    def require_protocol(self, name: GatewayProtocol) -> None:
        """Refuse a request by a protocol that the operator has not switched on, as one for an unknown path.

        Raises:
            ApiError: it is off.
        """
        if name not in self.config.protocols:
            path = self.request.path
            message = f"Unknown request URL: {self.request.method} {path}. The protocol `{name}` is off on this server."
            message += f" Its operator switches it on with `server: {{protocols: [{name}]}}` or `--protocol {name}`."
            raise ApiError(status=404, message=message, code="unknown_url")

    @property
    def owner(self) -> str:
        """The name of the client's key, under which its runs are stored; empty where nobody needs a key.

        Raises:
            ApiError: as `key`.
        """
        return "" if self.key is None else self.key.name

    async def read_body(self) -> bytes:
        """The body, once the client's key is known.

        Raises:
            ApiError: the key is unknown, the body is too large or too slow or cannot be decoded, or the request comes
                from another site's page that may not call. Where nobody needs a key, nothing else would keep such a
                page from starting runs.
        """
        if self.key is None and is_foreign(self.request.headers, self.config.allow_origins):
            raise origin_refused(self.request.headers)
        return await self.receive_body()

    async def receive_body(self) -> bytes:
        """The body, whoever sends it.

        Raises:
            ApiError: it is too large or too slow, or cannot be decoded.
        """
        limits = self.config.limits

        def late(_: float | None) -> ApiError:
            message = f"The body did not arrive within {limits.body_timeout_s:g} s."
            return ApiError(status=408, message=message, code="request_timeout")

        try:
            body = await within(limits.body_timeout_s, self._read_content(), late)
        except (HttpProcessingError, web.RequestPayloadError, web.PayloadAccessError) as error:
            _LOG.debug("a body cannot be read: %s", error)
            message = "The body cannot be decoded: it is not in the transfer or content encoding that its headers name."
            raise ApiError(status=400, message=message, code="invalid_body") from None
        if body is None:
            message = f"The body is larger than {limits.max_body_bytes:,} bytes, which is the limit."
            raise ApiError(status=413, message=message, code="request_too_large")
        return body

    async def _read_content(self) -> bytes | None:
        """The body, which nearly always has arrived; None if it is too large."""
        content, max_bytes = self.request.content, self.config.limits.max_body_bytes
        if (self.request.content_length or 0) > max_bytes:
            return None
        body = bytearray()
        while not content.at_eof():
            body += await content.readany()
            if len(body) > max_bytes:
                return None
        return bytes(body)

    def find_agent(self, model: str) -> ServedAgent:
        """The agent that clients call `model`.

        Raises:
            ApiError: there is none that this key may use.
        """
        served, key = self.config.agent_for(model), self.key
        if served is None or (key is not None and not key.may_use(served.name)):
            message = f"The model `{model[:200]}` does not exist or you do not have access to it. See GET /v1/models."
            raise ApiError(status=404, message=message, param="model", code="model_not_found")
        self.record.agent = served.name
        return served

    def permitted_agents(self) -> list[ServedAgent]:
        """The agents that this key may use."""
        agents, key = self.config.agents.values(), self.key
        return [served for served in agents if key is None or key.may_use(served.name)]

    def report_ignored_fields(self, names: Sequence[str]) -> None:
        """Name in a header which fields of the request have no effect."""
        if names:
            header = ",".join(name for name in names if _FIELD.fullmatch(name))
            self.response_headers["x-taoloop-ignored"] = header[:500]

    def json_response(self, body: object, status: int = 200) -> web.Response:
        """A response with this body."""
        return json_response(body, self.response_headers, status)

    @contextmanager
    def admit_run(self, run_request: RunRequest, before: Trace | None) -> Iterator[str]:
        """Take a place for the run and book what it uses; gives its id, which headers and logs name from here on.

        `before` is the run so far, where the request continues one.

        Raises:
            ApiError: there is no place, or the key has used up its quota.
        """
        run_id = run_request.run or run_request.new_run or new_run_id(time.time())
        accounts, headers = self.snapshot.accounts, self.request.headers
        try:
            with accounts.record_run(run_request.served, self.key, run_id, headers) as self.recorder:
                self.record.run_id = self.response_headers["x-taoloop-run-id"] = run_id
                self.effects = EffectWatch(before)
                yield run_id
        except Refused as error:  # by the quotas, before the run; a run itself raises no such error
            accounts.metrics.refused(error.why)
            raise error_for_exceeded_quota(error) from None

    def on_event(self, event: Event) -> None:
        """Record an event of the run."""
        if self.effects is not None:
            self.effects.on_event(event)
        self.recorder.on_event(event)

    def final_error(self, error: ApiError) -> ApiError:
        """The error as the client gets it: after the first effect of the run it invites no retry."""
        return error if self.effects is None else self.effects.final_error(error, self.record.run_id)

    def record_first_piece(self) -> None:
        """Something of the answer goes out; the time of the first piece is kept."""
        if self.record.first_seconds is None:
            self.record.first_seconds = time.perf_counter() - self._started_at
            self.recorder.metrics.first_token(self.record.first_seconds)

    def record_response(self, response: RunResponse) -> RunResponse:
        """Record what came of the run."""
        result, record = response.result, self.record
        self.recorder.result = result
        record.run_status, record.steps = result.status, result.trace.step_count
        record.tokens, record.cost_usd = response.usage.total_tokens, result.cost_usd
        if response.error is not None:
            self.record_error(response.error)
        return response

    def record_error(self, error: ApiError) -> None:
        """The client is sent an error, as a response or at the end of a stream."""
        self.record.error = error.code or error.kind

    def absorb_shutdown(self) -> ApiError:
        """End the cancellation of this request's task; gives what its client is told: the server ends too early."""
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        run_id = self.record.run_id
        resume_hint = f"; the run can be resumed (run {run_id})" if run_id else ""
        message = f"The server shut down before the answer{resume_hint}."
        return self.final_error(ApiError(status=503, message=message, code="run_stopped"))

    def finish(self, status: int) -> RequestRecord:
        """The record of the request, now that it is over. `status` 499: the client left before there was an answer."""
        self.record.status, self.record.seconds = status, time.perf_counter() - self._started_at
        with suppress(ApiError):  # an unknown key: what was presented is nobody's business
            self.record.key = self.record.key or self.owner
        return self.record


def json_response(body: object, headers: Mapping[str, str], status: int = 200) -> web.Response:
    """A response with a body in JSON."""
    data = json.dumps(body, ensure_ascii=False, default=str).encode(errors="replace")
    return web.Response(status=status, body=data, content_type="application/json", headers=headers)
