"""What a run learns of its undo when it is resumed: what it did is not done any more, and what it decided is void.

The facts are recorded at the resume, so that what the model reads follows from the trace, as in every replay. They
hold names of tools and calls only: nothing that a tool or a model wrote becomes the word of the runtime.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from taoloop.core.action_requests import failed_observation
from taoloop.core.events import Compensated, Fact, Fault, Noted
from taoloop.core.views.steps import UNDONE
from taoloop.runtime.texts import TEXTS

if TYPE_CHECKING:
    from taoloop.core.trace import Trace
    from taoloop.core.views.steps import CallView


def undone_calls(trace: Trace, *, since_note: bool = False) -> tuple[CallView, ...]:
    """The calls of a run whose effects were undone, in their order; an agent's call if one inside its run was.

    `since_note`: only those that the model was not told of yet.
    """
    call_ids = set()
    for event in reversed(trace.events):
        match event.fact:
            case Noted(about=about) if about == UNDONE and since_note:
                break
            case Compensated(ok=True, call_id=call_id):
                call_ids.add(call_id)
    return tuple(call for call_id, call in trace.calls.items() if call_id in call_ids)


def undo_facts(trace: Trace) -> list[Fact]:
    """What a run records when it is resumed after an undo: calls not made yet are dropped, and its model is told.

    Whatever was decided or answered before rests on effects that are gone, so the model decides again.
    """
    calls = undone_calls(trace, since_note=True)
    if not calls:
        return []
    language = trace.agent.language
    message, hint = TEXTS.text(language, "undone_before"), TEXTS.text(language, "undone_before_hint")
    fault = Fault(code=UNDONE, message=message, hint=hint)
    dropped = [call.requested.call_id for call in trace.pending.values() if not call.attempts]
    text = TEXTS.text(language, "undone_note", calls=call_names(calls))
    return [*(failed_observation(call_id, fault) for call_id in dropped), Noted(by="guard", text=text, about=UNDONE)]


def call_names(calls: Iterable[CallView]) -> str:
    """The names of calls, for people and models."""
    return ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in calls)
