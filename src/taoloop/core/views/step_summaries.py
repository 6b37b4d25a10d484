"""Steps of a run in a few lines, made from the trace alone: where no model summarises them, and none may omit them."""

from __future__ import annotations

from collections.abc import Iterator

from taoloop.core.events import ApprovalRefused
from taoloop.core.handles.opaque_observation import render_opaque
from taoloop.core.text import estimate_tokens, truncate_to_tokens
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView, Step
from taoloop.core.views.transcript import input_text, observation_text, outcome_word

_REASON_TOKENS, _INPUT_TOKENS, _OUTPUT_TOKENS = 30, 30, 40  # tokens of a line at most


def summarise_steps(trace: Trace, after: int, through: int, max_tokens: int) -> str:
    """The steps above `after` up to `through`, one line for each call; the newest that fit, in their order."""
    return _newest_that_fit(
        (line for step in reversed(trace.steps[after:through]) for line in reversed(_lines(trace, step))), max_tokens
    )


def summarise_effects(trace: Trace, through: int, max_tokens: int) -> str:
    """The calls up to the step `through` that do more than read, one line for each; the newest that fit."""
    calls = (call for step in reversed(trace.steps[:through]) for call in reversed(step.calls))
    return _newest_that_fit((_call_line(trace, call) for call in calls if _is_effect(trace, call)), max_tokens)


def _is_effect(trace: Trace, call: CallView) -> bool:
    card = trace.card(call.requested.tool)
    return call.requested.verdict != "deny" and card is not None and not card.reads_only


def _lines(trace: Trace, step: Step) -> list[str]:
    """A step: its reason, and its calls with what came of them."""
    decision = step.decision
    head = f"[{step.number}] {_shorten(decision.reason if decision else '', _REASON_TOKENS)}".rstrip()
    return [head, *(f"  {_call_line(trace, call)}" for call in step.calls)]


def _call_line(trace: Trace, call: CallView) -> str:
    requested, observed = call.requested, call.observed
    hides = trace.agent.policy.observations == "handles"
    args = call.args if not hides else requested.args if requested.written is None else requested.written
    line = f"{requested.call_id} {requested.tool} {_shorten(input_text(args), _INPUT_TOKENS)}"
    if observed is None:
        return line
    output = _opaque_text(trace, call) if hides else observation_text(observed)
    return f"{line} → {outcome_word(observed)}: {_shorten(output, _OUTPUT_TOKENS)}"


def _opaque_text(trace: Trace, call: CallView) -> str:
    """What a model that reads no observation may see of this one."""
    if call.observed is None:
        return ""
    agent, requested = trace.agent, call.requested
    refusal = call.approval.note if isinstance(call.approval, ApprovalRefused) else None
    return render_opaque(requested, call.observed, trace.card(requested.tool), agent.policy, agent.language, refusal)


def _shorten(text: str, max_tokens: int) -> str:
    line = " ".join(text[: 16 * max_tokens].split())
    short = truncate_to_tokens(line, max_tokens)
    return short if short == line else f"{short}…"


def _newest_that_fit(lines: Iterator[str], max_tokens: int) -> str:
    """The newest of the lines (which come newest first) that fit, in order; a mark shows where lines are missing.

    There is at least the beginning of the newest.
    """
    selected: list[str] = []
    room = max_tokens
    for line in lines:
        room -= estimate_tokens(line) + 1  # and its end
        if room < 0:
            selected.append("…" if selected else f"{truncate_to_tokens(line, max_tokens)}…")
            break
        selected.append(line)
    return "\n".join(reversed(selected))
