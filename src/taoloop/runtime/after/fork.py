"""Forks: a new run that begins with the steps of another one, and decides differently from there on.

The world is not rolled back. What the copied calls did stays done, and their observations are copied as they were; what
the fork decides runs in the world as it is now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from taoloop.core.agent_spec import Limits
from taoloop.core.attachments.files import is_remote
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
from taoloop.core.human_input import Marked
from taoloop.core.preview import preview
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace, attachments_of
from taoloop.core.views.plans import plan_progress
from taoloop.core.views.steps import CallView, Step
from taoloop.dialects import get_dialect
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.dialects.reply_events import reply_to_events
from taoloop.errors import ConfigError, IllegalEvent, JournalTampered, ReplayDiverged, RunNotFound
from taoloop.journals.base import Artifact, Journal
from taoloop.runtime.after.fork_edits import ONLY_CALL, EditedObservation, Edits
from taoloop.runtime.after.replay import replay
from taoloop.runtime.agent_settings import AgentSettings, as_tuple, changed_limits
from taoloop.runtime.agent_toolbox import default_limits
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.engine.run_artifacts import missing_artifact
from taoloop.runtime.output_type import validator_for
from taoloop.strategies import Strategy, get_strategy

EDITED = "edited by a person"
"""The `model` of a reply that no model gave, or not in these words."""

_AFTER = (LimitReached, Finished, Paused, ReadDropped, ModelErred, Resumed)  # with these the end of a run begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A run that is not in the journal yet."""

    trace: Trace
    """Its events, up to the fork."""

    artifacts: tuple[Artifact, ...] = ()
    """The whole of each edited output that is too long for the trace."""


async def fork_for(
    agent: AgentSettings,
    journal: Journal,
    run_id: str,
    *,
    at: int,
    edit: Edits | Mapping[str, Any] | None = None,
    by: str = "",
    limits: Limits | None = None,
    max_steps: int | None = None,
    approved_tiers: tuple[Tier, ...] | None = None,
) -> Trace:
    """Store a fork that `agent` is to continue: refused where it could not, and without the secrets that it knows.

    The tiers that are approved in advance are by default the agent's. The other arguments are those of `store_fork`.

    Raises:
        RunNotFound, ConfigError: as for `store_fork`; or the agent is not that of the run.
    """
    bound = bind(agent)
    return await store_fork(
        journal,
        run_id,
        at=at,
        edit=edit,
        by=by,
        now=agent.clock.now(),
        limits=limits,
        max_steps=max_steps,
        approved_tiers=as_tuple(agent.approved_tiers) if approved_tiers is None else approved_tiers,
        strategy=bound.strategy,
        check=bound.require_resumable,
        redactor=bound.redactor or Redactor(patterns=False),
    )


async def store_fork(
    journal: Journal,
    run_id: str,
    *,
    at: int,
    now: float,
    edit: Edits | Mapping[str, Any] | None = None,
    by: str = "",
    new_id: str | None = None,
    limits: Limits | None = None,
    max_steps: int | None = None,
    approved_tiers: tuple[Tier, ...] = (),
    strategy: Strategy | None = None,
    check: Callable[[Trace], None] | None = None,
    redactor: Redactor | None = None,
) -> Trace:
    """Store a fork of a stored run and return its trace; it can be resumed like a run that was stopped.

    The original is only read, so it may be running. `check` may refuse the fork before anything is written. `max_steps`
    replaces that of the limits. Secrets in the edits are not stored: `redactor` knows them, by default those of this
    process's environment. The other arguments are those of `make_fork`; `by` names the person who forks.

    Raises:
        RunNotFound: the journal has no such run.
        ConfigError: it cannot be forked like that.
        RunExists: there is a run `new_id`.
    """
    if (flaw := (await journal.verify(run_id)).first) is not None:
        raise JournalTampered(f"The run {run_id} was changed after it was written: {flaw.text}.")
    original = Trace(run_id, await journal.load(run_id))
    fork = make_fork(
        original,
        at,
        _redact_edits(Edits.of(edit), redactor if redactor is not None else redactor_for(None, ())),
        run_id=new_id or new_run_id(now),
        now=now,
        by=by,
        limits=default_limits(changed_limits(original.limits, limits, max_steps), original.agent.tools),
        approved_tiers=approved_tiers,
        strategy=strategy,
    )
    if check is not None:
        check(fork.trace)
    artifacts = {artifact.ref: artifact for artifact in fork.artifacts}
    for event in fork.trace.events:
        refs = [info.ref for info in attachments_of(event.fact) if not is_remote(info)]
        whole = event.fact.artifact if isinstance(event.fact, Observed) else None
        for ref in (*refs, *((whole,) if whole is not None else ())):
            if ref in artifacts:
                continue
            if (artifact := await journal.artifact(run_id, ref)) is not None:
                artifacts[ref] = artifact
            elif ref in refs:
                raise missing_artifact(run_id, ref)
    lease = await journal.create(fork.trace.run_id)
    await journal.append(lease, fork.trace.events, list(artifacts.values()))
    return fork.trace


