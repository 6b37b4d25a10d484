"""Forks: a new run that begins with the steps of another one, and decides differently from there on.

The world is not rolled back. What the copied calls did stays done, and their observations are copied as they were; what
the fork decides runs in the world as it is now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taoloop.core.cards.tool_card import Tier
from taoloop.core.decision import Act, Answer
from taoloop.core.effects import CallModel, Record
from taoloop.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    Event,
    Fact,
    Fault,
    Finished,
    LimitReached,
    ModelErred,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    Pinned,
    ReadDropped,
    Resumed,
    RunStarted,
)
from taoloop.core.limits import Limits
from taoloop.core.preview import preview
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.steps import Step
from taoloop.dialects import get_dialect
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.dialects.reply_events import reply_to_events
from taoloop.errors import ConfigError, IllegalEvent, JournalTampered, ReplayDiverged, RunNotFound
from taoloop.journals.base import Artifact, Journal
from taoloop.runtime.after.fork_edits import ONLY_CALL, EditedObservation, Edits
from taoloop.runtime.after.replay import replay
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.output_type import answers_for
from taoloop.strategies import Strategy, get_strategy

EDITED = "edited by a person"
"""Stands as the `model` of a reply that no model gave, or not in these words."""

_AFTER = (LimitReached, Finished, Paused, ReadDropped, ModelErred, Resumed)  # with these the end of a run begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A run that is not in the journal yet: its trace, and the whole of edited outputs that were too long for it."""

    trace: Trace
    artifacts: tuple[Artifact, ...] = ()


async def store_fork(
    journal: Journal,
    run_id: str,
    *,
    at: int,
    now: float,
    edit: Edits | Mapping[str, Any] | None = None,
    new_id: str | None = None,
    limits: Limits | None = None,
    max_steps: int | None = None,
    approved_tiers: tuple[Tier, ...] = (),
    strategy: Strategy | None = None,
    check: Callable[[Trace], None] | None = None,
    redactor: Redactor | None = None,
) -> Trace:
    """Put a fork of a stored run beside it, ready to be resumed like any run that was stopped; gives its trace.

    The original is only read, so it may be running. `check` may refuse the fork before anything is written. `max_steps`
    replaces that of the limits. Secrets in the edits are not kept: `redactor` says what is one, by default that of this
    process's environment. The other arguments are those of `fork`.

    Raises:
        RunNotFound: the journal has no such run.
        ConfigError: it cannot be forked like that.
        RunExists: there is a run `new_id`.
    """
    if (flaw := (await journal.verify(run_id)).first) is not None:
        raise JournalTampered(f"The run {run_id} was changed after it was written: {flaw.text}.")
    original = Trace(run_id, await journal.load(run_id))
    if max_steps is not None:
        limits = replace(limits or original.limits, max_steps=max_steps)
    made = make_fork(
        original,
        at,
        _without_secrets(Edits.of(edit), redactor if redactor is not None else redactor_for(None, ())),
        run_id=new_id or new_run_id(now),
        now=now,
        limits=limits,
        approved_tiers=approved_tiers,
        strategy=strategy,
    )
    if check is not None:
        check(made.trace)
    artifacts = {artifact.ref: artifact for artifact in made.artifacts}
    for event in made.trace.events:
        ref = event.fact.artifact if isinstance(event.fact, Observed) else None
        if ref is not None and ref not in artifacts and (kept := await journal.artifact(run_id, ref)) is not None:
            artifacts[ref] = kept
    lease = await journal.create(made.trace.run_id)
    await journal.append(lease, made.trace.events, list(artifacts.values()))
    return made.trace


def make_fork(
    original: Trace,
    at: int,
    edits: Edits = Edits(),  # noqa: B008  # frozen
    *,
    run_id: str,
    now: float,
    limits: Limits | None = None,
    approved_tiers: tuple[Tier, ...] = (),
    strategy: Strategy | None = None,
) -> Fork:
    """A new run that is `original` up to the decision of step `at`, which is to be made anew, or is the edited one.

    With an edited thought or observation the decision of that step stays, and so does what came of its calls; the next
    step is the first new one. `at` may be one above the last step where the run ended without an answer.
    The trace of the fork says in `run_started` where it comes from, and in a `resumed` event from where on it is its
    own and what was edited. Permissions are not inherited: from there on only `approved_tiers` are allowed ahead of
    time, an edited decision is judged like any other, and an approval holds for the call that it was given for.
    `limits` are by default the last ones of the original; what the copied steps used counts. `strategy` is for a run
    whose own is not registered; one of another name is not looked at.

    Raises:
        ConfigError: there is no such step, it is not over, or the edit does not fit it; says what to do instead.
    """
    if original.started is None:
        raise RunNotFound(f"The run {original.run_id} never began; there is nothing to fork.")
    name = original.agent.strategy
    own = strategy if strategy is not None and strategy.name == name else get_strategy(name)
    made = _Branch(original, at, edits, run_id, own)
    made.copy()
    about = f"; {EDITED}: {', '.join(made.edited)}" if made.edited else ""
    made.add(
        now,
        Resumed(
            limits=limits or original.limits,
            approved_tiers=approved_tiers,
            reason=f"fork of run {original.run_id} at step {at}{about}",
        ),
    )
    if edits.decision is not None:
        decision = edits.decision
        made.decide(now, decision if edits.thought is None else replace(decision, reason=edits.thought))
    made.require_sound()
    return Fork(trace=made.trace, artifacts=tuple(made.artifacts))


