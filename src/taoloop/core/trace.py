"""The trace of one run, and the views of it that the loop needs: folded one event at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.attachments.files import AttachmentInfo, Holder, attached
from taoloop.core.cards.questions import STARTED_BY, starter_of
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.decision import NO_MODELS, UNSUPPORTED, Answer, Voted
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    AnyEvent,
    ApprovalGiven,
    ApprovalRefused,
    Compacted,
    Compensated,
    DoubtSettled,
    Event,
    Fact,
    Finished,
    InDoubt,
    JudgedAgain,
    LimitReached,
    ModelErred,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    ReadDropped,
    ReplyRejected,
    Resumed,
    RunStarted,
    Status,
    new_event,
)
from taoloop.core.human_input import InputAnswered, Marked
from taoloop.core.message import Usage
from taoloop.core.policy import Policy
from taoloop.core.views.steps import (
    CRITIQUE,
    DROPPED_LESSON,
    LESSON,
    PROBE,
    REVISION,
    TIMED_OUT,
    UNDONE,
    CallView,
    Step,
    Steps,
    View,
)
from taoloop.errors import IllegalEvent

Phase = Literal["new", "thinking", "replied", "decided", "acting", "answered", "closed"]
"""What the run needs next: a model, a verdict on a reply, calls to be requested, calls to be run, or its end."""


TOOL_CALL_LIMIT = "tool_call_limit"
"""The code of the observation of a call that was not run because the run may make no more."""


V = TypeVar("V", bound=View)

_DEFAULT_LIMITS = Limits()  # until the run has started


class _UnstartedAttribute:
    """In place of an attribute that exists only once the run has started; the real one then hides it."""

    def __get__(self, trace: Trace, owner: type[Trace]) -> Any:
        raise IllegalEvent(f"Run {trace.run_id} has not started.")


ACCOUNT = "account"
"""The label with the name by which the logins of a run's person are kept, where that is more than their name."""


def attachments_of(fact: Fact) -> tuple[AttachmentInfo, ...]:
    """The images and files that a fact names: of an observation, or of a task and the conversation before it."""
    holders: tuple[Holder, ...] = (
        (*fact.history, fact) if isinstance(fact, RunStarted) else (fact,) if isinstance(fact, Observed) else ()
    )
    return tuple(info for holder in holders for info in attached(holder))


