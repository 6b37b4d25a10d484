"""Hand-offs: another agent takes the conversation over, and its answer is the answer of the run.

To the trace a hand-off is a call of an agent like any other (`subagent.py`): a run inside the run, with the same
recovery, budget and approvals. What differs: the other agent gets the user's task as it is, with as much of the
conversation as the operator allows; the policy of neither agent is widened; and nothing is asked of the first agent
afterwards.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar, get_args

from taoloop.core.attachments.files import attached
from taoloop.core.cards.tool_card import TIERS, Tier, ToolCard
from taoloop.core.decision import without_citations
from taoloop.core.events import RunStarted, Verdict
from taoloop.core.message import Message
from taoloop.core.policy import EvidenceMode, Policy
from taoloop.core.trace import Trace
from taoloop.core.views.handoff import HandoffOutcome, answered_by
from taoloop.core.views.transcript import Result, transcript_text
from taoloop.dialects.prompt import defuse_markers
from taoloop.errors import ConfigError, ToolError, UnknownName
from taoloop.policy import CodeRule, judge, sources_of, tainted, trusted_texts
from taoloop.policy.judge import Action
from taoloop.runtime.agent_settings import AgentSettings, Handoff, HandoffHistory
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.child_run import ParentRun, load_trace
from taoloop.runtime.engine.clock import new_nonce
from taoloop.runtime.plan_steps import last_step
from taoloop.runtime.subagent import AgentTool
from taoloop.runtime.texts import TEXTS
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.texts import CardTexts
from taoloop.tools.tool import RunContext, Tool

A = TypeVar("A", bound=AgentSettings)

MAX_HANDOFFS = 10
"""How often one task may be handed over in all: a longer chain is more likely a cycle than a plan."""

MAX_TRANSCRIPT_CHARS = 40_000
"""How much an agent sees of what the agent before it did; the newest part is kept."""

TIMEOUT_S = 86_400.0
"""The seconds that the run of a hand-off may take: its own limits, and those of the run around it, end it before."""

_OUTPUT_CHARS = 2_000_000  # an answer is never cut to a preview: nobody would read the rest


class HandoffTool(AgentTool):
    """The handler of a hand-off."""

    def __init__(self, handoff: Handoff, owner: AgentSettings) -> None:
        target, modes = handoff.target, get_args(EvidenceMode)
        if modes.index(owner.evidence) > modes.index(target.evidence):  # what its answers need, the final answer needs
            target = replace(target, evidence=owner.evidence)
        super().__init__(target)
        self.handoff, self._rules = handoff, tuple(owner.rules)

    async def __call__(self, reason: str, *, call: RunContext) -> Any:  # type: ignore[override]  # noqa: ARG002
        """Let the other agent take over; returns how its run ended. The reason is for people, and for its transcript.

        Raises:
            ToolError: the conversation may not be handed over now; the first agent goes on.
        """
        parent = call.parent_run
        if not isinstance(parent, ParentRun):
            raise _refusal("handoff_no_run", "no_run")
        own = parent.parent.calls[call.call_id].requested
        if any(other.requested.step == own.step for other in call.calls() if other.requested is not own):
            raise _refusal("handoff_alone", "not_alone")
        result = await self._run_in(parent, parent.parent.task, call.call_id)
        return self._outcome(result)

    def _outcome(self, result: Result) -> dict[str, Any] | None:
        if result.status == "waiting":
            return None  # the runner pauses with it
        finished = result.trace.finished
        answer = result.answer
        if answer is not None and result.trace.agent.evidence != "off":
            answer = without_citations(answer)  # its calls are not those of the run around it
        outcome = HandoffOutcome(
            agent=answered_by(result.trace),
            status=result.status,
            answer=answer,
            reason=result.reason,
            error="" if finished is None else finished.error,
        )
        return outcome.as_output()

    async def _outer_rules(self, parent_run: ParentRun) -> tuple[CodeRule, ...]:
        """What the agents before would have judged of a call counts too: their rules in Python, and what they did.

        So neither a budget of their rules nor the question about the same call begins anew with a hand-off.
        """
        journal, trace = parent_run.journal, parent_run.parent
        earlier = [(trace, self._rules)]
        while True:
            if (step := await last_step(journal, trace)) is not None:  # what a plan did is in the runs of its steps
                earlier.append((step, ()))
            started = _started(trace)
            before = await load_trace(journal, started.parent) if started.handed_over_by and started.parent else None
            if before is None:
                break
            earlier.append((before, ()))
            trace = before
        return (_judged_before(earlier, tuple(self.agent.rules)),)

    def _first_event(self, parent_run: ParentRun, task: str, call_id: str) -> RunStarted:  # noqa: ARG002
        """The first event of the run that takes over: the user's task, with what may be seen of the conversation."""
        parent, started = parent_run.parent, _started(parent_run.parent)
        names = (*started.handed_over_by, parent.agent.name)
        self._require_turn(names)
        nonce, trusted = new_nonce(), trusted_texts(parent)
        if not sources_of(parent).has_foreign_task:
            trusted = tuple(dict.fromkeys((parent.task, *trusted)))
        history = visible_history(parent, self.handoff.history, nonce)
        shown = {info.ref for message in history for info in attached(message)}
        return RunStarted(
            task=parent.task,
            agent=self._spec_within(parent_run, parent.task),
            nonce=nonce,
            history=history,
            parent=parent.run_id,
            depth=started.depth,
            tainted=tainted(parent),
            trusted=trusted,
            handed_over_by=names,
            authority=started.authority,
            labels=parent.user_labels,
            images=tuple(image for image in started.images if image.ref not in shown),
            files=tuple(file for file in started.files if file.ref not in shown),
        )

    def _require_turn(self, names: Sequence[str]) -> None:
        """Refuse a hand-off that was used as often as it may be. `names`: the agents that had the task, in order."""
        agent, most = self.agent.name, self.handoff.max_times
        if len(names) > MAX_HANDOFFS:
            raise _refusal("handoff_chain", "handoff_limit", count=MAX_HANDOFFS)
        times = sum(pair == (names[-1], agent) for pair in pairwise(names))
        if most is not None and times >= most:
            raise _refusal("handoff_limit", "handoff_limit", agent=agent, count=times)

    def _approved_tiers(self, own: tuple[Tier, ...], parent: Trace) -> tuple[Tier, ...]:
        """What both agents have approved in advance, and what a person approved for this run when it was resumed."""
        before = parent.agent.approved_tiers
        return tuple(
            tier
            for tier in TIERS
            if (tier in own and tier in parent.approved_tiers) or (tier in parent.approved_tiers and tier not in before)
        )


