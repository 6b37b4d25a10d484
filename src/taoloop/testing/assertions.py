"""Asserts about a run whose failure shows what happened instead: questions, calls in order, denials, limits.

Each takes a `Result` or a `Trace`. A call is named by its tool, or by its tool with some of the arguments
(`("order", {"item": "tea"})`); arguments that are not named may have any value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from taoloop.core.events import LimitReached
from taoloop.testing.trace_asserts import Ran, Wanted, calls, denied, fits, in_order, questions, story, trace_of


def assert_asked(ran: Ran, *expected: Wanted, outcome: str = "") -> None:
    """Assert that a person was asked about these calls, in this order, others between them or not.

    A question of the model is a call too: `("ask_user", {"question": "Which invoice?"})`.

    Args:
        ran: The run.
        expected: The calls; none: that anything was asked.
        outcome: What came of each: `approved`, `refused`, `open` … (see `questions`); empty: anything.

    Raises:
        AssertionError: lists what was asked instead.
    """
    asked = questions(ran)
    fitting = [(tool, args) for tool, args, answer in asked if outcome in ("", answer)]
    remaining = iter(fitting)
    missing = next((pattern for pattern in expected if not any(fits(pattern, call) for call in remaining)), None)
    if missing is not None or not fitting:
        what = "anything" if missing is None else f"about {_shown(missing)}"
        ending = f", {outcome}" if outcome else ""
        _fail(ran, f"Nobody was asked {what}{ending}{_after(missing, expected)}", "Asked was", asked)


def assert_not_asked(ran: Ran, *unexpected: Wanted) -> None:
    """Assert that nobody was asked about any of these calls; without calls: that nobody was asked anything.

    Raises:
        AssertionError: lists what was asked.
    """
    asked = questions(ran)
    hits = [row for row in asked if not unexpected or any(fits(pattern, row[:2]) for pattern in unexpected)]
    if hits:
        _fail(ran, f"A person was asked about {_shown(hits[0][:2])}", "Asked was", asked)


def assert_called(ran: Ran, *expected: Wanted, exactly: bool = False) -> None:
    """Assert that these calls ran in this order, others between them or not.

    Args:
        ran: The run.
        expected: The calls.
        exactly: That no other call ran.

    Raises:
        AssertionError: says which call is missing, and lists those that ran.
    """
    made = calls(ran)
    if not in_order(ran, *expected):
        count = next(n for n in range(1, len(expected) + 1) if not in_order(ran, *expected[:n]))
        missing = expected[count - 1]
        _fail(ran, f"{_shown(missing)} did not run{_after(missing, expected)}", "What ran", made)
    if exactly and len(made) != len(expected):
        _fail(ran, f"{len(made)} calls ran instead of {len(expected)}", "What ran", made)


def assert_not_called(ran: Ran, *unexpected: Wanted) -> None:
    """Assert that none of these calls ran; without calls: that nothing ran.

    Raises:
        AssertionError: lists the calls that ran.
    """
    made = calls(ran)
    hits = [call for call in made if not unexpected or any(fits(pattern, call) for pattern in unexpected)]
    if hits:
        _fail(ran, f"{_shown(hits[0])} ran", "What ran", made)


def assert_denied(ran: Ran, *expected: Wanted, why: str = "") -> None:
    """Assert that the policy denied or a person refused each of these calls; without calls: any call.

    Args:
        ran: The run.
        expected: The calls.
        why: A part of the reason; empty: any reason.

    Raises:
        AssertionError: lists what was denied, and what ran.
    """
    refused = denied(ran)
    fitting = [row[:2] for row in refused if why in row[2]]
    missing = [pattern for pattern in expected if not any(fits(pattern, call) for call in fitting)]
    if missing or not fitting:
        what = _shown(missing[0]) if missing else "No call"
        verb = "was not denied" if missing else "was denied"
        _fail(ran, f"{what} {verb}{f' because of {why!r}' if why else ''}", "Denied was", refused)


def assert_limit_reached(ran: Ran, limit: str) -> None:
    """Assert that the run was ended by a limit: `max_steps`, `max_cost_usd`, `max_seconds` … (`Limits`).

    Raises:
        AssertionError: names the limits that were reached, and how the run ended.
    """
    reached = [event.fact.limit for event in trace_of(ran).events if isinstance(event.fact, LimitReached)]
    if limit not in reached:
        _fail(ran, f"The run did not reach {limit!r}", "Reached was", reached)


def _after(missing: Wanted | None, expected: Sequence[Wanted]) -> str:
    """Where in the order a call is missing."""
    position = next((n for n, pattern in enumerate(expected) if pattern is missing), 0)
    return f" after {_shown(expected[position - 1])}" if position else ""


def _shown(pattern: Wanted | Sequence[Any]) -> str:
    if isinstance(pattern, str):
        return pattern
    return f"{pattern[0]} {json.dumps(pattern[1], ensure_ascii=False, default=str)}"


def _fail(ran: Ran, what: str, label: str, rows: Sequence[Any]) -> NoReturn:
    lines = [f"- {row if isinstance(row, str) else ' → '.join([_shown(row[:2]), *row[2:]])}" for row in rows]
    raise AssertionError("\n".join([f"{what}.", f"{label}:" if rows else f"{label}: nothing", *lines, story(ran)]))
