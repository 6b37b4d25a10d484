"""What a resume records: how the agent differs from the one that drove the run before, and what was undone since.

The facts are recorded at the resume, so that what the model reads follows from the trace, as in every replay. Those of
an undo hold names of tools and calls only: nothing that a tool or a model wrote becomes the word of the runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taoloop.core.action_requests import failed_observation
from taoloop.core.cards.card_changes import FieldChange, card_changes
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ActionRequested, ApprovalRefused, Compensated, Fact, Fault, Noted, Observed, Resumed
from taoloop.core.policy import Policy, Profile, plain_policy, with_pin
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.trace import Trace
from taoloop.core.views.steps import NEW_POLICY, TIMEOUT, UNDONE, CallView
from taoloop.errors import ConfigError
from taoloop.policy import reject_unmatchable_rules
from taoloop.runtime.texts import TEXTS
from taoloop.strategies.planned_calls import SINGLE_CALL, UNDO
from taoloop.tools.toolbox import Toolbox

_WITHOUT_MODEL = (SINGLE_CALL.name, UNDO.name)
"""The strategies of runs that ask no model, and have a policy of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanges:
    """How the agent that is to resume a run differs from the one that drove it."""

    changed: dict[str, tuple[FieldChange, ...]] = field(default_factory=dict)
    """The tools whose cards have changed, with the fields."""
    texts: dict[str, tuple[FieldChange, ...]] = field(default_factory=dict)
    """The tools of which only texts have changed: the model is told, and answers stay valid."""
    cards: tuple[ToolCard, ...] = ()
    """The cards of both now, in the run's language. They apply from the resume on."""
    removed: tuple[str, ...] = ()
    """Tools of the run that the agent lacks: it cannot resume the run."""
    added: tuple[str, ...] = ()
    """Tools of the agent that the run does not have, and does not get."""
    model: str = ""
    """The model that answers from here on; empty if it is the one before."""
    policy: str = ""
    """The version of the agent's policy; empty if it is the run's. The run keeps its own."""
    new_policy: Policy | None = None
    """The policy that takes the place of the run's; None: it keeps its own, or this is the same."""
    graph: bool = False
    """Whether the agent has another graph; the run keeps its own."""
    judged_again: tuple[CallView, ...] = ()
    """The open calls of changed tools: judged again, or settled if they were started."""

    @property
    def are_none(self) -> bool:
        """Whether everything is as it was."""
        return (
            not (
                self.changed or self.texts or self.removed or self.added or self.model or self.policy or self.new_policy
            )
            and not self.graph
        )

    def __str__(self) -> str:
        """What the resumed run has another of, in one line for a log."""
        tools = (f"{name} ({', '.join(change.path for change in changes)})" for name, changes in self.changed.items())
        parts = [f"changed tools: {', '.join(tools)}"] if self.changed else []
        parts += [f"other texts of tools: {', '.join(self.texts)}"] if self.texts else []
        parts += [f"the model {self.model}"] if self.model else []
        parts += ["the policy that it began with, which is not the agent's any more"] if self.policy else []
        parts += [f"a new policy ({self.new_policy.profile})"] if self.new_policy else []
        parts += ["the graph that it began with, which is not the agent's any more"] if self.graph else []
        return "; ".join(parts)

    def recorded_in(self, resumed: Resumed) -> Resumed:
        """The event of the resume, with what has changed."""
        cards, texts = (
            tuple(card for card in self.cards if card.name in names) for names in (self.changed, self.texts)
        )
        policy, new_policy = self.policy, self.new_policy
        return replace(resumed, cards=cards, texts=texts, model=self.model, policy=policy, new_policy=new_policy)


def agent_changes(
    trace: Trace,
    toolbox: Toolbox,
    model: str,
    policy: Policy | Profile,
    redactor: Redactor | None = None,
    *,
    new_policy: Policy | Profile | None = None,
    graph: Mapping[str, Any] | None = None,
) -> AgentChanges:
    """Compare a stored run with the agent that is to resume it; `redactor` is that of the run. Nothing is run.

    `new_policy` is to take the place of the run's (`replacing_policy`); `graph` is the agent's own.

    Raises:
        ConfigError: it cannot.
    """
    replacing = None if new_policy is None else replacing_policy(trace, new_policy)
    changed: dict[str, tuple[FieldChange, ...]] = {}
    texts: dict[str, tuple[FieldChange, ...]] = {}
    cards: list[ToolCard] = []
    language = trace.agent.language
    for card in trace.agent.tools:
        if card.name not in toolbox:
            continue
        now, english = _clean(redactor, toolbox.get(card.name).card_in(language), toolbox.get(card.name).card)
        if (changes := card_changes(card, now)) and card_changes(card, english):  # an earlier version stored English
            (texts if all(change.is_text for change in changes) else changed)[card.name] = changes
            cards.append(now)
    names = {card.name for card in trace.agent.tools}
    return AgentChanges(
        changed=changed,
        texts=texts,
        cards=tuple(cards),
        removed=tuple(name for name in names if name not in toolbox),
        added=tuple(name for name in toolbox.names if name not in names),
        model=_other_model(trace, model),
        policy="" if new_policy is not None else _policy_version(trace, policy),
        new_policy=replacing,
        graph=graph is not None and trace.agent.graph is not None and graph != trace.agent.graph,
        judged_again=tuple(
            call
            for call in trace.pending.values()
            if call.requested.tool in changed or (replacing is not None and not call.attempts)
        ),
    )


