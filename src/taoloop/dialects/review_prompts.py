"""The prompts of reflection: the question what is wrong with a draft, its findings, and the lesson of an attempt.

Whoever reviews a draft sees the task, what people demand, the observations and the draft, but not the reasoning that
led to it: it would be led the same way. What comes from outside, and what a model made of it, is framed as untrusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from taoloop.core.events import Event, Noted, Observed
from taoloop.core.message import Message
from taoloop.core.preview import preview
from taoloop.core.prompts import PromptSet
from taoloop.core.text import truncate_to_tokens
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import summarise_steps
from taoloop.dialects.prompt import OpaqueObservations, defuse_markers, observation_text
from taoloop.dialects.texts import TEXTS
from taoloop.policy.provenance import GUARD

REVIEWED_CHARS = 24_000
"""How much of the observations a review shows, about 6,000 tokens; a known window halves it further."""

LESSON_TOKENS = 150
"""How long a lesson may be in the prompt of the next attempt."""

_LEAST_CHARS = 240
_STEPS_TOKENS = 1_500


def critique_prompt(trace: Trace, draft: str, most: int, refused: Sequence[tuple[str, str]]) -> tuple[Message, ...]:
    """The question what is wrong with a draft. `refused`: critiques of it that did not count, with the reason."""
    prompts, started = trace.agent.prompts, trace.started
    nonce = started.nonce if started is not None else ""
    instructions = trace.agent.instructions.strip()
    if instructions:
        instructions = f"\n{prompts.fill('instructions', text=instructions)}\n"
    material = prompts.fill(
        "reflect_draft",
        task=_task(trace),
        instructions=instructions,
        observations="\n\n".join(_observations(trace)) or TEXTS.text(prompts.language, "no_observations"),
        nonce=nonce,
        draft=defuse_markers(draft, nonce),
    )
    messages = [
        Message(role="system", content=prompts.fill("reflect_critique", most=most)),
        *(started.history if started is not None else ()),
        Message(
            role="user",
            content=material,
            images=started.images if started is not None else (),
            files=started.files if started is not None else (),
        ),
    ]
    for critique, reason in refused:
        text = critique.strip() or TEXTS.text(prompts.language, "empty_reply")
        messages += [Message(role="assistant", content=text), Message(role="user", content=reason)]
    return tuple(messages)


def revision_text(trace: Trace, findings: Sequence[str]) -> str:
    """What the model is told with which it decides again: the findings about its draft."""
    nonce = trace.started.nonce if trace.started is not None else ""
    lines = "\n".join(f"- {defuse_markers(finding, nonce)}" for finding in findings)
    return trace.agent.prompts.fill("reflect_revision", nonce=nonce, findings=lines)


def lesson_prompt(trace: Trace, reason: str) -> tuple[Message, ...]:
    """The question what the next attempt should do otherwise."""
    prompts, started = trace.agent.prompts, trace.started
    nonce = started.nonce if started is not None else ""
    steps = summarise_steps(trace, 0, trace.step_count, _STEPS_TOKENS)
    material = prompts.fill(
        "reflect_attempt",
        task=_task(trace),
        reason=defuse_markers(" ".join(reason.split()), nonce),
        nonce=nonce,
        steps=defuse_markers(steps, nonce),
    )
    return (
        Message(role="system", content=prompts.fill("reflect_lesson")),
        Message(role="user", content=material),
    )


def lesson_text(prompts: PromptSet, nonce: str, lesson: str) -> str:
    """A lesson as the model of the next attempt reads it."""
    return prompts.fill("reflect_lessons", nonce=nonce, lesson=defuse_markers(shorten_lesson(lesson), nonce))


def shorten_lesson(lesson: str) -> str:
    """A lesson on one line, of a bearable length."""
    line = " ".join(lesson.split())
    short = truncate_to_tokens(line, LESSON_TOKENS)
    return short if short == line else f"{short}…"


@dataclass(slots=True)
class _Reviewed:
    """What reviews of a run show of it, so that each observation is written out once."""

    notes: list[str] = field(default_factory=list)
    """What people remarked."""
    calls: list[str] = field(default_factory=list)
    """The calls that have an observation, in its order."""
    chars: int = 0
    """The length of all observations."""
    texts: list[str] = field(default_factory=list)
    """The first of the observations in their frames."""

    def fold(self, event: Event) -> None:
        """Take the next event."""
        fact = event.fact
        if type(fact) is Observed:
            self.calls.append(fact.call_id)
            self.chars += len(fact.output)
        elif type(fact) is Noted and fact.by != GUARD:
            self.notes.append(fact.text)


def _task(trace: Trace) -> str:
    """What people ask for: the task, and their remarks since."""
    return "\n\n".join((trace.task, *trace.view("reviewed", _Reviewed).notes))


def _observations(trace: Trace) -> list[str]:
    """The observations, each in its frame, the newest of those that fit, in their order."""
    agent, reviewed = trace.agent, trace.view("reviewed", _Reviewed)
    room = REVIEWED_CHARS if agent.context_tokens is None else min(REVIEWED_CHARS, 2 * agent.context_tokens)
    most, nonce = max(1, room // _LEAST_CHARS), trace.started.nonce if trace.started is not None else ""
    opaque = OpaqueObservations.for_agent(agent, trace.started.labels if trace.started is not None else {})
    fits = reviewed.chars <= room and len(reviewed.calls) <= most
    names = reviewed.calls[len(reviewed.texts) :] if fits else reviewed.calls[-most:]
    share = room if fits else max(_LEAST_CHARS, room // max(1, len(names)))
    calls = (trace.calls[name] for name in names)
    texts = [_observation(call, call.observed, opaque, agent.prompts, nonce, share) for call in calls if call.observed]
    if not fits:
        return texts
    reviewed.texts += texts
    return reviewed.texts


def _observation(
    call: CallView, observed: Observed, opaque: OpaqueObservations | None, prompts: PromptSet, nonce: str, share: int
) -> str:
    """One observation as [obs:CALL] with its call, shortened to its share of the room."""
    requested = call.requested
    if opaque is not None:
        observed, prompts = opaque.hide(requested, observed), opaque.prompts
    elif len(observed.output) > share:
        observed = replace(observed, output=preview(observed.output, observed.form, share))
    if observed.artifact is not None:  # whoever reviews cannot read it
        observed = replace(observed, artifact=None)
    text = observation_text(requested, observed, prompts, nonce)
    return f"[obs:{requested.call_id}] {text}"
