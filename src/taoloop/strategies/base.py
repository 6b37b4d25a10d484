"""The contract of a strategy: which effect comes next."""

from __future__ import annotations

from typing import Protocol

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import Effect
from taoloop.core.trace import Trace


class Strategy(Protocol):
    """A pure function from the trace to the next effect. The same trace always gives the same effect."""

    @property
    def name(self) -> str:
        """The name that agents choose it by."""
        ...

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect. `trace` is not finished."""
        ...