class Trace:
    """The ordered events of one run. Reading any property costs the same at step 3 and at step 3,000.

    Append only through `append` and `add`; everything else is derived. `view` keeps further views up to date lazily.

    `agent` is the agent's spec as the run started with it, with the cards of its last resume. `task` is what the user
    asked. `calls` has every call by its id, `pending` those that are open.
    """

    if TYPE_CHECKING:
        agent: AgentSpec
        task: str
    else:
        agent = task = _UnstartedAttribute()

    def __init__(self, run_id: str, events: Iterable[Event] = ()) -> None:
        self.run_id = run_id
        self.events: list[Event] = []
        self.started: RunStarted | None = None
        self.finished: Finished | None = None
        self.paused: Paused | None = None
        self.limits = _DEFAULT_LIMITS
        self.approved_tiers: tuple[Tier, ...] = ()
        self.limit_reached: LimitReached | None = None
        self.phase: Phase = "new"
        self.calls: dict[str, CallView] = {}
        self.pending: dict[str, CallView] = {}
        self.step_count = 0
        self.samples = 0  # steps whose answer is one of several that are voted on; no limit of steps counts them
        self.last_reply: ModelReplied | None = None
        self.last_rejected: ReplyRejected | None = None
        self.rejected_in_step = 0
        self.calls_requested = 0
        self.answer: Answer | None = None
        self.taken_over: Observed | None = None  # another agent took the conversation over, and has ended
        self.held_back: Answer | None = None  # sent back for want of evidence; once for each draft
        self.closing_reply: ModelReplied | None = None
        self.overflowed = False  # the last prompt was too long for the model, and was not shortened yet
        self.overflows = 0
        self.model_errors = 0
        self.pin_asked = False  # what the task asks for, whether or not the model answered
        self.summarised: ModelReplied | ModelErred | None = None  # the result of asking for a summary
        self.usage = Usage()
        self.cost_usd = 0.0
        self.unpriced_calls = 0
        self.model_calls = 0
        self.tool_calls = 0
        self.consecutive_errors = 0
        self.consecutive_unreadable = 0
        self.total_errors = 0
        self.working_s = 0.0
        self.repeats = 0
        self.repeat_notices: list[tuple[str, int]] = []
        self.has_attachments = False  # images or files, in the task, the conversation before it, or an observation
        self.changed_tools: list[str] = []  # of whose new cards the model does not know yet
        self.calls_refused_by_limit = 0
        self._step_succeeded = self._step_failed = False
        self._wall_before_s = 0.0
        self._segment_at: float | None = None
        self._results: dict[str, tuple[str, int]] = {}
        self._cards: dict[str, ToolCard] = {}
        self._views: dict[str, tuple[View, int]] = {}
        for event in events:
            self.append(event)

    @classmethod
    def excerpt(cls, run_id: str, events: Iterable[Event]) -> Trace:
        """Some events of a run, in their order, with the first one. What counts over the run then counts these alone.

        Raises:
            IllegalEvent: a fact does not fit those before it.
        """
        trace = cls(run_id)
        for event in events:
            trace._fold(event.fact, event.at)
            trace.events.append(event)
        return trace

    def append(self, event: Event) -> None:
        """Add the next event.

        Raises:
            IllegalEvent: a gap in `seq`, or a fact that does not fit. The trace is unchanged.
        """
        if event.seq != len(self.events):
            raise IllegalEvent(f"Run {self.run_id}: event {event.seq} after {len(self.events)} events.")
        self._fold(event.fact, event.at)
        self.events.append(event)

    def add(self, fact: Fact, at: float) -> Event:
        """Add a fact as the next event, and return that. `at` is seconds since the epoch (UTC).

        Raises:
            IllegalEvent: the fact does not fit. The trace is unchanged.
        """
        event: Event = new_event((len(self.events), at, fact))
        self._fold(fact, at)
        self.events.append(event)
        return event

    def _fold(self, fact: Fact, at: float) -> None:
        kind = type(fact)
        if self.started is None and kind is not RunStarted:
            raise self._out_of_place(fact)
        if self.finished is not None and kind not in _FACTS_AFTER_FINISH and not _drops_lesson(fact):
            raise IllegalEvent(f"Run {self.run_id} is finished; it cannot take {fact.kind}.")
        if (fold := _FOLDS.get(kind)) is not None:
            fold(self, fact, at)

    def _out_of_place(self, fact: Fact) -> IllegalEvent:
        return IllegalEvent(f"Run {self.run_id}: {fact.kind} as event {len(self.events)}.")

    def __len__(self) -> int:
        """The number of events."""
        return len(self.events)

    def __iter__(self) -> Iterator[AnyEvent]:
        """The events in order; type checkers know the fact where the kind is known."""
        return cast("Iterator[AnyEvent]", iter(self.events))

    @property
    def status(self) -> Status | Literal["running"]:
        """A finished status, `waiting` for a person, or `running`."""
        if self.finished is not None:
            return self.finished.status
        return "waiting" if self.paused is not None else "running"

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow: the run is completed, or somebody abandoned it."""
        finished = self.finished
        return finished is not None and (finished.status == "completed" or bool(finished.abandoned_by))

    @property
    def user(self) -> str:
        """The person for whom the run is, by whose name their logins are kept; empty: whoever uses this machine."""
        labels = self.started.labels if self.started is not None else {}
        return labels.get(ACCOUNT) or labels.get("user", "")

    @property
    def user_labels(self) -> dict[str, str]:
        """The labels that say for whom the run is; they are the same for runs that follow from it."""
        labels = self.started.labels if self.started is not None else {}
        kept = {name: labels[name] for name in ("user", ACCOUNT) if name in labels}
        return kept | ({STARTED_BY: starter_of(labels)} if STARTED_BY in labels or "key" in labels else {})

    @property
    def wall_s(self) -> float:
        """Seconds that processes held the run, waiting included; time between a stop and a resume does not count."""
        if self._segment_at is None:
            return self._wall_before_s
        return self._wall_before_s + max(0.0, self.events[-1].at - self._segment_at)

    @property
    def steps(self) -> list[Step]:
        """The run as steps. A view for people and planners, built on first use."""
        return self.view("steps", lambda: Steps(self.calls)).steps

    def card(self, tool: str) -> ToolCard | None:
        """The card of a tool of this run, by its exact name."""
        return self._cards.get(tool)

    def view(self, name: str, make: Callable[[], V]) -> V:
        """The view called `name`, created by `make` on first use and then kept up to date with the trace."""
        view, count = self._views.get(name) or (make(), 0)
        if count < len(self.events):
            for event in self.events[count:]:
                view.fold(event)
            self._views[name] = (view, len(self.events))
        return view  # type: ignore[return-value]  # the name determines the type

    # Folding: one method per kind of fact that changes what the loop needs to know.

    def _run_started(self, fact: RunStarted, at: float) -> None:
        if self.started is not None:
            raise self._out_of_place(fact)
        self.started, self.agent, self.task = fact, fact.agent, fact.task
        self.limits = fact.agent.limits
        self.approved_tiers = fact.agent.approved_tiers
        self._cards = {card.name: card for card in fact.agent.tools}
        self._segment_at = at
        self.phase = "thinking"
        self.has_attachments = bool(attachments_of(fact))

    def _model_replied(self, fact: ModelReplied, _at: float) -> None:
        self.model_calls += fact.model not in NO_MODELS
        self.working_s += fact.latency_s
        self._spend(fact.usage, fact.cost_usd)
        if fact.purpose == "compact":  # no step, and no decision
            self.summarised = fact
            return
        if fact.purpose in ("read", "critique", "lesson"):  # within a call, or beside the steps
            return
        if fact.purpose == "pin":  # no step either
            self.pin_asked = True
            return
        if fact.purpose == "sample":
            self._count_sample(fact)
            return
        if fact.purpose == "close":
            self.closing_reply = fact
        else:
            if self.last_reply is None or self.last_reply.step != fact.step:
                self.step_count += 1
                self.rejected_in_step = 0
            self.last_reply = fact
        self.overflowed, self.summarised = False, None
        self.repeats = 0
        self._step_succeeded = self._step_failed = False
        if isinstance(fact.decision, Answer):
            self.answer = fact.decision
            self.phase = "closed" if fact.purpose == "close" else "answered"
        elif fact.decision is None:
            self.phase = "replied"
        else:
            self.phase = "closed" if fact.purpose == "close" else "decided"

    def _count_sample(self, fact: ModelReplied) -> None:
        """Count an answer that is voted on: a step of its own, and nothing is decided yet."""
        self.step_count += 1
        self.samples += 1
        self.overflowed, self.repeats = False, 0
        self._step_succeeded = self._step_failed = False
        if fact.decision is None:
            self.phase = "replied"
        else:
            self.consecutive_errors = self.consecutive_unreadable = 0

    def _voted(self, fact: Voted, _at: float) -> None:
        if fact.accepted and fact.winner is not None:
            self.answer = Answer(text=fact.winner.answer)
            self.phase = "answered" if self.limit_reached is None else "closed"

    def _spend(self, new: Usage, cost_usd: float | None) -> None:
        """Count tokens and money, of this run's model or of a run inside it."""
        if new.input_tokens or new.output_tokens:
            self.usage += new
        if cost_usd is None:
            self.unpriced_calls += 1
        else:
            self.cost_usd += cost_usd

    def _model_erred(self, fact: ModelErred, _at: float) -> None:
        self.model_errors += 1
        if fact.purpose == "compact":
            self.summarised = fact
        elif fact.purpose == "pin":
            self.pin_asked = True
        elif fact.purpose not in ("critique", "lesson"):
            self.overflowed = True
            self.overflows += 1

    def _read_dropped(self, _fact: ReadDropped, _at: float) -> None:
        self.tool_calls += 1

    def _compacted(self, _fact: Compacted, _at: float) -> None:
        self.overflowed, self.summarised = False, None

    def _reply_rejected(self, fact: ReplyRejected, _at: float) -> None:
        if self.closing_reply is not None:
            self.phase = "closed"
            return
        if fact.code == UNSUPPORTED:  # readable, so no error that a limit counts; once for each draft
            self.held_back, self.answer, self.phase = self.answer, None, "thinking"
            return
        self.last_rejected = fact
        self.rejected_in_step += 1
        self.total_errors += 1
        self.consecutive_errors += 1
        self.consecutive_unreadable += 1
        self.phase = "thinking"

    def _action_requested(self, fact: ActionRequested, _at: float) -> None:
        self.pending[fact.call_id] = self.calls[fact.call_id] = CallView(requested=fact)
        self.calls_requested += 1
        if fact.verdict != "deny":
            self.tool_calls += 1
        self.phase = "acting"

    def _judged_again(self, fact: JudgedAgain, _at: float) -> None:
        call = self.pending.get(fact.call_id)
        if call is None or call.attempts or not call.is_outdated:
            raise IllegalEvent(f"Run {self.run_id}: {fact.call_id} was judged again, and its tool has not changed.")
        call.requested = replace(
            call.requested,
            args=fact.args,
            tier=fact.tier,
            verdict=fact.verdict,
            digest=fact.digest,
            reasons=fact.reasons,
            rule=fact.rule,
            policy=fact.policy,
            sources=fact.sources,
            reason_codes=fact.reason_codes,
            replaces=fact.replaces,
        )
        call.approval, call.is_outdated = None, False

    def _replace_cards(self, cards: Sequence[ToolCard], *, texts_only: bool = False) -> None:
        """Go on with other cards; what was judged by the ones before is outdated, except calls that only wait.

        `texts_only`: they differ in what the model reads alone.
        """
        self._cards |= {card.name: card for card in cards}
        self.agent = replace(self.agent, tools=tuple(self._cards[card.name] for card in self.agent.tools))
        names = set() if texts_only else {card.name for card in cards}
        for call in self.pending.values():
            in_good_order = call.attempts > 0 and call.attempts == call.waited
            call.is_outdated |= call.requested.tool in names and not in_good_order
        self.changed_tools += [card.name for card in cards if card.name not in self.changed_tools]

    def _replace_policy(self, policy: Policy) -> None:
        """Go on under another policy; what was judged by the one before, and not started, is outdated."""
        self.agent = replace(self.agent, policy=policy)
        self._views.clear()  # what is trusted follows from the policy
        for call in self.pending.values():
            call.is_outdated |= not call.attempts

    def _approval(self, fact: ApprovalGiven | ApprovalRefused, _at: float) -> None:
        call = self.pending.get(fact.call_id)
        if call is None or call.approval is not None:
            raise IllegalEvent(f"Run {self.run_id}: {fact.kind} for {fact.call_id}, which waits for no answer.")
        exact = not isinstance(fact, ApprovalGiven) or fact.args is not None or fact.digest == call.requested.digest
        if not exact:
            raise IllegalEvent(f"Run {self.run_id}: an approval of another call than {fact.call_id}.")
        # a paused run stays paused until it is resumed: other calls may wait, and no process is running
        call.approval = fact

    def _action_started(self, fact: ActionStarted, at: float) -> None:
        call = self.pending.get(fact.call_id)
        if call is None:
            raise IllegalEvent(f"Run {self.run_id}: {fact.call_id} started, but it is not pending.")
        call.attempts, call.started_at = fact.attempt, at
        self.tool_calls += bool(fact.after)
        if fact.progress > call.progress:
            call.waited, call.progress = fact.attempt - 1, fact.progress
        call.doubt = call.settled = None  # a doubt about the attempt before is over

    def _in_doubt(self, fact: InDoubt, at: float) -> None:
        call = self.pending.get(fact.call_id)
        if call is None or not call.attempts or call.doubt is not None:
            raise IllegalEvent(f"Run {self.run_id}: {fact.call_id} is in doubt, but nothing of it is open.")
        call.doubt = fact
        if fact.reason == TIMED_OUT:
            call.timeouts += 1
            if call.started_at is not None:
                self.working_s += max(0.0, at - call.started_at)

    def _input_answered(self, fact: InputAnswered, _at: float) -> None:
        if (call := self.pending.get(fact.call_id)) is not None:
            call.answers += (fact,)

    def _doubt_settled(self, fact: DoubtSettled, _at: float) -> None:
        call = self.pending.get(fact.call_id)
        before = call.settled if call is not None else None
        left_open = before is None or (before.by == PROBE and before.happened is None)
        if call is None or call.doubt is None or not left_open:
            raise IllegalEvent(f"Run {self.run_id}: {fact.call_id} was settled, but it is not in doubt.")
        call.settled = fact  # a paused run stays paused, as with an approval

    def _observed(self, fact: Observed, _at: float) -> None:
        call = self.pending.pop(fact.call_id, None)
        if call is None:
            raise IllegalEvent(f"Run {self.run_id}: an observation for {fact.call_id}, which is not pending.")
        call.observed = fact
        self.working_s += fact.latency_s
        if fact.images or fact.files:
            self.has_attachments = True
        if fact.usage is not None:
            self._spend(fact.usage, fact.cost_usd)
        if fact.ok:
            self._step_succeeded = True
            self.consecutive_errors = self.consecutive_unreadable = 0
        else:
            self._count_failure(fact)
        self._count_repeat(call.requested, fact)
        if not self.pending:
            self.phase = "thinking"
        if fact.child is not None and fact.ok and (card := self._cards.get(call.requested.tool)) is not None:
            self._take_over(card, fact)

    def _take_over(self, card: ToolCard, fact: Observed) -> None:
        """After a hand-off the run ends as the other agent's did."""
        if card.hands_over_to:
            self.taken_over, self.phase = fact, "answered"

    def _count_failure(self, fact: Observed) -> None:
        """Count every failed call in total, but at most one per decision in a row: the model sees them together."""
        self.total_errors += 1
        if not self._step_succeeded and not self._step_failed:
            self.consecutive_errors += 1
        self._step_failed = True
        if fact.error is not None and fact.error.code == TOOL_CALL_LIMIT:
            self.calls_refused_by_limit += 1

    def _count_repeat(self, requested: ActionRequested, observed: Observed) -> None:
        """Count the same action with the same result; a new result starts the count again, so polling is free."""
        result = observed.output_digest or observed.output if observed.error is None else observed.error.message
        last, times = self._results.get(requested.digest, ("", 0))
        times = times + 1 if times and last == result else 1
        self._results[requested.digest] = (result, times)
        if times > self.repeats:
            self.repeats = times
        if times == self.limits.repeat_tell:
            self.repeat_notices.append((requested.tool, times))

    def _limit_reached(self, fact: LimitReached, _at: float) -> None:
        self.limit_reached = fact

    def _noted(self, fact: Noted, _at: float) -> None:
        if fact.by == "guard" and (fact.about == CRITIQUE or fact.about.startswith(LESSON)):
            return
        if fact.about in (UNDONE, REVISION):
            if self.phase in ("decided", "answered", "closed"):  # what was decided before is decided again
                self.phase, self.answer, self.taken_over = "thinking", None, None
            if fact.about == REVISION:
                self.held_back = None
        elif fact.by == "guard" and fact.about in self.changed_tools:
            self.changed_tools.remove(fact.about)
        elif fact.by == "guard":
            self.repeat_notices = self.repeat_notices[1:]

    def _paused(self, fact: Paused, at: float) -> None:
        self.paused = fact
        for call_id in fact.waiting_for:
            if (call := self.pending.get(call_id)) is not None and call.doubt is None:
                call.waited = call.attempts  # these attempts wait in good order; nothing of them is lost
        self._end_segment(at)

    def _resumed(self, fact: Resumed, at: float) -> None:
        if self.finished is not None and self.finished.abandoned_by:
            raise IllegalEvent(f"Run {self.run_id} was abandoned; it cannot be resumed.")
        if self.finished is None and self.paused is None and self.events:
            self._end_segment(self.events[-1].at)  # the process died: its time ended with its last event
        was_blocked = self.finished is not None and self.finished.status in ("blocked", UNSUPPORTED)
        was_over = self.finished is not None and self.taken_over is not None
        if self.finished is not None:  # else the process died, or a person was asked: it was sent back once already
            self.held_back = None
        self.finished = self.paused = self.limit_reached = self.closing_reply = None
        self.overflowed = False  # the model may be another one
        self.consecutive_errors = self.consecutive_unreadable = self.repeats = 0
        self._results.clear()
        self.repeat_notices.clear()
        self.calls_refused_by_limit = 0
        if fact.limits is not None:
            self.limits = fact.limits
        if fact.approved_tiers is not None:
            self.approved_tiers = fact.approved_tiers
        if fact.cards:
            self._replace_cards(fact.cards)
        if fact.texts:
            self._replace_cards(fact.texts, texts_only=True)
        if fact.new_policy is not None:
            self._replace_policy(fact.new_policy)
        if self.phase == "closed" or was_blocked or was_over:
            self.phase, self.answer, self.taken_over = "thinking", None, None
        self._segment_at = at

    def _marked(self, fact: Marked, _at: float) -> None:
        if self.finished is None:
            raise IllegalEvent(f"Run {self.run_id} has not finished; it cannot take {fact.kind}.")

    def _finished(self, fact: Finished, at: float) -> None:
        self.finished = fact
        self._views.clear()  # a stored trace holds no prompt; a view that is still needed is built again
        self._end_segment(at)

    def _end_segment(self, at: float) -> None:
        if self._segment_at is not None:
            self._wall_before_s += max(0.0, at - self._segment_at)
            self._segment_at = None


_FACTS_AFTER_FINISH: tuple[type[Fact], ...] = (Resumed, Compensated, Marked)


def _drops_lesson(fact: Fact) -> bool:
    return isinstance(fact, Noted) and fact.about == DROPPED_LESSON


_FOLDS: dict[type[Fact], Callable[[Trace, Any, float], None]] = {
    RunStarted: Trace._run_started,
    ModelReplied: Trace._model_replied,
    ModelErred: Trace._model_erred,
    ReadDropped: Trace._read_dropped,
    Compacted: Trace._compacted,
    ReplyRejected: Trace._reply_rejected,
    ActionRequested: Trace._action_requested,
    JudgedAgain: Trace._judged_again,
    ApprovalGiven: Trace._approval,
    ApprovalRefused: Trace._approval,
    ActionStarted: Trace._action_started,
    InputAnswered: Trace._input_answered,
    InDoubt: Trace._in_doubt,
    DoubtSettled: Trace._doubt_settled,
    Observed: Trace._observed,
    Voted: Trace._voted,
    LimitReached: Trace._limit_reached,
    Noted: Trace._noted,
    Marked: Trace._marked,
    Paused: Trace._paused,
    Resumed: Trace._resumed,
    Finished: Trace._finished,
}
