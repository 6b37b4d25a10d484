"""How the readers of a dialect give up: a signal that carries the problem to tell the model."""

from __future__ import annotations

from taoloop.core.decision import Problem, excerpt


class ReplyParseError(Exception):  # a signal between the readers, never seen outside of `read`
    """A reader gives up; `problem` is what `read` returns."""

    def __init__(self, code: str, message: str, part: str = "") -> None:
        self.problem = Problem(code=code, message=message, excerpt=excerpt(part))
        super().__init__(message)
