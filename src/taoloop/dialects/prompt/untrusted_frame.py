"""How an observation is shown to a model: as untrusted data in a frame that the data cannot leave.

Framing is hygiene, not the defence: what an observation says grants no permission, whatever it looks like.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.labels import LABEL
from taoloop.dialects.texts import TEXTS

if TYPE_CHECKING:
    from taoloop.core.events import ActionRequested, Observed
    from taoloop.core.prompts import PromptSet
from taoloop.core.views.transcript import outcome_word

READ_OBSERVATION = "read_observation"

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
    """`text` with everything made harmless to see that could pass for something else in a prompt.

    Invisible and bidirectional characters become visible names, control tokens look-alikes, lines that begin
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
