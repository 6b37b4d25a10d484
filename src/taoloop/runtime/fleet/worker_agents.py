"""Which of a worker's agents drives a run."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from taoloop.core.trace import Trace
from taoloop.errors import TaoError
from taoloop.runtime.after.recovery import AgentFor
from taoloop.runtime.agent_settings import AgentSettings

_LOG = logging.getLogger("taoloop.fleet")


class WorkerAgents:
    """Finds agents for runs; says once of each kind of run why there is none.

    Args:
        agents: The agents. A run belongs to the one with its agent's name; where several have it, to the one that also
            has its source. Or a function that gives the agent of a run, None where it has none.
    """

    def __init__(self, agents: Sequence[AgentSettings] | AgentFor) -> None:
        self._agents = agents
        self._reported: set[tuple[str, str | None, str]] = set()

    def find(self, trace: Trace) -> AgentSettings | None:
        """The agent of a run; None: another worker may have it."""
        why = ""
        try:
            agent = self._agents(trace) if callable(self._agents) else self._of_name(trace)
        except TaoError as error:
            agent, why = None, error.message
        if agent is None:
            self._report(trace, why)
        return agent

    def report(self, trace: Trace, error: TaoError) -> None:
        """Say that the agent of a run cannot drive it."""
        self._report(trace, error.message)

    def _of_name(self, trace: Trace) -> AgentSettings | None:
        if callable(self._agents):
            return None
        spec = trace.agent
        same_name = [agent for agent in self._agents if agent.name == spec.name]
        same_source = [agent for agent in same_name if agent.source == spec.source]
        if same_source:
            return same_source[0]
        return same_name[0] if len(same_name) == 1 else None

    def _report(self, trace: Trace, why: str) -> None:
        key = trace.agent.name, trace.agent.source, why
        if key in self._reported:
            return
        self._reported.add(key)
        known = "" if callable(self._agents) else ", ".join(sorted({agent.name for agent in self._agents}))
        _LOG.warning(
            "run %s is left to other workers: its agent %r%s is not one of this worker (%s). Start a worker with"
            " it: tao worker --agents ...; the run is untouched.",
            trace.run_id,
            trace.agent.name,
            "" if trace.agent.source is None else f" of {trace.agent.source}",
            why or f"it has: {known or 'none'}",
        )