def _judged_before(earlier: Sequence[tuple[Trace, tuple[CodeRule, ...]]], own: tuple[CodeRule, ...]) -> CodeRule:
    """A rule that gives the verdict of an earlier run on a call of a tool that it has too, if that is stricter."""

    def rule(trace: Trace, action: Action, card: ToolCard) -> Verdict | None:
        verdicts = [
            judge(run, action, known, rules=rules)
            for run, rules in earlier
            if (known := run.card(card.name)) is not None and not known.hands_over_to
        ]
        strictest = max(verdicts, key=_strictness, default=None)
        if strictest is None or strictest.kind == "allow":
            return None
        return strictest if _strictness(strictest) > _strictness(judge(trace, action, card, rules=own)) else None

    return rule


def _strictness(verdict: Verdict) -> int:
    return ("allow", "ask", "deny").index(verdict.kind)


def visible_history(parent: Trace, history: HandoffHistory, nonce: str) -> tuple[Message, ...]:
    """What an agent that takes over sees before the task. `nonce` frames what is untrusted in its prompt.

    `answers`: what the user wrote and was answered; nothing that a tool returned, or that another agent thought.
    `full`: also the transcript of the run, as text of the assistant, which no policy takes for a person's words.
    """
    started = _started(parent)
    if history == "task":
        return ()
    turns = [message for message in started.history if message.role in ("user", "assistant") and not message.tool_calls]
    frame = f"<untrusted-data {started.nonce}>"
    if history == "answers":
        return tuple(_without_transcripts(turns, frame))
    content = defuse_markers(transcript_text(parent)[-MAX_TRANSCRIPT_CHARS:], nonce)
    text = TEXTS.text(parent.agent.language, "handoff_before", agent=parent.agent.name, nonce=nonce, content=content)
    earlier = (replace(message, content=message.content.replace(started.nonce, nonce)) for message in turns)
    own_turn = Message(role="user", content=parent.task, images=started.images, files=started.files)
    return (*earlier, own_turn, Message(role="assistant", content=text))