def make_fork(
    original: Trace,
    at: int,
    edits: Edits = Edits(),  # noqa: B008  # frozen
    *,
    run_id: str,
    now: float,
    by: str = "",
    limits: Limits | None = None,
    approved_tiers: tuple[Tier, ...] = (),
    strategy: Strategy | None = None,
) -> Fork:
    """A new run that is `original` up to the decision of step `at`, which the model makes again or the edit replaces.

    With an edited thought or observation the decision of that step stays, and so do the outcomes of its calls; the next
    step is the first new one. `at` may be one above the last step where the run ended without an answer.
    In the trace of the fork, `run_started` names the original, and a `resumed` event says from where on the fork goes
    its own way, what was edited, and `by` whom. Permissions are not inherited: from there on only `approved_tiers` are
    approved in advance, an edited decision is judged like any other, and an approval holds for its own call alone.
    `limits` are by default the last ones of the original; what the copied steps used counts. `strategy` is for a run
    whose own is not registered; one with another name is ignored.

    Raises:
        ConfigError: there is no such step, it is not over, or the edit does not fit it; says what to do instead.
    """
    if original.started is None:
        raise RunNotFound(f"The run {original.run_id} never began; there is nothing to fork.")
    name = original.agent.strategy
    own = strategy if strategy is not None and strategy.name == name else get_strategy(name)
    branch = _Branch(original, at, edits, own, Trace(run_id))
    branch.copy()
    about = f"; {EDITED}: {', '.join(branch.edited)}" if branch.edited else ""
    about += f"; by {by}" if by else ""
    branch.add(
        now,
        Resumed(
            limits=limits or original.limits,
            approved_tiers=approved_tiers,
            reason=f"fork of run {original.run_id} at step {at}{about}",
        ),
    )
    if edits.decision is not None:
        decision = edits.decision
        branch.decide(now, decision if edits.thought is None else replace(decision, reason=edits.thought))
    branch.require_replay()
    return Fork(trace=branch.trace, artifacts=tuple(branch.artifacts))


