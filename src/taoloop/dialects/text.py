"""The text dialect: Thought, Action, Action Input, Final Answer, line by line as in the ReAct paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from taoloop.core.decision import Act, Answer, Call, Decision, Problem, excerpt
from taoloop.core.message import ModelReply
from taoloop.dialects.call_forms import read_call, split_action
from taoloop.dialects.frame import quote_labels
from taoloop.dialects.labels import LABEL, Section, drop_stump, sections
from taoloop.dialects.prose import ProseDialect, only_call
from taoloop.dialects.replies import RefusedError, answer_text, find_card, is_final_name, usable_text
from taoloop.dialects.strict import NotJsonError, dumps, loads, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards import ToolCard


class TextDialect(ProseDialect):
    """Labelled lines. Other accepted forms: `Action: tool: input` and `Action: tool(key="value")`."""

    name = "text"
    stop = ("\nObservation:", "\n观察：", "\n观察:")

    def read(self, reply: ModelReply, cards: Sequence[ToolCard]) -> Decision | Problem:
        """The one decision in the labelled lines of a reply."""
        try:
            return read_labelled(usable_text(reply), cards)
        except RefusedError as refused:
            return refused.problem

    def write(self, decision: Decision) -> ModelReply:
        """Thought, Action and Action Input (JSON, not ASCII-escaped), or Thought and Final Answer.

        An answer that could not be read back behind its label is written as a JSON string; in a reason that
        could not, lines are joined and label words quoted.
        """
        body = _body(decision)
        reason = decision.reason
        if reason and not _one_plain_line(reason):
            written = f"Thought: {reason}\n{body}"
            if self.read(ModelReply(text=written), ()) == decision:
                return ModelReply(text=written)
            reason = quote_labels(" ".join(reason.replace("<", "‹").split()))
        return ModelReply(text=f"Thought: {reason}\n{body}" if reason else body)


def _body(decision: Decision) -> str:
    if isinstance(decision, Act):
        call = only_call(decision, "text")
        return f"Action: {call.tool}\nAction Input: {dumps(call.args)}"
    plain = f"Final Answer: {decision.text}"
    if _one_plain_line(decision.text):
        return plain
    try:
        kept = read_labelled(usable_text(ModelReply(text=plain)), ())
    except RefusedError:
        kept = None
    if kept == Answer(text=decision.text):
        return plain
    return f"Action: Final Answer\nAction Input: {dumps(decision.text)}"


def _one_plain_line(text: str) -> bool:
    return not any(sign in text for sign in "\n\r<`{$") and text == text.strip() and text.isprintable()


@dataclass(slots=True)
class _Draft:
    """What has been read of a reply so far."""

    cards: Sequence[ToolCard]
    thoughts: list[str] = field(default_factory=list)
    action: str | None = None  # an action whose input has not come yet
    decision: Call | str | None = None
    afterthought: str = ""

    def usable(self) -> str:
        """Which part of the reply was readable."""
        parts = ["the thought"] if self.thoughts else []
        if isinstance(self.decision, Call):
            parts.append(f"the call of {self.decision.tool!r}")
        elif self.decision is not None:
            parts.append("the final answer")
        elif self.action:
            parts.append(f"the action {excerpt(self.action)!r}")
        return f" Usable before it: {' and '.join(parts)}." if parts else ""

    def settle(self) -> None:
        """An action that got no input of its own is complete here."""
        if self.action is not None:
            action, self.action = self.action, None
            self.decide(self._call(action, None))

    def take(self, section: Section) -> None:
        """Add one section that is neither an observation nor a turn."""
        kind, body = section.kind, section.body
        if kind == "input":
            if self.action is None:
                raise RefusedError("bad_action", f"An input without an action: {excerpt(body)!r}.{self.usable()}", body)
            action, self.action = self.action, None
            self.decide(self._call(action, body))
            return
        self.settle()
        if kind == "preamble" and body:
            line = body.split("\n", 1)[0].strip()
            raise RefusedError("stray_text", f"The line {excerpt(line)!r} begins with no label.", body)
        if kind == "thought" and body:
            if self.decision is None:
                self.thoughts.append(body)
            else:
                self.afterthought = body
        elif kind == "action":
            self.action = body
        elif kind == "final":
            if section.fenced and LABEL.search(body):
                raise RefusedError("truncated", "The code block in the final answer is never closed.", body)
            self.decide(answer_text(body))

    def decide(self, new: Call | str) -> None:
        """Keep the decision; the same one again is nothing new."""
        old = self.decision
        self.afterthought = ""
        if old is None:
            self.decision = new
            return
        if isinstance(old, Call) and isinstance(new, Call):
            if old.tool == new.tool and same(old.args, new.args):
                return
            message = f"Two different actions in one reply, {old.tool!r} and {new.tool!r}; nothing was run."
        elif old == new:
            return
        elif isinstance(old, str) and isinstance(new, str):
            message = "Two different final answers in one reply."
        else:
            message = "An action and a final answer in one reply, before the observation was seen; nothing was run."
        raise RefusedError("two_decisions", f"{message} Give exactly one decision.")

    def result(self) -> Decision:
        """The one decision of the reply."""
        if self.afterthought:
            line = self.afterthought.split("\n", 1)[0]
            raise RefusedError(
                "stray_text", f"The thought {excerpt(line)!r} follows the decision.{self.usable()}", line
            )
        reason = "\n".join(self.thoughts)
        if isinstance(self.decision, Call):
            return Act(calls=(self.decision,), reason=reason)
        if self.decision is not None:
            return Answer(text=self.decision, reason=reason)
        raise RefusedError("no_decision", f"The reply has neither an action nor a final answer.{self.usable()}", reason)

    def _call(self, action: str, given: str | None) -> Call | str:
        name, _, rest = split_action(action, self.cards)
        if is_final_name(name) and find_card(name, self.cards) is None:
            return _final_input(given or rest)
        return read_call(action, given, self.cards)


def read_labelled(text: str, cards: Sequence[ToolCard]) -> Decision:
    """The one decision in labelled lines.

    Raises:
        RefusedError: there is none, or none that may be believed.
    """
    if not text:
        raise RefusedError("empty", "The reply is empty.")
    text = drop_stump(text)
    draft = _Draft(cards)
    for section in sections(text):
        if section.kind not in ("observation", "turn"):
            draft.take(section)
        elif section.body and not (section.kind == "turn" and _echoed(draft)):
            draft.settle()
            _check_cut(draft, text[section.start :])
            break
    draft.settle()
    return draft.result()


def _final_input(given: str) -> str:
    """The answer in the input of an action that is called Final Answer: a text, or JSON that holds it."""
    if not given.startswith(('"', "{")):
        return answer_text(given)
    try:
        return answer_text(loads(given))
    except NotJsonError as error:
        if given[0] == '"':
            return answer_text(given)
        raise RefusedError("bad_json", f"The final answer is not valid JSON: {error}.", given) from None


def _echoed(draft: _Draft) -> bool:
    """A question at the very beginning is the task said again, not a turn that the model invented."""
    return draft.decision is None and not draft.thoughts


def _check_cut(draft: _Draft, rest: str) -> None:
    """What stands before an invented observation stays, unless the model went on to finish on it."""
    if draft.decision is None:
        raise RefusedError(
            "invented_observation",
            f"The reply goes on with an observation or a turn that you wrote yourself.{draft.usable()} "
            "Only the runtime writes observations: stop after the action.",
            rest,
        )
    if isinstance(draft.decision, str):
        return
    for section in sections(rest):
        name = section.body.split("\n", 1)[0].split("[", 1)[0].strip(" `*\"'")
        if section.kind == "final" or (section.kind == "action" and is_final_name(name)):
            raise RefusedError(
                "invented_observation",
                "You wrote the observation yourself and then a final answer on it; nothing was run. "
                "Stop after the action and wait for the real observation.",
                rest,
            )
