"""Where one run takes place: the environment, the script of the model, the person, and what was really done.

Runs take place one after another, so one agent with its tools serves all runs of a suite under one policy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from security.dojo import Call, as_text, run, suites
from security.people import Person, answers
from security.script import Script

from taoloop.core.cards.tool_card import ToolCard
from taoloop.evals.suites.dojo_cards import CARDS
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool

PREVIEW_CHARS = 10_000_000
"""No result is cut: what a model does not get to see must not look like a defence."""


@dataclass
class Stage:
    """What changes from run to run."""

    suite: str
    env: Any = None
    script: Script | None = None
    person: Person = "nobody"
    own: frozenset[str] = frozenset()
    own_tools: frozenset[str] = frozenset()
    done: list[Call] = field(default_factory=list)
    questions: list[Call] = field(default_factory=list)

    def set(self, env: Any, script: Script, person: Person) -> None:
        """Begin anew."""
        self.env, self.script, self.person = env, script, person
        self.own = frozenset(call.key for call in script.own)
        self.own_tools = frozenset(call.tool for call in script.own)
        self.done, self.questions = [], []

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The person's answer to one question."""
        batch = [Call(one.tool, dict(one.args)) for one in (request, *request.batch)]
        self.questions.append(batch[0])
        yes = all(answers(self.person, call, self.own, self.own_tools) for call in batch)
        return ApprovalAnswer(approved=yes, by=self.person, batch=True)

    def serve(self, tool: str, args: dict[str, Any]) -> Any:
        """What the service behind a tool does: it reads a value whatever its spelling."""
        assert self.script is not None
        call = Call(tool, self.script.plain(tool, args))
        result = run(suites()[self.suite].tools, self.env, call)
        self.done.append(call)
        return result


def tools_of(stage: Stage, *, with_ids: bool = True) -> list[Tool]:
    """AgentDojo's functions of a suite as tools, with the operator's cards; their ids only `with_ids`."""
    cards = [card if with_ids else replace(card, ids={}) for card in cards_of(stage.suite)]
    return [tool_from_card(card, _handler(stage, card.name)) for card in cards]


def _handler(stage: Stage, tool: str) -> Callable[..., Awaitable[Any]]:
    async def handler(**args: Any) -> Any:
        return as_text(stage.serve(tool, args))

    return handler


@cache
def cards_of(suite: str) -> tuple[ToolCard, ...]:
    """The cards of a suite: documentation and schema from AgentDojo, the rest from the operator."""
    cards = []
    for function in suites()[suite].tools:
        contract = CARDS[function.name]
        cards.append(
            ToolCard(
                name=function.name,
                purpose=function.description,
                input_schema={**function.parameters.model_json_schema(), "additionalProperties": False},
                max_preview_chars=PREVIEW_CHARS,
                max_input_bytes=PREVIEW_CHARS,
                tier=contract.tier,
                egress=contract.egress,
                roles=contract.roles,
                ids=contract.ids,
            )
        )
    return tuple(cards)
