"""Ids of responses: each is another one, and names its run and the turn of the run that it is the answer of."""

from __future__ import annotations

import re

from taoloop.core.trace import Trace
from taoloop.runtime.engine.clock import random_hex
from taoloop.serve.gateway.chat_approval import resume_count

_FORM = re.compile(r"(?:chatcmpl-|resp_|msg_)?(\d{8}-\d{6}-[0-9a-f]{8})(?:[-_](.*))?", re.DOTALL)
_TURN = re.compile(r"(\d{1,9})(?:[-_][0-9a-f]+)?")
_REPEAT_BYTES = 4


class ResponseId:
    """The part of a response's id after its prefix: `RUN` for the first turn of a run, then `RUN-1`, `RUN-2` …

    A response to a request that took the run no further, such as the same question again, ends in random digits:
    clients put messages together by their ids, and would drop a second one with the id of the first.

    Args:
        run_id: The run.
        before: The run before the request; None: the request started it.
        separator: What is between the parts.
    """

    def __init__(self, run_id: str, before: Trace | None = None, *, separator: str = "-") -> None:
        self._run_id, self._before, self._separator = run_id, before, separator
        self._value = ""

    def of(self, trace: Trace | None = None) -> str:
        """The id. It is fixed by the first call.

        `trace` is the run after the request; None: it is still active, which only a run is that was taken further.
        """
        if not self._value:
            self._value = self._separator.join(self._parts(trace))
        return self._value

    def _parts(self, trace: Trace | None) -> list[str]:
        if trace is not None and trace.run_id != self._run_id:  # a further run that gives the answer
            return [trace.run_id]
        before = self._before
        if before is None:
            return [self._run_id]
        turn = resume_count(before) + 1 if trace is None else resume_count(trace)
        parts = [self._run_id, str(turn)] if turn else [self._run_id]
        if trace is not None and before.paused is not None and turn == resume_count(before):
            parts = [self._run_id, str(turn), random_hex(_REPEAT_BYTES)]
        return parts


def run_of(response_id: str) -> str:
    """The run that the id of a response names; any other text is returned as it is, such as the id of a run."""
    match = _FORM.fullmatch(response_id)
    return match[1] if match is not None else response_id


def parse_response_id(response_id: str) -> tuple[str, int]:
    """The run and the turn of a response id, with any prefix or none; an invalid id gives a run that does not exist."""
    match = _FORM.fullmatch(response_id)
    if match is None:
        return response_id, 0
    turn = _TURN.fullmatch(match[2] or "")
    return match[1], int(turn[1]) if turn is not None else 0
