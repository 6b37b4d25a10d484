"""Forbidding real calls in tests, and allowing them where one is meant."""

from __future__ import annotations

from contextlib import AbstractContextManager

from taoloop.models.real_call_switch import real_calls


def forbid_real_calls() -> AbstractContextManager[None]:
    """Inside the `with` block no model of a provider is called, in any thread of this process.

    A run that tries ends as `model_failed`; the error behind it is `RealCallsForbidden`. Models on this machine
    (ollama, or a server of your own) are models of providers too.
    """
    return real_calls(allowed=False)


def allow_real_calls() -> AbstractContextManager[None]:
    """Inside the `with` block real calls are allowed again, but not against the variable `TAOLOOP_NO_REAL_CALLS`."""
    return real_calls(allowed=True)
