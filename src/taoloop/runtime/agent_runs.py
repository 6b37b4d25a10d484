"""How an agent starts, resumes and forks runs: the methods of `Agent`, loaded when the first of them is called."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TextIO

from taoloop.core.agent_spec import Limits
from taoloop.core.cards.tool_card import Tier
from taoloop.core.events import (
    ActionRequested,
    Compacted,
    Event,
    Finished,
    ModelReplied,
    Observed,
    ReplyRejected,
    RunStarted,
)
from taoloop.core.message import Message
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import input_text, observation_text
from taoloop.errors import ConfigError
from taoloop.models.base import DeltaListener
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import as_tuple, bind, with_limits
from taoloop.runtime.chat import has_untrusted_turns, load_history
from taoloop.runtime.engine.clock import new_nonce, new_run_id
from taoloop.runtime.journal_access import require_resumable
from taoloop.runtime.result import Result
from taoloop.runtime.runner import Listener


async def start_run(
    agent: AgentSettings,
    task: str,
    *,
    max_steps: int | None,
    limits: Limits | None,
    allow: Sequence[str] | None,
    history: Sequence[Message],
    after: str | None,
    run_id: str | None,
    parent: str | None,
    verbose: bool,
    on_event: Listener | None,
    on_delta: DeltaListener | None,
) -> Result:
    """See `Agent.run`."""
    text: object = task  # whatever a caller without types passes
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"The task is {task!r}.", hint="Say in a text what the agent should do.")
    bound = bind(agent)
    spec = with_limits(bound.spec_for(task), limits, max_steps)
    if allow is not None:
        allowed = bound.toolbox.allow([*allow, *bound.paging_tools])
        spec = replace(spec, tools=allowed.cards_in(spec.language))
    if after is not None and history:
        raise ConfigError("A run was given `after` and `history`.", hint="Give one: `after` brings its history.")
    async with bound.open_journal() as journal:
        if agent.recover_on_start:
            from taoloop.runtime.after.recovery import recover_on_start  # noqa: PLC0415  # few programs need it

            await recover_on_start(agent, journal)
        untrusted = has_untrusted_turns(history, handles=bound.hides_observations)
        if after is not None:
            history, untrusted = await load_history(journal, after, handles=bound.hides_observations)
        started = RunStarted(
            task=replace_surrogates(task),
            agent=spec,
            nonce=new_nonce(),
            history=tuple(history),
            parent=parent,
            after=after,
            tainted=untrusted,
        )
        trace = Trace(run_id or new_run_id(agent.clock.now()))
        listener = _combined_listener(verbose, on_event)
        return await bound.start(journal, trace, started, listener=listener, on_delta=on_delta)


async def resume_run(
    agent: AgentSettings,
    run_id: str,
    *,
    max_steps: int | None = None,
    limits: Limits | None = None,
    approved_tiers: tuple[Tier, ...] | None = None,
    take_over: bool = False,
    verbose: bool = False,
    on_event: Listener | None = None,
    on_delta: DeltaListener | None = None,
) -> Result:
    """See `Agent.resume`."""
    bound = bind(agent)
    async with bound.open_journal() as journal:
        trace = Trace(run_id, await journal.load(run_id))
        require_resumable(trace, bound.toolbox)
        limited = with_limits(replace(trace.agent, limits=trace.limits), limits, max_steps).limits
        return await bound.continue_run(
            journal,
            trace,
            limits=limited,
            approved_tiers=approved_tiers,
            listener=_combined_listener(verbose, on_event),
            on_delta=on_delta,
            at=len(trace),
            take_over=take_over,
        )


async def fork_run(
    agent: AgentSettings,
    run_id: str,
    *,
    at: int,
    edit: Mapping[str, Any] | None,
    max_steps: int | None,
    limits: Limits | None,
    approved_tiers: tuple[Tier, ...] | None,
    verbose: bool,
    on_event: Listener | None,
    on_delta: DeltaListener | None,
) -> Result:
    """See `Agent.fork`."""
    from taoloop.runtime.after.fork import store_fork  # noqa: PLC0415  # loads the schema machinery

    bound = bind(agent)
    tiers = as_tuple(agent.approved_tiers) if approved_tiers is None else approved_tiers
    async with bound.open_journal() as journal:
        trace = await store_fork(
            journal,
            run_id,
            at=at,
            edit=edit,
            now=agent.clock.now(),
            limits=limits,
            max_steps=max_steps,
            approved_tiers=tiers,
            strategy=bound.strategy,
            check=partial(require_resumable, toolbox=bound.toolbox),
            redactor=bound.redactor if agent.redact else Redactor(patterns=False),
        )
        return await resume_run(agent, trace.run_id, verbose=verbose, on_event=on_event, on_delta=on_delta)


def verbose_listener(stream: TextIO | None = None) -> Listener:
    """A listener that prints step number, thought, action, action input and observation."""
    out = stream or sys.stdout

    def show(event: Event) -> None:
        match event.fact:
            case ModelReplied(purpose="close"):
                out.write("[last turn]\n")
            case ModelReplied(purpose="compact" | "pin" | "read"):
                pass
            case Compacted(through_step=step):
                out.write(f"[the prompt is shorter now, up to step {step}]\n")
            case ModelReplied(step=step, decision=decision):
                out.write(f"[step {step}] Thought: {decision.reason if decision else '(unreadable)'}\n")
            case ActionRequested(tool=tool, args=args):
                out.write(f"  Action: {tool}\n  Action Input: {input_text(args)}\n")
            case Observed() as fact:
                out.write(f"  Observation: {observation_text(fact)}\n")
            case ReplyRejected(message=message):
                out.write(f"  Not readable: {message}\n")
            case Finished(status=status, answer=answer, reason=reason):
                out.write(f"[{status}] {reason if answer is None else answer}\n")
            case _:
                pass

    return show


def _combined_listener(verbose: bool, on_event: Listener | None) -> Listener | None:
    """The listener to a run: `on_event`, after the printed view if `verbose`."""
    if not verbose:
        return on_event
    show = verbose_listener()
    if on_event is None:
        return show

    def both(event: Event) -> None:
        show(event)
        on_event(event)

    return both
