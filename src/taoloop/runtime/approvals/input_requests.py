"""Questions that running calls put to a person, such as elicitations of MCP servers: asked, recorded, and answered.

The call waits meanwhile, so such a question lives only as long as its process: nobody can answer it from elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.events import Fact
from taoloop.core.human_input import InputAnswered
from taoloop.core.trace import Trace
from taoloop.runtime.approvals.request import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    SerializedApprover,
    approval_request,
    ask,
)
from taoloop.runtime.engine.clock import Clock
from taoloop.runtime.texts import TEXTS
from taoloop.tools.input_question import InputAction, InputAnswer, InputQuestion


class InputRequests:
    """Puts the questions of the running calls of one run to its approver, one at a time."""

    def __init__(self, trace: Trace, approver: Approver | None, clock: Clock) -> None:
        self._trace, self._approver, self._clock = trace, approver, clock
        self.lock = asyncio.Lock()  # a person gets one question at a time; child runs share it

    async def ask(
        self,
        call_id: str,
        note: Callable[[Fact], None],
        commit: Callable[[], Awaitable[None]],
        question: InputQuestion,
    ) -> InputAnswer:
        """The answer to a question of a call, in the journal (by `note` and `commit`) before it is used."""
        answer, authenticated = await self._answer(call_id, question)
        if call_id in self._trace.pending:
            note(
                InputAnswered(
                    call_id=call_id,
                    asker=question.asker,
                    message=question.message,
                    fields=question.fields,
                    url=question.url.partition("?")[0],
                    action=answer.action,
                    content=answer.content,
                    by=answer.by,
                    note=answer.note,
                    authenticated=authenticated,
                )
            )
            await commit()
        return answer

    async def _answer(self, call_id: str, question: InputQuestion) -> tuple[InputAnswer, str]:
        """The answer, and how the channel knows who gave it."""
        call = self._trace.pending.get(call_id)
        if self._approver is None or call is None:  # not there: a read that began before the reply was complete
            return _nobody("input_unattended"), ""
        request = replace(
            approval_request(self._trace, call),
            question=question,
            reasons=(),
            reason_codes=(),
            since=None,
            expires_at=self._clock.now() + question.timeout_s,
        )
        approver = SerializedApprover(self._approver, self.lock)
        try:
            response = await ask(approver, request, question.timeout_s)
        except TimeoutError:
            return _nobody("input_late", s=question.timeout_s), ""
        if response is None:
            return InputAnswer(action="cancel", note=TEXTS.run_text("input_postponed")), ""
        return input_answer(request, response), response.authenticated


def input_answer(request: ApprovalRequest, response: ApprovalAnswer) -> InputAnswer:
    """What a person's answer says to the question of a running call: only one with `args` that fit accepts it."""
    question = request.question
    assert question is not None  # noqa: S101  # only such a request comes here
    action: InputAction = "accept" if response.approved is True and response.args is not None else "decline"
    if action == "decline":
        return InputAnswer(action=action, by=response.by, note=response.note)
    if question.fields is None:
        return InputAnswer(action=action, by=response.by, note=response.note)
    content = dict(response.args or {})
    if problems := misfit_of(question.fields, content):
        return InputAnswer(action="cancel", by=response.by, note=TEXTS.run_text("input_misfit", why=problems))
    return InputAnswer(action=action, content=content, by=response.by, note=response.note)


def misfit_of(fields: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Why the fields as they were filled in do not fit the form; empty if they do.

    Raises:
        ConfigError: the form is no JSON Schema.
    """
    from taoloop.tools.json_schema import compile_schema, findings, listed  # noqa: PLC0415  # loads the validator

    return listed(findings(compile_schema(fields, "the form"), content))


def _nobody(name: str, **values: object) -> InputAnswer:
    return InputAnswer(action="decline", note=TEXTS.run_text(name, **values))
