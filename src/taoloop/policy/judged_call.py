"""One call in its run, as the conditions of the operator's rules see it: what came before, and where values come from.

A value comes from an origin if it is equal to what is there, by type: a phrase or number of the task, or the whole
value of a field that the rule names, of an output that the executor has in full (`call_history`). A text in a record
endorses nothing but itself, so it does not matter what somebody wrote there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ActionRequested, ApprovalGiven, Event, Noted, RunStarted, Source
from taoloop.core.policy import Rule, origins_in
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.core.value_origins import EACH_MEMBER, CallOrigin, Origin, TextOrigin, parse_call, parse_origin, values_at
from taoloop.policy.call_history import UNKNOWN, PastCall, past_calls, repetitions, same_value
from taoloop.policy.provenance import GUARD, operator_text, sources_of, trusted_texts
from taoloop.policy.request_terms import asks_now
from taoloop.policy.targets import first_name, leaves
from taoloop.policy.value_match import TrustedText, has_invisible, normalise_text

_AMOUNT = lazy_pattern(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_STEP = lazy_pattern(r"[^.\[\]]+")


class OriginMatch(NamedTuple):
    """Where a value comes from."""

    origin: str
    """The origin, as the rule has it."""
    call_id: str | None
    """The call whose output has the value; None for a text."""


class _TaskWords:
    """What people wrote in a run, read when it is first needed and again after a note or an answer."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._text = trace, TrustedText()
        self._is_stale = True

    def fold(self, event: Event) -> None:
        """Process the next event."""
        fact = event.fact
        if isinstance(fact, RunStarted | ApprovalGiven) or (isinstance(fact, Noted) and fact.by != GUARD):
            self._is_stale = True

    @property
    def text(self) -> TrustedText:
        """The texts."""
        if self._is_stale:
            self._text, self._is_stale = TrustedText(trusted_texts(self._trace)), False
        return self._text


