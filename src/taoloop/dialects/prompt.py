"""The parts of a prompt: the system message with its tools, the task, the output form, and observations.

An observation is shown as untrusted data in a frame that the data cannot leave. Framing is hygiene, not the defence:
what an observation says grants no permission, whatever it looks like. A model that must not read observations at all
gets handles in their place (`OpaqueObservations`), in every dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.questions import is_by_starter, is_question
from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.core.events import ActionRequested, ApprovalGiven, ApprovalRefused, Fault, Observed
from taoloop.core.handles import handle_of, render_opaque
from taoloop.core.prompts import PromptSet
from taoloop.core.text import estimate_tokens, lazy_pattern
from taoloop.core.views.transcript import outcome_word
from taoloop.dialects.base import Dialect
from taoloop.dialects.parsing.patterns import LABEL
from taoloop.dialects.parsing.strict_json import compact_json, dumps
from taoloop.dialects.texts import TEXTS


def tool_block(cards: Sequence[ToolCard], prompts: PromptSet) -> str:
    """The tool part of a system prompt: every card with its contract, in the order given."""
    if not cards:
        return prompts.fill("no_tools")
    return "\n\n".join(_card(card, prompts) for card in cards)


def tool_tokens(cards: Sequence[ToolCard], language: str) -> int:
    """How many tokens cards need that the provider gets through its API, by estimate."""
    texts = (text for card in cards for text in (describe(card, language), compact_json(card.input_schema)))
    return sum(map(estimate_tokens, texts))


def describe(card: ToolCard, language: str = "en") -> str:
    """The contract of a card beside its schema as one text, for a provider's tool description."""
    parts = [card.purpose]
    for name, text in _details(card, language):
        parts.append(TEXTS.text(language, f"card_{name}", text=text))
    return "\n".join(parts)


def _card(card: ToolCard, prompts: PromptSet) -> str:
    details = [prompts.fill(f"card_{name}", text=text) for name, text in _details(card, prompts.language)]
    filled = prompts.fill(
        "card", tool=card.name, purpose=card.purpose, schema=compact_json(card.input_schema), details="\n".join(details)
    )
    return filled.rstrip()


def _details(card: ToolCard, language: str) -> Iterator[tuple[str, str]]:
    """The parts of a card that only some have: when to use it, its errors, examples."""
    separator = TEXTS.text(language, "card_separator")
    errors = separator.join(_error(error, language) for error in card.errors)
    examples = separator.join(_example(example, language) for example in card.examples)
    parts = {"use_when": card.use_when, "avoid_when": card.avoid_when, "errors": errors, "examples": examples}
    return ((name, text) for name, text in parts.items() if text)


def _error(error: ErrorCard, language: str) -> str:
    retryable = TEXTS.text(language, "card_retryable") if error.retryable else ""
    advice = TEXTS.text(language, "card_advice", text=error.advice) if error.advice else ""
    return f"{error.code}{retryable}{advice}"


def _example(example: ExampleCard, language: str) -> str:
    output = f" → {compact_json(example.output)}" if example.output is not None else ""
    note = TEXTS.text(language, "card_note", text=example.note) if example.note else ""
    return f"{compact_json(example.args)}{output}{note}"


def output_format_prompt(prompts: PromptSet, dialect_name: str, *, tools: bool, reasons: bool) -> str:
    """The output form of a dialect: without `tools` only an answer, without `reasons` no thought."""
    thought = prompts.fill(f"thought_{dialect_name}") + "\n" if reasons else ""
    example = f"thought_{dialect_name}_example"
    thought_example = prompts.fill(example) + "\n" if reasons and example in prompts.texts else ""
    answers = (f"answer_{dialect_name}_example", f"answer_{dialect_name}_output_example")  # a run has one of them
    return prompts.fill(
        f"form_{dialect_name}{'' if tools else '_answer'}",
        thought=thought,
        thought_example=thought_example,
        answer_example=next((prompts.fill(answer) for answer in answers if answer in prompts.texts), ""),
    )


def output_schema_prompt(prompts: PromptSet, schema: Mapping[str, Any] | None) -> str:
    """What the final answer of a run with an output schema must be; empty where answers are texts."""
    return "" if schema is None else prompts.fill("output", schema=dumps(schema))


