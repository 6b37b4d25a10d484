"""The hand-offs of agents in a file: their entries, the further agents of the file, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Required, TypedDict, TypeVar

from taoloop.config.document import ConfigDocument, describe_value, error_location
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_settings import AgentSettings, Handoff, HandoffHistory
from taoloop.runtime.handoff import check_handoff, handoffs_of, link_team
from taoloop.tools.yaml12 import FieldPath
from taoloop.translation import mark

A = TypeVar("A", bound=AgentSettings)


class HandoffEntry(TypedDict, total=False):
    """An agent that may take the conversation over."""

    agent: Required[str]
    """The name of an agent of the same file."""

    history: HandoffHistory
    """What it sees: `task` (the user's task, the default), `answers` (also the user's earlier messages and the answers
    to them) or `full` (also what the agent before it did and observed)."""

    max_times: int
    """How often it may take over from this agent for one task; needed where it could hand the conversation back."""

    use_when: str
    """When to hand over to it, beside its own `description`."""


def read_handoffs(document: ConfigDocument, entries: tuple[HandoffEntry | str, ...]) -> tuple[Handoff, ...]:
    """What `handoffs` says, not linked yet.

    Raises:
        AgentFileError: an entry is no hand-off.
    """
    handoffs: list[Handoff] = []
    for index, entry in enumerate(entries):
        with error_location(document, ("handoffs", index)):
            handoffs.append(Handoff(agent=entry) if isinstance(entry, str) else Handoff(**entry))
    return tuple(handoffs)


def with_agents_of_file(
    document: ConfigDocument, agent: Agent, entries: Mapping[Any, Any], load: Callable[[FieldPath, Any], Agent]
) -> Agent:
    """The agent of a file, linked with the further agents under `agents`; `load` gives the agent of an entry.

    Raises:
        AgentFileError: one of them cannot be used.
    """
    members = {agent.name: agent}
    if not agent.handoffs:
        text = mark("nothing hands over to these agents.")
        raise document.problem(("agents",), text, mark("Name them under `handoffs` of the agent of this file."))
    for name, entry in entries.items():
        path = ("agents", str(name))
        if not isinstance(name, str) or not name.strip() or name in members:
            text = mark("{name} is no name of a further agent.")
            hint = mark("Use a text of its own for each; {agent!r} is the agent of the file.")
            raise document.problem(path, text, hint, name=describe_value(name), agent=agent.name)
        if not isinstance(entry, str | dict):
            text = mark("an agent is expected, not {value}.")
            hint = mark("Write the path of an agent file, or the fields of one.")
            raise document.problem(path, text, hint, value=describe_value(entry))
        if isinstance(entry, dict) and "agents" in entry:
            text = mark("these agents belong beside this one.")
            raise document.problem((*path, "agents"), text, mark("Write them there."))
        members[name] = replace(load(path, entry), name=name)
    team = link_team(members)
    for name in entries:
        require_linked(document, team[name], ("agents", name))
    return team[agent.name]


def require_linked(document: ConfigDocument, agent: AgentSettings, path: FieldPath = ()) -> None:
    """Refuse hand-offs of an agent that cannot work. `path` is where the agent is in the document.

    Raises:
        AgentFileError: names the line.
    """
    for index, handoff in enumerate(handoffs_of(agent)):
        with error_location(document, (*path, "handoffs", index)):
            check_handoff(agent, handoff)
