"""The prompt as a view of the trace. It only grows: each request's messages begin with those of the last one."""

from __future__ import annotations

from taoloop.core.decision import Act
from taoloop.core.events import (
    ActionRequested,
    Event,
    LimitReached,
    ModelReplied,
    Noted,
    Observed,
    ReplyRejected,
    Resumed,
    RunStarted,
)
from taoloop.core.message import Message
from taoloop.core.spec import AgentSpec
from taoloop.core.wording import limit_text
from taoloop.dialects import get_dialect
from taoloop.dialects.base import Dialect
from taoloop.dialects.system import form, system_prompt, task_prompt


class Conversation:
    """The messages that a model has seen and will see next.

    `rules` names the strategy's rules in the prompt set; `tools` says whether the strategy may act, `reasons`
    whether it writes its thoughts. Without tools the prompt does not mention any.
    """

    def __init__(self, rules: str, *, tools: bool, reasons: bool) -> None:
        self.messages: list[Message] = []
        self._rules, self._tools, self._reasons = rules, tools, reasons
        self._agent = AgentSpec()
        self._dialect: Dialect = get_dialect(self._agent.dialect)
        self._nonce = ""
        self._replied: ModelReplied | None = None
        self._requested: list[ActionRequested] = []
        self._requests: dict[str, ActionRequested] = {}
        self._closing = False

    def fold(self, event: Event) -> None:
        """Add what the model is to see of this event; most facts are none of its business."""
        match event.fact:
            case RunStarted() as fact:
                self._open(fact)
            case ModelReplied() as fact:
                self._replied = fact
                if not isinstance(fact.decision, Act) or fact.purpose == "close":
                    self._echo()
            case ActionRequested() as fact:
                self._request(fact)
            case Observed() as fact:
                requested = self._requests.pop(fact.call_id)
                self._add(self._dialect.observation(requested, fact, self._agent.prompts, self._nonce))
            case ReplyRejected() as fact if not self._closing:
                self._add(self._dialect.correction(fact, self._agent.prompts, tools=self._tools, reasons=self._reasons))
            case LimitReached() as fact if self._agent.closing_turn:
                self._close(fact)
            case Noted() as fact:
                self._user("notice", by=fact.by, text=fact.text)
            case Resumed() if self._closing:
                self._closing = False
                self._user("resumed")
            case _:
                pass

    def _open(self, fact: RunStarted) -> None:
        agent = self._agent = fact.agent
        self._dialect = get_dialect(agent.dialect)
        self._nonce = fact.nonce
        system = system_prompt(
            agent.prompts,
            self._dialect,
            agent.tools if self._tools else (),
            self._rules,
            agent.instructions,
            tools=self._tools,
            reasons=self._reasons,
        )
        self._add(Message(role="system", content=system))
        self.messages.extend(fact.history)
        self._add(Message(role="user", content=task_prompt(agent.prompts, agent.dialect, fact.task)))

    def _request(self, fact: ActionRequested) -> None:
        self._requests[fact.call_id] = fact
        self._requested.append(fact)
        replied = self._replied
        if replied and isinstance(replied.decision, Act) and len(self._requested) == len(replied.decision.calls):
            self._echo()

    def _echo(self) -> None:
        if self._replied is not None:
            self._add(self._dialect.echo(self._replied, self._requested))
        self._replied, self._requested = None, []

    def _close(self, fact: LimitReached) -> None:
        self._closing = True
        reason = limit_text(self._agent.language, fact)
        expected = form(self._agent.prompts, self._dialect.name, tools=False, reasons=self._reasons)
        self._user("closing", reason=reason, form=expected)

    def _user(self, name: str, /, **values: object) -> None:
        self._add(Message(role="user", content=self._agent.prompts.fill(name, **values)))

    def _add(self, message: Message) -> None:
        self.messages.append(message)
