"""The only loop: ask the strategy for the next effect, perform it, record it. It knows no rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taoloop.core.action_requests import failed_observation, judge_calls, judged_again, trace_before
from taoloop.core.cards.tool_card import TIERS, ToolCard
from taoloop.core.decision import AnswerCheck, Call
from taoloop.core.effects import (
    AskPerson,
    CallModel,
    Effect,
    Finish,
    JudgeAgain,
    ModelRequest,
    ProbeCalls,
    Record,
    RequestCalls,
    RunTools,
)
from taoloop.core.events import ActionStarted, AnyEvent, Event, Fact, Fault, Finished, InDoubt, Paused, Verdict
from taoloop.core.handles import READER
from taoloop.core.message import UNSTREAMED
from taoloop.core.redaction.redactor import Redactor, contains_redaction
from taoloop.core.text import RUN_LANGUAGE
from taoloop.core.texts import end_message
from taoloop.core.trace import Trace
from taoloop.core.views.steps import NO_OUTCOME, TIMED_OUT, CallView
from taoloop.dialects.reply_events import reply_to_events
from taoloop.errors import HandedOver, InvalidArguments, ModelError, ModelTimeout, TaoError
from taoloop.journals.base import Artifact, Journal, Lease
from taoloop.models.base import DeltaFanout, DeltaListener, Model
from taoloop.policy import CodeRule, judge
from taoloop.runtime.approvals.in_doubt import ask_person, earlier_holder, run_probe
from taoloop.runtime.approvals.input_requests import InputRequests
from taoloop.runtime.approvals.request import Approver, Questions, answer_fact
from taoloop.runtime.approvals.user_questions import valid_answer
from taoloop.runtime.child_run import BudgetShare, ParentRun, inner_progress
from taoloop.runtime.engine.call_context import CallContexts
from taoloop.runtime.engine.clock import Clock, within
from taoloop.runtime.engine.early_reads import EarlyReads
from taoloop.runtime.engine.redacted_stream import RedactedDeltas
from taoloop.runtime.engine.redaction import RealArguments
from taoloop.runtime.engine.run_artifacts import RunArtifacts
from taoloop.runtime.engine.tool_execution import Outcome, execute_tool, fault_of, is_own_cancellation, transact
from taoloop.runtime.engine.tool_retries import retried
from taoloop.runtime.journal_access import is_left
from taoloop.runtime.texts import TEXTS
from taoloop.strategies import Strategy
from taoloop.strategies.termination import on_model_error, remaining_s
from taoloop.tools.tool import RunContext, Tool, ValidatedArgs
from taoloop.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from taoloop.runtime.engine.handle_resolver import HandleResolver, ObservationReader
    from taoloop.runtime.engine.hook_calls import HookCalls

Listener = Callable[[AnyEvent], None]
"""Called with every event once the journal has it. If it raises, that is logged, and the run continues."""

_LOG = logging.getLogger("taoloop")


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
        artifacts: RunArtifacts | None = None,
        deps: Any = None,
        hooks: Callable[..., HookCalls] | None = None,
    ) -> None:
        self.trace, self._lease, self._journal = trace, lease, journal
        self._strategy, self._model, self._toolbox = strategy, model, toolbox
        self._clock, self._approver, self._listener = clock, approver, listener
        self._redactor, self._real = redactor, RealArguments()
        self._stored_reply = trace.last_reply  # its arguments are as they were stored
        self._clean = redactor.text if redactor is not None else None
        self._deltas: RedactedDeltas | None = None
        self._questions = Questions(trace, approver, clock)
        self._inputs = InputRequests(trace, approver, clock)
        self._on_delta, self._check_answer, self._rules = on_delta, check_answer, rules
        self._handles = handles  # where the model reads no observations
        if handles is not None:
            self._check_answer = handles.check
        self._early = EarlyReads(trace, toolbox, self._start_early, rules) if early_reads else None
        self._streams, self._has_agents = on_delta is not None or early_reads, any(tool.runs_inside for tool in toolbox)
        self._postponed: set[tuple[str, int]] = set()  # doubts that a person has postponed, in this process
        self._waiting: dict[str, ParentRun | HandedOver] = {}  # calls whose own run waits, or whose result comes later
        self._events: list[Event] = []
        self._unreported: list[Event] = []
        self._artifacts, self._deps = artifacts or RunArtifacts(trace, journal), deps
        self._contexts = CallContexts(
            trace, self._artifacts, self._inputs, deps=deps, on_delta=on_delta, clean=self._clean
        )
        self._hooks = hooks and hooks(context=self._contexts.of_hook, note=self.note, clean=self._clean)
        self._prepared: dict[str, ValidatedArgs] = {}  # arguments that were judged a moment ago, by call id

    def note(self, fact: Fact) -> None:
        """Add a fact to the trace, without the secrets in it; `commit` stores it."""
        self._add(self._redact(fact))

    def _redact(self, fact: Fact) -> Fact:
        if self._redactor is None or (redacted := self._redactor.fact(fact)) is fact:
            return fact
        self._real.keep(fact, redacted)
        return redacted

    def _add(self, fact: Fact) -> None:
        """Add a fact that contains no secret."""
        self._events.append(self.trace.add(fact, self._clock.now()))

    async def commit(self) -> None:
        """Write the facts that were noted since the last commit. Returns when the journal has them."""
        if self._events:
            events, self._events = self._events, []
            artifacts: Sequence[Artifact] = ()
            if self._artifacts.pending:
                artifacts, self._artifacts.pending = self._artifacts.pending, []
            if self._listener is not None:
                self._unreported += events  # also those of a commit that is cancelled: they are written all the same
            await self._journal.append(self._lease, events, artifacts)
        if self._unreported and self._listener is not None:
            unreported, self._unreported = self._unreported, []
            for event in unreported:
                try:
                    self._listener(event)  # type: ignore[arg-type]  # one of them
                except Exception:  # noqa: BLE001  # a listener must not end the run
                    _LOG.exception("a listener of run %s failed at event %d", self.trace.run_id, event.seq)

    async def advance(self) -> None:
        """Continue until the run is finished or waits for a person.

        A cancellation ends the run as `stopped`, which is recorded, and is raised again; of a run that a worker leaves
        nothing is recorded.

        Raises:
            JournalError: the journal cannot keep the trace; what was committed stays and can be resumed.
        """
        language = RUN_LANGUAGE.set(self.trace.agent.language)
        try:
            effects, trace, strategy, agent = 0, self.trace, self._strategy, self.trace.agent
            while trace.finished is None and trace.paused is None:
                effect = strategy.next(agent, trace)
                await _PERFORM[type(effect)](self, effect)
                effects += 1
                if effects % 64 == 0:  # if nothing ever waits, other tasks and a cancellation still get their turn
                    await asyncio.sleep(0)
            await self.commit()  # a model that failed finishes the run without a further effect
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            if is_left(self._journal):
                raise
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
                self._early.cancel_all("stopped")  # some are still running only if the journal failed

    # One method per effect

    async def _record(self, effect: Record) -> None:
        for fact in effect.facts:
            self._add(fact)

    async def _finish(self, effect: Finish) -> None:
        self._add(effect.fact if self._handles is None else await self._handles.fill_answer(effect.fact))
        await self.commit()

    async def _request(self, effect: RequestCalls) -> None:
        if self._hooks is not None and self._hooks.sees_requests:
            await self.commit()  # the reply must not be lost while a hook is at work
            toolbox = self._toolbox if self._handles is None else None  # handles fit once they are filled in
            effect = await self._hooks.before_tools(effect, self._real, toolbox)
        is_clean = (
            self._real.is_empty and not self._rules and self._hooks is None
        )  # the reasons of a rule may contain anything
        add = self._add if is_clean else self.note
        if self._handles is not None:
            await self._handles.load([call.args for call in effect.act.calls])
            add = self.note  # a value that is filled in may complete a secret
        judge_calls(self.trace, effect, self._check, self._judge, add)

    async def _judge_again(self, effect: JudgeAgain) -> None:
        for call in effect.calls:
            self.note(self._judged_again(call))

    def _judged_again(self, call: CallView) -> Fact:
        """The verdict on an open call by the card that its tool has now, or why the call does not fit it any more."""
        requested = call.requested
        call_id, args = requested.call_id, self._real.of(requested.args)
        card = self.trace.card(requested.tool)
        try:
            prepared = self._prepare_stored(self._toolbox.get(requested.tool), args, requested.args)
        except TaoError as error:
            return failed_observation(call_id, fault_of(error, self._clean))
        assert card is not None  # noqa: S101  # it is among those that have changed
        now = Call(tool=requested.tool, args=prepared.args)
        before = trace_before(self.trace, call_id)
        filled, replaces = requested.written is not None, self._toolbox.get(card.name).would_replace(prepared.args)
        verdict = judge(before, now, card, rules=self._rules, filled=filled, replaces=replaces)
        return judged_again(self.trace.agent.policy, requested, prepared.args, card, verdict)

    async def _ask_model(self, effect: CallModel) -> None:
        await self.commit()
        request, fanout = effect.request, self._delta_fanout(effect) if self._streams else None
        if fanout is not None:
            request = replace(request, on_delta=fanout)
        if self.trace.has_attachments:
            request = replace(request, image_data=await self._artifacts.data_for(request.messages) or None)
        try:
            facts: list[Fact] = await self._reply_facts(effect, request)
        except ModelError as error:
            facts = [on_model_error(self.trace, effect, error)]
        except (Exception, asyncio.CancelledError, SystemExit) as error:  # a finish with a reason, not a crash
            if is_own_cancellation(error):
                raise
            failed = ModelError(f"{self._model.spec}: {fault_of(error).message}")
            facts = [on_model_error(self.trace, effect, failed)]
        finally:
            if fanout is not None:
                if self._deltas is not None:
                    self._deltas.end()
                fanout.close()
        if self._early is not None and fanout is not None:  # a side question leaves the reads running
            facts = [*self._early.reconcile(facts), *facts]
        for fact in facts:
            self.note(fact)

    async def _reply_facts(self, effect: CallModel, request: ModelRequest) -> list[Fact]:
        """What the reply to a question comes to, as hooks leave it."""
        hooks = self._hooks
        if hooks is not None:
            request = await hooks.before_model(request, effect.step)
        began = self._clock.tick()
        reply = await within(request.timeout_s, self._model.complete(request), self._model_timeout)
        if self._handles is not None:
            await self._handles.load(reply.text)
        facts = reply_to_events(effect, reply, self._clock.tick() - began, self._check_answer)
        return facts if hooks is None else await hooks.after_model(effect, reply, facts, self._check_answer)

    def _delta_fanout(self, effect: CallModel) -> DeltaFanout | None:
        """What receives the reply while it is being written; None for one that is not shown before it is whole."""
        if effect.request.purpose in UNSTREAMED:
            return None
        listeners = [] if self._on_delta is None else [self._on_delta]
        if listeners and self._redactor is not None:
            self._deltas = RedactedDeltas(self._redactor, listeners[0])
            listeners = [self._deltas]
        if self._early is not None:
            for dropped in self._early.expect(effect):
                self.note(dropped)
            listeners.insert(0, self._early.on_delta)
        return DeltaFanout(*listeners)

    async def _start_early(self, call_id: str, key: str, tool: Tool, prepared: ValidatedArgs) -> Outcome:
        return await self._execution(tool, prepared, call_id, self._context(tool, call_id, key))

    def _execution(
        self, tool: Tool, prepared: ValidatedArgs, call_id: str, context: RunContext | None, key: str = ""
    ) -> Coroutine[Any, Any, Outcome]:
        limit_s, progress = remaining_s(self.trace, tool.card.timeout_s), self._contexts.report_progress
        return execute_tool(tool, prepared.values, call_id, context, limit_s, self._clock, key, self._clean, progress)

    async def _retried(self, call: CallView, tool: Tool, prepared: ValidatedArgs, outcome: Outcome) -> Outcome:
        """The outcome after the attempts that the tool allows."""
        call_id = call.requested.call_id
        key = self._contexts.key(call_id)

        async def begin(started: ActionStarted) -> None:
            self.note(started)
            await self.commit()

        def again(attempt: int) -> Coroutine[Any, Any, Outcome]:
            context = self._context(tool, call_id, attempt=attempt)
            return self._execution(tool, prepared, call_id, context, "" if tool.card.reads_only else key)

        return await retried(tool, call_id, key, outcome, self.trace, begin, again)

    def _context(
        self,
        tool: Tool,
        call_id: str,
        key: str = "",
        attempt: int = 1,
        parent: ParentRun | ObservationReader | None = None,
    ) -> RunContext | None:
        """What a tool may know about its call; None for a tool that takes no context."""
        return self._contexts.of_call(tool, call_id, (self.note, self.commit), key, attempt, parent)

    def _model_timeout(self, timeout_s: float | None) -> ModelTimeout:
        return ModelTimeout(TEXTS.run_text("model_late", spec=self._model.spec, s=timeout_s))

    def _check(self, call_id: str, tool: str, args: Any) -> Mapping[str, Any] | Fault:
        if self._hooks is not None and (refusal := self._hooks.refusal(call_id)) is not None:
            return refusal
        args = args if self._real.is_empty else self._real.of(args)
        if self._redactor is not None and self.trace.last_reply is self._stored_reply and contains_redaction(args):
            hint = TEXTS.run_text("args_redacted_hint")
            return Fault(code=InvalidArguments.code, message=TEXTS.run_text("args_redacted"), hint=hint)
        if self._handles is not None and isinstance(args := self._handles.fill(call_id, tool, args), Fault):
            return args
        try:
            prepared = self._toolbox.get(tool).prepare(args)
        except TaoError as error:
            return fault_of(error, self._clean)
        self._prepared[call_id] = prepared
        return prepared.args

    def _judge(self, call_id: str, call: Call, card: ToolCard) -> Verdict:
        filled = self._handles is not None and self._handles.has_filled(call_id)
        replaces = self._toolbox.get(call.tool).would_replace(call.args)
        return judge(self.trace, call, card, rules=self._rules, filled=filled, replaces=replaces)

    async def _run_tools(self, effect: RunTools) -> None:
        """Journal the intents, then run the calls; every outcome is noted at once."""
        calls = effect.calls
        for call in calls:
            card = self.trace.card(call.requested.tool)
            if card is None or not card.reads_only:
                call_id = call.requested.call_id
                key, attempt = self._contexts.key(call_id), call.attempts + 1
                progress = await self._progress_inside(call) if call.attempts else 0
                self._add(ActionStarted(call_id=call_id, idempotency_key=key, attempt=attempt, progress=progress))
        await self.commit()
        share = self._budget_share(calls) if self._has_agents else None
        if len(calls) == 1:
            await self._run_tool(calls[0], share)
        else:
            await self._run_in_parallel(calls, share)
        if self._waiting:
            self._pause_with_calls()

    async def _progress_inside(self, call: CallView) -> int:
        """How far the run of a call of an agent has come; 0 for any other call."""
        name, call_id = call.requested.tool, call.requested.call_id
        if name not in self._toolbox or not self._toolbox.get(name).runs_inside:
            return 0
        return (await inner_progress(self._journal, self.trace, call_id)).events

    async def _run_in_parallel(self, calls: tuple[CallView, ...], share: BudgetShare | None) -> None:
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

    def _parent_for(self, tool: Tool, share: BudgetShare | None, step: int) -> ParentRun | ObservationReader | None:
        """What a call of an agent, or of the reader of observations, gets of this run; None for any other tool."""
        if self._handles is not None and tool.name == READER:
            return self._handles.reader(step, self.note, self._clock.tick)
        if share is None or not tool.runs_inside:
            return None
        return ParentRun(
            parent=self.trace,
            journal=self._journal,
            approver=self._approver,
            share=share,
            question_lock=self._inputs.lock,
            redactor=self._redactor,
            rules=self._rules,
            deps=self._deps,
        )

    def _budget_share(self, calls: tuple[CallView, ...]) -> BudgetShare:
        """The share of the remaining budget that each of the agents among these calls may use."""
        names = [call.requested.tool for call in calls]
        agents = sum(name in self._toolbox and self._toolbox.get(name).runs_inside for name in names)
        return BudgetShare(max(1, agents), self.trace.usage.total_tokens, self.trace.cost_usd)

    def _pause_with_calls(self) -> None:
        """Pause with the child runs that wait, or for results from outside; a resume continues the calls."""
        waiting, self._waiting = self._waiting, {}
        names = {call_id: self.trace.pending[call_id].requested.tool for call_id in waiting}
        detail = "; ".join(f"{names[call_id]} ({call_id}): {cause.waits_for}" for call_id, cause in waiting.items())
        children = [cause for cause in waiting.values() if isinstance(cause, ParentRun)]
        tiers = {tier for child in children for tier in child.tiers}
        self.note(
            Paused(
                reason=end_message(self.trace.agent.language, "waiting" if children else "handed_over", detail=detail),
                waiting_for=tuple(waiting),
                tiers=tuple(tier for tier in TIERS if tier in tiers),
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
            if call.attempts > 1:  # this attempt did not happen; earlier ones may have
                self.note(InDoubt(call_id=call_id, reason=NO_OUTCOME))
                return
            self.note(failed_observation(call_id, fault_of(error, self._clean)))
            return
        is_alone = share is None and self._handles is None
        parent = None if is_alone else self._parent_for(tool, share, requested.step)
        if self._early is not None and (early_read := self._early.claim(requested)) is not None:
            outcome = await early_read
        else:
            context = None
            if tool.context_parameter is not None:
                context = self._context(tool, call_id, attempt=max(1, call.attempts), parent=parent)
            if tool.connection_parameter is not None:
                await self._transact(call, tool, prepared, context, remaining_s(self.trace, tool.card.timeout_s))
                return
            key = self._contexts.key(call_id) if call.attempts else ""
            outcome = await self._execution(tool, prepared, call_id, context, key)
        outcome = outcome if not tool.retries else await self._retried(call, tool, prepared, outcome)
        if (later := outcome.handed_over or _waiting_child(parent)) is not None:
            self._waiting[call_id] = later
            return
        if outcome.is_lost and call.attempts and parent is None and not tool.card.reads_only:
            self.note(InDoubt(call_id=call_id, reason=TIMED_OUT))
            await self.commit()
            return
        if outcome.images or outcome.files or self._hooks is not None:
            outcome = await self._take_in(call, prepared.args, tool, outcome)
        self._artifacts.pending += outcome.artifacts
        if parent is None:
            self._add(outcome.observed)
        else:
            self.note(parent.settled(outcome.observed))
        if not tool.card.reads_only:
            await self.commit()

    async def _take_in(self, call: CallView, args: Any, tool: Tool, outcome: Outcome) -> Outcome:
        """The outcome of a call as hooks leave it, with its images and files taken in."""
        if self._hooks is not None and self._hooks.sees_outcomes:
            outcome = await self._hooks.after_tool(call, args, tool, outcome)
        return await self._artifacts.accept(outcome)

    def _prepare_again(self, tool: Tool, call: CallView, args: Any) -> ValidatedArgs:
        """Prepare arguments that another process judged, or a person edited: they must be what was allowed.

        Raises:
            InvalidArguments: they do not fit, contain a label in place of a secret, or the tool has changed.
        """
        prepared = self._prepare_stored(tool, args, call.args)
        if not tool.card.reads_only and prepared.args != args:
            raise InvalidArguments(TEXTS.run_text("tool_changed"), hint=TEXTS.run_text("tool_changed_hint"))
        return prepared

    def _prepare_stored(self, tool: Tool, args: Any, stored: Any) -> ValidatedArgs:
        """Prepare arguments of an earlier process, of which the trace has what is `stored`: labels are no secrets."""
        if self._redactor is not None and args == stored and contains_redaction(args):
            raise InvalidArguments(TEXTS.run_text("args_redacted"), hint=TEXTS.run_text("args_redacted_hint"))
        return tool.prepare(args)

    async def _transact(
        self, call: CallView, tool: Tool, prepared: ValidatedArgs, context: RunContext | None, timeout_s: float | None
    ) -> None:
        """Run a call whose effect and outcome the journal stores in one transaction. Nothing else runs meanwhile."""
        call_id = call.requested.call_id

        async def run(values: Mapping[str, Any], limit_s: float) -> Outcome:
            how = (context, limit_s, self._clock, "", self._clean, self._contexts.report_progress)
            outcome = await execute_tool(tool, values, call_id, *how)
            return await self._artifacts.accept(outcome, describes=False)  # other processes wait for the file

        def next_event(fact: Fact) -> Event:
            return Event(len(self.trace.events), self._clock.now(), self._redact(fact))

        failed = await transact(
            self._journal, self._lease, tool, prepared.values, timeout_s, run, next_event, self._add_committed
        )
        if failed is not None:
            self.note(failed.observed)
        await self.commit()

    def _add_committed(self, event: Event) -> None:
        """Add an event that the journal has already."""
        self.trace.append(event)
        if self._listener is not None:
            self._unreported.append(event)

    async def _probe(self, effect: ProbeCalls) -> None:
        """Ask the probes of calls in doubt, all at the same time; their reports are noted when all have answered."""
        await self.commit()
        probes = [
            run_probe(
                self._toolbox,
                call,
                self._real.of_call(call),
                self._contexts.of_probe(call),
                self._clock,
                self._clean,
                earlier_holder(self.trace, call),
            )
            for call in effect.calls
        ]
        for call, (settled, outcome) in zip(effect.calls, await asyncio.gather(*probes), strict=True):
            self.note(settled)
            if outcome is not None:
                tool = self._toolbox.get(call.requested.tool)
                taken_in = await self._take_in(call, self._real.of_call(call), tool, outcome)
                self._artifacts.pending += taken_in.artifacts
                self.note(taken_in.observed)
        await self.commit()

    async def _ask(self, effect: AskPerson) -> None:
        await self.commit()
        if not await self._ask_about_doubts(effect.doubts):
            await self._ask_about_calls(effect.calls, effect.doubts)
        await self.commit()

    async def _ask_about_doubts(self, doubts: tuple[CallView, ...]) -> bool:
        """Ask a person about calls in doubt, once in the life of this process; True if one of them is settled."""
        for call in doubts:
            if self._approver is None or (call.requested.call_id, call.attempts) in self._postponed:
                continue
            settled = await ask_person(self._approver, self.trace, call)
            if settled is not None:
                self.note(settled)
                return True
            self._postponed.add((call.requested.call_id, call.attempts))
        return False

    async def _ask_about_calls(self, calls: tuple[CallView, ...], doubts: tuple[CallView, ...] = ()) -> None:
        """Put the next question; without an answer to any, the run waits."""
        answers, unusable = await self._questions.ask_next(calls), list[str]()
        hides = self._handles is not None  # then nothing may say why arguments do not fit
        for call, given_answer in answers:
            try:
                answer = valid_answer(self.trace, call, given_answer, self._toolbox, self._rules, hides=hides)
            except InvalidArguments as error:
                unusable.append(self._questions.postpone(call, error))
            else:
                self.note(answer_fact(call, answer))
        if len(answers) > len(unusable):
            return
        reasons = [
            end_message(self.trace.agent.language, name, detail=_names(open_calls))
            for name, open_calls in (("waiting", calls), ("in_doubt", doubts))
            if open_calls
        ]
        waiting_for = tuple(call.requested.call_id for call in (*calls, *doubts))
        self.note(Paused(reason=" ".join([*reasons, *unusable]), waiting_for=waiting_for))


_PERFORM: dict[type[Effect], Callable[[Runner, Any], Coroutine[Any, Any, None]]] = {
    CallModel: Runner._ask_model,
    RequestCalls: Runner._request,
    JudgeAgain: Runner._judge_again,
    RunTools: Runner._run_tools,
    ProbeCalls: Runner._probe,
    AskPerson: Runner._ask,
    Record: Runner._record,
    Finish: Runner._finish,
}
"""What performs each effect."""


def _waiting_child(parent: ParentRun | ObservationReader | None) -> ParentRun | None:
    """The call's own run, where it waits for a person."""
    return parent if isinstance(parent, ParentRun) and parent.waits_for is not None else None


def _names(calls: tuple[CallView, ...]) -> str:
    return ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in calls)
