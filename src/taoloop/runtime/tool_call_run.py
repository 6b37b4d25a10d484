"""Runs whose calls are decided in advance, so that no model is asked: single calls for other hosts, and undos.

A call that the host of an MCP server makes is a run of its own: the operator's policy judges it, it is recorded before
it has an effect, and it can be inspected, settled and undone like any other (`tao runs`, `tao show`, `tao settle`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.events import ActionRequested, ApprovalRefused, Event, RunStarted, Verdict
from taoloop.core.policy import Policy, Rule, VerdictKind, with_pin
from taoloop.core.prompts import PromptSet
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import ModelError, PolicyError
from taoloop.journals.base import Journal
from taoloop.policy import CodeRule
from taoloop.policy.judge import Action
from taoloop.policy.judged_call import JudgedCall
from taoloop.policy.rules import Budgets, rule_matches
from taoloop.policy.untrusted_index import argument_sources
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.approvals.request import Approver
from taoloop.runtime.bound_agent import BoundAgent
from taoloop.runtime.engine.clock import Clock, SystemClock, new_nonce
from taoloop.runtime.runner import Listener
from taoloop.strategies import Strategy
from taoloop.strategies.planned_calls import SINGLE_CALL, decision_of, task_of
from taoloop.tools.tool import Tool

if TYPE_CHECKING:
    from taoloop.core.effects import ModelRequest
    from taoloop.core.message import ModelReply

NO_LIMITS = Limits(
    max_steps=None, max_consecutive_errors=None, max_total_errors=None, repeat_tell=None, repeat_stop=None
)
"""The limits of such a run: its plan bounds it."""


class NoModel:
    """The model of a run that asks none. `spec` is the name of the model in the run's description."""

    dialect = "native"

    def __init__(self, spec: str) -> None:
        self.spec = spec

    async def complete(self, request: ModelRequest) -> ModelReply:  # noqa: ARG002  # the Protocol's signature
        """Never called by a strategy that follows a plan.

        Raises:
            ModelError: always.
        """
        raise ModelError("A run whose calls are decided in advance has no model.")

    def check_used(self, replies: int) -> None:
        """Nothing was scripted."""

    async def close(self) -> None:
        """There is no connection."""


def bind_without_model(
    agent: AgentSettings, spec: str, strategy: Strategy, tools: Sequence[Tool], rules: Sequence[CodeRule]
) -> BoundAgent:
    """The agent that drives such a run: with only these tools and rules, and no tier approved in advance."""
    return BoundAgent(
        replace(
            agent,
            model=NoModel(spec),
            fallback=(),
            tools=tuple(tools),
            strategy=strategy,
            output_type=None,
            instructions="",
            rules=tuple(rules),
            approved_tiers=(),
        )
    )


def with_rule(policy: Policy, rule: Rule) -> Policy:
    """The policy with another rule at its end; unchanged if an earlier rule decides the same calls."""
    try:
        return replace(policy, rules=(*policy.rules, rule))
    except PolicyError:
        return policy


_NO_TEXT = ("",)
"""The texts of people in a single call: none from which a value could be quoted."""

_MODEL = "offline"
"""The model in the description of a single call: one that always exists. It is never called."""


