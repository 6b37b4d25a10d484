"""Agents as tools of other agents: the call is a run of its own, inside the run that made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from taoloop.core.cards.tool_card import TIERS, ErrorCard, Tier, ToolCard
from taoloop.core.events import RunStarted
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.dialects.parsing.strict_json import loads
from taoloop.errors import RunExists, TaoError, ToolError
from taoloop.policy import stricter, tainted, trusted_texts
from taoloop.runtime.after.recovery import recover_on_start
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.child_run import ParentRun
from taoloop.runtime.engine.clock import new_nonce, new_run_id
from taoloop.runtime.result import Result
from taoloop.runtime.run_lock import require_resumable
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool, ToolContext

A = TypeVar("A", bound=AgentSettings)

MAX_DEPTH = 3
"""How many runs may stand around a run: deeper nesting is refused, for it is more likely a circle than a plan."""

TIMEOUT_S = 600.0
"""How long one call of an agent may take unless its card says otherwise; its own limits usually end it before."""

_SCHEMA = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "description": "What to do, complete in itself: the agent sees nothing of this conversation.",
        },
        "context": {"type": "string", "description": "Facts that the agent needs for it, such as earlier findings."},
    },
    "required": ["task"],
    "additionalProperties": False,
}
_ERRORS = (
    ErrorCard(code="child_max_steps_exceeded", advice="Give it a smaller task, or answer from what it found."),
    ErrorCard(code="child_budget_exceeded", advice="Answer from what there is: the budget is shared."),
    ErrorCard(code="child_model_failed", advice="Do without it, or try once more later."),
)
_ADVICE = {error.code: error.advice for error in _ERRORS}


class AgentTool:
    """The handler of an agent that is a tool."""

    def __init__(self, agent: AgentSettings) -> None:
        self.agent = agent

    async def __call__(self, task: str, context: str = "", *, call: ToolContext) -> Any:
        """Let the agent do `task`; gives its answer, as data where the agent has an output type.

        Raises:
            ToolError: the run ended without being completed; `child_` and its status is the code.
        """
        whole = f"{task}\n\n{context}" if context.strip() else task
        inside = call.parent_run
        if isinstance(inside, ParentRun):
            result = await self._run_inside(inside, whole, call.call_id)
        else:
            result = await self._run_alone(whole)
        return self._answer(result)

    async def _run_alone(self, task: str) -> Result:
        """The run of a call that was made by hand, with no run around it."""
        bound = bind(self.agent)
        started = RunStarted(task=replace_surrogates(task), agent=bound.spec_for(task), nonce=new_nonce())
        async with bound.open_journal() as journal:
            await recover_on_start(self.agent, journal)
            return await bound.start(journal, Trace(new_run_id(self.agent.clock.now())), started)

    async def _run_inside(self, inside: ParentRun, task: str, call_id: str) -> Result:
        """Begin the run of this call, or go on with it where an earlier attempt left off.

        Its id follows from the call, so a call that is repeated after a crash finds the run that it began.
        """
        bound, parent = bind(self.agent), inside.parent
        depth = parent.started.depth + 1 if parent.started is not None else 1
        if depth > MAX_DEPTH:
            raise ToolError(
                f"This run is inside {depth - 1} others; no agent may be called from here.",
                code="too_deep",
                hint="Do it without another agent.",
            )
        trace = Trace(f"{parent.run_id}.{call_id.removeprefix('call_')}")
        spec = bound.spec_for(task)
        spec = replace(
            spec,
            limits=inside.limits(spec.limits),
            approved_tiers=_united(spec.approved_tiers, parent.approved_tiers),
            policy=stricter(spec.policy, parent.agent.policy),
        )
        started = RunStarted(
            task=replace_surrogates(task),
            agent=spec,
            nonce=new_nonce(),
            parent=parent.run_id,
            depth=depth,
            tainted=tainted(parent) or _takes_values(parent, call_id),
            trusted=trusted_texts(parent),
        )
        approver = inside.approver_for(self.agent.approve)
        inside.child = trace
        try:
            return await bound.start(inside.journal, trace, started, approver=approver, redactor=inside.redactor)
        except RunExists:
            trace = Trace(trace.run_id, await inside.journal.load(trace.run_id))
            if trace.started is None or trace.started.parent != parent.run_id:
                inside.child = None
                raise ToolError(
                    f"The run of this call would be {trace.run_id}, but there is another run of that name.",
                    code="run_exists",
                    hint="Do it without another agent.",
                ) from None
            inside.child = trace
        if trace.finished is not None and trace.finished.status != "stopped":
            return bound.result_of(trace)
        try:
            require_resumable(trace, bound.toolbox)  # its tools may be others than when it began
        except TaoError:
            inside.child = None
            raise
        return await bound.continue_run(
            inside.journal,
            trace,
            limits=inside.limits(trace.agent.limits),
            approved_tiers=_united(trace.approved_tiers, parent.approved_tiers),
            approver=approver,
            redactor=inside.redactor,
        )

    def _answer(self, result: Result) -> Any:
        if result.status == "completed" and result.answer is not None:
            return loads(result.answer) if result.trace.agent.output_schema is not None else result.answer
        said = f" What it has so far: {result.answer}" if result.answer else ""
        raise ToolError(
            f"The agent {self.agent.name!r} ended as {result.status}: {result.reason}{said} (run {result.run_id}).",
            code=f"child_{result.status}",
            hint=_ADVICE.get(f"child_{result.status}", "The same task would end the same way; change it."),
        )


def agent_tool(
    agent: AgentSettings,
    *,
    purpose: str,
    name: str | None = None,
    use_when: str = "",
    avoid_when: str = "",
    tier: Tier | str | None = "auto",
    timeout_s: float = TIMEOUT_S,
) -> Tool:
    """The agent as a tool; see `Agent.as_tool`."""
    validator = bind(agent).output_validator
    card = ToolCard(
        name=name or agent.name,
        purpose=purpose,
        use_when=use_when,
        avoid_when=avoid_when,
        input_schema=_SCHEMA,
        output_schema=validator.schema if validator is not None else None,
        errors=_ERRORS,
        tier=tier_of(agent) if tier == "auto" else tier,  # type: ignore[arg-type]  # the card refuses what is none
        timeout_s=timeout_s,
        idempotent=True,  # a repeated call goes on with the run that the first one began
        egress=egress_without_approval(agent),
        roles={"task": "target", "context": "value"},  # both say what the agent acts on
        reversible=False,  # what was done inside is undone there
    )
    return replace(tool_from_card(card, AgentTool(agent)), runs_inside=True)


def inner_agents(agent: AgentSettings) -> list[AgentSettings]:
    """The agents among the tools of an agent, and theirs."""
    own = [tool.handler.agent for tool in bind(agent).toolbox if isinstance(tool.handler, AgentTool)]
    return [each for inner in own for each in (inner, *inner_agents(inner))]


def with_inner_agents(agent: A, change: Callable[[AgentSettings], AgentSettings]) -> A:
    """The agent with `change` made to every agent among its tools, and theirs."""

    def changed(tool: Any) -> Any:
        if not (isinstance(tool, Tool) and isinstance(tool.handler, AgentTool)):
            return tool
        return replace(tool, handler=AgentTool(change(with_inner_agents(tool.handler.agent, change))))

    if not isinstance(agent.tools, list | tuple):
        return agent  # what is wrong with them is reported elsewhere
    return replace(agent, tools=tuple(changed(tool) for tool in agent.tools))


def tier_of(agent: AgentSettings) -> Tier:
    """What a call of the agent can do unasked.

    A call that changes something is put before a person where it is made, inside; only tiers that the agent has
    allowed ahead of time count as its own. What a person must allow counts as `draft`: recorded, and not asked twice.
    """
    reached: list[Tier] = ["read"]
    for card in bind(agent).toolbox.cards:
        tier = card.tier or "destructive"
        asks = tier in ("write", "destructive") and (card.requires_approval or tier not in agent.approved_tiers)
        reached.append("draft" if asks else tier)
    return max(reached, key=TIERS.index)


def egress_without_approval(agent: AgentSettings) -> bool:
    """Whether a call of the agent may send data out unasked: only its tiers allowed ahead count, as for `tier_of`."""
    return any(
        card.sends_out(dict.fromkeys(card.parameters, True))
        for card in bind(agent).toolbox.cards
        if (card.tier or "destructive") in agent.approved_tiers and not card.requires_approval
    )


def _takes_values(parent: Trace, call_id: str) -> bool:
    """Whether the task of a call was made with values that the calling model has not seen (handles stood in it)."""
    call = parent.pending.get(call_id)
    return call is not None and call.requested.written is not None


def _united(own: tuple[Tier, ...], outer: tuple[Tier, ...]) -> tuple[Tier, ...]:
    """Tiers that either allows, from mild to severe."""
    return tuple(tier for tier in TIERS if tier in own or tier in outer)
