"""How an observation is shown to a model: as untrusted data in a frame that the data cannot leave, or as a handle.

Framing is hygiene, not the defence: what an observation says grants no permission, whatever it looks like. A model that
must not read observations at all gets handles in their place (`OpaqueObservations`), in every dialect.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import ActionRequested, ApprovalRefused, Fault, Observed
from taoloop.core.handles import render_opaque
from taoloop.core.prompts import PromptSet
from taoloop.core.text import lazy_pattern
from taoloop.core.views.transcript import outcome_word
from taoloop.dialects.parsing.labels import LABEL
from taoloop.dialects.texts import TEXTS

_INVISIBLE = lazy_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|[\ufe00-\ufe0f]{2,}"
)
_CONTROL = lazy_pattern(
    r"<[|｜]|[|｜]>|</?s>|<</?SYS>>|\[/?INST\]|\[/?(?:TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\]"
    r"|</?(?:start_of_turn|end_of_turn|bos|eos|think|thinking|tool_call|tool_response|function_calls?|untrusted-data)\b"
    r"|<function=",
    re.IGNORECASE,
)
_MARKS = lazy_pattern("[]:：>#*_`[【】(（)）「」<✿+•-]")  # one of them is part of every label
_LOOKALIKE = str.maketrans("<>[]|｜", "‹›⟦⟧¦¦")


def observation_text(requested: ActionRequested, observed: Observed, prompts: PromptSet, nonce: str) -> str:
    """One observation in its frame: the output, or the error with code, message, retryable and hint."""
    content = observed.output if observed.ok and observed.error is None else _failure_text(observed, prompts.language)
    note = ""
    if observed.artifact is not None:
        note = "\n" + prompts.fill("observation_cut", size=observed.size_chars, artifact=observed.artifact)
    return prompts.fill(
        "observation",
        tool=_one_line(requested.tool, nonce),
        call=requested.call_id,
        status=_status(outcome_word(observed), prompts.language),
        nonce=nonce,
        content=defuse_markers(content, nonce),
        note=note,
    )


def defuse_markers(text: str, nonce: str = "") -> str:
    """`text` without anything that could pass for another part of a prompt.

    Invisible and bidirectional characters become visible names, control tokens become look-alikes, lines that begin
    with a label are quoted with `| `, and the frame's nonce is taken out. Ordinary text stays as it is.
    """
    if not text.isascii() or not text.isprintable():
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = _INVISIBLE.sub(_name_invisible, text)
    if nonce and nonce.lower() in text.lower():
        text = re.sub(re.escape(nonce), "‹nonce›", text, flags=re.IGNORECASE)
    if "<" in text or "[" in text or "|>" in text or "｜" in text:
        text = _CONTROL.sub(lambda match: match.group().translate(_LOOKALIKE), text)
    return quote_labels(text)


def quote_labels(text: str) -> str:
    """`text` with `| ` before every line that begins with a label word."""
    return LABEL.sub(lambda match: f"| {match.group()}", text) if _MARKS.search(text) else text


def _name_invisible(match: re.Match[str]) -> str:
    return "".join(f"‹U+{ord(char):04X}›" for char in match.group())


def _one_line(name: str, nonce: str) -> str:
    return name if name.isidentifier() else defuse_markers(" ".join(name[:128].split()), nonce)


@cache
def _status(outcome: str, language: str) -> str:
    return TEXTS.text(language, f"status_{outcome.replace(' ', '_')}")


def _failure_text(observed: Observed, language: str) -> str:
    """An error line by line. Its code is the same in every language."""
    fault = observed.error
    if fault is None:
        return observed.output
    lines = [
        f"error: {fault.code}",
        TEXTS.text(language, "failure_message", text=fault.message),
        TEXTS.text(language, "failure_retryable" if fault.retryable else "failure_final"),
    ]
    if fault.hint:
        lines.append(TEXTS.text(language, "failure_hint", text=fault.hint))
    if observed.output and observed.output != fault.message:
        lines.append(TEXTS.text(language, "failure_output", text=observed.output))
    return "\n".join(lines)


IN_DOUBT = "in_doubt"


class OpaqueObservations:
    """Replaces the observations of a run by handles on their way into the prompt.

    Attributes:
        rules: What the prompt says about handles.
        prompts: The agent's, with the text for handles in place of the frame around untrusted data, so that a dialect
            shows them as it shows any observation.
    """

    def __init__(self, agent: AgentSpec) -> None:
        texts = agent.prompts.texts
        self.rules = agent.prompts.fill("handles")
        self.prompts = PromptSet(
            language=agent.prompts.language, texts={**texts, "observation": texts["handles_observation"]}
        )
        self._agent = agent
        self._cards = {card.name: card for card in agent.tools}
        self._refusals: dict[str, str] = {}

    @classmethod
    def for_agent(cls, agent: AgentSpec) -> OpaqueObservations | None:
        """The one for a run of this agent; None where observations are shown."""
        return cls(agent) if agent.policy.observations == "handles" else None

    def record_refusal(self, fact: ApprovalRefused) -> None:
        """Keep the note of a person, who is trusted, about a call that has no observation yet."""
        self._refusals[fact.call_id] = fact.note

    def hide(self, requested: ActionRequested, observed: Observed) -> Observed:
        """The observation without anything that a tool, or the author of its data, could have chosen."""
        agent, refusal = self._agent, self._refusals.get(requested.call_id)
        card = self._cards.get(requested.tool)
        text = render_opaque(requested, observed, card, agent.policy, agent.language, refusal)
        if observed.error is not None and observed.error.code == IN_DOUBT:  # which is never called a failure
            fault = Fault(code=IN_DOUBT, message=text.partition("\n")[2])
            return Observed(call_id=observed.call_id, ok=False, output="", error=fault)
        return Observed(call_id=observed.call_id, ok=observed.ok and observed.error is None, output=text)


def with_written_args(requested: ActionRequested) -> ActionRequested:
    """The call with the arguments that the model wrote, for its own eyes: handles stay handles."""
    return requested if requested.written is None else replace(requested, args=requested.written)
