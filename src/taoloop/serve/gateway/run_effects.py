"""What a run may already have changed: after its first such call, no response may make a client send the request again.

OpenAI's clients repeat a request by themselves after 408, 409, 429 and any status from 500 on, and the repeated request
is a new run, which would do everything again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ActionRequested, ActionStarted, Event, Observed, Resumed, RunStarted
from taoloop.core.trace import Trace
from taoloop.serve.gateway.errors import ApiError, EffectState

_REPEATED_STATUSES = (408, 409, 429)
_FINAL_STATUS = 424
"""Failed Dependency: no client repeats a request after it, and no proxy sends it elsewhere."""

_MESSAGES: dict[EffectState, str] = {
    "done": "The run has already changed something",
    "in_doubt": "The run has begun a call that may have changed something",
}


class EffectWatch:
    """Follows the calls of a run that are not only reading.

    Args:
        before: The run before the request that continues it; None: the request started it.
    """

    def __init__(self, before: Trace | None = None) -> None:
        self._readers: set[str] = set()
        self._tools: dict[str, str] = {}
        self._open: set[str] = set()
        self._has_started = self._has_succeeded = False
        for event in before.events if before is not None else ():
            self.on_event(event)

    def on_event(self, event: Event) -> None:
        """Take the next event of the run, or of one that follows it for the same request."""
        fact = event.fact
        if isinstance(fact, RunStarted):
            self._replace(fact.agent.tools)
        elif isinstance(fact, Resumed):
            self._replace((*fact.cards, *fact.texts))
        elif isinstance(fact, ActionRequested):
            self._tools[fact.call_id] = fact.tool
        elif isinstance(fact, ActionStarted):
            if self._tools.get(fact.call_id) not in self._readers:
                self._has_started = True
                self._open.add(fact.call_id)
        elif isinstance(fact, Observed) and fact.call_id in self._open:
            self._open.remove(fact.call_id)
            self._has_succeeded = self._has_succeeded or fact.ok

    @property
    def state(self) -> EffectState | None:
        """Whether something was changed, or may have been; None: no such call has started."""
        if not self._has_started:
            return None
        return "done" if self._has_succeeded and not self._open else "in_doubt"

    def final_error(self, error: ApiError, run_id: str) -> ApiError:
        """The error as it may be sent: after the first effect it invites no retry, and says what became of the run."""
        if (state := self.state) is None:
            return error
        is_repeated = error.status >= 500 or error.status in _REPEATED_STATUSES
        named = "" if run_id in error.message else f" (run {run_id})"
        message = (
            f"{error.message} {_MESSAGES[state]}{named}: do not send the request again. "
            f"GET /v1/runs/{run_id} shows its state."
        )
        status = _FINAL_STATUS if is_repeated else error.status
        return replace(error, status=status, message=message, retry_after_s=None, effects=state, run_id=run_id)

    def _replace(self, cards: Iterable[ToolCard]) -> None:
        for card in cards:
            change = self._readers.add if card.reads_only else self._readers.discard
            change(card.name)
