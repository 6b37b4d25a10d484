"""What a person may edit where a run is forked, as texts of a form, and the edits between these and what comes back.

A text that comes back as it was is no edit, so a form can show everything and the person changes what they like. A form
does not keep every character: it writes line breaks in its own way and has no NUL (HTML Standard, "textarea"; "Newline
normalization in form submission"), so texts are compared as a form would send them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.decision import Act, Answer
from taoloop.core.events import ApprovalRefused
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView, Step
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import ConfigError
from taoloop.runtime.after.fork_edits import Edits


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeText:
    """What came back for a call, as a text."""

    call_id: str
    """The call."""
    tool: str
    """Its tool."""
    text: str
    """The output; of a failed call `CODE: MESSAGE`."""
    failed: bool
    """Whether the call failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkDraft:
    """The texts of a run at one of its steps."""

    at: int
    """The step, from 1."""
    task: str
    """The task of the run."""
    instructions: str
    """The instructions of its agent."""
    thought: str = ""
    """Why the step decided as it did."""
    decision: str = ""
    """What it decided, as JSON; empty where it has no decision."""
    outcomes: tuple[OutcomeText, ...] = ()
    """What its calls returned, but for those that never ran."""

    @classmethod
    def of(cls, trace: Trace, at: int, outputs: Mapping[str, str] | None = None) -> ForkDraft:
        """The draft for a fork of a run at a step; one above the last step there is nothing but the prompt.

        `outputs` has the whole of outputs that the trace only has a preview of, by call id.

        Raises:
            ConfigError: the run has no such step.
        """
        steps = trace.steps
        if not 1 <= at <= len(steps) + 1:
            raise ConfigError(
                f"The run {trace.run_id} has no step {at}.", hint=f"Give a step from 1 to {max(1, len(steps))}."
            )
        draft = cls(at=at, task=trace.task, instructions=trace.agent.instructions)
        if at > len(steps):
            return draft
        step = steps[at - 1]
        return cls(
            at=at,
            task=draft.task,
            instructions=draft.instructions,
            thought=step.decision.reason if step.decision is not None else "",
            decision=_decision_text(step),
            outcomes=tuple(_outcomes(step, outputs or {})),
        )

    def edits(self, edited: ForkDraft) -> Edits:
        """What is different in `edited`, which has the same calls.

        Raises:
            ConfigError: a text does not fit, such as a decision that is no JSON; says what to do instead.
        """
        edits: dict[str, Any] = {
            name: getattr(edited, name)
            for name in ("task", "instructions", "thought")
            if _is_edited(getattr(self, name), getattr(edited, name))
        }
        if _is_edited(self.decision.strip(), edited.decision.strip()):
            decision = _read_decision(edited.decision)
            if not self.decision or decision != loads(self.decision):
                edits["decision"] = decision
        for before, after in zip(self.outcomes, edited.outcomes, strict=True):
            if before.failed != after.failed or _is_edited(before.text, after.text):
                kind = "error" if after.failed else "observation"
                edits.setdefault(kind, {})[after.call_id] = after.text
        return Edits.of(edits)


def form_text(text: str) -> str:
    """A text as it comes back from a form in which nobody touched it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _is_edited(before: str, after: str) -> bool:
    return form_text(before) != form_text(after)


def _decision_text(step: Step) -> str:
    match step.decision:
        case Act(calls=calls):
            data: list[dict[str, Any]] = [{"tool": call.tool, "args": call.args} for call in calls]
            return _json(data[0] if len(data) == 1 else {"calls": data})
        case Answer(text=text):
            return _json({"answer": text})
        case _:
            return ""


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2)


def _read_decision(text: str) -> Any:
    if not text.strip():
        raise ConfigError(
            "The edited decision is empty.", hint="Leave it as it was: the model then decides the step again."
        )
    try:
        return loads(text)
    except NotJsonError as error:
        raise ConfigError(
            f"The edited decision is not JSON: {error}.",
            hint="Give an object with tool and args, with calls, or with answer.",
        ) from error


def _outcomes(step: Step, outputs: Mapping[str, str]) -> list[OutcomeText]:
    return [
        OutcomeText(
            call_id=call.requested.call_id,
            tool=call.requested.tool,
            text=_outcome_text(call, outputs),
            failed=not call.observed.ok,
        )
        for call in step.calls
        if call.observed is not None
        and call.requested.verdict != "deny"
        and not isinstance(call.approval, ApprovalRefused)
    ]


def _outcome_text(call: CallView, outputs: Mapping[str, str]) -> str:
    observed = call.observed
    assert observed is not None  # noqa: S101  # only those that ran
    if observed.error is not None:
        return f"{observed.error.code}: {observed.error.message}"
    return outputs.get(call.requested.call_id, observed.output)
