"""Agents as tools of other agents: the call is a run of its own, inside the run that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import TIERS, ErrorCard, Tier, ToolCard
from taoloop.core.decision import without_citations
from taoloop.core.events import RunStarted
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.dialects.parsing.strict_json import loads
from taoloop.errors import ToolError
from taoloop.policy import CodeRule, stricter, tainted, trusted_texts
from taoloop.runtime.after.recovery import recover_on_start
from taoloop.runtime.agent_settings import AgentSettings, Handoff
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.child_run import ParentRun, drive_child, joined_tiers, no_child
from taoloop.runtime.engine.clock import new_nonce, new_run_id
from taoloop.runtime.texts import TEXTS
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import RunContext, Tool

A = TypeVar("A", bound=AgentSettings)

MAX_DEPTH = 3
"""How many runs a run may be inside: deeper nesting is refused, because it is more likely a cycle than a plan."""

TIMEOUT_S = 600.0
"""The seconds that one call of an agent may take unless its card has another limit; its own limits usually end it."""

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
_ERROR_NAMES = ("child_max_steps_exceeded", "child_budget_exceeded", "child_model_failed")
_ERRORS = tuple(ErrorCard(code=name, advice=TEXTS.text("en", name)) for name in _ERROR_NAMES)


class AgentTool:
    """The handler of an agent that is a tool."""

    def __init__(self, agent: AgentSettings) -> None:
        self.agent = agent

    async def __call__(self, task: str, context: str = "", *, call: RunContext) -> Any:
        """Let the agent do `task`; returns its answer, as data where the agent has an output type.

        Raises:
            ToolError: the run ended without being completed; the code is `child_` with its status.
        """
        task = f"{task}\n\n{context}" if context.strip() else task
        parent = call.parent_run
        if isinstance(parent, ParentRun):
            return self._answer(await self._run_in(parent, task, call.call_id))
        return self._answer(await self._run_alone(task, call.deps))

    async def _run_alone(self, task: str, deps: Any) -> Result:
        """The run of a call that no run makes."""
        bound = bind(self.agent)
        started = RunStarted(task=replace_surrogates(task), agent=bound.spec_for(task), nonce=new_nonce())
        async with bound.open_journal() as journal:
            await recover_on_start(self.agent, journal)
            trace = Trace(new_run_id(self.agent.clock.now()))
            return await bound.start(journal, trace, started, deps=bound.inherited_deps(deps))

    async def _run_in(self, parent_run: ParentRun, task: str, call_id: str) -> Result:
        """The run of this call, inside the run that makes it."""
        return await drive_child(
            bind(self.agent),
            parent_run,
            self._first_event(parent_run, task, call_id),
            call_id,
            approver=self.agent.approve,
            rules=await self._outer_rules(parent_run),
            approved_tiers=self._approved_tiers,
        )

    async def _outer_rules(self, parent_run: ParentRun) -> tuple[CodeRule, ...]:  # noqa: ARG002  # none here
        """The rules that are asked before the agent's own."""
        return ()

    def _first_event(self, parent_run: ParentRun, task: str, call_id: str) -> RunStarted:
        """The first event of the run of a call.

        Raises:
            ToolError: the call may become no run.
        """
        parent = parent_run.parent
        depth = parent.started.depth + 1 if parent.started is not None else 1
        if depth > MAX_DEPTH:
            raise no_child("too_deep", depth=depth - 1)
        return RunStarted(
            task=replace_surrogates(task),
            agent=self._spec_within(parent_run, task),
            nonce=new_nonce(),
            parent=parent.run_id,
            depth=depth,
            tainted=tainted(parent) or _has_filled_values(parent, call_id),
            trusted=trusted_texts(parent),
            authority=parent.started.authority if parent.started is not None else None,
            labels=parent.user_labels,
        )

    def _spec_within(self, parent_run: ParentRun, task: str) -> AgentSpec:
        """The agent as plain data, under the policy and within the budget of the run that calls it."""
        spec, parent = bind(self.agent).spec_for(task), parent_run.parent
        return replace(
            spec,
            limits=parent_run.limits(spec.limits),
            approved_tiers=self._approved_tiers(spec.approved_tiers, parent),
            policy=stricter(spec.policy, parent.agent.policy),
        )

    def _approved_tiers(self, own: tuple[Tier, ...], parent: Trace) -> tuple[Tier, ...]:
        """The tiers that are approved in advance in the run of a call."""
        return joined_tiers(own, parent)

    def _answer(self, result: Result) -> Any:
        answer, status = result.answer, result.status
        if answer is not None and result.trace.agent.evidence != "off":
            answer = without_citations(answer)  # its calls are not those of the parent, where they would be cited
        if status == "completed" and answer is not None:
            return loads(answer) if result.trace.agent.output_schema is not None else answer
        message = TEXTS.run_text(
            "child_ended_partly" if answer else "child_ended",
            name=self.agent.name,
            status=status,
            reason=result.reason,
            answer=answer,
            run_id=result.run_id,
        )
        code = f"child_{status}"
        raise ToolError(message, code=code, hint=TEXTS.run_text(code if code in _ERROR_NAMES else "child_other"))


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
        idempotent=True,  # a repeated call resumes the run that the first one started
        egress=egress_without_approval(agent),
        roles={"task": "target", "context": "value"},  # both determine what the agent acts on
        reversible=False,  # the calls of its run are undone there
    )
    return replace(tool_from_card(card, AgentTool(agent)), runs_inside=True)


