"""Where the values of a recorded call stood in its run, as the origins that a rule may require. Pure.

The problem: a value may stand in many outputs, and most of those places say little: any record that the run has read
would do. The idea: prefer a place that hangs together with the call itself, or with the task, if need be over several
look-ups (`get_order(order_id).items[].id`, `get_user(user_id=tool:find_user(email=task).user_id).orders[]`). Tested in
tests/policy/review/test_rule_suggestion.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.policy.call_history import PastCall, past_calls
from taoloop.policy.judged_call import values_in
from taoloop.policy.provenance import trusted_texts
from taoloop.policy.rules import deciding_rule
from taoloop.policy.targets import first_name, is_target_role, leaves
from taoloop.policy.value_match import TrustedText

_MAX_CANDIDATES = 64  # for one value: outputs may hold it in very many places
_MAX_LOOK_UPS = 2  # between an output and the call or the task that it hangs together with


def observed_origins(before: Trace, card: ToolCard, args: Mapping[str, Any], path: str) -> Iterator[str]:
    """The origins that an argument, or a part of one (`payments[].id`), has at this place of its run.

    The narrowest come first.

    An output of a call that shares a target with this one comes first, then that of a look-up by a value of the task,
    and last one that has to do with neither. What the task says itself comes before outputs, unless the argument is a
    target: whose record it is says more than that somebody typed it. Of equals the one over fewer look-ups comes first.
    """
    is_target = is_target_role(card.role(first_name(path)))
    candidates = [_Candidate(_BY_PEOPLE if is_target else _FIRST, 0, number, text) for number, text in _PEOPLE]
    candidates += _Outputs(before, card, args, path).candidates()
    texts = dict.fromkeys(candidate.text for candidate in sorted(candidates))
    for origin in islice(texts, _MAX_CANDIDATES):
        rule = Rule(tool=card.name, args={path: {"from": [origin]}}, verdict="allow")
        if deciding_rule(before, Policy(rules=(rule,)), card, args) is not None:
            yield origin


_FIRST, _TO_TARGET, _TO_TASK, _BY_PEOPLE, _TO_VALUE, _UNTIED, _ECHO = range(7)
"""What a candidate rests on, the narrowest first. An echo only repeats what its call was asked for."""

_PEOPLE = ((0, "task"), (1, "operator"))


class _Candidate(NamedTuple):
    """An origin that may fit, in the order in which they are tried."""

    group: int
    look_ups: int
    rank: int
    text: str


class _Place(NamedTuple):
    """A field of an output that has a value."""

    tool: str
    call: PastCall
    path: str
    is_echo: bool

    def origin(self, tie: str) -> str:
        """The origin of the field, of the calls that a tie describes."""
        return f"tool:{self.tool}({tie}){self.path}" if tie else f"tool:{self.tool}{self.path}"


class _Outputs:
    """The outputs of a run, searched for the values of one argument of a call."""

    def __init__(self, before: Trace, card: ToolCard, args: Mapping[str, Any], path: str) -> None:
        self._before, self._card, self._args, self._path = before, card, args, path
        self._name = first_name(path)
        self._values = {str(part) for _, value in values_in(args, path) for _, part in leaves(value)}
        self._task = TrustedText(trusted_texts(before))

    def candidates(self) -> Iterator[_Candidate]:
        """Every field with one of the values, with what ties it to the call or to the task."""
        kind = self._card.role(self._name).partition(":")[2]
        for rank, position in enumerate(self._places(self._values, kind, _last_name(self._path))):
            for group, tie in self._ties(position.call, _MAX_LOOK_UPS):
                look_ups = tie.count("tool:")
                yield _Candidate(_ECHO if position.is_echo else group, look_ups, rank, position.origin(tie))
            yield _Candidate(_ECHO if position.is_echo else _UNTIED, 0, rank, position.origin(""))

    def _places(self, values: set[str], kind: str, name: str) -> list[_Place]:
        """The fields that have one of these values, the best first: of this kind, by its service, and named so."""
        ranked = list[tuple[tuple[bool, bool, str], _Place]]()
        for card in self._before.agent.tools:
            for call in past_calls(self._before).of(card.name):
                is_echo = not values.isdisjoint(str(part) for _, part in leaves(call.args))
                for path in _paths_in(call.document, values):
                    last = _last_name(path)
                    is_named = last != "" and (name.startswith(last) or name.endswith(last))
                    rank = (kind == "" or card.ids.get(last) != kind, not is_named, path)
                    ranked.append((rank, _Place(card.name, call, path, is_echo)))
        return [position for _, position in sorted(ranked, key=lambda entry: entry[0])]

    def _ties(self, call: PastCall, look_ups: int) -> Iterator[tuple[int, str]]:
        """What ties a call of the run to this one, or to the task, over at most so many look-ups.

        Not over a look-up by the very value that is searched for: that would tie it to itself.
        """
        given = call.args if isinstance(call.args, Mapping) else {}
        for parameter, value in given.items():
            for other, part in self._args.items():
                if part == value and other != self._name:
                    group = _TO_TARGET if is_target_role(self._card.role(other)) else _TO_VALUE
                    yield group, parameter if other == parameter else f"{parameter}={other}"
        typed = [parameter for parameter, value in given.items() if value not in (None, "") and self._task.has(value)]
        if typed:
            yield _TO_TASK, ", ".join(f"{parameter}=task" for parameter in typed)
        for parameter, value in given.items() if look_ups else ():
            if parameter in typed or not isinstance(value, str | int):
                continue
            for source in self._places({str(value)}, "", parameter):
                asked_for = {str(part) for _, part in leaves(source.call.args)}
                if source.is_echo or not self._values.isdisjoint(asked_for):
                    continue
                for group, tie in self._ties(source.call, look_ups - 1):
                    yield group, f"{parameter}={source.origin(tie)}"


def _last_name(path: str) -> str:
    """The name of a field at a path."""
    return path.rpartition(".")[2].removesuffix("[]")


def _paths_in(document: Any, values: set[str]) -> set[str]:
    """Where an output has one of these values, as paths with `[]` for every index and `*` for every key that is data.

    The output itself, if it is a plain value.
    """
    if isinstance(document, Mapping | list):
        return {path for path, part in _fields(document) if str(part) in values}
    return {""} if isinstance(document, str | int | float) and str(document) in values else set()


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        is_table = bool(value) and all(_has_own_key(key, part) for key, part in value.items())
        for key, part in value.items():
            yield from _fields(part, f"{path}.{'*' if is_table else key}")
    elif isinstance(value, list):
        for part in value:
            yield from _fields(part, f"{path}[]")
    else:
        yield path, value


def _has_own_key(key: str, record: Any) -> bool:
    """Whether a key is data: the record has it as a value, too."""
    return isinstance(record, Mapping) and key in record.values()
