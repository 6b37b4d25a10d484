"""Decisions in the text of a reply: what all such dialects share, and those that are built in.

They are labelled lines (`text`), a JSON object alone (`json`), and one in a code fence after a thought (`fenced`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.events import ActionRequested, ModelReplied, Observed, ReplyRejected
from taoloop.core.message import Message, ModelReply
from taoloop.core.prompts import PromptSet
from taoloop.core.text import lazy_pattern
from taoloop.dialects.base import Dialect
from taoloop.dialects.json_form import ACTION_FORM, FENCED_FORM, FINAL_FORM, JsonForm, form_of
from taoloop.dialects.parsing.call_arguments import canonical_answer, canonical_call, canonical_decision
from taoloop.dialects.parsing.cleanup import clean_reply, reject_truncated
from taoloop.dialects.parsing.json_decision import given_roles
from taoloop.dialects.parsing.json_repair import parse_value
from taoloop.dialects.parsing.placeholders import is_never_seen, reject_placeholders
from taoloop.dialects.parsing.reply_parser import parse_reply
from taoloop.dialects.parsing.strict_json import NotJsonError, decode_at, dumps
from taoloop.dialects.prompt import defuse_markers, observation_text, output_format_prompt, quote_labels
from taoloop.dialects.texts import TEXTS, ReplyParseError
from taoloop.errors import ConfigError

MAX_ECHO_CHARS = 4_000
EMPTY_REPLY = TEXTS.text("en", "empty_reply")
"""What is in later prompts for a reply without a text; `Conversation` puts it into the language of the run."""

_HARMLESS = str.maketrans("<[{｛`", "‹((('")


class TextReplyDialect(ABC):
    """Observations are user messages, and an echo is the decision in its canonical form."""

    name: str
    native = False
    stop: tuple[str, ...] = ()

    def read(
        self,
        reply: ModelReply,
        cards: Sequence[ToolCard],
        *,
        json_answer: bool = False,
        was_seen: Callable[[str], bool] = is_never_seen,
    ) -> Decision | Problem:
        """The one decision in a reply, or why there is none: by the fast path, or by the tolerant parser."""
        try:
            reject_truncated(reply)
            decision = self.parse_canonical(reply.text, cards)
            if decision is not None:
                return decision
            text = clean_reply(reply.text)
            decision = parse_reply(text, cards, json_answer=json_answer)
            self.check_form(text, decision)
            reject_placeholders(decision, cards, was_seen, json_answer=json_answer)
            return decision
        except ReplyParseError as refused:
            return refused.problem

    def check_form(self, text: str, decision: Decision) -> None:  # noqa: B027  # no dialect has to refuse more
        """Refuse a decision that can be read, but not in this dialect; by default there is none.

        Raises:
            ReplyParseError: it says what is missing.
        """

    @abstractmethod
    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in a reply of canonical form; None for every other reply."""

    @abstractmethod
    def write(self, decision: Decision) -> ModelReply:
        """The decision in canonical form."""

    def with_thought(self, body: str, decision: Decision, *, is_plain: bool = False) -> ModelReply:
        """A decision behind its thought, if it has one. `is_plain`: that can be read back, whatever it says.

        Any other thought that could not be read back is on one line, in which nothing can pass for more than words.
        """
        reply = ModelReply(text=f"Thought: {decision.reason}\n{body}" if decision.reason else body)
        if not decision.reason or is_plain or self.read(reply, ()) == decision:
            return reply
        reason = quote_labels(" ".join(decision.reason.translate(_HARMLESS).split()))
        return ModelReply(text=f"Thought: {reason}\n{body}" if reason else body)

    def echo(self, replied: ModelReplied, requested: Sequence[ActionRequested]) -> Message:  # noqa: ARG002
        """The decision as it was believed: thinking and invented observations are left out."""
        if replied.decision is None:
            return Message(role="assistant", content=displayed_reply(replied.text))
        return Message(role="assistant", content=self.write(replied.decision).text)

    def observation(self, requested: ActionRequested, observed: Observed, prompts: PromptSet, nonce: str) -> Message:
        """The framed observation as a user message."""
        return Message(role="user", content=observation_text(requested, observed, prompts, nonce))

    def correction(self, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool) -> Message:
        """What was wrong, and the form that is expected."""
        return correction_message(self.name, rejected, prompts, tools=tools, reasons=reasons)


def correction_message(
    dialect: str, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool
) -> Message:
    """The message after an unreadable reply."""
    expected = output_format_prompt(prompts, dialect, tools=tools, reasons=reasons)
    return Message(
        role="user", content=prompts.fill("correction", problem=defuse_markers(rejected.message), form=expected)
    )


