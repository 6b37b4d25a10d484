"""Calls of transactional tools: the handler and the outcome share one transaction of the journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.events import Event, Fact, Fault
from taoloop.errors import ConfigError, ToolError
from taoloop.journals.base import Journal, Lease
from taoloop.journals.sqlite.transaction import HasTransactions, raise_if_cancelled
from taoloop.runtime.engine.tool_execution import Outcome
from taoloop.runtime.texts import TEXTS
from taoloop.tools.tool import Tool

TRANSACTION_S = 4.0
"""The most seconds that such a call may take: other processes wait for the file, and give up after 5 seconds."""


def require_transactions(journal: Journal, tools: Iterable[Tool]) -> None:
    """Refuse a journal in which transactional tools cannot write.

    Raises:
        ConfigError: names the tool.
    """
    for tool in tools:
        if tool.connection_parameter is not None and not isinstance(journal, HasTransactions):
            raise ConfigError(
                f"The tool {tool.name!r} is transactional, and {type(journal).__name__} has no transactions.",
                hint="Keep the runs in a file: Agent(journal='runs.db').",
            )


async def transact(
    journal: Journal,
    lease: Lease,
    tool: Tool,
    values: Mapping[str, Any],
    timeout_s: float | None,
    run: Callable[[Mapping[str, Any], float], Awaitable[Outcome]],
    event_of: Callable[[Fact], Event],
    add_committed: Callable[[Event], None],
) -> Outcome | None:
    """Run the call; returns None once the journal has its outcome, and passes the event to `add_committed`.

    All earlier events must have been committed. An outcome that is returned is not stored, nor is anything that the
    tool wrote: the call failed, or took too long.
    """
    assert isinstance(journal, HasTransactions)  # noqa: S101  # checked at the start of the run
    assert tool.connection_parameter is not None  # noqa: S101  # all such tools have one
    transaction = await journal.transaction(lease)
    try:
        limit_s = TRANSACTION_S if timeout_s is None else min(timeout_s, TRANSACTION_S)
        outcome = await run({**values, tool.connection_parameter: transaction.connection}, limit_s)
        if outcome.is_lost:
            return _rolled_back(outcome, TEXTS.run_text("tool_late", tool=tool.name, s=limit_s), retryable=True)
        if not outcome.is_done:  # the tool raised, whatever it called its error
            return outcome
        event = event_of(outcome.observed)
        try:
            await transaction.commit([event], () if outcome.artifact is None else (outcome.artifact,))
        except ToolError as error:
            return _rolled_back(outcome, error.message)
        add_committed(event)  # before anything else: a cancellation must find the trace as the journal has it
        raise_if_cancelled()
        return None
    finally:
        await transaction.roll_back()


def _rolled_back(outcome: Outcome, message: str, *, retryable: bool = False) -> Outcome:
    """The outcome of a call that was rolled back: nothing happened, so it is not in doubt."""
    fault = Fault(
        code="timeout" if retryable else "rolled_back",
        message=TEXTS.run_text("rolled_back", message=message),
        retryable=retryable,
    )
    observed = replace(
        outcome.observed, ok=False, output="", artifact=None, output_digest="", size_chars=0, error=fault
    )
    return Outcome(observed, is_done=False)