def inner_agents(agent: AgentSettings) -> list[AgentSettings]:
    """The agents among the tools and hand-offs of an agent, and among theirs; each once."""
    agents: dict[int, AgentSettings] = {}
    waiting = [agent]
    while waiting:
        tools = bind(waiting.pop(0)).toolbox
        inner = [tool.handler.agent for tool in tools if isinstance(tool.handler, AgentTool)]
        new = {id(one): one for one in inner if id(one) not in agents and one is not agent}
        agents |= new
        waiting += new.values()
    return list(agents.values())


def with_inner_agents(agent: A, change: Callable[[AgentSettings], AgentSettings]) -> A:
    """The agent with `change` applied to every agent among its tools and hand-offs, and among theirs."""
    agent = replace(agent, handoffs=_changed_handoffs(agent.handoffs, change)) if agent.handoffs else agent

    def changed(tool: Any) -> Any:
        if not (isinstance(tool, Tool) and isinstance(tool.handler, AgentTool)):
            return tool
        return replace(tool, handler=AgentTool(change(with_inner_agents(tool.handler.agent, change))))

    if not isinstance(agent.tools, list | tuple):
        return agent  # what is wrong with them is reported elsewhere
    return replace(agent, tools=tuple(changed(tool) for tool in agent.tools))


def _changed_handoffs(
    handoffs: Sequence[Handoff | AgentSettings | str],
    change: Callable[[AgentSettings], AgentSettings],
    teams: dict[int, dict[str, AgentSettings]] | None = None,
) -> tuple[Handoff | AgentSettings | str, ...]:
    """The hand-offs with their agents changed; linked agents hand over to the changed ones in their turn."""
    teams = {} if teams is None else teams
    changed: list[Handoff | AgentSettings | str] = []
    for handoff in handoffs:
        if isinstance(handoff, AgentSettings):
            changed.append(change(with_inner_agents(handoff, change)))
        elif isinstance(handoff, Handoff) and isinstance(handoff.agent, AgentSettings):
            changed.append(replace(handoff, agent=change(with_inner_agents(handoff.agent, change))))
        elif isinstance(handoff, Handoff) and handoff.team:
            if (team := teams.get(id(handoff.team))) is None:
                team = teams[id(handoff.team)] = {}
                for name, member in handoff.team.items():
                    own = _changed_handoffs(member.handoffs, change, teams)
                    team[name] = change(with_inner_agents(replace(member, handoffs=()), change))
                    team[name] = replace(team[name], handoffs=own)
            changed.append(replace(handoff, team=team))
        else:
            changed.append(handoff)
    return tuple(changed)


def tier_of(agent: AgentSettings) -> Tier:
    """The highest tier of what a call of the agent may do without asking a person.

    A call that changes something is put before a person inside the child run; only tiers that the agent has approved in
    advance count as its own. What a person must approve counts as `draft`: it is recorded, and not asked about twice.
    """
    tiers: list[Tier] = ["read"]
    for card in bind(agent).toolbox.cards:
        tier = card.tier or "destructive"
        asks = tier in ("write", "destructive") and (card.requires_approval or tier not in agent.approved_tiers)
        tiers.append("draft" if asks else tier)
    return max(tiers, key=TIERS.index)


def egress_without_approval(agent: AgentSettings) -> bool:
    """Whether a call of the agent may send data out without asking: as in `tier_of`, only its approved tiers count."""
    return any(
        card.sends_out(dict.fromkeys(card.parameters, True))
        for card in bind(agent).toolbox.cards
        if (card.tier or "destructive") in agent.approved_tiers and not card.requires_approval
    )


def _has_filled_values(parent: Trace, call_id: str) -> bool:
    """Whether handles in the task of a call were replaced by values, which the calling model has not seen."""
    call = parent.pending.get(call_id)
    return call is not None and call.requested.written is not None
