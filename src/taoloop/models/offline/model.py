"""The embedded model: no network, no key, no language model behind it."""

from __future__ import annotations

from dataclasses import replace

from taoloop.core.decision import Act, Answer, Decision
from taoloop.core.message import ModelReply, Usage
from taoloop.core.model_request import ModelRequest
from taoloop.dialects import get_dialect
from taoloop.errors import ModelError
from taoloop.models.offline.plan import decide
from taoloop.models.offline.speech import ANNOUNCEMENT

_WITHOUT_REASONING = frozenset({"act_only", "standard"})


class OfflineModel:
    """A small deterministic planner, not a language model.

    It chooses a tool by matching the task with the tool cards, fills typed arguments from the task and from earlier
    observations, and answers with observed facts only. What it cannot do, it says. The same request always gives the
    same reply, in Chinese or English as the task is.
    """

    description = ANNOUNCEMENT

    @property
    def spec(self) -> str:
        """`offline`."""
        return "offline"

    @property
    def dialect(self) -> str:
        """`text`."""
        return "text"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next decision, in the dialect of the request. It writes no summaries and no plans: the trace will do."""
        if request.trace.agent.policy.observations == "handles":
            raise ModelError(
                "The offline model works from the observations themselves, which this run hides from its model.",
                hint="Use the model of a provider, or a policy with observations: shown.",
            )
        if request.purpose in ("compact", "pin"):
            return ModelReply(model=self.spec, cost_usd=0.0)
        decision = decision_for(request)
        dialect = get_dialect(request.dialect)
        reply = dialect.write(decision)
        for form in (_in_one_line, _harmless, _quoted):
            if dialect.read(reply, request.tools) == decision:
                break
            decision = form(decision)
            reply = dialect.write(decision)
        return ModelReply(
            text=reply.text,
            tool_calls=reply.tool_calls,
            finish_reason=reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop"),
            model=self.spec,
            usage=Usage(),
            cost_usd=0.0,
        )

    def check_used(self, replies: int) -> None:
        """Nothing to check: this model has no script."""

    async def close(self) -> None:
        """Nothing to let go of."""


def decision_for(request: ModelRequest) -> Decision:
    """The decision apart from the form in which it is written."""
    started = request.trace.started
    closing = request.purpose == "close"
    cards = request.tools or (started.agent.tools if closing and started is not None else ())
    decision = decide(request.task, cards, request.trace, close=closing)
    silent = started is not None and started.agent.strategy.replace("-", "_") in _WITHOUT_REASONING
    return replace(decision, reason="") if silent else decision


def _in_one_line(decision: Decision) -> Decision:
    """The same decision without line breaks: a line of an observation must not look like a line of the dialect."""
    if isinstance(decision, Act):
        return Act(calls=decision.calls, reason=" ".join(decision.reason.split()))
    return Answer(
        text=" ".join(decision.text.split()), reason=" ".join(decision.reason.split()), citations=decision.citations
    )


_SIGNS = str.maketrans("<>{}[]`", "‹›()()'")


def _harmless(decision: Decision) -> Decision:
    """The same decision with the signs of calls and fences in its texts replaced; used only where it is misread."""
    if isinstance(decision, Act):
        return Act(calls=decision.calls, reason=decision.reason.translate(_SIGNS))
    return Answer(text=decision.text.translate(_SIGNS), reason=decision.reason.translate(_SIGNS))


_PLAIN = str.maketrans('():"', "⟨⟩='")


def _quoted(decision: Decision) -> Decision:
    """The same decision with its answer as a quotation, in which neither a label nor a call can begin."""
    if isinstance(decision, Act):
        return decision
    return replace(decision, text=f"“{decision.text.translate(_PLAIN)}”")
