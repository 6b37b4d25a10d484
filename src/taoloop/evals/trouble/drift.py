"""A model whose replies drift: some of another model's replies arrive as real models really send them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Fact, ModelReplied, Observed, ReplyRejected
from taoloop.core.message import ModelReply
from taoloop.core.trace import Trace
from taoloop.dialects import get_dialect
from taoloop.errors import ConfigError, InvalidArguments, UnknownName
from taoloop.evals.trouble import drift_syntax as syntax
from taoloop.evals.trouble.drift_syntax import Spelling, Writer, dumps, spelled
from taoloop.models.base import Model, WrappedModel

Outcome = Literal["recoverable", "reject"]
"""`recoverable`: the decision is still there; a reader gives exactly it, or asks again. `reject`: nothing may run and
no answer may be believed; the reply is refused, or the call in it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntendedReply:
    """A reply as the model meant it."""

    decision: Decision
    """Its decision."""

    dialect: str
    """The name of the dialect."""

    cards: Sequence[ToolCard]
    """The tools on offer."""

    reply: ModelReply
    """The reply in canonical form."""

    @property
    def call(self) -> Call | None:
        """The only call, if the reply has one."""
        calls = self.decision.calls if isinstance(self.decision, Act) else ()
        return calls[0] if len(calls) == 1 else None

    @property
    def card(self) -> ToolCard | None:
        """The card of that call's tool."""
        return next((card for card in self.cards if self.call and card.name == self.call.tool), None)

    def text(self, text: str, finish_reason: str | None = None) -> ModelReply:
        """The reply with another text."""
        return replace(self.reply, text=text, finish_reason=finish_reason or self.reply.finish_reason)

    def arguments(self, arguments: str, finish_reason: str | None = None) -> ModelReply:
        """The reply with other arguments of its (native) call."""
        call = replace(self.reply.tool_calls[0], arguments=arguments)
        return replace(self.reply, tool_calls=(call,), finish_reason=finish_reason or self.reply.finish_reason)

    def written(self, decision: Decision) -> ModelReply:
        """Another decision, written in the dialect's canonical form."""
        canonical = get_dialect(self.dialect).write(decision)
        return replace(self.reply, text=canonical.text, tool_calls=canonical.tool_calls)


