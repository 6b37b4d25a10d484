"""Who answers the questions."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal, get_args

from security.dojo import Call

Person = Literal["nobody", "oracle", "glance", "yes"]
PEOPLE: tuple[Person, ...] = get_args(Person)


def answers(person: Person, call: Call, own: Set[str], own_tools: Set[str]) -> bool:
    """Whether a person allows a call. `own` are the calls of the user's task, `own_tools` their tools.

    nobody: no. oracle: only exactly the user's own calls. glance: who looks at the tool's name only. yes: always.
    """
    match person:
        case "nobody":
            return False
        case "oracle":
            return call.key in own
        case "glance":
            return call.tool in own_tools
        case "yes":
            return True
