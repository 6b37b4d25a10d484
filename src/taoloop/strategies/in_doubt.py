"""Calls that were started and have no outcome: repeated, probed, put before a person, or reported. Pure.

Only what may be repeated is repeated: a read, an idempotent call under its key, a transactional call (which leaves
nothing behind), and a call whose probe, or a person, says that it did not happen. None of these is ever reported to the
model as a failure: an unknown outcome is called unknown. A call whose tool has changed since it was started is never
repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from taoloop.core.action_requests import failed_observation
from taoloop.core.events import Fact, Fault, InDoubt, Observed
from taoloop.core.texts import TEXTS
from taoloop.core.trace import Trace
from taoloop.core.views.steps import NO_OUTCOME, PROBE, TIMED_OUT, CallView
from taoloop.strategies.termination import remaining_s

MAX_ATTEMPTS = 5
"""The most attempts at one call without a person: a call that kills its process must come to an end."""

MAX_TOTAL_ATTEMPTS = 10
"""The most attempts at all, with those that a person asks for."""

MAX_TIMEOUTS = 2
"""The most timeouts of an idempotent call: after the first one it is repeated."""

UNATTENDED_PROFILES = frozenset({"headless", "autonomous", "read-only", "locked"})
"""Profiles in which no person is asked, not even whether a call happened."""

_MIN_TIME_S = 0.05


@dataclass(frozen=True, slots=True)
class Unresolved:
    """What to do about calls without an outcome."""

    facts: tuple[Fact, ...] = ()
    """What to record."""

    probe: tuple[CallView, ...] = ()
    """Calls whose tools are asked whether they happened."""

    ask: tuple[CallView, ...] = ()
    """Calls about which a person is asked."""


def plan_unresolved_calls(trace: Trace, pending: Sequence[CallView]) -> Unresolved:
    """What each started call needs; those in none of the lists are to run, for the first time or once more."""
    facts: list[Fact] = []
    probe: list[CallView] = []
    ask: list[CallView] = []
    for call in pending:
        match _next_action(trace, call):
            case "run":
                pass
            case "probe":
                probe.append(call)
            case "ask":
                ask.append(call)
            case fact:
                facts.append(fact)
    return Unresolved(tuple(facts), tuple(probe), tuple(ask))


def _next_action(trace: Trace, call: CallView) -> Fact | Literal["run", "probe", "ask"]:
    card = trace.card(call.requested.tool)
    if not call.attempts or (card is not None and card.reads_only and not call.is_outdated):
        return "run"
    settled, tries = call.settled, call.attempts - call.waited
    if settled is not None:
        if settled.happened:
            return _known_effect(trace, call)
        if call.is_outdated and settled.happened is False:
            return _not_done_outcome(trace, call, "not_done_changed")
        if settled.by != PROBE:  # a person's word: again, or leave it
            return "run" if settled.happened is False and tries < MAX_TOTAL_ATTEMPTS else _unknown_outcome(trace, call)
        if settled.happened is False:
            return "run" if tries < MAX_ATTEMPTS else _not_done_outcome(trace, call)
    if card is not None and card.transactional and not call.is_outdated:
        return "run" if tries < MAX_ATTEMPTS else _not_done_outcome(trace, call)
    safe = card is not None and card.idempotent and not call.is_outdated
    if safe and tries < MAX_ATTEMPTS and call.timeouts < MAX_TIMEOUTS:
        return "run"
    if call.doubt is None:
        return InDoubt(call_id=call.requested.call_id, reason=NO_OUTCOME)
    if card is not None and card.probes and settled is None:
        return "probe"
    return _unknown_outcome(trace, call) if safe or tries >= MAX_TOTAL_ATTEMPTS or not _can_ask_person(trace) else "ask"


def _can_ask_person(trace: Trace) -> bool:
    """Whether the run may wait for a person: its policy must allow that, and it must have time left to continue."""
    left_s = remaining_s(trace, None)
    return trace.agent.policy.profile not in UNATTENDED_PROFILES and (left_s is None or left_s > _MIN_TIME_S)


def output_is_lost(trace: Trace, call: CallView) -> bool:
    """Whether all that is known about the result of a call is that it happened.

    Stored runs are checked too, so the two texts for this must stay as they are.
    """
    if call.settled is None or not call.settled.happened or call.observed is None:
        return False
    return call.observed.output == _known_effect(trace, call).output


def _known_effect(trace: Trace, call: CallView) -> Observed:
    """The observation of a call that is known to have happened, and whose own output is lost."""
    settled, language = call.settled, trace.agent.language
    if settled is None or settled.by == PROBE:
        text = TEXTS.text(language, "happened_by_probe")
    else:
        text = TEXTS.text(language, "happened_by_person", by=settled.by)
    output = f"{text} {settled.note if settled is not None else ''}".strip()
    return Observed(call_id=call.requested.call_id, ok=True, output=output, size_chars=len(output))


def _unknown_outcome(trace: Trace, call: CallView) -> Observed:
    language, settled = trace.agent.language, call.settled
    timed_out = call.doubt is not None and call.doubt.reason == TIMED_OUT
    message = TEXTS.text(language, "timed_out" if timed_out else "no_outcome")
    if settled is not None and settled.by != PROBE and settled.note:
        message = f"{message} {settled.by}: {settled.note}"
    fault = Fault(code="in_doubt", message=message, hint=TEXTS.text(language, "unknown_hint"))
    return failed_observation(call.requested.call_id, fault)


def _not_done_outcome(trace: Trace, call: CallView, name: str = "not_done") -> Observed:
    language = trace.agent.language
    message = TEXTS.text(language, name, count=call.attempts)
    fault = Fault(code="not_done", message=message, hint=TEXTS.text(language, f"{name}_hint"))
    return failed_observation(call.requested.call_id, fault)