def replacing_policy(trace: Trace, policy: Policy | Profile) -> Policy | None:
    """The policy as a run takes it over at a resume, with its way to find out what the task asks for; None: the same.

    Raises:
        ConfigError: the run has a policy of its own kind, or the policy shows its model other observations.
        PolicyError: a rule can never match a tool of the run.
    """
    own = trace.agent.policy
    policy = with_pin(plain_policy(policy) if isinstance(policy, str) else policy, own.pin)
    if policy.version == own.version:
        return None
    if trace.agent.strategy in _WITHOUT_MODEL:
        text = "This run is one call, or undoes another run: its policy cannot be replaced."
        raise ConfigError(text, hint="Start it again under the other policy.")
    if policy.observations != own.observations:
        raise ConfigError(
            f"The run began with observations: {own.observations}, and the policy has {policy.observations}.",
            hint="Give a policy with the same, or start a new run: what a model has read cannot be taken back.",
        )
    reject_unmatchable_rules(policy, {card.name: card for card in trace.agent.tools})
    return policy


def policy_note(trace: Trace) -> Noted:
    """What the model of a run is told when its policy was replaced, with the calls that were denied under it.

    It decides itself whether it still needs them; each is judged by the new policy then.
    """
    denied: list[ActionRequested] = []
    before = {call_id for call_id, call in trace.calls.items() if _was_denied(call)}
    for event in reversed(trace.events):
        match event.fact:
            case Noted(about=about) if about == NEW_POLICY:  # the model was told of those before
                break
            case Observed(call_id=call_id) if call_id in before:
                denied.insert(0, trace.calls[call_id].requested)
    names = ", ".join(f"{requested.tool} ({requested.call_id})" for requested in denied)
    text = TEXTS.text(trace.agent.language, "policy_replaced_denied" if denied else "policy_replaced", calls=names)
    return Noted(by="guard", text=text, about=NEW_POLICY)


def _was_denied(call: CallView) -> bool:
    """Whether the policy denied a call, or nobody answered its question in time."""
    timed_out = isinstance(call.approval, ApprovalRefused) and call.approval.by == TIMEOUT
    is_denied = call.requested.verdict == "deny" and bool(call.requested.rule)
    return call.observed is not None and not call.observed.ok and (is_denied or timed_out)


def _clean(redactor: Redactor | None, *cards: ToolCard) -> tuple[ToolCard, ...]:
    """Cards as they are stored, without secrets."""
    return cards if redactor is None else redactor.fact(Resumed(cards=cards)).cards


def _other_model(trace: Trace, spec: str) -> str:
    """The model `spec`, if it is another one than the run was last driven with; empty where no model is asked."""
    if trace.agent.strategy in _WITHOUT_MODEL:
        return ""
    resumed = (event.fact.model for event in reversed(trace.events) if isinstance(event.fact, Resumed))
    return "" if spec == next(filter(None, resumed), trace.agent.model) else spec


def _policy_version(trace: Trace, policy: Policy | Profile) -> str:
    """The version of the agent's policy if it is not the run's; empty for a run whose own was derived or replaced."""
    started, own = trace.started, trace.agent.policy
    if started is None or started.parent is not None or trace.agent.strategy in _WITHOUT_MODEL:
        return ""
    if own is not started.agent.policy:  # replaced at a resume: the agent's has no part in it
        return ""
    now = plain_policy(policy) if isinstance(policy, str) else policy
    version = with_pin(now, own.pin).version if now.pin == "auto" else now.version
    return "" if version == own.version else version


def undone_calls(trace: Trace, *, since_note: bool = False) -> tuple[CallView, ...]:
    """The calls of a run whose effects were undone, in their order; an agent's call if one inside its run was.

    `since_note`: only those that the model was not told of yet.
    """
    call_ids = set()
    for event in reversed(trace.events):
        match event.fact:
            case Noted(about=about) if about == UNDONE and since_note:
                break
            case Compensated(ok=True, call_id=call_id):
                call_ids.add(call_id)
    return tuple(call for call_id, call in trace.calls.items() if call_id in call_ids)


def undo_facts(trace: Trace) -> list[Fact]:
    """What a run records when it is resumed after an undo: calls not made yet are dropped, and its model is told.

    Whatever was decided or answered before rests on effects that are gone, so the model decides again.
    """
    calls = undone_calls(trace, since_note=True)
    if not calls:
        return []
    language = trace.agent.language
    message, hint = TEXTS.text(language, "undone_before"), TEXTS.text(language, "undone_before_hint")
    fault = Fault(code=UNDONE, message=message, hint=hint)
    dropped = [call.requested.call_id for call in trace.pending.values() if not call.attempts]
    names = ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in calls)
    text = TEXTS.text(language, "undone_note", calls=names)
    return [*(failed_observation(call_id, fault) for call_id in dropped), Noted(by="guard", text=text, about=UNDONE)]