def _without_transcripts(turns: Sequence[Message], frame: str) -> Iterator[Message]:
    """The turns without those that show what an agent did before, each with the task before it."""
    transcripts = [frame in message.content for message in turns]
    for message, is_one, is_before_one in zip(turns, transcripts, (*transcripts[1:], False), strict=False):
        if not is_one and not is_before_one:
            yield message


def _started(trace: Trace) -> RunStarted:
    if trace.started is None:
        raise ConfigError(f"Run {trace.run_id} never began.")
    return trace.started


def _refusal(name: str, code: str, /, **values: object) -> ToolError:
    hint = TEXTS.run_text("handoff_alone_hint" if name == "handoff_alone" else "handoff_limit_hint")
    return ToolError(TEXTS.run_text(name, **values), code=code, hint=hint)


# The tools


def handoffs_of(agent: AgentSettings) -> tuple[Handoff, ...]:
    """The hand-offs of an agent, each in its full form.

    Raises:
        ConfigError: they are not a list of agents, names and hand-offs.
    """
    entries: Any = agent.handoffs
    if isinstance(entries, str) or not isinstance(entries, list | tuple):
        raise ConfigError(f"The hand-offs of {agent.name!r} are {entries!r}.", hint="Give a list.")
    forms = tuple(entry if isinstance(entry, Handoff) else Handoff(agent=entry) for entry in entries)
    for handoff in forms:
        named: object = handoff.agent  # whatever a caller without types passes
        if not isinstance(named, AgentSettings | str):
            hint = "Give an Agent, the name of a linked one, or a Handoff."
            raise ConfigError(f"{named!r} is no agent to hand over to.", hint=hint)
    return forms


def handoff_tools(agent: AgentSettings) -> list[Tool]:
    """The tools by which an agent hands over.

    Raises:
        ConfigError: a hand-off cannot work (`check_handoff`).
    """
    tools: list[Tool] = []
    for handoff in handoffs_of(agent):
        check_handoff(agent, handoff)
        tool = _handoff_tool(agent, handoff)
        other = next((other.card.hands_over_to for other in tools if other.name == tool.name), None)
        if other == handoff.name:
            raise ConfigError(f"The agent {agent.name!r} hands over to {other!r} twice.", hint="Remove one of the two.")
        if other is not None:
            raise ConfigError(
                f"The hand-offs of {agent.name!r} to {other!r} and {handoff.name!r} would both be the tool "
                f"{tool.name!r}.",
                hint="Rename one of these agents.",
            )
        tools.append(tool)
    return tools


def _handoff_tool(agent: AgentSettings, handoff: Handoff) -> Tool:
    target, text = handoff.target, CardTexts(TEXTS)
    card = ToolCard(
        name=tool_name(target.name),
        purpose=text("handoff_purpose", agent=target.name, description=target.description.strip()),
        use_when=handoff.use_when or text("handoff_use"),
        avoid_when=text("handoff_avoid"),
        input_schema={
            "type": "object",
            "properties": {"reason": {"type": "string", "maxLength": 1000, "description": text("handoff_reason")}},
            "required": ["reason"],
            "additionalProperties": False,
        },
        tier=_tier(agent, target),
        timeout_s=TIMEOUT_S,
        max_preview_chars=_OUTPUT_CHARS,
        idempotent=True,  # a repeated call resumes the run that the first one started
        parallel=False,
        egress=False,  # the calls of its run are judged there
        roles={"reason": "minor"},
        reversible=False,  # and undone there
        hands_over_to=target.name,
    )
    return replace(tool_from_card(card, HandoffTool(handoff, agent), chinese=text.chinese), runs_inside=True)


def tool_name(agent: str) -> str:
    """The name of the tool that hands over to an agent: in ASCII, as providers want it.

    A name with other letters, such as a Chinese one, is told apart from others by a part of its digest.
    """
    written = re.sub(r"[^A-Za-z0-9_-]", "_", agent)
    if not agent.isascii():
        written = f"{written.strip('_')}_{hashlib.sha256(agent.encode()).hexdigest()[:6]}".lstrip("_")
    return f"hand_over_to_{written}"


