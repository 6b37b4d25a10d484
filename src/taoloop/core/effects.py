"""What a strategy asks the runtime to do: a closed union."""

from __future__ import annotations

from dataclasses import dataclass

from taoloop.core.decision import Act
from taoloop.core.events import Fact, Finished
from taoloop.core.model_request import ModelRequest
from taoloop.core.views.steps import CallView


@dataclass(slots=True)
class CallModel:
    """Ask the model."""

    request: ModelRequest
    """The question."""
    step: int
    """The step that the reply belongs to."""


@dataclass(slots=True)
class RequestCalls:
    """Judge the calls of a decision: arguments, then policy. No tool is run yet."""

    act: Act
    """The decision."""
    step: int
    """Its step."""
    offered: bool = True
    """False: the strategy has no tools, so every call is one of an unknown tool."""


@dataclass(slots=True)
class RunTools:
    """Run calls, at the same time. Those above `read` are journalled as started first."""

    calls: tuple[CallView, ...]
    """The calls."""


@dataclass(slots=True, kw_only=True)
class ProbeCalls:
    """Ask the probes of the tools, at the same time, whether calls in doubt have happened."""

    calls: tuple[CallView, ...]
    """The calls in doubt."""


@dataclass(slots=True, kw_only=True)
class AskPerson:
    """A person's answer is needed before the run can continue."""

    calls: tuple[CallView, ...]
    """The calls that may or may not run."""
    doubts: tuple[CallView, ...] = ()
    """The calls that may or may not have happened."""


@dataclass(slots=True, kw_only=True)
class Record:
    """Write down facts that follow from the trace alone, and ask for the next effect."""

    facts: tuple[Fact, ...]
    """The facts, in order."""


@dataclass(slots=True, kw_only=True)
class Finish:
    """The run is over."""

    fact: Finished
    """How it ended."""


Effect = CallModel | RequestCalls | RunTools | ProbeCalls | AskPerson | Record | Finish