@dataclass(slots=True)
class _Branch:
    """Copies the events of the original into the fork, with the edits among them."""

    original: Trace
    at: int
    edits: Edits
    strategy: Strategy
    trace: Trace
    artifacts: list[Artifact] = field(default_factory=list)

    def add(self, at: float, *facts: Fact) -> None:
        for fact in facts:
            self.trace.append(Event(len(self.trace), at, fact))

    @property
    def edited(self) -> tuple[str, ...]:
        """What is edited, in words, with every call named."""
        observations = (f"observation of {call_id}" for call_id in self._edited_outcomes())
        return (*replace(self.edits, outcomes={}).names, *observations)

    # What is copied

    def copy(self) -> None:
        """Copy the events before the fork, with what is edited among them."""
        outcomes, events = self._edited_outcomes(), self._copied_events()
        rewritten = self._reply_to_rewrite()
        if self.edits.task is not None:
            events = self._drop_pins(events)
        for event in events:
            fact = event.fact
            if isinstance(fact, RunStarted):
                self.add(event.at, self._edited_start(fact))
            elif fact is rewritten:
                self._rewrite(event, rewritten)
            elif isinstance(fact, Observed) and fact.call_id in outcomes:
                self.add(event.at, self._edited_observation(fact, outcomes[fact.call_id]))
            elif not isinstance(fact, Marked):  # what people said of the original's outcome stays there
                self.add(event.at, _narrow_permission(fact))

    def _copied_events(self) -> list[Event]:
        events, at = self.original.events, self.at
        steps = self.original.steps
        if isinstance(at, bool) or not 1 <= at <= len(steps) + 1:
            had = {0: "no step", 1: "one step"}.get(len(steps), f"{len(steps)} steps")
            raise ConfigError(
                f"The run {self.original.run_id} has {had}; it cannot be forked at {at!r}.",
                hint=f"Give a step from 1 to {max(1, len(steps))}; `tao show {self.original.run_id}` shows them.",
            )
        if self.edits.keeps_step:
            return self._events_through(self._edited_step())
        if at == 1 and self.edits.task is not None:
            return events[:1]  # a new task is judged from the start
        if at <= len(steps):
            cut = next(e.seq for e in events if e.fact is steps[at - 1].replies[0])
            while isinstance((dropped := events[cut - 1].fact), ReadDropped) and dropped.step == at:
                cut -= 1
            return events[:cut]
        return self._events_before_end(steps[-1] if steps else None)

    def _edited_step(self) -> Step:
        """The step that stays except for an edit."""
        steps, at = self.original.steps, self.at
        if at > len(steps):
            raise ConfigError(
                f"The run {self.original.run_id} has no step {at} to be edited.", hint=f"Its last step is {len(steps)}."
            )
        step = steps[at - 1]
        if step.decision is None:
            raise ConfigError(f"Step {at} has no decision, for its reply could not be read.", hint="Edit the decision.")
        self._require_outcomes(step)
        return step

    def _require_unused_values(self, call: CallView) -> None:
        """Refuse to edit the result of a step of a plan if a later one takes values from its run: it still would."""
        progress = plan_progress(self.original)
        step = next((number for number, entry in progress.steps.items() if entry.call is call), None)
        users = [] if step is None else progress.users_of(step)
        if users and progress.made_by is not None:
            raise ConfigError(
                f"The result of step {step} of the plan cannot be edited: step {users[0]} of the plan takes a value"
                " from what the calls of that step returned.",
                hint=f"Fork at step {progress.made_by.requested.step}, and edit the plan itself.",
            )

    def _require_outcomes(self, step: Step) -> None:
        call_count = len(step.decision.calls) if isinstance(step.decision, Act) else 0
        open_calls = [call.requested.call_id for call in step.calls if call.observed is None]
        if open_calls or len(step.calls) < call_count:
            what = f"{', '.join(open_calls)} has no outcome" if open_calls else "its calls have no outcome"
            raise ConfigError(
                f"Step {step.number} is not over: {what}.",
                hint=f"Fork at {step.number} without an edit of it, or resume the run first.",
            )

    def _events_through(self, step: Step) -> list[Event]:
        """The events up to the last outcome of a step, and the notes of people that follow it."""
        events = self.original.events
        facts: list[Any] = [call.observed for call in step.calls] or [step.replies[-1]]
        end = max(event.seq for event in events if any(event.fact is fact for fact in facts)) + 1
        notes = []
        for event in events[end:]:
            if isinstance(event.fact, ModelReplied | LimitReached | Finished):
                break
            if isinstance(event.fact, Noted) and event.fact.by != "guard":
                notes.append(event)
        return [*events[:end], *notes]

    def _events_before_end(self, last: Step | None) -> list[Event]:
        """All events except those of the end, of a run that could continue."""
        if last is not None and not isinstance(last.decision, Act):
            why = "gave the answer" if last.decision is not None else "could not be read"
            raise ConfigError(
                f"The last step of run {self.original.run_id}, {last.number}, {why}; nothing comes after it.",
                hint=f"Fork at {last.number}, or at a step before it.",
            )
        if last is not None:
            self._require_outcomes(last)
        events = self.original.events
        end = 1 + max((e.seq for e in events if last and any(e.fact is c.observed for c in last.calls)), default=0)
        while end < len(events) and not isinstance(events[end].fact, _AFTER):
            end += 1
        return events[:end]

    def _drop_pins(self, events: list[Event]) -> list[Event]:
        """The events without what the old task allowed: it does not hold for the new one."""
        pins = [event.fact for event in events if isinstance(event.fact, Pinned)]
        if any(pin.by == "model" for pin in pins):
            raise ConfigError(
                f"The model determined what the task calls for before step {self.at}; a new task needs a new start.",
                hint="Edit the task at step 1.",
            )
        return [event for event in events if not isinstance(event.fact, Pinned)]

    # What is edited

    def _edited_start(self, fact: RunStarted) -> RunStarted:
        """The first event of the fork: a run of its own, even where the original is inside another one."""
        edits, agent = self.edits, fact.agent
        if edits.instructions is not None:
            agent = replace(agent, instructions=replace_surrogates(edits.instructions))
            fact = replace(fact, user_instructions="")
        started = replace(fact, agent=agent, parent=None, depth=0, forked_from=self.original.run_id, forked_at=self.at)
        if edits.task is None:
            return started
        task = replace_surrogates(edits.task)
        return replace(started, task=task, trusted=(task,) if fact.tainted else ())

    def _reply_to_rewrite(self) -> ModelReplied | None:
        """The reply whose thought is edited, where its decision stays."""
        if self.edits.thought is None or self.edits.decision is not None or not self.edits.keeps_step:
            return None
        return self.original.steps[self.at - 1].replies[-1]

    def _rewrite(self, event: Event, reply: ModelReplied) -> None:
        decision = reply.decision
        assert decision is not None  # noqa: S101  # such a step is refused before
        thought = self.edits.thought or ""
        written = self._write_decision(replace(decision, reason=thought), reply.latency_s)
        self.add(event.at, replace(written, usage=reply.usage, cost_usd=reply.cost_usd))

    def decide(self, now: float, decision: Act | Answer) -> None:
        """Put a decision in place of the model's: the policy has not judged it yet, and nothing of it was done."""
        for _ in range(8):  # first what the strategy records here: a limit, a shorter prompt
            effect = self.strategy.next(self.trace.agent, self.trace)
            if not isinstance(effect, Record):
                break
            self.add(now, *effect.facts)
        self.add(now, self._write_decision(decision, 0.0))

    def _write_decision(self, decision: Act | Answer, latency_s: float) -> ModelReplied:
        """The reply that holds the decision, in the dialect of the run; it must parse back to exactly that."""
        trace = self.trace
        effect = self.strategy.next(trace.agent, trace)
        if not isinstance(effect, CallModel) or effect.request.purpose not in ("decide", "repair", "sample"):
            made_by = plan_progress(trace).made_by
            if made_by is not None and trace.limit_reached is None:
                raise ConfigError(
                    "The run asks for no decision here: the plan says what comes next.",
                    hint=f"Fork at step {made_by.requested.step}, and edit the plan itself.",
                )
            reached = trace.limit_reached
            phase = f"the run is {trace.phase}" if reached is None else f"the limit {reached.limit} is reached"
            raise ConfigError(
                f"The run asks for no decision here: {phase}.", hint="Fork at another step, or give other limits."
            )
        reply = replace(get_dialect(trace.agent.dialect).write(decision), model=EDITED, cost_usd=0.0)
        schema = trace.agent.output_schema
        facts = reply_to_events(effect, reply, latency_s, None if schema is None else validator_for(schema).check)
        replied, wrong = facts[0], getattr(facts[1], "message", "") if len(facts) > 1 else ""
        structured = schema is not None
        if not isinstance(replied, ModelReplied) or not _is_same(replied.decision, decision, structured=structured):
            raise ConfigError(
                f"The dialect {trace.agent.dialect!r} cannot express the edited decision. {wrong}".strip(),
                hint="An answer of the dialect native has no thought; an answer must fit the output schema.",
            )
        return replied

    def _edited_outcomes(self) -> dict[str, EditedObservation]:
        """The edited outcomes by the ids of their calls, each of them one that ran."""
        if not self.edits.outcomes:
            return {}
        if self.edits.decision is not None:
            raise ConfigError(
                "The outcome of an edited decision is not known before its calls have run.",
                hint="Edit the decision or an observation; a fork can be forked again.",
            )
        calls = {call.requested.call_id: call for call in self._edited_step().calls}
        outcomes: dict[str, EditedObservation] = {}
        for key, outcome in self.edits.outcomes.items():
            call_id = next(iter(calls), "") if key == ONLY_CALL and len(calls) == 1 else key
            call = calls.get(call_id)
            if call is None:
                raise ConfigError(
                    f"Step {self.at} has no call {key!r}." if key else f"Step {self.at} has {len(calls)} calls.",
                    hint=f"Its calls: {', '.join(calls) or 'none'}; write observation=CALL=TEXT.",
                )
            if call.requested.verdict == "deny" or isinstance(call.approval, ApprovalRefused):
                raise ConfigError(
                    f"{call_id} was refused and never ran, so nothing was observed.", hint="Edit the decision instead."
                )
            if call_id in outcomes:
                raise ConfigError(f"The outcome of {call_id} is edited twice.", hint="Give it once.")
            if outcome.code is None:
                self._require_unused_values(call)
            outcomes[call_id] = outcome
        return outcomes

    def _edited_observation(self, fact: Observed, outcome: EditedObservation) -> Observed:
        """The edited outcome. The time and tokens of the call stay: they were spent."""
        text = replace_surrogates(outcome.text)
        blank = replace(fact, output="", form="text", error=None, artifact=None, size_chars=0, output_digest="")
        blank = replace(blank, images=(), files=())
        if outcome.code is not None:
            return replace(blank, ok=False, error=Fault(code=outcome.code, message=text))
        form: Literal["json", "text"] = "text"
        with suppress(NotJsonError):
            loads(text)
            form = fact.form
        card = self.trace.card(self.trace.pending[fact.call_id].requested.tool)
        limit = card.max_preview_chars if card is not None else len(text)
        observed = replace(blank, ok=True, output=preview(text, form, limit), form=form, size_chars=len(text))
        if len(text) <= limit:
            return observed
        ref = f"obs_{fact.call_id}"
        self.artifacts.append(Artifact(ref=ref, body=text, form=form))
        return replace(observed, artifact=ref, output_digest=hashlib.sha256(text.encode()).hexdigest())

    # Whether it replays

    def require_replay(self) -> None:
        """Refuse a fork whose copied steps would be decided differently under the edit: it could not be replayed."""
        prompt_is_edited = self.edits.task is not None or self.edits.instructions is not None
        if prompt_is_edited and not _can_replay(self.trace) and _can_replay(self.original):
            raise ConfigError(
                f"The steps before {self.at} cannot be copied: they follow from a prompt that the edit changes.",
                hint="Fork at an earlier step, or at step 1.",
            )