def system_prompt(
    prompts: PromptSet,
    dialect: Dialect,
    cards: Sequence[ToolCard],
    strategy_name: str,
    instructions: str,
    *,
    tools: bool,
    reasons: bool,
    output: str = "",
    more_rules: str = "",
) -> str:
    """The system message: role, rules, tools (where the prompt has to describe them) and output form.

    The layout is the same whatever the parts are. `tools` False: the model may only answer. `output` is a rule for
    the answer, below the form. `more_rules` are below the strategy's.
    """
    parts = {
        "role": prompts.fill("role"),
        "rules": prompts.fill(f"rules_{strategy_name}") + (f"\n{more_rules}" if more_rules else ""),
        "form": output_format_prompt(prompts, dialect.name, tools=tools, reasons=reasons)
        + (f"\n\n{output}" if output else ""),
        "instructions": prompts.fill("instructions", text=instructions.strip()) if instructions.strip() else "",
    }
    if tools and not dialect.native:
        names = ", ".join(f'"{card.name}"' for card in cards)
        return prompts.fill("system", tools=tool_block(cards, prompts), names=names, **parts).rstrip()
    return prompts.fill("system_plain", **parts).rstrip()


def task_prompt(prompts: PromptSet, dialect_name: str, task: str) -> str:
    """The first user message: the task, and the output rule once more where the dialect has one."""
    reminder = prompts.texts.get(f"reminder_{dialect_name}", "")
    filled = prompts.fill("task", task=task)
    return f"{filled}\n\n{prompts.fill(f'reminder_{dialect_name}')}" if reminder else filled


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
        text = _INVISIBLE.sub(lambda match: "".join(f"‹U+{ord(char):04X}›" for char in match.group()), text)
    if nonce and nonce.lower() in text.lower():
        text = re.sub(re.escape(nonce), "‹nonce›", text, flags=re.IGNORECASE)
    if "<" in text or "[" in text or "|>" in text or "｜" in text:
        text = _CONTROL.sub(lambda match: match.group().translate(_LOOKALIKE), text)
    return quote_labels(text)


def quote_labels(text: str) -> str:
    """`text` with `| ` before every line that begins with a label word."""
    return LABEL.sub(lambda match: f"| {match.group()}", text) if _MARKS.search(text) else text


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

    def __init__(self, agent: AgentSpec, labels: Mapping[str, str]) -> None:
        texts = agent.prompts.texts
        self.rules = agent.prompts.fill("handles")
        self.prompts = PromptSet(
            language=agent.prompts.language, texts={**texts, "observation": texts["handles_observation"]}
        )
        self._agent = agent
        self._cards = {card.name: card for card in agent.tools}
        self._refusals: dict[str, str] = {}
        self._labels, self._answered = labels, set[str]()

    @classmethod
    def for_agent(cls, agent: AgentSpec, labels: Mapping[str, str]) -> OpaqueObservations | None:
        """The one for a run of this agent with these labels; None where observations are shown."""
        return cls(agent, labels) if agent.policy.observations == "handles" else None

    def record_refusal(self, fact: ApprovalRefused) -> None:
        """Keep the note of a person, who is trusted, about a call that has no observation yet."""
        self._refusals[fact.call_id] = fact.note

    def record_answer(self, fact: ApprovalGiven) -> None:
        """Keep that the person who started the run answered a question: the model may read their words."""
        if is_by_starter(self._labels, fact.by, fact.authenticated):
            self._answered.add(fact.call_id)

    def hide(self, requested: ActionRequested, observed: Observed) -> Observed:
        """The observation without anything that a tool, or the author of its data, could have chosen."""
        agent, refusal = self._agent, self._refusals.get(requested.call_id)
        card = self._cards.get(requested.tool)
        text = render_opaque(requested, observed, card, agent.policy, agent.language, refusal)
        if requested.call_id in self._answered and is_question(card) and observed.ok:
            text = f"{handle_of(requested.call_id)} = {observed.output}"
        if observed.error is not None and observed.error.code == IN_DOUBT:  # which is never called a failure
            fault = Fault(code=IN_DOUBT, message=text.partition("\n")[2])
            return Observed(call_id=observed.call_id, ok=False, output="", error=fault)
        return Observed(call_id=observed.call_id, ok=observed.ok and observed.error is None, output=text)


def with_written_args(requested: ActionRequested) -> ActionRequested:
    """The call with the arguments that the model wrote, for its own eyes: handles stay handles."""
    return requested if requested.written is None else replace(requested, args=requested.written)
