"""Pushes the state of A2A tasks to the addresses that their clients named, when a run waits or is over.

A run comes to rest in any process: by a request, by an approval in the panel, after a crash. So what is pushed is read
from the journal: `JournalQueries.tail` shows which runs have grown. A state is pushed at least once; one that another
followed before a push succeeded is not pushed any more.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import EgressFailed, EgressRefused, RunNotFound
from taoloop.journals.queries import queries_of
from taoloop.runtime.notifications.notifier import RETRY_AFTER_S
from taoloop.serve.gateway.a2a.encoder import context_of, task_of
from taoloop.serve.gateway.a2a.push_configs import PushConfig
from taoloop.serve.gateway.a2a.wire import Wire
from taoloop.serve.gateway.chat_approval import asked_now, question_code
from taoloop.serve.gateway.errors import invalid_field
from taoloop.serve.gateway.run_request import owner_of
from taoloop.serve.gateway.run_response import build_response
from taoloop.tools.egress import EgressClient, EgressRules, Resolver
from taoloop.tools.egress.rules import DEFAULT_PORTS, resolve_host

if TYPE_CHECKING:
    from taoloop.serve.gateway.run_service import ConfigSnapshot

_LOG = logging.getLogger("taoloop.gateway")

TIMEOUT_S = 15.0
"""How long one push may take, in seconds."""

TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105  # a name, no secret
"""The header by which a receiver knows that a push is of the task that it asked about."""

_LEASE_S = TIMEOUT_S + 30.0
_MAX_ANSWER_BYTES = 64 * 1024
_AT_ONCE = 8
_OK, _REDIRECT, _GONE = 200, 300, 410


def check_push_url(rules: EgressRules, url: str, param: str) -> None:
    """Refuse an address to which nothing may be sent; what its name resolves to is checked at each push.

    Raises:
        ApiError: it is no http(s) address, or the rules do not allow it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise invalid_field(param, f"`{param}` must be an address such as https://client.example/push.") from None
    if "@" in parts.netloc:
        raise invalid_field(param, f"`{param}` must not have a user or a password; use `authentication`.")
    try:
        rules.check_target(parts.scheme, host, port)
    except EgressRefused as error:
        raise invalid_field(param, f"`{param}` may not be reached from this server: {error.message}") from None


class PushDelivery:
    """Pushes for one gateway.

    Args:
        snapshot: The configuration that holds now: its agents, keys and `a2a_push`.
        resolver: Resolves the hosts of clients; by default that of this machine.
    """

    def __init__(self, snapshot: Callable[[], ConfigSnapshot], *, resolver: Resolver = resolve_host) -> None:
        self._snapshot, self._resolver = snapshot, resolver
        self._last_problem = ""

    async def repeat(self, interval_s: float) -> None:
        """Push until cancelled; the journal is looked at every `interval_s` seconds. What fails is logged."""
        while True:
            try:
                queries = queries_of(self._snapshot().journal)
                position = await queries.position()
                self._snapshot().accounts.push_configs.mark()
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._follow(position, interval_s))
                    group.create_task(self._repeat_delivery(interval_s))
            except* Exception as group_error:  # noqa: BLE001  # whatever it is: it must not end the server's other work
                problem = repr(group_error.exceptions[0])
                if problem != self._last_problem:  # once as long as it lasts
                    _LOG.warning("the states of A2A tasks could not be pushed: %s", problem)
                self._last_problem = problem
            await asyncio.sleep(interval_s)

    async def deliver(self) -> int:
        """Try once whatever is due; gives how much that was."""
        snapshot = self._snapshot()
        rules = snapshot.config.a2a_push
        if rules is None or "a2a" not in snapshot.config.protocols:
            return 0
        configs = snapshot.accounts.push_configs.claim(_LEASE_S, _AT_ONCE)
        await asyncio.gather(*(self._attempt(snapshot, rules, config) for config in configs))
        return len(configs)

    async def _follow(self, position: str, interval_s: float) -> None:
        async for growth in queries_of(self._snapshot().journal).tail(position, interval_s=interval_s):
            self._snapshot().accounts.push_configs.mark(growth.runs)

    async def _repeat_delivery(self, interval_s: float) -> None:
        while True:
            while await self.deliver():
                pass
            await asyncio.sleep(interval_s)

    async def _attempt(self, snapshot: ConfigSnapshot, rules: EgressRules, config: PushConfig) -> None:
        store = snapshot.accounts.push_configs
        try:
            trace = Trace(config.run_id, await snapshot.journal.load(config.run_id))
        except RunNotFound:
            store.remove(config.owner, config.run_id, config.id)
            return
        seq = len(trace)
        if trace.status == "running" or seq <= config.seq:
            store.settle(config, seq=config.seq, due=None)
            return
        body = await self._body(snapshot, config, trace)
        if body is None:
            store.remove(config.owner, config.run_id, config.id)
            return
        problem, is_final = await self._post(rules, config, body)
        if not problem:
            store.settle(config, seq=seq, due=None)
            return
        is_last = is_final or config.attempts >= len(RETRY_AFTER_S)
        text = "the state of run %s was not taken by %s (attempt %d): %s"
        _LOG.warning(text, config.run_id, urlsplit(config.url).netloc, config.attempts + 1, problem)
        if is_last:
            store.settle(config, seq=seq, due=None)
            return
        due = snapshot.accounts.quotas.clock.now() + RETRY_AFTER_S[config.attempts]
        store.settle(config, seq=config.seq, due=due, attempts=config.attempts + 1)

    async def _body(self, snapshot: ConfigSnapshot, config: PushConfig, trace: Trace) -> bytes | None:
        """The task as its client would be shown it now; None: its agent or its key is gone."""
        served, key = snapshot.config.agents.get(config.agent), snapshot.owner_key(config.owner)
        if served is None or (snapshot.config.needs_key and key is None):
            return None
        _, authority = owner_of(key)
        response = await build_response(snapshot.journal, Result.of(trace), served, authority=authority)
        task = task_of(Wire(config.version, None, trace.run_id, context_of(trace)), response)
        if response.waiting:
            code = question_code(asked_now(response.waiting))
            snapshot.accounts.conversations.enter_question(config.owner, trace.run_id, code)
        return json.dumps(task if config.version == "0.3" else {"task": task}, ensure_ascii=False).encode()

    async def _post(self, rules: EgressRules, config: PushConfig, body: bytes) -> tuple[str, bool]:
        """Why a push failed, empty if it did not, and whether that is for good."""
        headers = {"content-type": "application/json"}
        headers |= {TOKEN_HEADER: config.token} if config.token else {}
        headers |= {"authorization": config.authorization} if config.authorization else {}
        client = EgressClient(rules, timeout_s=TIMEOUT_S, max_bytes=_MAX_ANSWER_BYTES, resolver=self._resolver)
        try:
            response = await client.send("POST", config.url, headers=headers, body=body)
        except EgressRefused as error:
            return error.message, True
        except EgressFailed as error:
            return error.message, False
        finally:
            await client.close()
        if _OK <= response.status < _REDIRECT:
            return "", False
        return f"status {response.status}", response.status == _GONE