@dataclass(slots=True)
class _Branch:
    """The fork while it is being made."""

    original: Trace
    at: int
    edits: Edits
    run_id: str
    strategy: Strategy
    artifacts: list[Artifact] = field(default_factory=list)
    trace: Trace = field(init=False)

    def __post_init__(self) -> None:
        self.trace = Trace(self.run_id)

    def add(self, at: float, *facts: Fact) -> None:
        for fact in facts:
            self.trace.append(Event(len(self.trace), at, fact))

    @property
    def edited(self) -> tuple[str, ...]:
        """What is edited, in words, with every call named."""
        return (*replace(self.edits, outcomes={}).names, *(f"observation of {call_id}" for call_id in self._outcomes()))

    # What is copied

    def copy(self) -> None:
        """Copy the events before the fork, with what is edited among them."""
        outcomes, rewritten = self._outcomes(), self._rewritten()
        events = self._copied()
        if self.edits.task is not None:
            events = self._without_pins(events)
        for event in events:
            fact = event.fact
            if isinstance(fact, RunStarted):
                self.add(event.at, self._started(fact))
            elif fact is rewritten:
                self._rewrite(event, rewritten)
            elif isinstance(fact, Observed) and fact.call_id in outcomes:
                self.add(event.at, self._observed(fact, outcomes[fact.call_id]))
            else:
                self.add(event.at, _without_further_permission(fact))

    def _copied(self) -> list[Event]:
        events, at = self.original.events, self.at
        steps = self.original.steps
        if isinstance(at, bool) or not 1 <= at <= len(steps) + 1:
            had = {0: "no step", 1: "one step"}.get(len(steps), f"{len(steps)} steps")
            raise ConfigError(
                f"The run {self.original.run_id} has {had}; it cannot be forked at {at!r}.",
                hint=f"Give a step from 1 to {max(1, len(steps))}; `tao show {self.original.run_id}` shows them.",
            )
        if self.edits.keeps_step:
            return self._through(self._step())
        if at == 1 and self.edits.task is not None:
            return events[:1]  # the task is looked at anew, too
        if at <= len(steps):
            cut = next(e.seq for e in events if e.fact is steps[at - 1].replies[0])
            while isinstance((dropped := events[cut - 1].fact), ReadDropped) and dropped.step == at:
                cut -= 1
            return events[:cut]
        return self._whole(steps[-1] if steps else None)

    def _step(self) -> Step:
        """The step that is kept but for an edit."""
        steps, at = self.original.steps, self.at
        if at > len(steps):
            raise ConfigError(
                f"The run {self.original.run_id} has no step {at} to be edited.", hint=f"Its last step is {len(steps)}."
            )
        step = steps[at - 1]
        if step.decision is None:
            raise ConfigError(f"Step {at} has no decision, for its reply could not be read.", hint="Edit the decision.")
        self._require_over(step)
        return step

    def _require_over(self, step: Step) -> None:
        wanted = len(step.decision.calls) if isinstance(step.decision, Act) else 0
        open_calls = [call.requested.call_id for call in step.calls if call.observed is None]
        if open_calls or len(step.calls) < wanted:
            what = f"{', '.join(open_calls)} has no outcome" if open_calls else "its calls have no outcome"
            raise ConfigError(
                f"Step {step.number} is not over: {what}.",
                hint=f"Fork at {step.number} without an edit of it, or resume the run first.",
            )

    def _through(self, step: Step) -> list[Event]:
        """The events up to the last outcome of a step; of what follows from it only what people said."""
        events = self.original.events
        facts: list[Any] = [call.observed for call in step.calls] or [step.replies[-1]]
        end = max(event.seq for event in events if any(event.fact is fact for fact in facts)) + 1
        said = []
        for event in events[end:]:
            if isinstance(event.fact, ModelReplied | LimitReached | Finished):
                break
            if isinstance(event.fact, Noted) and event.fact.by != "guard":
                said.append(event)
        return [*events[:end], *said]

    def _whole(self, last: Step | None) -> list[Event]:
        """All events but those of the end, of a run that could go on."""
        if last is not None and not isinstance(last.decision, Act):
            why = "gave the answer" if last.decision is not None else "could not be read"
            raise ConfigError(
                f"The last step of run {self.original.run_id}, {last.number}, {why}; nothing comes after it.",
                hint=f"Fork at {last.number}, or at a step before it.",
            )
        if last is not None:
            self._require_over(last)
        events = self.original.events
        end = 1 + max((e.seq for e in events if last and any(e.fact is c.observed for c in last.calls)), default=0)
        while end < len(events) and not isinstance(events[end].fact, _AFTER):
            end += 1
        return events[:end]

    def _without_pins(self, events: list[Event]) -> list[Event]:
        """What was allowed because of the old task must not stand for the new one."""
        pins = [event.fact for event in events if isinstance(event.fact, Pinned)]
        if any(pin.by == "model" for pin in pins):
            raise ConfigError(
                f"What the task calls for was found out by the model before step {self.at}; a new task needs a new "
                "beginning.",
                hint="Edit the task at step 1.",
            )
        return [event for event in events if not isinstance(event.fact, Pinned)]

    # What is edited

    def _started(self, fact: RunStarted) -> RunStarted:
        """The beginning of the fork: a run of its own, also where the original is part of another one."""
        edits, agent = self.edits, fact.agent
        if edits.instructions is not None:
            agent = replace(agent, instructions=replace_surrogates(edits.instructions))
        started = replace(fact, agent=agent, parent=None, depth=0, forked_from=self.original.run_id, forked_at=self.at)
        if edits.task is None:
            return started
        task = replace_surrogates(edits.task)
        return replace(started, task=task, trusted=(task,) if fact.tainted else ())

    def _rewritten(self) -> ModelReplied | None:
        """The reply whose thought is edited, where its decision stays."""
        if self.edits.thought is None or self.edits.decision is not None or not self.edits.keeps_step:
            return None
        self._copied()  # refuses a step that is not there
        return self.original.steps[self.at - 1].replies[-1]

    def _rewrite(self, event: Event, reply: ModelReplied) -> None:
        decision = reply.decision
        assert decision is not None  # noqa: S101  # such a step is refused before
        thought = self.edits.thought or ""
        [written] = self._written(replace(decision, reason=thought), reply.latency_s)
        self.add(event.at, replace(written, usage=reply.usage, cost_usd=reply.cost_usd))

    def decide(self, now: float, decision: Act | Answer) -> None:
        """Put a decision in the place of the model's: the world has not seen it, and the policy has not judged it."""
        for _ in range(8):  # first what the core has to say here: a limit, a shorter prompt
            effect = self.strategy.next(self.trace.agent, self.trace)
            if not isinstance(effect, Record):
                break
            self.add(now, *effect.facts)
        self.add(now, *self._written(decision, 0.0))

    def _written(self, decision: Act | Answer, latency_s: float) -> list[ModelReplied]:
        """The reply that says the decision, in the dialect of the run; it must read back as just that."""
        trace = self.trace
        effect = self.strategy.next(trace.agent, trace)
        if not isinstance(effect, CallModel) or effect.request.purpose not in ("decide", "repair"):
            raise ConfigError(
                f"No decision is asked for here: {_instead(trace)}.", hint="Fork at another step, or give other limits."
            )
        reply = replace(get_dialect(trace.agent.dialect).write(decision), model=EDITED, cost_usd=0.0)
        schema = trace.agent.output_schema
        facts = reply_to_events(effect, reply, latency_s, None if schema is None else answers_for(schema).check)
        said, wrong = facts[0], getattr(facts[1], "message", "") if len(facts) > 1 else ""
        if not isinstance(said, ModelReplied) or not _is_same(said.decision, decision, structured=schema is not None):
            raise ConfigError(
                f"The dialect {trace.agent.dialect!r} cannot say the edited decision. {wrong}".strip(),
                hint="An answer of the dialect native has no thought; an answer must fit the output schema.",
            )
        return [said]

    def _outcomes(self) -> dict[str, EditedObservation]:
        """The edited outcomes by the ids of their calls, each of them one that ran."""
        if not self.edits.outcomes:
            return {}
        if self.edits.decision is not None:
            raise ConfigError(
                "What comes of an edited decision is for the world to say.",
                hint="Edit the decision or an observation; a fork can be forked again.",
            )
        calls = {call.requested.call_id: call for call in self._step().calls}
        found: dict[str, EditedObservation] = {}
        for given, outcome in self.edits.outcomes.items():
            call_id = next(iter(calls), "") if given == ONLY_CALL and len(calls) == 1 else given
            call = calls.get(call_id)
            if call is None:
                raise ConfigError(
                    f"Step {self.at} has no call {given!r}." if given else f"Step {self.at} has {len(calls)} calls.",
                    hint=f"Its calls: {', '.join(calls) or 'none'}; write observation=CALL=TEXT.",
                )
            if call.requested.verdict == "deny" or isinstance(call.approval, ApprovalRefused):
                raise ConfigError(
                    f"{call_id} was refused and never ran, so nothing was observed.", hint="Edit the decision instead."
                )
            if call_id in found:
                raise ConfigError(f"The outcome of {call_id} is edited twice.", hint="Give it once.")
            found[call_id] = outcome
        return found

    def _observed(self, fact: Observed, outcome: EditedObservation) -> Observed:
        """The edited outcome. What the call took and used stays as it was: that is spent."""
        text = replace_surrogates(outcome.text)
        kept = replace(fact, output="", form="text", error=None, artifact=None, size_chars=0, output_digest="")
        if outcome.code is not None:
            return replace(kept, ok=False, error=Fault(code=outcome.code, message=text))
        form = fact.form if _is_json(text) else "text"
        card = self.trace.card(self.trace.pending[fact.call_id].requested.tool)
        limit = card.max_preview_chars if card is not None else len(text)
        if len(text) <= limit:
            return replace(kept, ok=True, output=text, form=form, size_chars=len(text))
        ref = f"obs_{fact.call_id}"
        self.artifacts.append(Artifact(ref=ref, body=text, form=form))
        return replace(
            kept,
            ok=True,
            output=preview(text, form, limit).text,
            form=form,
            artifact=ref,
            size_chars=len(text),
            output_digest=hashlib.sha256(text.encode()).hexdigest(),
        )

    # Whether it stands

    def require_sound(self) -> None:
        """Refuse a fork whose copied steps would not be decided the same under what was edited: it could not replay."""
        if self.edits.task is None and self.edits.instructions is None:
            return
        try:
            differing = next((one.recorded for one in replay(self.trace) if not one.same), None)
        except (ReplayDiverged, IllegalEvent):
            differing = self.trace.events[0]
        if differing is None or _replays_not(self.original):
            return
        raise ConfigError(
            f"The steps before {self.at} cannot stand in the fork: the prompt is another one, and they follow from it.",
            hint="Fork at an earlier step, or at step 1.",
        )


