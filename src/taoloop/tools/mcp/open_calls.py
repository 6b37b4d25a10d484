"""A call of a tool while it runs: how long it may take, and the questions that its server puts to a person meanwhile.

Limits of time: a server is given up once it was silent for `timeout_s`; progress starts that time anew, and nothing
goes beyond `max_timeout_s` (MCP 2025-11-25, basic/lifecycle, Timeouts). While a person is asked, it may be silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import mcp_types
from mcp import MCPError
from pydantic import ValidationError

from taoloop.core.text import RUN_LANGUAGE
from taoloop.tools.input_question import AskPerson, InputAnswer, InputQuestion, ask_nobody
from taoloop.tools.mcp.cards import bounded
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS

_MESSAGE_CHARS = 2_000
_MOST_QUESTIONS = 20  # of one call; a server may ask any number

REASON = "taoloop/reason"
"""The field of an answer's `_meta` that says why nobody answered."""


class CallTimer:
    """The time limit of one call: `limit_s` of silence, and `longest_s` in all. Works in one event loop."""

    def __init__(self, limit_s: float, longest_s: float) -> None:
        self.limit_s, self.longest_s = limit_s, max(limit_s, longest_s)
        self._questions = 0

    @contextmanager
    def noting(self, scope: asyncio.Timeout) -> Iterator[None]:
        """Let this time limit, which has begun, be the one that is moved."""
        self._scope, self._end = scope, asyncio.get_running_loop().time() + self.longest_s
        self.restart()
        yield

    def restart(self) -> None:
        """The server was heard of: the time of silence begins anew."""
        if self._scope.expired():
            return
        now = asyncio.get_running_loop().time()
        self._scope.reschedule(self._end if self._questions else min(self._end, now + self.limit_s))

    @contextmanager
    def waiting_for_person(self) -> Iterator[None]:
        """Meanwhile only the limit of the whole call counts."""
        self._questions += 1
        self.restart()
        try:
            yield
        finally:
            self._questions -= 1
            self.restart()

    @property
    def spent_s(self) -> float:
        """The limit that ended the call, in seconds."""
        at_end = asyncio.get_running_loop().time() >= self._end
        return self.longest_s if at_end else self.limit_s


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call of a tool that a server works on."""

    timer: CallTimer
    """Its limits of time."""
    answer_timeout_s: float = 300.0
    """How long a person has to answer, in seconds."""
    ask: AskPerson = ask_nobody
    """Puts a question to the person who answers for its run; runs in the loop of the connection."""
    run_id: str = ""
    """Its run."""
    on_progress: Callable[[str], None] | None = None
    """Gets what the server says of its progress, a line at a time."""
    unanswered: list[str] = field(default_factory=list)
    """For the model: the questions that nobody answered, each in a sentence."""
    language: str = field(default_factory=RUN_LANGUAGE.get)
    """The language of its run: a question may come in another context."""
    asked: int = 0
    """How many questions its server has asked."""


CURRENT_CALL: ContextVar[OpenCall | None] = ContextVar("taoloop_mcp_call", default=None)
"""The call that a message of a server belongs to, where its transport tells (HTTP, and the stateless era)."""


def asking_call(calls: Iterable[OpenCall]) -> OpenCall | None:
    """The open call that a question belongs to; None where several runs have one, and nobody can tell whose it is."""
    if (current := CURRENT_CALL.get()) is not None:
        return current
    open_calls = list(calls)
    return open_calls[0] if len({call.run_id for call in open_calls}) == 1 else None


async def elicit(
    server: McpServer, params: mcp_types.ElicitRequestParams, call: OpenCall | None
) -> mcp_types.ElicitResult:
    """The answer of a person to a question of a server, in the words of the protocol."""
    if call is not None:
        RUN_LANGUAGE.set(call.language)  # of the task that serves this one question
    question = question_of(server, params)
    if call is None:
        answer = InputAnswer(action="decline", note=TEXTS.run_text("question_of_nobody"))
    elif call.asked >= _MOST_QUESTIONS:
        answer = InputAnswer(action="decline", note=TEXTS.run_text("too_many_questions", limit=_MOST_QUESTIONS))
    else:
        call.asked += 1
        with call.timer.waiting_for_person():
            answer = await call.ask(replace(question, timeout_s=call.answer_timeout_s))
    if call is not None and answer.action != "accept" and not answer.by:
        note = answer.note or TEXTS.run_text("question_of_nobody")
        call.unanswered.append(TEXTS.run_text("unanswered_question", message=question.message, reason=note))
    meta: Any = {REASON: answer.note} if answer.note and not answer.by else None
    if answer.action != "accept" or question.fields is None:
        return mcp_types.ElicitResult(action=answer.action, _meta=meta)
    return mcp_types.ElicitResult(action="accept", content=dict(answer.content or {}))


async def opened_pages(server: McpServer, error: MCPError, call: OpenCall) -> bool:
    """Whether a call was refused until the person opens pages (URLElicitationRequiredError), and they have."""
    if error.code != mcp_types.URL_ELICITATION_REQUIRED:
        return False
    try:
        pages = mcp_types.ElicitationRequiredErrorData.model_validate(error.error.data).elicitations
    except ValidationError:
        return False
    for page in pages:
        if (await elicit(server, page, call)).action != "accept":
            return False
    return bool(pages)


def question_of(server: McpServer, params: mcp_types.ElicitRequestParams) -> InputQuestion:
    """A question of a server for a person; its text is bounded, and harmless to see."""
    question = InputQuestion(asker=server.display_name, message=bounded(params.message, _MESSAGE_CHARS))
    if isinstance(params, mcp_types.ElicitRequestURLParams):
        return replace(question, url=params.url)
    return replace(question, fields={"type": "object", **params.requested_schema})


def asking_in(loop: asyncio.AbstractEventLoop, ask: AskPerson) -> AskPerson:
    """The same in another loop than that of the run, which is `loop`; a cancellation is passed on."""

    async def forward(question: InputQuestion) -> InputAnswer:
        asking = ask(question)
        try:
            future = asyncio.run_coroutine_threadsafe(_as_coroutine(asking), loop)
        except RuntimeError:  # the loop of the call is closed: nobody waits for it any more
            return await ask_nobody(question)
        return await asyncio.wrap_future(future)

    return forward


async def _as_coroutine(asking: Any) -> InputAnswer:
    answer: InputAnswer = await asking
    return answer
