"""Plain printing of a run as it goes, for scripts and notebooks."""

from __future__ import annotations

import sys
from typing import TextIO

from taoloop.core.events import ActionRequested, Compacted, Event, Finished, ModelReplied, Observed, ReplyRejected
from taoloop.core.views.transcript import input_text, observation_text
from taoloop.runtime.runner import Listener


def verbose_listener(stream: TextIO | None = None) -> Listener:
    """A listener that prints step number, thought, action and action input, and what was observed."""
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


def listeners(verbose: bool, on_event: Listener | None) -> Listener | None:
    """Who is told of each event: the printed view where it is wanted, and the listener that was given."""
    if not verbose:
        return on_event
    show = verbose_listener()
    if on_event is None:
        return show

    def both(event: Event) -> None:
        show(event)
        on_event(event)

    return both