class JudgedCall:
    """A call and the run that it is judged in.

    `filled`: values of it came in by handles. `call_id`: it is in the trace itself, under this id.
    """

    def __init__(self, trace: Trace, card: ToolCard, args: Any, *, filled: bool = False, call_id: str = "") -> None:
        self._trace, self._card, self._args = trace, card, args
        self._filled, self._call_id = filled, call_id

    @cached_property
    def tainted(self) -> bool:
        """Whether the model has seen untrusted text, or the call takes values from it."""
        return self._filled or sources_of(self._trace).tainted

    @cached_property
    def is_repeated(self) -> bool:
        """Whether the run has made this call before."""
        return repetitions(self._trace).count(self._card, self._args, excluded=self._call_id) > 0

    @cached_property
    def is_requested(self) -> bool:
        """Whether the task asks for this call now: by its words, or a reply about them.

        The reply of a model that was asked is enough for a write: it was given over trusted text, and a rule says what
        else must hold. What cannot be undone takes the words as well. A "yes" takes those of the request it confirms.
        """
        sources = sources_of(self._trace)
        if sources.pinned is not None and self._card.name not in sources.pinned.tools:
            return False
        by_reply = sources.pinned is not None and self._card.tier in ("read", "draft", "write")
        requests = (sources.intent, sources.confirmed_intent)
        return any(asks_now(request.texts, self._card, self._args, by_reply=by_reply) for request in requests)

    def is_for_user(self, pattern: str, *, strict: bool) -> bool:
        """Whether the run is for an end user whom a pattern covers; where that is unknown, not to allow anything."""
        started = self._trace.started
        user = "" if started is None else started.labels.get("user", "")
        if not user:
            return not strict
        return fnmatchcase(user, pattern) or (not strict and fnmatchcase(user.casefold(), pattern.casefold()))

    def follows(self, call: str, *, strict: bool) -> bool:
        """Whether a call of a tool succeeded before; `strict`: for certain."""
        origin = parse_call(call)
        if any(self._past_calls(origin, strict=strict)):
            return True
        return not strict and any(self._may_have_been(origin, call.requested) for call in self._trace.pending.values())

    def _may_have_been(self, origin: CallOrigin, requested: ActionRequested) -> bool:
        """Whether a call that is still open may be the one before: it was requested, and its end is not known."""
        return requested.tool == origin.tool and requested.verdict != "deny" and requested.call_id != self._call_id

    def match_origin(self, value: Any, origins: tuple[str, ...], *, strict: bool) -> OriginMatch | None:
        """The first origin that a plain value comes from. Not `strict`: or that cannot be known, or may be meant."""
        if value is None or value == "" or (strict and isinstance(value, str) and has_invisible(value)):
            return None if strict else OriginMatch(origins[0], None)
        for text in origins:
            if (match := self._match_origin(value, text, parse_origin(text), strict=strict)) is not None:
                return match
        return None

    def _match_origin(self, value: Any, text: str, origin: Origin, *, strict: bool) -> OriginMatch | None:
        if isinstance(origin, TextOrigin):
            return OriginMatch(text, None) if self._text_has(origin, value) else None
        is_missing = True
        for past, field in self._fields(origin, strict=strict):
            is_missing = False
            if same_value(value, field) or (not strict and _is_similar(value, field)):
                return OriginMatch(text, past.call_id)
        return OriginMatch(text, None) if is_missing and not strict else None

    def _text_has(self, origin: TextOrigin, value: Any) -> bool:
        if isinstance(value, bool):
            return False
        started = self._trace.started
        if sources_of(self._trace).is_excluded(value, "value"):
            return False  # the task or the operator says that it is not wanted
        if origin.text == "operator":
            return started is not None and TrustedText((operator_text(started),)).has(value)
        return self._trace.view("task_words", lambda: _TaskWords(self._trace)).text.has(value)

    def _fields(self, origin: CallOrigin, *, strict: bool) -> Iterator[tuple[PastCall, Any]]:
        for past in self._past_calls(origin, strict=strict):
            if past.document is not UNKNOWN:
                yield from ((past, value) for value in values_at(past.document, origin.path))

    def fields_at(self, origin: CallOrigin) -> Iterator[tuple[PastCall, Any]]:
        """The plain values at an origin, for certain: each with its call, not undone, in an output known as a whole."""
        return self._fields(origin, strict=True)

    def _past_calls(self, origin: CallOrigin, *, strict: bool) -> Iterator[PastCall]:
        """The calls that an origin considers: those whose arguments are what it says; `strict`: none undone."""
        for past in past_calls(self._trace).of(origin.tool):
            if strict and past.is_undone:
                continue
            if all(self._is_same(past, name, other, strict=strict) for name, other in origin.same):
                yield past

    def _is_same(self, past: PastCall, name: str, other: str | Origin, *, strict: bool) -> bool:
        value = value_at(past.args, name)
        if value is None or value == "":
            return False
        if not isinstance(other, str):
            parts = value if isinstance(value, list | tuple) else [value]
            are_plain = not any(part in (None, "") or isinstance(part, Mapping | list | tuple) for part in parts)
            matches = (self._match_origin(part, "", other, strict=strict) is not None for part in parts)
            return bool(parts) and are_plain and all(matches)  # an empty list selects everything
        owns = [own for _, own in values_in(self._args, other)]
        return any(same_value(value, own) or (not strict and _is_similar(value, own)) for own in owns)

    def bounds(self, origin: str, *, strict: bool) -> list[Fraction] | None:
        """The numbers at the field of a tool; None if there are none, or one of them is not known."""
        field = parse_origin(origin)
        if not isinstance(field, CallOrigin):
            return None
        documents = [past.document for past in self._past_calls(field, strict=strict)]
        numbers = [exact_number(value) for document in documents for value in values_at(document, field.path)]
        known = [number for number in numbers if number is not None]
        return known if known and len(known) == len(numbers) and UNKNOWN not in documents else None

    def sources(self, rule: Rule) -> tuple[Source, ...]:
        """Where the arguments come from for which a rule that allows the call requires an origin."""
        sources = []
        for path, test in rule.args.items():
            if not isinstance(test, Mapping) or "from" not in test:
                continue
            role = self._card.role(first_name(path))
            parts = (part for where, value in values_in(self._args, path) for part in leaves(value, where))
            for part, value in parts:
                match = self.match_origin(value, origins_in(test, "from"), strict=True)
                if match is not None:
                    badge: Any = "YOURS" if match.call_id is None else "LOOKED UP"
                    sources.append(
                        Source(arg=part, role=role, badge=badge, call_id=match.call_id, snippet=match.origin)
                    )
        return tuple(sources)


def values_in(args: Any, path: str) -> list[tuple[str, Any]]:
    """The values at a path, each with its own one: after `[]` those in every member of a list, else the one there is.

    A member without a value has None, as an argument that is missing.
    """
    before, bracket, rest = path.partition(EACH_MEMBER)
    value = value_at(args, before)
    if not bracket:
        return [(path, value)]
    members = value if isinstance(value, list | tuple) else ()
    found = []
    for index, member in enumerate(members):
        inner = values_in(member, rest.lstrip(".")) if rest else [("", member)]
        found += [(f"{before}[{index}]{'.' if name[:1] not in ('', '[') else ''}{name}", part) for name, part in inner]
    return found


def value_at(args: Any, path: str) -> Any:
    """The value at a path such as `customer.mail` or `items[0].price`; None if there is none."""
    for step in _STEP.findall(path):
        if isinstance(args, Mapping):
            args = args.get(step)
        elif isinstance(args, list | tuple) and step.isdigit() and int(step) < len(args):
            args = args[int(step)]
        else:
            return None
    return args


def _is_similar(value: Any, field: Any) -> bool:
    """Whether a value may be understood as another one."""
    return value is not None and normalise_text(str(value)) == normalise_text(str(field))


def exact_number(value: Any) -> Fraction | None:
    """A number as it is written, so that 0.1 is a tenth; also one that is written as a text."""
    if isinstance(value, str):
        return Fraction(value) if _AMOUNT.fullmatch(value) else None
    is_finite = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return Fraction(repr(value)) if is_finite else None
