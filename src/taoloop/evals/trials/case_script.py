"""A model that plays a script of the case: the oracle, which frames a table from above, and other behaviours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from taoloop.core.decision import Act, Answer, Call
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.dialects import get_dialect
from taoloop.errors import AgentFileError, ScriptExhausted
from taoloop.evals.cases import Case
from taoloop.models.scripted import pieces, reply_from
from taoloop.translation import Translator, mark

translate = Translator("evals")

ORACLE = "oracle"
HIJACKED = "hijacked"
"""The oracle as it is if it obeys injected text (`taoloop.evals.trouble.reply_trouble`)."""
_ORACLES = (ORACLE, HIJACKED)
_SCRIPT = "script:"
CASE_SCRIPTS = (*_ORACLES, "script:NAME")
"""The models that play a script of the case, for messages."""

_case: ContextVar[Case] = ContextVar("taoloop_eval_case")


def is_case_script(spec: str | None) -> bool:
    """Whether a model is a script of the case."""
    return spec is not None and (spec in _ORACLES or spec.startswith(_SCRIPT))


def current_case() -> Case:
    """The case of the trial that runs here.

    Raises:
        LookupError: no trial is running here.
    """
    return _case.get()


@contextmanager
def played_case(case: Case) -> Iterator[None]:
    """Let `CaseScriptModel` in the block play the scripts of this case."""
    token = _case.set(case)
    try:
        yield
    finally:
        _case.reset(token)


def require_script(case: Case, spec: str) -> None:
    """Refuse a case that lacks the script of a model, or whose script has an entry that is no reply.

    Raises:
        AgentFileError: names the file and the line of the case.
    """
    try:
        for number, entry in enumerate(_script(case, spec), 1):
            reply_from(_without_answer(entry), number, spec)
    except AgentFileError:
        raise
    except Exception as error:
        message = getattr(error, "message", str(error))
        raise AgentFileError(message, path=case.file or case.case_id, line=case.line) from error


class CaseScriptModel:
    """Plays `script` (as `oracle` or `hijacked`) or one of `scripts` (as `script:NAME`) of the case whose trial asks.

    A script is that of `ScriptedModel`, and is written in the dialect of the run: a text is an answer, a mapping with
    `tool_calls` a decision to act. A mapping with nothing but `text` is a reply that goes as it is, whatever is in it.
    Where a case has a script `NAME:STRATEGY`, that one is played for runs with the strategy.
    The oracle serves every strategy: where it is offered no tools, or its script is over, it gives its last reply.
    """

    def __init__(self, spec: str) -> None:
        self.spec = spec

    @property
    def dialect(self) -> str:
        """The dialect in which it writes where the agent chooses none."""
        return "native"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply for this turn of the run."""
        script = _script(_case.get(), self.spec, request.trace.agent.strategy)
        turn = request.turn
        if self.spec in _ORACLES and (turn >= len(script) or not request.tools):
            turn = len(script) - 1
        if turn >= len(script):
            raise ScriptExhausted(f"The script {self.spec!r} of the case {_case.get().case_id!r} is over.")
        reply = _written(script[turn], turn + 1, self.spec, request.dialect)
        if request.on_delta is not None:
            for delta in pieces(reply):
                request.on_delta(delta)
        return reply

    def check_used(self, replies: int) -> None:
        """A script may have replies left: the checks of the case decide."""

    async def close(self) -> None:
        """Nothing to close."""


def _script(case: Case, spec: str, strategy: str = "") -> tuple[Any, ...]:
    name = spec.removeprefix(_SCRIPT)
    own_script = case.scripts.get(f"{name}:{strategy}") or case.scripts.get(name, ())
    script = case.script if spec in _ORACLES else own_script
    if not script:
        text = mark("the case {case!r} has no script for the model {spec!r}.")
        hint = translate("Add `script:` with the replies of a right model.")
        if spec not in _ORACLES:
            names = [*([ORACLE] if case.script else []), *(f"{_SCRIPT}{name}" for name in case.scripts)]
            hint = translate("It has: {names}.", names=", ".join(names) or translate("nothing"))
        message = translate(text, case=case.case_id, spec=spec)
        raise AgentFileError(message, path=case.file or case.case_id, line=case.line, hint=hint)
    return script


def _without_answer(entry: Any) -> Any:
    if isinstance(entry, Mapping) and "answer" in entry:
        return {"text": entry["answer"], **{name: value for name, value in entry.items() if name != "answer"}}
    return entry


def _written(entry: Any, number: int, spec: str, dialect: str) -> ModelReply:
    """A reply of a script in the dialect of a run."""
    reply = reply_from(_without_answer(entry), number, spec)
    if isinstance(entry, ModelReply) or get_dialect(dialect).native:
        return reply
    if reply.tool_calls:
        calls = tuple(Call(tool=call.name, args=json.loads(call.arguments)) for call in reply.tool_calls)
        written = get_dialect(dialect).write(Act(calls=calls, reason=reply.text))
    elif isinstance(entry, str) or "answer" in entry:
        written = get_dialect(dialect).write(Answer(text=reply.text))
    else:
        return reply
    return replace(reply, text=written.text, tool_calls=written.tool_calls, finish_reason="stop")