def displayed_reply(text: str) -> str:
    """A rejected reply as later prompts show it: never empty, and bounded."""
    if not text.strip():
        return EMPTY_REPLY
    return text if len(text) <= MAX_ECHO_CHARS else text[: MAX_ECHO_CHARS - 1] + "…"


def only_call(decision: Act, dialect: str) -> Call:
    """The call of a decision that has one.

    Raises:
        ConfigError: it has several, which this dialect cannot write.
    """
    if len(decision.calls) != 1:
        raise ConfigError(
            f"The dialect {dialect!r} writes one call per reply; this decision has {len(decision.calls)}.",
            hint="Give one call per turn, or use the dialect 'native'.",
        )
    return decision.calls[0]


_CANONICAL = lazy_pattern(
    r"(?:Thought: (?P<thought>[^\s<`{｛][^\n<`{｛]*)\n)?"
    r"(?:Action: (?P<tool>[\w.-]+)\nAction Input: (?P<args>\{[^\n]*\})|Final Answer: (?P<answer>[^\s<`{][^\n<`{]*))\n?",
    re.ASCII,
)


class TextDialect(TextReplyDialect):
    """Thought, Action, Action Input, Final Answer, line by line as in the ReAct paper.

    Other accepted forms: `Action: tool: input` and `Action: tool(key="value")`.
    """

    name = "text"
    stop = ("\nObservation:", "\n观察：", "\n观察:")

    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in one line per label."""
        match = _CANONICAL.fullmatch(text)
        if match is None:
            return None
        reason = (match["thought"] or "").strip()
        if not reason.isprintable():
            return None
        if match["answer"] is not None:
            return canonical_answer(match["answer"], reason)
        return canonical_call(match["tool"], match["args"], reason, cards)

    def write(self, decision: Decision) -> ModelReply:
        """Thought, Action and Action Input (JSON, not ASCII-escaped), or Thought and Final Answer.

        An answer that could not be read back behind its label is written as a JSON string; in a reason that
        could not, lines are joined and label words quoted.
        """
        return self.with_thought(_body(decision), decision, is_plain=_is_plain_line(decision.reason))


def _body(decision: Decision) -> str:
    if isinstance(decision, Act):
        call = only_call(decision, "text")
        return f"Action: {call.tool}\nAction Input: {dumps(call.args)}"
    plain = f"Final Answer: {decision.text}"
    if _is_plain_line(decision.text) and canonical_answer(decision.text, "") is not None:
        return plain
    try:
        decision_read_back = parse_reply(clean_reply(plain), ())
    except ReplyParseError:
        decision_read_back = None
    if decision_read_back == Answer(text=decision.text):
        return plain
    return f"Action: Final Answer\nAction Input: {dumps(decision.text)}"


def _is_plain_line(text: str) -> bool:
    return not any(char in text for char in "\n\r<[`{$｛") and text == text.strip() and text.isprintable()


_KEYS = frozenset({"thought", "action", "action_input"})


class ObjectDialect(TextReplyDialect):
    """A decision is one JSON object, with the keys of a form."""

    form: JsonForm = ACTION_FORM
    """The keys that `write` uses. `read` takes all words for them."""

    def in_form(self, prompts: PromptSet) -> ObjectDialect:
        """The dialect with the keys that the prompt texts of a run ask for, which a person may have edited.

        Its own keys stay if the texts show no others, or some that could not be read back.
        """
        thought = prompts.texts.get(f"thought_{self.name}", "")
        return _dialect_in_form(self, prompts.texts.get(f"form_{self.name}", ""), thought)

    def decision_object(self, decision: Decision) -> dict[str, object]:
        """The members of the object for a decision."""
        if isinstance(decision, Answer):
            return self.form.members(decision)
        call = only_call(decision, self.name)
        return self.form.members(decision, call.tool, call.args)


@lru_cache(maxsize=64)
def _dialect_in_form(dialect: ObjectDialect, form_text: str, thought: str) -> ObjectDialect:
    text = form_text.replace("${thought_example}", "").replace("$thought_example", "")
    form = form_of(text.replace("${thought}", f"{thought}\n").replace("$thought", f"{thought}\n"), dialect.form)
    if form == dialect.form:
        return dialect
    other = copy(dialect)
    other.form = form
    samples = (Act(calls=(Call(tool="lookup", args={"key": "a word"}),)), Answer(text="It is a word."))
    return other if all(other.read(other.write(sample), ()) == sample for sample in samples) else dialect


class JsonDialect(ObjectDialect):
    """`{"thought", "action", "action_input"}`; the action `final` ends the run.

    Also read: `{"thought", "action", "args"}` or `{"thought", "final"}`, and `{"type", "tool", "args",
    "answer", "reason_summary"}` with the type `tool_call` or `final`.
    """

    name = "json"

    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in a reply that is exactly the object of the first form."""
        if not text.startswith("{") or "</" in text or "<|" in text:
            return None
        try:
            parsed, end = decode_at(text)
        except NotJsonError:
            return None
        if end != len(text) or parsed.keys() != _KEYS or type(parsed["thought"]) is not str:
            return None
        reason = parsed["thought"].strip()
        return canonical_decision(parsed["action"], parsed["action_input"], reason, cards, ("final",))

    def write(self, decision: Decision) -> ModelReply:
        """The canonical object on one line, not ASCII-escaped."""
        return ModelReply(text=dumps(self.decision_object(decision)))


