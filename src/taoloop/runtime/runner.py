"""The only loop: ask the strategy what comes next, do it, write it down. It knows no rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from taoloop.core.action_requests import judge_calls, refused_observation
from taoloop.core.cards.decimals import carry_over_literals, decimal_literals
from taoloop.core.cards.tool_card import TIERS, ToolCard
from taoloop.core.decision import AnswerCheck, Call, call_digest
from taoloop.core.effects import AskPerson, CallModel, Effect, Finish, ProbeCalls, Record, RequestCalls, RunTools
from taoloop.core.events import ActionStarted, ApprovalGiven, Event, Fact, Fault, Finished, InDoubt, Paused, Verdict
from taoloop.core.handles import READER
from taoloop.core.message import Delta
from taoloop.core.redaction.redactor import Redactor, contains_redaction
from taoloop.core.text import RUN_LANGUAGE
from taoloop.core.texts import end_message
from taoloop.core.trace import Trace
from taoloop.core.views.steps import NO_OUTCOME, TIMED_OUT, CallView
from taoloop.core.views.transcript import observation_text
from taoloop.dialects.reply_events import reply_to_events
from taoloop.errors import HandedOver, InvalidArguments, ModelError, ModelTimeout, TaoError
from taoloop.journals.base import Artifact, Journal, Lease
from taoloop.models.base import DeltaFanout, DeltaListener, Model
from taoloop.policy import CodeRule, judge
from taoloop.runtime.approvals.in_doubt import ask_person, run_probe
from taoloop.runtime.approvals.questions import Questions, denying_rule
from taoloop.runtime.approvals.request import ApprovalAnswer, Approver, answer_fact
from taoloop.runtime.child_run import BudgetShare, ParentRun
from taoloop.runtime.engine.clock import Clock
from taoloop.runtime.engine.early_reads import EarlyReads
from taoloop.runtime.engine.redacted_stream import RedactedDeltas
from taoloop.runtime.engine.redaction import RealArguments
from taoloop.runtime.engine.time_limit import WaitTimer, within
from taoloop.runtime.engine.tool_execution import Outcome, execute_tool, fault_of, is_own_cancellation
from taoloop.strategies import Strategy
from taoloop.strategies.finish import on_model_error
from taoloop.strategies.limit_checks import remaining_s
from taoloop.tools.tool import Tool, ToolContext, ValidatedArgs
from taoloop.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from taoloop.runtime.engine.handle_resolver import HandleResolver
    from taoloop.runtime.engine.observation_reader import ObservationReader

Listener = Callable[[Event], None]
"""Called with every event once the journal has it. One that raises is logged, and the run goes on."""

_LOG = logging.getLogger("taoloop")

_REDACTED = "The arguments held a secret, which is not kept: the call cannot be made after a restart."
_CHANGED = "The tool takes other arguments now than when this call was judged, so it was not made."
_AGAIN = "Ask for the call again, with the secret."


class Runner:
    """Drives one run. Facts are folded into the trace at once and committed before the world is touched."""

    def __init__(
        self,
        trace: Trace,
        lease: Lease,
        *,
        journal: Journal,
        strategy: Strategy,
        model: Model,
        toolbox: Toolbox,
        clock: Clock,
        approver: Approver | None = None,
        listener: Listener | None = None,
        on_delta: DeltaListener | None = None,
        early_reads: bool = False,
        check_answer: AnswerCheck | None = None,
        rules: tuple[CodeRule, ...] = (),
        redactor: Redactor | None = None,
        handles: HandleResolver | None = None,
    ) -> None:
        self.trace, self._lease, self._journal = trace, lease, journal
        self._strategy, self._model, self._toolbox = strategy, model, toolbox
        self._clock, self._approver, self._listener = clock, approver, listener
        self._timer = WaitTimer()  # of the waits for the model, one after the other
        self._redactor, self._real = redactor, RealArguments()
        self._inherited = trace.last_reply  # its arguments are as they were kept
        self._clean = redactor.text if redactor is not None else None
        self._deltas: RedactedDeltas | None = None
        self._questions = Questions(trace, approver, clock)
        self._on_delta, self._check_answer, self._rules = on_delta, check_answer, rules
        self._handles = handles  # where the model reads no observations
        if handles is not None:
            self._check_answer = handles.check
        self._early = EarlyReads(trace, toolbox, self._begin_early, rules) if early_reads else None
        self._is_heard = on_delta is not None or early_reads
        self._has_agents = any(one.runs_inside for one in toolbox)
        self._asking: asyncio.Lock | None = None  # of the runs inside: they ask one question at a time
        self._left: set[tuple[str, int]] = set()  # doubts that a person put off, in this process
        self._waits: dict[str, ParentRun | HandedOver] = {}  # calls whose own run waits, or whose result comes later
        self._events: list[Event] = []
        self._unheard: list[Event] = []
        self._artifacts: list[Artifact] = []
        self._prepared: dict[str, ValidatedArgs] = {}  # arguments that were judged a moment ago, by call id

    def note(self, fact: Fact) -> None:
        """Add a fact to the trace, without the secrets in it; `commit` makes it last."""
        if self._redactor is not None and (shown := self._redactor.fact(fact)) is not fact:
            self._real.keep(fact, shown)
            fact = shown
        self._add(fact)

    def _add(self, fact: Fact) -> None:
        """Add a fact that holds no secret, for it is made of what holds none."""
        self._events.append(self.trace.add(fact, self._clock.now()))

    async def commit(self) -> None:
        """Write what was noted since the last commit. Returns when the journal has it."""
        if self._events:
            events, self._events = self._events, []
            artifacts: Sequence[Artifact] = ()
            if self._artifacts:
                artifacts, self._artifacts = self._artifacts, []
            if self._listener is not None:
                self._unheard += events  # also those of a commit that is cancelled: they are written all the same
            await self._journal.append(self._lease, events, artifacts)
        if self._unheard and self._listener is not None:
            heard, self._unheard = self._unheard, []
            for event in heard:
                try:
                    self._listener(event)
                except Exception:  # noqa: BLE001  # who listens must not end what happens
                    _LOG.exception("a listener of run %s failed at event %d", self.trace.run_id, event.seq)

    async def advance(self) -> None:
        """Go on until the run is finished or waits for a person.

        A cancellation ends the run as `stopped`, is written down, and goes on to the caller.

        Raises:
            JournalError: the journal cannot keep the trace; what was committed stays and can be resumed.
        """
        language = RUN_LANGUAGE.set(self.trace.agent.language)
        try:
            effects, trace, strategy, agent = 0, self.trace, self._strategy, self.trace.agent
            while trace.finished is None and trace.paused is None:
                effect = strategy.next(agent, trace)
                await _DOING[type(effect)](self, effect)
                effects += 1
                if effects % 64 == 0:  # where nothing ever waits, others and a cancellation still get their turn
                    await asyncio.sleep(0)
            await self.commit()  # a model that failed finishes the run without a further effect
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            if self.trace.finished is None:
                for dropped in self._early.cancel_all("stopped") if self._early else ():
                    self.note(dropped)
                reason = end_message(self.trace.agent.language, "stopped")
                self.note(Finished(status="stopped", answer=None, reason=reason))
            await asyncio.shield(self.commit())
            raise
        finally:
            RUN_LANGUAGE.reset(language)
            if self._early is not None:
                self._early.cancel_all("stopped")  # there are some left only where the journal failed

    # One method per effect

    async def _record(self, effect: Record) -> None:
        for fact in effect.facts:
            self._add(fact)

    async def _finish(self, effect: Finish) -> None:
        self._add(effect.fact if self._handles is None else await self._handles.finished(effect.fact))
        await self.commit()

    async def _request(self, effect: RequestCalls) -> None:
        is_clean = (
            self._real.is_empty and not self._rules
        )  # what the model wrote is in the trace; a rule may say anything
        add = self._add if is_clean else self.note
        if self._handles is not None:
            await self._handles.load([call.args for call in effect.act.calls])
            add = self.note  # what is filled in may make a secret of two halves
        judge_calls(self.trace, effect, self._check, self._judge, add)

    async def _ask_model(self, effect: CallModel) -> None:
        await self.commit()
        request, hearing = effect.request, self._hearing(effect) if self._is_heard else None
        if hearing is not None:
            request = replace(request, on_delta=hearing)
        began = self._clock.tick()
        try:
            waiting = self._model.complete(request)
            reply = await within(request.timeout_s, waiting, self._late, self._timer)
            if self._handles is not None:
                await self._handles.load(reply.text)
            facts: list[Fact] = reply_to_events(effect, reply, self._clock.tick() - began, self._check_answer)
        except ModelError as error:
            facts = [on_model_error(self.trace, effect, error)]
        except (Exception, asyncio.CancelledError, SystemExit) as error:  # a stated end, not a crash
            if is_own_cancellation(error):
                raise
            failed = ModelError(f"{self._model.spec}: {fault_of(error).message}")
            facts = [on_model_error(self.trace, effect, failed)]
        finally:
            if hearing is not None:
                if self._deltas is not None:
                    self._deltas.end()
                hearing.close()
        if self._early is not None and hearing is not None:  # a question beside the decision leaves its reads alone
            facts = [*self._early.reconcile(facts), *facts]
        for fact in facts:
            self.note(fact)

    def _hearing(self, effect: CallModel) -> DeltaFanout | None:
        """Who hears the reply while it is being written. A summary is nobody's business; a model need not stream it."""
        if effect.request.purpose in ("compact", "pin"):
            return None
        listeners = [] if self._on_delta is None else [self._on_delta]
        if listeners and self._redactor is not None:
            self._deltas = RedactedDeltas(self._redactor, listeners[0])
            listeners = [self._deltas]
        if self._early is not None:
            for left in self._early.expect(effect):
                self.note(left)
            listeners.insert(0, self._early.on_delta)
        return DeltaFanout(*listeners)

    async def _begin_early(self, call_id: str, key: str, tool: Tool, prepared: ValidatedArgs) -> Outcome:
        context = self._context(tool, call_id, key)
        timeout_s = remaining_s(self.trace, tool.card.timeout_s)
        return await execute_tool(tool, prepared.values, call_id, context, timeout_s, self._clock, clean=self._clean)

    def _context(
        self,
        tool: Tool,
        call_id: str,
        key: str = "",
        attempt: int = 1,
        inside: ParentRun | ObservationReader | None = None,
    ) -> ToolContext | None:
        """What a tool may know of its call, for those tools that ask."""
        if tool.context_parameter is None:
            return None
        return ToolContext(
            run_id=self.trace.run_id,
            call_id=call_id,
            idempotency_key=key or self._key(call_id),
            attempt=attempt,
            read_artifact=self._read_artifact,
            literals=partial(self._literals, call_id),
            progress=partial(self._progress, tool.name),
            parent_run=inside,
        )

    def _progress(self, name: str, text: str) -> None:
        """Tell who watches what a tool says of its work."""
        if self._on_delta is not None:
            shown = text if self._clean is None else self._clean(text)
            DeltaFanout(self._on_delta)(Delta(kind="progress", name=name, text=shown))

    def _literals(self, call_id: str, args: Any) -> Mapping[str, str]:
        """The decimals of a call as they stand in the reply that asked for it, or as a person put them there."""
        reply, call = self.trace.last_reply, self.trace.calls.get(call_id)
        texts = () if reply is None else (*(one.arguments for one in reply.tool_calls), reply.text)
        said = call.approval if call is not None else None
        if call is None or not isinstance(said, ApprovalGiven) or said.args is None:
            return decimal_literals(args, texts)
        if said.digits is not None:
            return carry_over_literals(said.digits, said.args, args)
        before = call.requested.args
        return carry_over_literals(decimal_literals(before, texts), before, args)

    def _told(self, call: CallView) -> ToolContext:
        """What a probe may know of the call that it is asked about."""
        call_id = call.requested.call_id
        return ToolContext(
            run_id=self.trace.run_id,
            call_id=call_id,
            idempotency_key=self._key(call_id),
            attempt=call.attempts,
            read_artifact=self._read_artifact,
        )

    def _key(self, call_id: str) -> str:
        """The idempotency key of a recorded call: the same for every attempt, and never made from its arguments."""
        return f"{self.trace.run_id}:{call_id}"

    def _late(self, timeout_s: float | None) -> ModelTimeout:
        return ModelTimeout(f"{self._model.spec} gave no reply within {timeout_s:g} s.")

    def _check(self, call_id: str, tool: str, args: Any) -> Mapping[str, Any] | Fault:
        args = args if self._real.is_empty else self._real.of(args)
        if self._redactor is not None and self.trace.last_reply is self._inherited and contains_redaction(args):
            return Fault(code=InvalidArguments.code, message=_REDACTED, hint=_AGAIN)
        if self._handles is not None and isinstance(args := self._handles.filled(call_id, tool, args), Fault):
            return args
        try:
            prepared = self._toolbox.get(tool).prepare(args)
        except TaoError as error:
            return fault_of(error, self._clean)
        self._prepared[call_id] = prepared
        return prepared.args

    def _judge(self, call_id: str, call: Call, card: ToolCard) -> Verdict:
        filled = self._handles is not None and self._handles.takes_values(call_id)
        return judge(self.trace, call, card, rules=self._rules, filled=filled)

    async def _run_tools(self, effect: RunTools) -> None:
        """Journal the intents, then run the calls; every outcome is noted as soon as it is there."""
        calls = effect.calls
        for call in calls:
            card = self.trace.card(call.requested.tool)
            if card is None or not card.reads_only:
                call_id = call.requested.call_id
                key, attempt = self._key(call_id), call.attempts + 1
                self._add(ActionStarted(call_id=call_id, idempotency_key=key, attempt=attempt))
        await self.commit()
        share = self._share(calls) if self._has_agents else None
        if len(calls) == 1:
            await self._run_tool(calls[0], share)
        else:
            await self._run_together(calls, share)
        if self._waits:
            self._pause_with_calls()

    async def _run_together(self, calls: tuple[CallView, ...], share: BudgetShare | None) -> None:
        tasks = [asyncio.create_task(self._run_tool(call, share)) for call in calls]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _lent(self, tool: Tool, share: BudgetShare | None, step: int) -> ParentRun | ObservationReader | None:
        """What a call of an agent, or of the reader of observations, gets of this run."""
        if self._handles is not None and tool.name == READER:
            return self._handles.reading(step, self.note, self._clock.tick)
        if share is None or not tool.runs_inside:
            return None
        asking = self._asking = self._asking or asyncio.Lock()
        return ParentRun(
            parent=self.trace,
            journal=self._journal,
            approver=self._approver,
            share=share,
            asking=asking,
            redactor=self._redactor,
        )

    def _share(self, calls: tuple[CallView, ...]) -> BudgetShare:
        """What each of the agents among these calls may use of what is left."""
        names = [call.requested.tool for call in calls]
        agents = sum(name in self._toolbox and self._toolbox.get(name).runs_inside for name in names)
        return BudgetShare.of(self.trace, agents)

    def _pause_with_calls(self) -> None:
        """A run waits with the runs inside it, or for a result from outside: the calls are taken up at a resume."""
        waiting, self._waits = self._waits, {}
        tools = {call_id: self.trace.pending[call_id].requested.tool for call_id in waiting}
        detail = "; ".join(f"{tools[call_id]} ({call_id}): {one.waits_for}" for call_id, one in waiting.items())
        inner = [one for one in waiting.values() if isinstance(one, ParentRun)]
        asked = {tier for one in inner for tier in one.tiers}
        self.note(
            Paused(
                reason=end_message(self.trace.agent.language, "waiting" if inner else "handed_over", detail=detail),
                waiting_for=tuple(waiting),
                tiers=tuple(tier for tier in TIERS if tier in asked),
            )
        )

    async def _run_tool(self, call: CallView, share: BudgetShare | None) -> None:
        requested, call_id = call.requested, call.requested.call_id
        prepared = self._prepared.pop(call_id, None)
        args = call.args if self._real.is_empty else self._real.of_call(call)
        try:
            tool = self._toolbox.get(requested.tool)
            if prepared is None or prepared.args is not args:  # resumed, or edited by a person
                prepared = self._prepare_again(tool, call, args)
        except TaoError as error:  # the tool is another one than when the run began
            if call.attempts > 1:  # this attempt did not happen; of those before nobody knows
                self.note(InDoubt(call_id=call_id, reason=NO_OUTCOME))
                return
            self.note(refused_observation(call_id, fault_of(error, self._clean)))
            return
        is_alone = share is None and self._handles is None
        inside = None if is_alone else self._lent(tool, share, requested.step)
        if self._early is not None and (begun := self._early.claim(requested)) is not None:
            outcome = await begun
        else:
            context = None
            if tool.context_parameter is not None:
                context = self._context(tool, call_id, attempt=max(1, call.attempts), inside=inside)
            timeout_s = remaining_s(self.trace, tool.card.timeout_s)
            if tool.connection_parameter is not None:
                await self._transact(call, tool, prepared, context, timeout_s)
                return
            key = self._key(call_id) if call.attempts else ""
            outcome = await execute_tool(
                tool, prepared.values, call_id, context, timeout_s, self._clock, key, self._clean
            )
        if (later := outcome.handed_over or _waiting(inside)) is not None:
            self._waits[call_id] = later
            return
        if outcome.is_lost and call.attempts and inside is None:
            self.note(InDoubt(call_id=call_id, reason=TIMED_OUT))
            await self.commit()
            return
        if outcome.artifact is not None:
            self._artifacts.append(outcome.artifact)
        if inside is None:
            self._add(outcome.observed)
        else:
            self.note(inside.settled(outcome.observed))
        if not tool.card.reads_only:
            await self.commit()

    def _prepare_again(self, tool: Tool, call: CallView, args: Any) -> ValidatedArgs:
        """Arguments that were judged by another process, or given by a person: they must be what was allowed.

        Raises:
            InvalidArguments: they do not fit, hold a label in place of a secret, or the tool is another one now.
        """
        if self._redactor is not None and args == call.args and contains_redaction(args):  # these are not the real ones
            raise InvalidArguments(_REDACTED, hint=_AGAIN)
        prepared = tool.prepare(args)
        if not tool.card.reads_only and (prepared.args != args or self._is_another(tool)):
            raise InvalidArguments(_CHANGED, hint="Ask for the call again, as the tool is now.")
        return prepared

    def _is_another(self, tool: Tool) -> bool:
        """Whether a tool takes other arguments, or fills in others, than when its calls were judged.

        The run may have the card in its own language or, if an earlier version stored it, in English.
        """
        card = self.trace.card(tool.name)
        schemas = [card_now.input_schema for card_now in (tool.card, tool.card_in(self.trace.agent.language))]
        if self._redactor is not None:
            schemas = [self._redactor.value(schema) for schema in schemas]
        digests = [call_digest(tool.name, schema) for schema in schemas]
        return card is None or call_digest(tool.name, card.input_schema) not in digests

    async def _transact(
        self, call: CallView, tool: Tool, prepared: ValidatedArgs, context: ToolContext | None, timeout_s: float | None
    ) -> None:
        """Run a call whose effect and outcome the journal keeps together. It runs alone: nothing is noted meanwhile."""
        from taoloop.runtime.engine.transactional_tools import transact  # noqa: PLC0415  # loads the database

        call_id = call.requested.call_id

        def run(values: Mapping[str, Any], limit_s: float) -> Coroutine[Any, Any, Outcome]:
            return execute_tool(tool, values, call_id, context, limit_s, self._clock, clean=self._clean)

        undone = await transact(
            self._journal, self._lease, tool, prepared.values, timeout_s, run, self._next_event, self._take_in
        )
        if undone is not None:
            self.note(undone.observed)
        await self.commit()

    def _next_event(self, fact: Fact) -> Event:
        if self._redactor is not None and (shown := self._redactor.fact(fact)) is not fact:
            self._real.keep(fact, shown)
            fact = shown
        return Event(len(self.trace.events), self._clock.now(), fact)

    def _take_in(self, event: Event) -> None:
        """Add an event that the journal has already."""
        self.trace.append(event)
        if self._listener is not None:
            self._unheard.append(event)

    async def _probe(self, effect: ProbeCalls) -> None:
        """Ask the probes of calls in doubt, all at the same time; what they find is noted when all have answered."""
        await self.commit()
        asked = [(call, self._real.of_call(call), self._told(call)) for call in effect.calls]
        found = await asyncio.gather(*(run_probe(self._toolbox, *one, self._clock, self._clean) for one in asked))
        for settled, outcome in found:
            self.note(settled)
            if outcome is not None:
                if outcome.artifact is not None:
                    self._artifacts.append(outcome.artifact)
                self.note(outcome.observed)
        await self.commit()

    async def _ask(self, effect: AskPerson) -> None:
        await self.commit()
        if not await self._ask_about(effect.doubts):
            await self._ask_person(effect.calls, effect.doubts)
        await self.commit()

    async def _ask_about(self, doubts: tuple[CallView, ...]) -> bool:
        """Ask a person about calls in doubt, once in the life of this process; True if one of them is settled."""
        for call in doubts:
            if self._approver is None or (call.requested.call_id, call.attempts) in self._left:
                continue
            settled = await ask_person(self._approver, self.trace, call)
            if settled is not None:
                self.note(settled)
                return True
            self._left.add((call.requested.call_id, call.attempts))
        return False

    async def _read_artifact(self, ref: str) -> str | None:
        artifact = await self._journal.artifact(self.trace.run_id, ref)
        if artifact is not None:
            return artifact.body
        call = self.trace.calls.get(ref.removeprefix("obs_"))  # short enough to stand in the trace
        return None if call is None or call.observed is None else observation_text(call.observed)

    async def _ask_person(self, calls: tuple[CallView, ...], doubts: tuple[CallView, ...] = ()) -> None:
        """Put the next question; without an answer to any, the run waits."""
        if answers := await self._questions.put(calls):
            for call, answer in answers:
                self.note(answer_fact(call, self._judged(call, answer)))
            return
        waiting = [call.requested for call in (*calls, *doubts)]
        texts = [("waiting", calls), ("in_doubt", doubts)]
        reasons = [end_message(self.trace.agent.language, name, detail=_names(some)) for name, some in texts if some]
        self.note(Paused(reason=" ".join(reasons), waiting_for=tuple(requested.call_id for requested in waiting)))

    def _judged(self, call: CallView, answer: ApprovalAnswer) -> ApprovalAnswer:
        """The answer, with edited arguments held to the tool's schema and the operator's rules: else it is refused."""
        if not answer.approved or answer.args is None:
            return answer
        try:
            answer = replace(answer, args=self._toolbox.get(call.requested.tool).prepare(_plain(answer.args)).args)
        except InvalidArguments as error:
            why = "" if self._handles is not None else f": {error}"  # it may quote what the model must not read
            return ApprovalAnswer(approved=False, by=answer.by, note=f"the edited arguments do not fit{why}")
        if (barred := denying_rule(self.trace, call, answer, self._rules)) is not None:
            return ApprovalAnswer(approved=False, by=answer.by, note=barred)
        return answer


_DOING: dict[type[Effect], Callable[[Runner, Any], Coroutine[Any, Any, None]]] = {
    CallModel: Runner._ask_model,
    RequestCalls: Runner._request,
    RunTools: Runner._run_tools,
    ProbeCalls: Runner._probe,
    AskPerson: Runner._ask,
    Record: Runner._record,
    Finish: Runner._finish,
}
"""How each effect is done."""


def _waiting(inside: ParentRun | ObservationReader | None) -> ParentRun | None:
    """The run inside, where it waits for a person."""
    return inside if isinstance(inside, ParentRun) and inside.waits_for is not None else None


def _names(calls: tuple[CallView, ...]) -> str:
    return ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in calls)


def _plain(args: object) -> object:
    """Edited arguments as the dict that tools take; anything else stays for the tool to refuse."""
    return dict(args) if isinstance(args, Mapping) else args
