"""What a strategy asks of the world: a closed union."""

from __future__ import annotations

from dataclasses import dataclass

from taoloop.core.decision import Act
from taoloop.core.events import Fact, Finished
from taoloop.core.model_request import ModelRequest
from taoloop.core.views.steps import CallView


@dataclass(slots=True, kw_only=True)
class CallModel:
    """Ask the model; its reply belongs to `step`."""

    request: ModelRequest
    step: int


@dataclass(slots=True, kw_only=True)
class RequestCalls:
    """Judge the calls of a decision: arguments, then policy. No tool is run yet.

    `offered` False: the strategy has no tools, so every call is one of an unknown tool.
    """

    act: Act
    step: int
    offered: bool = True


@dataclass(slots=True, kw_only=True)
class RunTools:
    """Run these calls, at the same time. Those above `read` are journalled as started first."""

    calls: tuple[CallView, ...]


@dataclass(slots=True, kw_only=True)
class ProbeCalls:
    """These calls are in doubt: ask the probes of their tools, at the same time, whether they happened."""

    calls: tuple[CallView, ...]


@dataclass(slots=True, kw_only=True)
class AskPerson:
    """These calls need a person's answer before the run can go on.

    Of `calls` it is asked whether they may run, of `doubts` whether they happened.
    """

    calls: tuple[CallView, ...]
    doubts: tuple[CallView, ...] = ()


@dataclass(slots=True, kw_only=True)
class Record:
    """Write down these facts, which follow from the trace alone, and ask again."""

    facts: tuple[Fact, ...]


@dataclass(slots=True, kw_only=True)
class Finish:
    """The run is over."""

    fact: Finished


Effect = CallModel | RequestCalls | RunTools | ProbeCalls | AskPerson | Record | Finish