def _redact_edits(edits: Edits, redactor: Redactor) -> Edits:
    decision = edits.decision
    if decision is not None:
        replied = ModelReplied(step=1, purpose="decide", text="", decision=decision, model=EDITED)
        decision = redactor.fact(replied).decision
    texts = {
        name: None if (text := getattr(edits, name)) is None else redactor.text(text)
        for name in ("task", "instructions", "thought")
    }
    outcomes = {call: replace(outcome, text=redactor.text(outcome.text)) for call, outcome in edits.outcomes.items()}
    return replace(edits, **texts, decision=decision, outcomes=outcomes)


def _narrow_permission(fact: Fact) -> Fact:
    """The fact in the fork: what a person or a plan allowed beyond the call itself was for the original."""
    if isinstance(fact, ApprovalGiven) and fact.scope != "call":
        return replace(fact, scope="call")
    if isinstance(fact, Pinned) and fact.calls:
        return replace(fact, calls=())
    return fact


def _can_replay(trace: Trace) -> bool:
    """Whether a run decides again as it did; one of an earlier version may not, so its differences prove nothing."""
    try:
        return all(event.same for event in replay(trace))
    except (ReplayDiverged, IllegalEvent):
        return False


def _is_same(actual: Act | Answer | None, expected: Act | Answer, *, structured: bool) -> bool:
    """Whether a reply holds the decision. A structured answer is in canonical form, which may look different."""
    if structured and isinstance(actual, Answer) and isinstance(expected, Answer):
        return actual.reason == expected.reason
    return actual == expected
