"""Finds the run that a request belongs to, where it repeats an earlier one.

Clients repeat by themselves, and a new run would do again what the first one did. With an `Idempotency-Key` the same
request always belongs to the same run. Without one it does while nobody knows how the first attempt ended: its run has
changed something, or lost its process, and its answer has not reached the client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from taoloop.core.events import Resumed
from taoloop.core.trace import Trace
from taoloop.errors import RunNotFound, RunPruned
from taoloop.journals.base import Journal, locks_of
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.repeats.ledger import RequestIdentity, RequestLedger, request_in_progress
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.run_effects import EffectWatch
from taoloop.serve.gateway.run_request import RunRequest

REPLAYED = "idempotent-replayed"
"""The header of a response that comes from the run of an earlier request."""


async def match_request(
    context: RequestContext, run_request: RunRequest, body: bytes, key: str | None = None
) -> RunRequest:
    """The request as one for the run that it belongs to, where it repeats an earlier one; else as it is.

    `key` takes the place of a missing `Idempotency-Key`, for protocols whose requests have ids of their own.

    Raises:
        ApiError: its `Idempotency-Key` is invalid, was used with another body, or its run is about to begin.
    """
    ledger, key = context.ledger, context.request.headers.get("Idempotency-Key", key)
    window_s = context.config.limits.repeat_window_s
    if key is None and (run_request.run is not None or not window_s or not _may_change(run_request)):
        return run_request
    identity = RequestIdentity.of(context.owner, context.request.path, body, key)
    run_request = replace(run_request, identity=identity)
    known_run = ledger.run_of_key(identity)
    if run_request.run is not None:  # it continues a run, which is a repeat by itself if it went on already
        return run_request
    journal = context.service.journal
    if known_run is not None:
        return await _with_known_run(journal, ledger, run_request, known_run)
    if key is None:
        for run_id in ledger.unanswered_runs(identity):
            trace = await _load(journal, ledger, run_id)
            if trace is None or context.now() - trace.events[-1].at > window_s:
                continue
            if EffectWatch(trace).state is not None or await _is_lost(journal, trace):
                return replace(run_request, run=run_id, is_repeat=True)
    return run_request


def run_of_ids(context: RequestContext, body: bytes, key: str, param: str) -> str | None:
    """The run of an earlier attempt of a request whose ids `key` stands for; None: there was none.

    `param` is the field that has the id, for error messages.

    Raises:
        ApiError: the id was used with another body.
    """
    header = context.request.headers.get("Idempotency-Key")  # it goes before the ids
    try:
        return context.ledger.run_of_key(RequestIdentity.of(context.owner, context.request.path, body, header or key))
    except ApiError as error:
        if header is not None:
            raise
        message = f"This `{param}` was used with another body. Send a new one with a new request."
        raise replace(error, message=message, param=param) from None


@contextmanager
def entered_request(context: RequestContext, run_request: RunRequest, run_id: str) -> Iterator[None]:
    """Keep the request in the ledger until its answer has been sent.

    Raises:
        ApiError: another request with the same key was entered a moment ago.
    """
    ledger, identity = context.ledger, run_request.identity
    if run_request.is_repeat:
        context.response_headers[REPLAYED] = "true"
    elif identity is not None:
        ledger.enter(identity, run_id)
    ledger.active.add(run_id)
    is_sent = False
    try:
        yield
        is_sent = not (context.record.client_left or context.record.error)
    finally:
        ledger.active.discard(run_id)
        if identity is not None or run_request.run is not None:
            has_effects = context.effects is not None and context.effects.state is not None
            if not has_effects or (is_sent and not _is_waiting(context)):
                ledger.close(run_id)


def _is_waiting(context: RequestContext) -> bool:
    """Whether the run waits: what it does after its effects is not known yet."""
    return context.recorder.result is not None and context.recorder.result.status == "waiting"


async def _with_known_run(journal: Journal, ledger: RequestLedger, run_request: RunRequest, run_id: str) -> RunRequest:
    if await _load(journal, ledger, run_id) is not None:
        return replace(run_request, run=run_id, is_repeat=True)
    if run_id in ledger.active:
        raise request_in_progress()
    return replace(run_request, new_run=run_id)


async def _load(journal: Journal, ledger: RequestLedger, run_id: str) -> Trace | None:
    """A run; None where its process died before the first event was stored, or it was removed."""
    try:
        events = await journal.load(run_id)
        return Trace(run_id, events) if events else None
    except RunPruned:
        ledger.forget(run_id)
        return None
    except RunNotFound:
        return None


async def _is_lost(journal: Journal, trace: Trace) -> bool:
    """Whether a run has lost its process, and is resumed by now or will be: it may change something yet."""
    if trace.status != "running":
        return False
    locks = locks_of(journal)
    is_resumed = any(isinstance(event.fact, Resumed) for event in trace.events)
    return is_resumed or (locks is not None and await locks.holder(trace.run_id) is None)


def _may_change(run_request: RunRequest) -> bool:
    """Whether the agent has a tool that is not only reading."""
    return any(not card.reads_only for card in run_request.served.agent.toolbox.cards)
