"""The switch that forbids real calls. Every model of a provider checks it before it opens a connection."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Lock

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.errors import RealCallsForbidden
from taoloop.models.base import WrappedModel

VARIABLE = "TAOLOOP_NO_REAL_CALLS"
"""Set to anything but 0 or false: no model of a provider is called, whatever the code says."""

_OFF = ("", "0", "false")
_lock = Lock()
_overrides: list[tuple[object, bool]] = []  # what open `with` blocks say, the innermost last; of the whole process


def require_allowed(spec: str, env: Mapping[str, str] | None = None) -> None:
    """Refuse to call the model `spec` while real calls are forbidden. `env` None takes the process's variables.

    Raises:
        RealCallsForbidden: they are; says by whom.
    """
    if by := forbidden_by(env):
        raise _refusal(spec, by)


def forbidden_by(env: Mapping[str, str] | None = None) -> str:
    """Who forbids real calls; an empty text if nobody does. The variable is stronger than any block of code."""
    if is_set(os.environ if env is None else env):
        return f"the variable {VARIABLE}"
    with _lock:
        return "forbid_real_calls()" if _overrides and not _overrides[-1][1] else ""


def is_set(env: Mapping[str, str]) -> bool:
    """True if the variable in `env` forbids real calls."""
    return env.get(VARIABLE, "").strip().lower() not in _OFF


class ForbiddenModel(WrappedModel):
    """Takes the place of a provider's model in an agent whose own environment forbids real calls."""

    async def complete(self, request: ModelRequest) -> ModelReply:  # noqa: ARG002  # it goes nowhere
        """Never a reply.

        Raises:
            RealCallsForbidden: always.
        """
        raise _refusal(self.spec, f"the variable {VARIABLE}")


def _refusal(spec: str, by: str) -> RealCallsForbidden:
    return RealCallsForbidden(
        f"{spec} was not called: real calls are forbidden by {by}.",
        hint="Use a scripted model or a recording, or allow real calls where this one is meant.",
    )


def forbid_real_calls() -> AbstractContextManager[None]:
    """Inside the `with` block no model of a provider is called, in any thread of this process.

    A run that tries ends as `model_failed`; the error behind it is `RealCallsForbidden`. Models on this machine
    (ollama, or a server of your own) are models of providers too.
    """
    return _override(allowed=False)


def allow_real_calls() -> AbstractContextManager[None]:
    """Inside the `with` block real calls are allowed again, but not against the variable `TAOLOOP_NO_REAL_CALLS`."""
    return _override(allowed=True)


@contextmanager
def _override(*, allowed: bool) -> Iterator[None]:
    override = (object(), allowed)
    with _lock:
        _overrides.append(override)
    try:
        yield
    finally:
        with _lock:
            _overrides.remove(override)
