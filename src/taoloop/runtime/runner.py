"""The only loop: ask the strategy what comes next, do it, write it down. It knows no rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.cards import TIERS
from taoloop.core.effects import AskPerson, CallModel, Finish, Record, RequestCalls, RunTools
from taoloop.core.events import ActionStarted, Event, Fact, Fault, Finished, Paused
from taoloop.core.guards import remaining_s
from taoloop.core.requests import refusal, request_calls
from taoloop.core.steps import CallView
from taoloop.core.trace import Trace
from taoloop.core.transcript import observation_text
from taoloop.core.wording import wording
from taoloop.dialects.reading import AnswerCheck, reply_facts
from taoloop.errors import InvalidArguments, ModelError, ModelTimeout, TaoError
from taoloop.journals.base import Artifact, Journal, Lease
from taoloop.models.base import Model
from taoloop.runtime.acting import Outcome, act, fault_of, is_ours
from taoloop.runtime.approval import ApprovalAnswer, Approver, answer_fact, ask
from taoloop.runtime.clock import Clock
from taoloop.runtime.early import EarlyReads
from taoloop.runtime.hearing import DeltaListener, Hearing
from taoloop.runtime.inside import Inside, Share
from taoloop.runtime.within import within
from taoloop.strategies import Strategy
from taoloop.strategies.ends import without_reply
from taoloop.tools.base import Prepared, Tool, ToolContext
from taoloop.tools.registry import Toolbox

Listener = Callable[[Event], None]
"""Called with every event once the journal has it. One that raises is logged, and the run goes on."""

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
    ) -> None:
        self.trace, self._lease, self._journal = trace, lease, journal
        self._strategy, self._model, self._toolbox = strategy, model, toolbox
        self._clock, self._approver, self._listener = clock, approver, listener
        self._on_delta, self._check_answer = on_delta, check_answer
        self._early = EarlyReads(trace, toolbox, self._begin_early) if early_reads else None
        self._is_heard = on_delta is not None or early_reads
        self._has_agents = any(one.runs_inside for one in toolbox)
        self._asking: asyncio.Lock | None = None  # of the runs inside: they ask one question at a time
        self._inner_waits: dict[str, Inside] = {}  # calls whose own run waits for a person
        self._events: list[Event] = []
        self._unheard: list[Event] = []
        self._artifacts: list[Artifact] = []
        self._prepared: dict[str, Prepared] = {}  # arguments that were judged a moment ago, by call id

    def note(self, fact: Fact) -> None:
        """Add a fact to the trace; `commit` makes it last."""
        event = Event(len(self.trace.events), self._clock.now(), fact)
        self.trace.append(event)
        self._events.append(event)

    async def commit(self) -> None:
        """Write what was noted since the last commit. Returns when the journal has it."""
        if self._events:
            events, self._events = self._events, []
            artifacts, self._artifacts = self._artifacts, []
            self._unheard += events  # also those of a commit that is cancelled: they are written all the same
            await self._journal.append(self._lease, events, artifacts)
        if not self._unheard:
            return
        heard, self._unheard = self._unheard, []
        if self._listener is not None:
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
        try:
            effects = 0
            while self.trace.finished is None and self.trace.paused is None:
                await self._step()
                effects += 1
                if effects % 64 == 0:  # where nothing ever waits, others and a cancellation still get their turn
                    await asyncio.sleep(0)
            await self.commit()  # a model that failed finishes the run without a further effect
        except (asyncio.CancelledError, KeyboardInterrupt):
            if self.trace.finished is None:
                for dropped in self._early.drop("stopped") if self._early else ():
                    self.note(dropped)
                reason = wording(self.trace.agent.language, "stopped")
                self.note(Finished(status="stopped", answer=None, reason=reason))
            await asyncio.shield(self.commit())
            raise
        finally:
            if self._early is not None:
                self._early.drop("stopped")  # there are some left only where the journal failed

    async def _step(self) -> None:
        effect = self._strategy.next(self.trace.agent, self.trace)
        match effect:
            case CallModel():
                await self.commit()
                await self._ask_model(effect)
            case RequestCalls():
                for fact in request_calls(self.trace, effect, self._check):
                    self.note(fact)
            case RunTools(calls=calls):
                await self._run_tools(calls)
                self._pause_with_inner_runs()
            case AskPerson(calls=calls):
                await self.commit()
                await self._ask_person(calls)
                await self.commit()
            case Record(facts=facts):
                for fact in facts:
                    self.note(fact)
            case Finish(fact=fact):
                self.note(fact)
                await self.commit()

    async def _ask_model(self, effect: CallModel) -> None:
        request, hearing = effect.request, self._hearing(effect) if self._is_heard else None
        if hearing is not None:
            request = replace(request, on_delta=hearing)
        began = self._clock.tick()
        try:
            waiting = self._model.complete(request)
            reply = await within(request.timeout_s, waiting, lambda: self._late(request.timeout_s))
            facts: list[Fact] = reply_facts(effect, reply, self._clock.tick() - began, self._check_answer)
        except ModelError as error:
            facts = [without_reply(self.trace, effect, error)]
        except (Exception, asyncio.CancelledError, SystemExit) as error:  # a stated end, not a crash
            if is_ours(error):
                raise
            failed = ModelError(f"{self._model.spec}: {fault_of(error).message}")
            facts = [without_reply(self.trace, effect, failed)]
        finally:
            if hearing is not None:
                hearing.end()
        for fact in [*self._early.settle(facts), *facts] if self._early is not None else facts:
            self.note(fact)

    def _hearing(self, effect: CallModel) -> Hearing | None:
        """Who hears the reply while it is being written. A summary is nobody's business; a model need not stream it."""
        if effect.request.purpose == "compact":
            return None
        listeners = [] if self._on_delta is None else [self._on_delta]
        if self._early is not None:
            for left in self._early.expect(effect):
                self.note(left)
            listeners.insert(0, self._early.hear)
        return Hearing(listeners)

    async def _begin_early(self, call_id: str, key: str, tool: Tool, prepared: Prepared) -> Outcome:
        context = ToolContext(
            run_id=self.trace.run_id, call_id=call_id, idempotency_key=key, read_artifact=self._read_artifact
        )
        return await act(tool, prepared.values, context, remaining_s(self.trace, tool.card.timeout_s), self._clock)

    def _late(self, timeout_s: float | None) -> ModelTimeout:
        return ModelTimeout(f"{self._model.spec} gave no reply within {timeout_s:g} s.")

    def _check(self, call_id: str, tool: str, args: Any) -> Mapping[str, Any] | Fault:
        try:
            prepared = self._toolbox.get(tool).prepare(args)
        except TaoError as error:
            return fault_of(error)
        self._prepared[call_id] = prepared
        return prepared.args

    async def _run_tools(self, calls: tuple[CallView, ...]) -> None:
        """Journal the intents, then run the calls; every outcome is noted as soon as it is there."""
        for call in calls:
            card = self.trace.card(call.requested.tool)
            if card is None or not card.reads_only:
                key = f"{self.trace.run_id}:{call.requested.call_id}"
                self.note(ActionStarted(call_id=call.requested.call_id, idempotency_key=key, attempt=call.attempts + 1))
        await self.commit()
        share = self._share(calls) if self._has_agents else None
        if len(calls) == 1:
            await self._run_tool(calls[0], share)
            return
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

    def _lent(self, share: Share) -> Inside:
        asking = self._asking = self._asking or asyncio.Lock()
        return Inside(parent=self.trace, journal=self._journal, approver=self._approver, share=share, asking=asking)

    def _share(self, calls: tuple[CallView, ...]) -> Share:
        """What each of the agents among these calls may use of what is left."""
        names = [call.requested.tool for call in calls]
        agents = sum(name in self._toolbox and self._toolbox.get(name).runs_inside for name in names)
        return Share.of(self.trace, agents)

    def _pause_with_inner_runs(self) -> None:
        """A run waits with the runs inside it: their calls stay pending, and are taken up again at a resume."""
        if not self._inner_waits:
            return
        waiting, self._inner_waits = self._inner_waits, {}
        tools = {call_id: self.trace.pending[call_id].requested.tool for call_id in waiting}
        detail = "; ".join(f"{tools[call_id]} ({call_id}): {inner.waits_for}" for call_id, inner in waiting.items())
        asked = {tier for inner in waiting.values() for tier in inner.tiers}
        self.note(
            Paused(
                reason=wording(self.trace.agent.language, "waiting", detail=detail),
                waiting_for=tuple(waiting),
                tiers=tuple(tier for tier in TIERS if tier in asked),
            )
        )

    async def _run_tool(self, call: CallView, share: Share | None) -> None:
        requested = call.requested
        prepared = self._prepared.pop(requested.call_id, None)
        try:
            tool = self._toolbox.get(requested.tool)
            if prepared is None or prepared.args is not call.args:  # resumed, or edited by a person
                prepared = tool.prepare(call.args)
        except TaoError as error:  # the tool is another one than when the run began
            self.note(refusal(requested.call_id, fault_of(error)))
            return
        context = ToolContext(
            run_id=self.trace.run_id,
            call_id=requested.call_id,
            idempotency_key=f"{self.trace.run_id}:{requested.call_id}",
            attempt=max(1, call.attempts),
            read_artifact=self._read_artifact,
        )
        if share is not None and tool.runs_inside:
            context = replace(context, inside=self._lent(share))
        if self._early is not None and (begun := self._early.take(requested)) is not None:
            outcome = await begun
        else:
            timeout_s = remaining_s(self.trace, tool.card.timeout_s)
            outcome = await act(tool, prepared.values, context, timeout_s, self._clock)
        if outcome.artifact is not None:
            self._artifacts.append(outcome.artifact)
        if isinstance(context.inside, Inside):
            if context.inside.waits_for is not None:
                self._inner_waits[requested.call_id] = context.inside
                return
            self.note(context.inside.settled(outcome.observed))
        else:
            self.note(outcome.observed)
        if not tool.card.reads_only:
            await self.commit()

    async def _read_artifact(self, ref: str) -> str | None:
        artifact = await self._journal.artifact(self.trace.run_id, ref)
        if artifact is not None:
            return artifact.body
        call = self.trace.calls.get(ref.removeprefix("obs_"))  # short enough to stand in the trace
        return None if call is None or call.observed is None else observation_text(call.observed)

    async def _ask_person(self, calls: tuple[CallView, ...]) -> None:
        unanswered = []
        for call in calls:
            answer = None
            if self._approver is not None:
                card = self.trace.card(call.requested.tool)
                answer = await ask(self._approver, self.trace.run_id, call, card)
            if answer is None:
                unanswered.append(call.requested)
                continue
            self.note(answer_fact(call, self._judged(call, answer)))
        if unanswered:
            names = ", ".join(f"{requested.tool} ({requested.call_id})" for requested in unanswered)
            reason = wording(self.trace.agent.language, "waiting", detail=names)
            self.note(Paused(reason=reason, waiting_for=tuple(requested.call_id for requested in unanswered)))

    def _judged(self, call: CallView, answer: ApprovalAnswer) -> ApprovalAnswer:
        """The answer, with edited arguments held to the tool's schema: a call that cannot run is refused."""
        if not answer.approved or answer.args is None:
            return answer
        try:
            args = self._toolbox.get(call.requested.tool).prepare(_plain(answer.args)).args
        except InvalidArguments as error:
            return ApprovalAnswer(approved=False, by=answer.by, note=f"the edited arguments do not fit: {error}")
        return ApprovalAnswer(approved=True, by=answer.by, note=answer.note, args=args)


def _plain(args: object) -> object:
    """Edited arguments as the dict that tools take; anything else stays for the tool to refuse."""
    return dict(args) if isinstance(args, Mapping) else args
