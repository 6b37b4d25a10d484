"""The keys of a decision that is written as a JSON object: those of a built-in form, or of an edited prompt text.

A person may edit `form_json.txt` and ask for other keys. The replies of the model are then shown back to it with these
keys, and a provider that holds replies to a schema gets one with them, so that all a model sees says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Decision
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.json_decision import ROLES, plain_key
from taoloop.dialects.parsing.tool_names import is_final_name

_TOKEN = lazy_pattern(r'"(?P<text>(?:[^"\\\n]|\\.)*)"|[{}\[\]:,]')
_TO_FILL = lazy_pattern(r"\s*[<‹…]|.*\.{3}")

Part = Literal["thought", "tool", "args", "answer", "text"]


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the object."""

    key: str
    """Its key."""
    part: Part
    """The part of the decision that is its value; `text`: always the same text."""
    text: str = ""
    """That text."""


@dataclass(frozen=True, slots=True)
class JsonForm:
    """How a call and an answer are written as one object, member by member."""

    call: tuple[Member, ...]
    """The members of a call."""
    answer: tuple[Member, ...]
    """The members of an answer."""
    needs_thought: bool = False
    """Whether the thought is there even where a strategy does not ask for one."""

    def members(self, decision: Decision, tool: str = "", args: Any = None) -> dict[str, Any]:
        """A decision as an object; `tool` and `args` are those of its call."""
        parts: dict[Part, Any] = {"thought": decision.reason, "tool": tool, "args": args}
        if not isinstance(decision, Act):
            parts["answer"] = decision.text
        members = self.call if isinstance(decision, Act) else self.answer
        return {member.key: member.text if member.part == "text" else parts[member.part] for member in members}

    def schema(self, cards: Sequence[ToolCard], *, reasons: bool) -> Mapping[str, Any]:
        """The JSON Schema of such an object. Arguments and answer are open: cards and output schema judge those."""
        kinds = (self.call, self.answer) if cards else (self.answer,)
        properties: dict[str, dict[str, Any]] = {}
        for member in (member for kind in kinds for member in kind):
            if member.part in ("args", "answer"):
                properties[member.key] = {}
            elif member.part == "thought":
                properties[member.key] = {"type": "string"}
            else:
                names = [card.name for card in cards] if member.part == "tool" else [member.text]
                enum = properties.setdefault(member.key, {"type": "string", "enum": []})["enum"]
                enum += [name for name in names if name not in enum]
        thoughts = {member.key for kind in kinds for member in kind if member.part == "thought"}
        required = [
            key
            for key in properties
            if all(any(member.key == key for member in kind) for kind in kinds)
            and (reasons or self.needs_thought or key not in thoughts)
        ]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_THOUGHT = Member("thought", "thought")
ACTION_FORM = JsonForm(
    call=(_THOUGHT, Member("action", "tool"), Member("action_input", "args")),
    answer=(_THOUGHT, Member("action", "text", "final"), Member("action_input", "answer")),
)
"""`{"thought", "action", "action_input"}`, where the action `final` ends the run."""
FENCED_FORM = JsonForm(call=ACTION_FORM.call[1:], answer=ACTION_FORM.answer[1:])
"""The same without the thought, which stands before it."""
FINAL_FORM = JsonForm(
    call=(_THOUGHT, Member("action", "tool"), Member("args", "args")),
    answer=(_THOUGHT, Member("final", "answer")),
    needs_thought=True,
)
"""`{"thought", "action", "args"}` or `{"thought", "final"}`."""


def form_of(text: str, own: JsonForm) -> JsonForm:
    """The form that a prompt text shows: its first object that is a call, and its first that is an answer.

    `own` is the form of the dialect; it stands for what the text does not show, or shows with keys that are not known
    as those of a decision.
    """
    call: tuple[Member, ...] | None = None
    answer: tuple[Member, ...] | None = None
    for display in _objects(text):
        members = _members(display)
        parts = [member.part for member in members]
        if call is None and parts.count("tool") == parts.count("args") == 1 and "answer" not in parts:
            call = members
        elif answer is None and parts.count("answer") == 1 and "tool" not in parts:
            answer = members
    if call is None or answer is None:
        return own
    return JsonForm(call=call, answer=answer, needs_thought=own.needs_thought)


def _members(display: Mapping[str, str | None]) -> tuple[Member, ...]:
    """What each key of an object stands for; empty if one is unknown and its value is to be filled in."""
    roles = {key: next((role for role, words in ROLES.items() if plain_key(key) in words), "") for key in display}
    tools = [key for key, role in roles.items() if role == "tool"]
    ends = "final" in roles.values() or any(is_final_name(display[key] or "") for key in tools)
    members: list[Member] = []
    for key, text in display.items():
        if roles[key] == "thought":
            members.append(Member(key, "thought"))
        elif roles[key] == "tool" and not is_final_name(text or ""):
            members.append(Member(key, "tool"))
        elif roles[key] == "final" or (roles[key] == "args" and ends and "final" not in roles.values()):
            members.append(Member(key, "answer"))
        elif roles[key] == "args":
            members.append(Member(key, "args"))
        elif text is None or _TO_FILL.match(text):
            return ()
        else:
            members.append(Member(key, "text", text))
    return tuple(members)


def _objects(text: str) -> Iterator[dict[str, str | None]]:
    """The objects that a text shows: the keys of each, with the text behind a key where it is one in quotes."""
    depth, key, last = 0, "", None
    display: dict[str, str | None] = {}
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in ("{", "["):
            depth += 1
            if depth == 1:
                display, key, last = {}, "", None
        elif mark in ("}", "]"):
            depth = max(0, depth - 1)
            if not depth and display:
                yield display
                display = {}
        elif depth != 1:
            continue
        elif mark == ":" and last is not None:
            key, last = last, None
            display[key] = None
        elif mark == ",":
            key, last = "", None
        elif token["text"] is not None:
            last = token["text"]
            if key:
                display[key] = last