def _without_secrets(edits: Edits, redactor: Redactor) -> Edits:
    said = edits.decision
    if said is not None:
        said = redactor.fact(ModelReplied(step=1, purpose="decide", text="", decision=said, model=EDITED)).decision
    texts = {
        name: None if (text := getattr(edits, name)) is None else redactor.text(text)
        for name in ("task", "instructions", "thought")
    }
    outcomes = {call: replace(one, text=redactor.text(one.text)) for call, one in edits.outcomes.items()}
    return replace(edits, **texts, decision=said, outcomes=outcomes)


def _without_further_permission(fact: Fact) -> Fact:
    """The fact as the fork keeps it: what a person or a plan allowed beyond the call at hand was for the original."""
    if isinstance(fact, ApprovalGiven) and fact.scope != "call":
        return replace(fact, scope="call")
    if isinstance(fact, Pinned) and fact.calls:
        return replace(fact, calls=())
    return fact


def _replays_not(original: Trace) -> bool:
    """Whether a run does not even replay by itself, as one of an earlier version may not: then nothing is proved."""
    try:
        return not all(one.same for one in replay(original))
    except (ReplayDiverged, IllegalEvent):
        return True


def _instead(trace: Trace) -> str:
    if trace.limit_reached is not None:
        return f"the limit {trace.limit_reached.limit} is reached"
    return f"the run is {trace.phase}"


def _is_same(said: Act | Answer | None, wanted: Act | Answer, *, structured: bool) -> bool:
    """Whether a reply says the decision. A structured answer is written in canonical form, which may look different."""
    if structured and isinstance(said, Answer) and isinstance(wanted, Answer):
        return said.reason == wanted.reason
    return said == wanted


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except NotJsonError:
        return False
    return True