_CALL_KEYS, _FINAL_KEYS = frozenset({"thought", "action", "args"}), frozenset({"thought", "final"})


class JsonFinalDialect(JsonDialect):
    """`{"thought", "action", "args"}`, or `{"thought", "final"}` to end the run: the keys say which of them it is.

    The thought is always there, action and args go together, and a final excludes both. An empty final is none. Drifted
    replies are read as in `json`, by the same rules.
    """

    name = "json_final"
    form = FINAL_FORM

    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in a reply that is exactly one of the two objects."""
        if not text.startswith("{") or "</" in text or "<|" in text:
            return None
        try:
            parsed, end = decode_at(text)
        except NotJsonError:
            return None
        if end != len(text) or type(parsed.get("thought")) is not str:
            return None
        reason = parsed["thought"].strip()
        if parsed.keys() == _CALL_KEYS:
            return canonical_decision(parsed["action"], parsed["args"], reason, cards, ())
        if parsed.keys() == _FINAL_KEYS and type(parsed["final"]) is str:
            return canonical_answer(parsed["final"], reason)
        return None

    def check_form(self, text: str, decision: Decision) -> None:
        """Refuse a decision without its thought, a call without its arguments, and arguments beside a final."""
        try:
            value = parse_value(text, text.find("{")).value
        except NotJsonError:
            value = None
        roles = given_roles(value)
        if not decision.reason and "thought" not in roles:
            raise ReplyParseError("no_decision", "no_thought", text)
        if isinstance(decision, Act) and "tool" in roles and "args" not in roles:
            raise ReplyParseError("bad_action", "no_args", text, tool=decision.calls[0].tool)
        if isinstance(decision, Answer) and "final" in roles and roles.get("args") not in (None, "", {}):
            raise ReplyParseError("two_decisions", "action_and_answer", text)


def reply_schema(
    dialect: Dialect,
    cards: Sequence[ToolCard],
    output_schema: Mapping[str, Any] | None,
    *,
    reasons: bool,
    prompts: PromptSet | None = None,
) -> Mapping[str, Any] | None:
    """The JSON Schema of the next reply for providers with structured output; None: the text need not be JSON.

    In the dialects of one JSON object it describes one decision, in the form that `prompts` ask for, and leaves
    arguments and answer open, because the cards and the output schema judge those. In a native dialect the text is the
    answer, also where the model may call a tool instead of it; which provider can be held to that, its model knows.
    Other dialects have none.
    """
    if dialect.native:
        return output_schema
    if isinstance(dialect, JsonDialect):
        form = dialect.form if prompts is None else dialect.in_form(prompts).form
        return form.schema(cards, reasons=reasons)
    return None


_HEAD = lazy_pattern(r"(?:Thought: (?P<thought>[^\s<`{｛][^\n<`{｛]*)\n)?Action:\n```json\n(?=\{)")
_FENCED_KEYS = frozenset({"action", "action_input"})


class FencedDialect(ObjectDialect):
    """`Thought: …`, then `{"action", "action_input"}` in a code fence; the action `final` ends the run."""

    name = "fenced"
    form = FENCED_FORM
    stop = ("\nObservation:", "\n观察：", "\n观察:")

    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in a reply of at most one line of thought and one fence."""
        head = _HEAD.match(text)
        if head is None or "</" in text or "<|" in text:
            return None
        try:
            parsed, end = decode_at(text, head.end())
        except NotJsonError:
            return None
        if text[end:].rstrip() != "\n```" or parsed.keys() != _FENCED_KEYS:
            return None
        reason = (head["thought"] or "").strip()
        if not reason.isprintable():
            return None
        return canonical_decision(parsed["action"], parsed["action_input"], reason, cards, ("final", "Final Answer"))

    def write(self, decision: Decision) -> ModelReply:
        """The thought, if there is one, and the object on one line in its fence.

        In a thought that could not be read back, lines are joined and label words quoted.
        """
        return self.with_thought(f"Action:\n```json\n{dumps(self.decision_object(decision))}\n```", decision)