@dataclass(kw_only=True)
class ToolCallRuns:
    """Runs calls that others decided on, each as a run of its own, under one policy.

    The caller may not be a person, and may have read anything: each run is tainted from its beginning, and nothing in
    it is pinned or endorsed. No task could have named the target of a destructive call, for which `supervised` and
    `strict` would deny it: it is put before a person instead, or allowed by `approved_tiers` with `destructive`.
    """

    journal: Journal
    """The journal of all the runs."""

    policy: Policy = Policy()
    """The policy of every call. The budgets of its rules count all calls of this object together."""

    approved_tiers: tuple[Tier, ...] = ()
    """The tiers whose calls the operator approves in advance."""

    name: str = "served"
    """The name of the agent in the runs."""

    language: str = "en"
    """The language of texts for people."""

    redactor: Redactor | None = None
    """Replaces secrets; None stores everything as it is."""

    clock: Clock = field(default_factory=SystemClock)
    """The time of events and durations."""

    workspace: str | None = None
    """The folder of the file tools, recorded for a later resume."""

    memory: str | None = None
    """The file of the memory tools, recorded for a later resume."""

    cards: Sequence[ToolCard] = ()
    """The cards of all tools, for the budgets."""

    origins: Mapping[str, str] = field(default_factory=dict)
    """The tool file or `module:attribute` of a tool, by its name, recorded for a later resume."""

    _budgets: _SharedBudgets | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Start counting if a rule has a budget."""
        if any(rule.calls_over is not None or rule.total_over for rule in self.policy.rules):
            self._budgets = _SharedBudgets(self.policy, {card.name: card for card in self.cards})

    async def start(
        self,
        tool: Tool,
        args: Mapping[str, Any],
        *,
        run_id: str,
        approver: Approver | None = None,
        listener: Listener | None = None,
    ) -> Result:
        """Make one call. Returns when it has an outcome or waits for a person.

        Raises:
            RunExists: the journal has a run of that id.
            JournalError: the journal cannot keep the trace.
        """
        started = RunStarted(
            task=task_of(tool.name, args),
            agent=self._spec(tool.card),
            nonce=new_nonce(),
            tainted=True,
            trusted=_NO_TEXT,
        )
        trace = Trace(run_id)
        with self._counted(trace):
            return await self._bound(tool).start(
                self.journal,
                trace,
                started,
                decision=decision_of(tool.name, args),
                approver=approver,
                listener=listener,
                redactor=self.redactor,
            )

    async def resume(
        self, tool: Tool, run_id: str, *, approver: Approver | None = None, listener: Listener | None = None
    ) -> Result:
        """Resume a call that waits.

        Raises:
            RunNotFound, RunNotResumable, RunHeld: there is no such call that could be resumed.
            JournalError: the journal cannot keep the trace.
        """
        bound = self._bound(tool)
        trace = await bound.load_resumable(self.journal, run_id)
        with self._counted(trace):
            return await bound.continue_run(
                self.journal,
                trace,
                limits=trace.limits,
                approver=approver,
                listener=listener,
                redactor=self.redactor,
                at=len(trace),
                take_over=False,
            )

    @contextmanager
    def _counted(self, trace: Trace) -> Iterator[None]:
        try:
            yield
        finally:
            if self._budgets is not None:
                self._budgets.settle(trace)

    def _bound(self, tool: Tool) -> BoundAgent:
        agent = AgentSettings(name=self.name, clock=self.clock, redact=False)  # secrets are those of `redactor`
        rules = () if self._budgets is None else (self._budgets.rule,)
        return bind_without_model(agent, _MODEL, SINGLE_CALL, (tool,), rules)

    def _spec(self, card: ToolCard) -> AgentSpec:
        return AgentSpec(
            name=self.name,
            model=_MODEL,
            strategy=SINGLE_CALL.name,
            language=self.language,
            tools=(card,),
            limits=NO_LIMITS,
            prompts=PromptSet(language=self.language),
            policy=policy_for(self.policy, card, self.approved_tiers),
            approved_tiers=self.approved_tiers,
            workspace=self.workspace,
            memory=self.memory,
            tools_from=(self.origins[card.name],) if card.name in self.origins else (),
        )


def policy_for(policy: Policy, card: ToolCard, approved_tiers: Sequence[Tier]) -> Policy:
    """The policy of a single call of `card`: the operator's, with a last rule for calls that are hard to undo."""
    policy = with_pin(policy, "keywords")
    if policy.observations != "shown":
        policy = replace(policy, observations="shown")  # no model looks at them here
    if card.tier not in ("destructive", None) or policy.profile in ("read-only", "locked"):
        return policy
    verdict: VerdictKind | None = "ask" if policy.profile in ("supervised", "strict") else None
    verdict = "allow" if "destructive" in approved_tiers and not card.requires_approval else verdict
    if verdict is None:
        return policy
    return with_rule(policy, Rule(verdict=verdict, tool=card.name, name=f"destructive calls of {card.name}"))


class _SharedBudgets:
    """What all calls together have used of the rules' budgets. Each call is counted when it is judged."""

    def __init__(self, policy: Policy, cards: Mapping[str, ToolCard]) -> None:
        self._policy, self._used = policy, Budgets(policy, cards)
        self._open: set[str] = set()

    def rule(self, trace: Trace, action: Action, card: ToolCard) -> Verdict | None:
        """The verdict of a rule whose budget this call exceeds; None leaves the call to the policy."""
        call = JudgedCall(trace, card, action.args)
        for rule in self._policy.rules:
            if not rule_matches(rule, card, action.args, call):
                continue
            if rule.calls_over is None and not rule.total_over:
                break
            if self._used.exceeded(rule, action.args):
                sources = argument_sources(trace, action.args, card)
                why = rule.reason or f"the rule {rule.title!r} says so of all calls together"
                return Verdict(kind=rule.verdict, reasons=(why,), rule=f"rule:{rule.title}", sources=sources)
        requested = ActionRequested(
            step=1, call_id=trace.run_id, tool=action.tool, args=action.args, tier=None, verdict="allow", digest=""
        )
        self._open.add(trace.run_id)
        self._used.fold(Event(0, 0.0, requested))
        return None

    def settle(self, trace: Trace) -> None:
        """Give back the budget of a call that was not made."""
        if trace.run_id not in self._open or trace.paused is not None:
            return
        self._open.discard(trace.run_id)
        if not any(call.attempts or (call.observed is not None and call.observed.ok) for call in trace.calls.values()):
            self._used.fold(Event(0, 0.0, ApprovalRefused(call_id=trace.run_id, by="")))
