"""What the tools of a run may know of it: the context of each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from taoloop.core.cards.decimals import carry_over_literals, decimal_literals
from taoloop.core.events import ApprovalGiven, Fact
from taoloop.core.message import Delta
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.models.base import DeltaFanout, DeltaListener
from taoloop.runtime.approvals.input_requests import InputRequests
from taoloop.runtime.engine.run_artifacts import RunArtifacts
from taoloop.tools.tool import RunContext, RunUsage, Tool


class CallContexts:
    """Makes the contexts of the calls of one run."""

    def __init__(
        self,
        trace: Trace,
        artifacts: RunArtifacts,
        inputs: InputRequests,
        *,
        deps: Any,
        on_delta: DeltaListener | None,
        clean: Callable[[str], str] | None,
    ) -> None:
        self._trace, self._artifacts, self._inputs = trace, artifacts, inputs
        self._deps, self._on_delta, self._clean = deps, on_delta, clean

    def of_call(
        self,
        tool: Tool,
        call_id: str,
        record: tuple[Callable[[Fact], None], Callable[[], Awaitable[None]]],
        key: str = "",
        attempt: int = 1,
        parent: object = None,
    ) -> RunContext | None:
        """What a tool may know about its call; None for a tool that takes no context.

        `record` notes and commits the answers to questions of the call.
        """
        if tool.context_parameter is None:
            return None
        trace = self._trace
        return RunContext(
            deps=self._deps,
            run_id=trace.run_id,
            task=trace.task,
            usage=self.usage,
            call_id=call_id,
            idempotency_key=key or self.key(call_id),
            attempt=attempt,
            read_artifact=self._artifacts.read,
            read_image=self._artifacts.read_image,
            literals=partial(self._literals, call_id),
            progress=partial(self.report_progress, tool.name),
            ask=partial(self._inputs.ask, call_id, *record),
            user=trace.user,
            calls=trace.calls.values,
            parent_run=parent,
        )

    def of_probe(self, call: CallView) -> RunContext:
        """What a probe may know about the call that it checks."""
        call_id = call.requested.call_id
        return RunContext(
            deps=self._deps,
            run_id=self._trace.run_id,
            task=self._trace.task,
            usage=self.usage,
            call_id=call_id,
            idempotency_key=self.key(call_id),
            attempt=call.attempts,
            read_artifact=self._artifacts.read,
            user=self._trace.user,
        )

    def of_hook(self, call_id: str) -> RunContext:
        """What a hook may know about the run, and the call before or after which it acts; empty: a model call."""
        trace = self._trace
        return RunContext(
            deps=self._deps,
            run_id=trace.run_id,
            task=trace.task,
            usage=self.usage,
            call_id=call_id,
            idempotency_key=self.key(call_id) if call_id else "",
            read_artifact=self._artifacts.read,
            user=trace.user,
            calls=trace.calls.values,
        )

    def key(self, call_id: str) -> str:
        """The idempotency key of a recorded call: the same for every attempt, and never made from its arguments."""
        return f"{self._trace.run_id}:{call_id}"

    def usage(self) -> RunUsage:
        """What the run has used so far."""
        trace = self._trace
        return RunUsage(
            tokens=trace.usage,
            cost_usd=None if trace.unpriced_calls else trace.cost_usd,
            steps=trace.step_count,
            tool_calls=trace.calls_requested,
        )

    def report_progress(self, name: str, text: str) -> None:
        """Report the progress of a tool to the listener."""
        if self._on_delta is not None:
            DeltaFanout(self._on_delta)(Delta(kind="progress", name=name, text=(self._clean or str)(text)))

    def _literals(self, call_id: str, args: Any) -> Mapping[str, str]:
        """The decimals of a call as they are in the reply that asked for it, or as a person wrote them."""
        reply, call = self._trace.last_reply, self._trace.calls.get(call_id)
        texts = () if reply is None else (*(written.arguments for written in reply.tool_calls), reply.text)
        approval = call.approval if call is not None else None
        if call is None or not isinstance(approval, ApprovalGiven) or approval.args is None:
            return decimal_literals(args, texts)
        if approval.digits is not None:
            return carry_over_literals(approval.digits, approval.args, args)
        before = call.requested.args
        return carry_over_literals(decimal_literals(before, texts), before, args)
