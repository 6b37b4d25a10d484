"""Where each argument of a call came from, for the person who decides about it: the task, an observation, or nowhere.

The badges that the policy recorded with its question say how far a value can be trusted. This adds the place: the
observation that holds the value with the text around it, and the field of that output where it is data. No verdict
depends on it. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from taoloop.core.events import ActionRequested, Badge, Observed, Source
from taoloop.core.trace import Trace
from taoloop.policy.review.observed_origins import observed_origins
from taoloop.policy.targets import is_target_role, leaves
from taoloop.policy.untrusted_index import UntrustedIndex, argument_sources

Whence = Literal["task", "observation", "model", "nowhere"]
"""From what people wrote in the run; from the output of a call; text that the model wrote; from nothing in the run."""

_WHENCE: dict[Badge, Whence] = {
    "YOURS": "task",
    "LOOKED UP": "observation",
    "FOREIGN": "observation",
    "WRITTEN": "model",
    "LINKS": "model",
    "UNKNOWN": "nowhere",
}
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentOrigin:
    """One plain value of a call's arguments, and where it came from."""

    path: str
    """Where it is in the arguments, such as `to` or `items[0].id`."""

    value: Any
    """The value."""

    role: str = ""
    """What it is to the call, by the tool's card; empty for an empty value."""

    badge: Badge | None = None
    """How far it can be trusted, as the policy recorded it with the question; None for an empty value."""

    whence: Whence | None = None
    """Where it came from; None where nothing is known about it."""

    call_id: str = ""
    """The call whose output has it, for `observation`; empty where the text is no longer found."""

    tool: str = ""
    """The tool of that call."""

    step: int = 0
    """The step of that call, from 1; 0 without one."""

    seq: int | None = None
    """The seq of the event that brought that output; None without one."""

    snippet: str = ""
    """The text around it in that output."""

    origin: str = ""
    """The field of outputs that has it, as a rule would require it: `tool:get_order(order_id).items[].item_id`."""

    @property
    def is_target(self) -> bool:
        """Whether it says whom or what the call acts on."""
        return is_target_role(self.role)


def argument_origins(trace: Trace, call_id: str) -> tuple[ArgumentOrigin, ...]:
    """Where each plain value of a call's arguments came from: what the call acts on first.

    `call_id` is a call of this run; its arguments are those that the model requested. Of a long run `trace` may have
    only the calls whose outputs hold their values, or those of the look-ups for them.
    """
    requested = trace.calls[call_id].requested
    before = _trace_before(trace, call_id)
    card, recorded = before.card(requested.tool), requested.sources
    if not recorded and card is not None:  # nobody was asked, so nothing was recorded
        recorded = argument_sources(before, requested.args, card)
    sources = {source.arg: source for source in recorded}
    index, positions = UntrustedIndex(), _places_by_call(before)
    for event in before.events:
        index.fold(event)
    origins = []
    for path, value in leaves(requested.args):
        source = sources.get(path)
        if source is None:
            origins.append(ArgumentOrigin(path=path, value=value))
            continue
        origins.append(_origin_of(before, requested, source, value, index, positions))
    return tuple(sorted(origins, key=lambda origin: not origin.is_target))


def _origin_of(
    before: Trace,
    requested: ActionRequested,
    source: Source,
    value: Any,
    index: UntrustedIndex,
    positions: dict[str, tuple[int, int]],
) -> ArgumentOrigin:
    whence = _WHENCE[source.badge]
    call_id, snippet, origin = source.call_id or "", source.snippet, ""
    if whence == "observation":
        if not call_id or source.badge == "LOOKED UP":
            observed_by, snippet = index.find(value) or (call_id, snippet)
            call_id = observed_by or ""  # without one, the output is of the run before
        card = before.card(requested.tool)
        if card is not None:
            path = _INDEX.sub("[]", source.arg)
            origins = observed_origins(before, card, requested.args, path)
            origin = next((text for text in origins if text.startswith("tool:")), "")
    call, (step, seq) = before.calls.get(call_id), positions.get(call_id, (0, None))
    return ArgumentOrigin(
        path=source.arg,
        value=value,
        role=source.role,
        badge=source.badge,
        whence=whence,
        call_id=call_id,
        tool="" if call is None else call.requested.tool,
        step=step,
        seq=seq,
        snippet=snippet,
        origin=origin,
    )


def _trace_before(trace: Trace, call_id: str) -> Trace:
    """The run up to the request, as far as `trace` has it: what came later cannot be where a value came from."""
    for index, event in enumerate(trace.events):
        if isinstance(event.fact, ActionRequested) and event.fact.call_id == call_id:
            return Trace.excerpt(trace.run_id, trace.events[:index])
    return trace


def _places_by_call(trace: Trace) -> dict[str, tuple[int, int]]:
    """The step of each call that has an outcome, and the seq of that."""
    facts = ((event.seq, event.fact) for event in trace.events if isinstance(event.fact, Observed))
    return {fact.call_id: (trace.calls[fact.call_id].requested.step, seq) for seq, fact in facts}