def _tier(agent: AgentSettings, target: AgentSettings) -> Tier:
    """`read` if no agent that may have the task then can do more than read under these policies, else `draft`.

    It is never more: what changes something is judged within the run, by the stricter of both policies.
    """
    if any(_profile(settings) in ("read-only", "locked") for settings in (agent, target)):
        return "read"
    reachable = _reachable(target)
    is_read = all(card.tier == "read" for settings in reachable for card in bind(settings).own_toolbox.cards)
    return "read" if is_read else "draft"


def _profile(agent: AgentSettings) -> str:
    return agent.policy.profile if isinstance(agent.policy, Policy) else agent.policy


def _reachable(agent: AgentSettings) -> list[AgentSettings]:
    """An agent with those that the conversation may come to from it; each name once."""
    agents = {agent.name: agent}
    waiting = [agent]
    while waiting:
        for handoff in handoffs_of(waiting.pop()):
            if handoff.name not in agents:
                agents[handoff.name] = handoff.target
                waiting.append(handoff.target)
    return list(agents.values())


# What can be wrong with them


def link_handoffs(*agents: A) -> tuple[A, ...]:
    """The agents, in their order, with hand-offs that name each other: also in a circle.

    Raises:
        ConfigError: two agents have the same name, or a hand-off cannot work (`check_handoff`).
    """
    names = [agent.name for agent in agents]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"Two agents are called {double!r}.", hint="Give each a name of its own.")
    linked = link_team({agent.name: agent for agent in agents})
    for agent in linked.values():
        for handoff in handoffs_of(agent):
            check_handoff(agent, handoff)
    return tuple(linked.values())


def link_team(agents: Mapping[str, A]) -> dict[str, A]:
    """The agents by their names, with hand-offs that find each other; nothing is checked."""
    team: dict[str, Any] = {}
    for name, agent in agents.items():
        handoffs = tuple(
            replace(handoff, team=team) if isinstance(handoff.agent, str) else handoff for handoff in handoffs_of(agent)
        )
        team[name] = replace(agent, handoffs=handoffs) if handoffs else agent
    return team


def check_handoff(agent: AgentSettings, handoff: Handoff) -> None:
    """Refuse a hand-off that cannot work.

    Raises:
        UnknownName: there is no such agent.
        ConfigError: the agent is itself the one that hands over, has no description, could come back without a limit,
            answers in another form, or must not read what it would see.
    """
    if handoff.name == agent.name:
        raise ConfigError(f"The agent {agent.name!r} hands over to itself.", hint="Name another agent.")
    target = handoff.target
    if not target.description.strip():
        raise ConfigError(
            f"The agent {target.name!r} has no description: the model must know when to hand over to it.",
            hint="Write in its `description` what it is for.",
        )
    if handoff.max_times is None and (path := _way_back(agent, handoff)) is not None:
        raise ConfigError(
            f"The hand-offs go round without a limit: {' → '.join(path)}.",
            hint="Write `max_times` at one of them: how often it may be used for one task.",
        )
    if agent.output_type is not None and agent.output_type != target.output_type:
        raise ConfigError(
            f"The answers of {agent.name!r} have an output type, and {target.name!r}, which would answer, has another.",
            hint="Give both the same one.",
        )
    _check_visibility(agent, target, handoff.history)


def _check_visibility(agent: AgentSettings, target: AgentSettings, history: HandoffHistory) -> None:
    """Refuse a history with observations where a model must not read any."""
    hides = [bind(settings).hides_observations for settings in (agent, target)]
    if (any(hides) and history == "full") or (hides[1] and history != "task"):
        raise ConfigError(
            f"The history {history!r} has texts that a model with `observations: handles` must not read.",
            hint="Write `history: task`.",
        )


def _way_back(agent: AgentSettings, first: Handoff) -> list[str] | None:
    """The names along a circle of hand-offs without a limit that begins with this one; None if there is none."""
    paths = [[agent.name, first.name]]
    seen = {first.name}
    agents = {first.name: first.target}
    while paths:
        path = paths.pop()
        for handoff in handoffs_of(agents[path[-1]]):
            if handoff.max_times is not None:
                continue
            if handoff.name == agent.name:
                return [*path, handoff.name]
            if handoff.name not in seen:
                try:
                    agents[handoff.name] = handoff.target
                except UnknownName:  # reported where it is written
                    continue
                seen.add(handoff.name)
                paths.append([*path, handoff.name])
    return None