Corrupt = Callable[[IntendedReply], ModelReply | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One class of drift."""

    name: str
    """Its name in `DRIFT`."""

    outcome: Outcome
    """What has to become of such a reply."""

    corrupt: Corrupt
    """Returns the reply as it would arrive; None where the class does not apply."""


_PROSE = ("text", "json", "fenced")
_LABEL = re.compile(r"^(Thought|Action Input|Action|Final Answer):", re.MULTILINE)
_CHINESE = {"Thought": "思考", "Action": "行动", "Action Input": "行动输入", "Final Answer": "最终答案"}


def _object_at(text: str) -> tuple[int, int, Any] | None:
    """The object that the text ends with, a closing fence aside: where it begins and ends, and its value."""
    start = -1
    while (start := text.find("{", start + 1)) >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        if text[end:].strip() in ("", "```"):
            return start, end, value
    return None


def _syntax(write: Writer, finish_reason: str | None = None, *, open_end: bool = False) -> Corrupt:
    """The object of the reply, written by `write`; with `open_end` nothing follows it."""

    def corrupt(sent: IntendedReply) -> ModelReply | None:
        if sent.dialect == "native":
            arguments = None if sent.call is None else write(sent.call.args)
            return None if arguments is None else sent.arguments(arguments, finish_reason)
        span = _object_at(sent.reply.text)
        written = None if span is None else write(span[2])
        if span is None or written is None:
            return None
        start, end, _ = span
        return sent.text(sent.reply.text[:start] + written + ("" if open_end else sent.reply.text[end:]), finish_reason)

    return corrupt


def _text(change: Callable[[str], str], *, dialects: Sequence[str] = _PROSE, only_acts: bool = False) -> Corrupt:
    """The text of the reply, changed; with `only_acts` not where it answers."""

    def corrupt(sent: IntendedReply) -> ModelReply | None:
        if sent.dialect not in dialects or (only_acts and not isinstance(sent.decision, Act)):
            return None
        return sent.text(change(sent.reply.text))

    return corrupt


def _labels(change: Callable[[str], str]) -> Corrupt:
    """Every label of the text dialect, written in another way."""

    def corrupt(sent: IntendedReply) -> ModelReply | None:
        if sent.dialect != "text" or (isinstance(sent.decision, Answer) and "\n" in sent.decision.text):
            return None
        return sent.text(_LABEL.sub(lambda match: change(match.group(1)), sent.reply.text))

    return corrupt


def _call(change: Callable[[Call, ToolCard], Call | None]) -> Corrupt:
    """The call of the reply, changed before it is written."""

    def corrupt(sent: IntendedReply) -> ModelReply | None:
        call, card = sent.call, sent.card
        if call is None or card is None or not isinstance(call.args, dict) or not isinstance(sent.decision, Act):
            return None
        changed = change(call, card)
        return None if changed is None else sent.written(replace(sent.decision, calls=(changed,)))

    return corrupt


def _joined(second: Callable[[IntendedReply], str | None], *, dialects: Sequence[str] = _PROSE) -> Corrupt:
    """A second decision behind the first."""

    def corrupt(sent: IntendedReply) -> ModelReply | None:
        more = second(sent) if sent.dialect in dialects and sent.call is not None else None
        return None if more is None else sent.text(f"{sent.reply.text}\n{more}")

    return corrupt


def _extra_argument(call: Call, card: ToolCard) -> Call | None:
    closed = card.input_schema.get("additionalProperties") is False and "dry_run" not in card.parameters
    return replace(call, args=call.args | {"dry_run": True}) if closed else None


def _missing_argument(call: Call, card: ToolCard) -> Call | None:
    present = [name for name in card.required if name in call.args]
    return replace(call, args={k: v for k, v in call.args.items() if k != present[-1]}) if present else None


def _placeholder(call: Call, card: ToolCard) -> Call | None:
    name = next((name for name in card.required if isinstance(call.args.get(name), str)), None)
    return None if name is None else replace(call, args=call.args | {name: "<value>"})


def _numbers_as_texts(call: Call, card: ToolCard) -> Call | None:
    numbers = {
        name: str(value)
        for name, value in call.args.items()
        if isinstance(value, int) and card.parameters.get(name, {}).get("type") in ("integer", "number")
    }
    return replace(call, args=call.args | numbers) if numbers and True not in call.args.values() else None


def _unknown_tool(sent: IntendedReply) -> ModelReply | None:
    names = {card.name for card in sent.cards}
    rename = _call(lambda call, _: replace(call, tool=f"{call.tool}_v2"))
    return None if sent.call is None or f"{sent.call.tool}_v2" in names else rename(sent)


def _namespace(sent: IntendedReply) -> ModelReply | None:
    names = [card.name for card in sent.cards]
    rename = _call(lambda call, _: replace(call, tool=f"functions.{call.tool}"))
    return None if len(names) != len(set(names)) or any("." in name for name in names) else rename(sent)


def _input_as_text(sent: IntendedReply) -> ModelReply | None:
    if sent.call is None or not isinstance(sent.call.args, dict) or not sent.call.args:
        return None
    if sent.dialect == "native":
        return sent.arguments(dumps(dumps(sent.call.args)))
    return _call(lambda call, _: replace(call, args=dumps(call.args)))(sent)


def _other_keys(value: Any) -> str | None:
    if not isinstance(value, dict) or value.keys() - {"thought", "action", "action_input"} or "action" not in value:
        return None
    names = {"thought": "reasoning", "action": "tool", "action_input": "args"}
    return dumps({names[key]: inner for key, inner in value.items()})


def _only_json(corrupt: Corrupt) -> Corrupt:
    return lambda sent: corrupt(sent) if sent.dialect in ("json", "fenced") and sent.call is not None else None


def _leaked_call(sent: IntendedReply) -> ModelReply | None:
    if sent.dialect != "native" or sent.call is None or sent.card is None:
        return None
    called = dumps({"name": sent.call.tool, "arguments": sent.call.args})
    return replace(sent.reply, text=f"<tool_call>\n{called}\n</tool_call>", tool_calls=(), finish_reason="stop")


def _bare_answer(sent: IntendedReply) -> ModelReply | None:
    if sent.dialect not in _PROSE or not isinstance(sent.decision, Answer):
        return None
    text = sent.decision.text
    return None if re.search(r"[{:：\[<]", text) else sent.text(f"So that is it. {text}")


def _empty(sent: IntendedReply) -> ModelReply | None:
    return replace(sent.reply, text="", tool_calls=())


def _cut(sent: IntendedReply) -> ModelReply | None:
    """The provider says that it cut the reply."""
    if sent.reply.tool_calls and sent.call is not None:
        source = sent.reply.tool_calls[0].arguments
        return sent.arguments(source[: len(source) // 2], "length")
    return sent.text(sent.reply.text[: max(1, len(sent.reply.text) * 2 // 3)], "length")


def _python_call(sent: IntendedReply) -> ModelReply | None:
    call = sent.call
    if sent.dialect != "text" or call is None or not isinstance(call.args, dict) or not isinstance(sent.decision, Act):
        return None
    if not call.args or not all(type(value) in (str, int) for value in call.args.values()):
        return None
    arguments = ", ".join(f"{name}={dumps(value)}" for name, value in call.args.items())
    head = f"Thought: {sent.decision.reason}\n" if sent.decision.reason and "\n" not in sent.decision.reason else ""
    return sent.text(f"{head}Action: {call.tool}({arguments})")


def _fence(sent: IntendedReply) -> ModelReply | None:
    span = _object_at(sent.reply.text) if sent.dialect in ("text", "json") else None
    if span is None:
        return None
    start, end, _ = span
    text = sent.reply.text
    return sent.text(
        f"{text[:start]}\n```json\n{text[start:end]}\n```".lstrip("\n") if start else f"```json\n{text}\n```"
    )


def _unfenced(sent: IntendedReply) -> ModelReply | None:
    if sent.dialect != "fenced" or "```" not in sent.reply.text:
        return None
    return sent.text(re.sub(r"```(?:json)?\n?", "", sent.reply.text).rstrip())


def _open_fence(sent: IntendedReply) -> ModelReply | None:
    text = sent.reply.text.rstrip()
    return sent.text(text[:-3].rstrip()) if sent.dialect == "fenced" and text.endswith("```") else None


def _final_of(sent: IntendedReply) -> str | None:
    return get_dialect(sent.dialect).write(Answer(text="All done, the result is 42.")).text


def _other_call(sent: IntendedReply) -> str | None:
    other = None if sent.call is None else syntax.other_object(sent.call.args)
    if other is None or sent.call is None:
        return None
    return get_dialect(sent.dialect).write(Act(calls=(Call(tool=sent.call.tool, args=other),))).text


def _name_tokens(sent: IntendedReply) -> ModelReply | None:
    if sent.dialect != "native" or sent.call is None:
        return None
    [call] = sent.reply.tool_calls
    return replace(sent.reply, tool_calls=(replace(call, name=f"{call.name}<|channel|>commentary"),))


_SINGLE_QUOTES = spelled(Spelling(quotes=("'", "'")), needs=lambda value: bool(value) and not syntax.has_words(value))
_PYTHON_WORDS = spelled(Spelling(words=("True", "False", "None")), needs=syntax.has_words)
_OBSERVATION = "Observation: done, the result is 42."
_NO_TOOL = "Thought: No tool fits.\nAction: None\nAction Input: None"
_TEMPLATE = "Thought: what to do\nAction: the action to take\nAction Input: the input to the action"

_CLASSES: tuple[tuple[str, Outcome, Corrupt], ...] = (
    # the syntax of the object
    ("trailing_comma", "recoverable", _syntax(syntax.trailing_comma)),
    ("comments", "recoverable", _syntax(syntax.comment)),
    ("extra_closer", "recoverable", _syntax(syntax.extra_closer)),
    ("missing_closer", "recoverable", _syntax(syntax.missing_closer)),
    ("single_quotes", "recoverable", _syntax(_SINGLE_QUOTES)),
    ("smart_quotes", "recoverable", _syntax(spelled(Spelling(quotes=("“", "”"))))),
    ("python_literals", "recoverable", _syntax(_PYTHON_WORDS)),
    ("unquoted_keys", "recoverable", _syntax(spelled(Spelling(bare_keys=True), needs=syntax.has_plain_keys))),
    ("fullwidth_punct", "recoverable", _syntax(spelled(Spelling(comma="，", colon="：")))),
    ("duplicate_keys", "reject", _syntax(syntax.duplicate_key)),
    ("nan_inf", "reject", _syntax(syntax.not_a_number)),
    ("cut_inside_text", "reject", _syntax(syntax.cut_inside, "stop", open_end=True)),
    # what surrounds it
    ("prose_around", "recoverable", _text(lambda text: f"Sure, here is my next step.\n\n{text}")),
    ("fence_in_text", "recoverable", _fence),
    ("fence_missing", "recoverable", _unfenced),
    ("fence_unclosed", "recoverable", _open_fence),
    ("think_block", "recoverable", _text(lambda text: f"<think>\nMaybe something else first? No.\n</think>\n{text}")),
    ("special_tokens", "recoverable", _text(lambda text: f"{text}<|im_end|>")),
    ("invisible_chars", "recoverable", _text(lambda text: f"\ufeff\u200b{text}\u200b")),
    ("label_variants", "recoverable", _labels(lambda label: f"{label.upper()} :")),
    ("bold_labels", "recoverable", _labels(lambda label: f"**{label}:**")),
    ("numbered_labels", "recoverable", _labels(lambda label: f"{label} 1:")),
    ("chinese_labels", "recoverable", _labels(lambda label: f"{_CHINESE[label]}：")),
    # what was invented behind it
    ("stump", "recoverable", _text(lambda text: f"{text}\nObserv", dialects=("text",), only_acts=True)),
    ("halluc_observation", "recoverable", _joined(lambda _: f"{_OBSERVATION}\nThought: That looks good.")),
    ("halluc_observation_final", "reject", _joined(lambda sent: f"{_OBSERVATION}\n{_final_of(sent)}")),
    ("duplicate_action", "recoverable", _joined(lambda sent: sent.reply.text, dialects=("text", "json"))),
    ("two_actions", "reject", _joined(_other_call)),
    ("action_and_final", "reject", _joined(_final_of)),
    ("native_concat", "reject", lambda sent: _syntax(syntax.two_objects)(sent) if sent.dialect == "native" else None),
    # the call itself
    ("extra_arg", "reject", _call(_extra_argument)),
    ("missing_arg", "reject", _call(_missing_argument)),
    ("placeholder_args", "reject", _call(_placeholder)),
    ("unknown_tool", "reject", _unknown_tool),
    ("name_drift", "recoverable", _namespace),
    ("type_coerce", "recoverable", _call(_numbers_as_texts)),
    ("input_as_string", "recoverable", _input_as_text),
    ("keys_renamed", "recoverable", _only_json(_syntax(_other_keys))),
    ("wrapped", "recoverable", _only_json(_syntax(lambda value: dumps({"tool_call": value})))),
    ("python_call", "recoverable", _python_call),
    ("native_content_call", "recoverable", _leaked_call),
    ("native_name_tokens", "recoverable", _name_tokens),
    # nothing to believe
    ("truncated", "reject", _cut),
    ("empty", "reject", _empty),
    ("no_label_final", "reject", _bare_answer),
    ("refusal", "reject", _text(lambda _: "I am sorry, but I cannot help with that.")),
    ("action_none", "reject", _text(lambda _: _NO_TOOL, dialects=("text",))),
    ("template_echo", "reject", _text(lambda _: _TEMPLATE, dialects=("text",))),
)

DRIFT = MappingProxyType(
    {name: Drift(name=name, outcome=outcome, corrupt=corrupt) for name, outcome, corrupt in _CLASSES}
)
"""Every class of drift by its name."""


_REFUSED_CALLS = frozenset({"unknown_tool", *InvalidArguments.codes})


class DriftInjector(WrappedModel):
    """Corrupts the replies of `model` at the given `rate` (a part of 1), each with one of the `classes` of `DRIFT`.

    Which replies drift, and how, follows from `seed`, the task and the turn: the same run drifts in the same way, and
    nothing about a run is kept. A reply in which no class finds anything to corrupt, or that is unreadable already,
    stays as it is. At most `in_a_row` errors in a row come from drift (None: no bound): with 2, the default, drift
    alone never uses up the 3 that an agent allows.

    A reply that was lost to drift costs a turn. The model behind is asked as if that turn had not been, so that a
    `ScriptedModel` gives the same reply once more.
    """

    def __init__(
        self,
        model: Model,
        *,
        rate: float = 0.2,
        seed: int = 0,
        classes: Iterable[str] | None = None,
        in_a_row: int | None = 2,
    ) -> None:
        if not 0 <= rate <= 1:
            raise ConfigError(f"The rate of drift is {rate!r}.", hint="It is a part of all replies, from 0 to 1.")
        names = tuple(DRIFT) if classes is None else tuple(classes)
        for name in names:
            if name not in DRIFT:
                raise UnknownName("class of drift", name, tuple(DRIFT))
        super().__init__(model)
        self._rate, self._seed, self._in_a_row = rate, seed, in_a_row
        self._classes = tuple(DRIFT[name] for name in names)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the model behind it, or what drift made of it."""
        reply = await self._model.complete(replace(request, turn=request.turn - self._lost(request.trace)))
        drifted = self.drift(request, reply)
        return reply if drifted is None else drifted[1]

    def drift(self, request: ModelRequest, reply: ModelReply) -> tuple[Drift, ModelReply] | None:
        """The class that a reply drifts by, and what becomes of it; None where it stays as it is."""
        is_enough = self._in_a_row is not None and request.trace.consecutive_errors >= self._in_a_row
        if is_enough or not self._drifts(request.task, request.turn):
            return None
        decision = get_dialect(request.dialect).read(reply, request.tools)
        if isinstance(decision, Problem):
            return None
        sent = IntendedReply(decision=decision, dialect=request.dialect, cards=request.tools, reply=reply)
        sent = replace(sent, reply=sent.written(decision))
        for drift_class in self._candidates(request.task, request.turn):
            corrupted = drift_class.corrupt(sent)
            if corrupted is not None and corrupted != sent.reply:
                return drift_class, corrupted
        return None

    def _drifts(self, task: str, turn: int) -> bool:
        """Whether the reply of this turn is one that drifts."""
        return self._chance(task, turn).random() < self._rate

    def _candidates(self, task: str, turn: int) -> list[Drift]:
        """The classes by which it may drift, in the order in which they are tried."""
        chance = self._chance(task, turn)
        chance.random()  # the first number decided whether it drifts
        return chance.sample(self._classes, len(self._classes))

    def _chance(self, task: str, turn: int) -> random.Random:
        return random.Random(f"{self._seed}/{turn}/{task}")  # noqa: S311  # to be repeatable is the point

    def _lost(self, trace: Trace) -> int:
        """How many of the run's replies were lost to drift: those that drifted and came to nothing."""
        lost = turn = 0
        counts = False
        for event in trace.events:
            if isinstance(event.fact, ModelReplied):
                counts = self._drifts(trace.task, turn)
                turn += 1
            elif counts and _is_loss(event.fact):
                lost, counts = lost + 1, False
        return lost


def _is_loss(fact: Fact) -> bool:
    """Whether a reply came to nothing: it was not believed, or its call was refused before it ran."""
    if isinstance(fact, Observed):
        return fact.error is not None and fact.error.code in _REFUSED_CALLS
    return isinstance(fact, ReplyRejected)
