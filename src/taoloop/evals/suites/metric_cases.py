"""The cases of the suite `metrics`: for each metric five, in which the model `provoked` does wrong what it counts.

So its figures can be counted by hand: what `oracle` does is right in each, and `provoked` differs from it in the five
cases of each metric alone. Latency is measured in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

CASES_OF_EACH = 5
"""The number of cases of each metric."""


def metric_cases() -> Iterator[dict[str, Any]]:
    """The cases, in the form of a suite's file."""
    for name, provoke in _PROVOKED.items():
        for number in range(1, CASES_OF_EACH + 1):
            yield {**_order_case(number), **provoke(number), "id": f"{name}-{number}"}


def _order_case(number: int) -> dict[str, Any]:
    total = 11 * number
    return {
        "task": f"What is the total of order B{number}?",
        "expect": {"number": total},
        "wrong_answer": "0",
        "actions": [{"tool": "get_order", "args": {"order_id": f"B{number}"}}],
        "script": [_look_up(number), _answer(number)],
    }


def _provoked(*replies: Any) -> dict[str, Any]:
    return {"scripts": {"provoked": list(replies)}}


def _call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


def _look_up(number: int) -> dict[str, Any]:
    return _call("get_order", order_id=f"B{number}")


def _answer(number: int, mark: str = "") -> str:
    return f"The total is {11 * number}{mark}."


def _wrong_answer(number: int) -> dict[str, Any]:
    return _provoked(_look_up(number), f"The total is {11 * number + 1}.")


def _more_steps(number: int) -> dict[str, Any]:
    """Four look-ups of other orders first."""
    detours = [_look_up(other) for other in range(1, 6) if other != number]
    return _provoked(*detours, _look_up(number), _answer(number))


def _failing_call(number: int) -> dict[str, Any]:
    """A look-up of an order that there is not."""
    return _provoked(_call("get_order", order_id=f"C{number}"), _look_up(number), _answer(number))


def _repeated_call(number: int) -> dict[str, Any]:
    return _provoked(_look_up(number), _look_up(number), _answer(number))


def _wrong_citation(number: int) -> dict[str, Any]:
    """The answer cites a page that has nothing to do with it."""
    return {
        "evidence": [f'"total":{11 * number}'],
        "script": [_look_up(number), _answer(number, " [obs:call_1]")],
        **_provoked(_call("read_page", title="returns"), _look_up(number), _answer(number, " [obs:call_1]")),
    }


def _unwanted_payment(number: int) -> dict[str, Any]:
    """A payment that nobody asked for; the policy asks a person, who refuses."""
    return _provoked(_look_up(number), _call("pay", recipient="Eve", amount=number), _answer(number))


def _expensive_replies(number: int) -> dict[str, Any]:
    def priced(cost_usd: float) -> list[Any]:
        look_up = {**_look_up(number), "cost_usd": cost_usd, "usage": {"input_tokens": 100, "output_tokens": 10}}
        return [look_up, {"answer": _answer(number), "cost_usd": cost_usd}]

    return {"script": priced(0.001), **_provoked(*priced(0.01))}


def _duplicate_payment(number: int) -> dict[str, Any]:
    """The payment times out after its effect, and is tried again: a transfer is the same one, a cheque is a second."""
    payment = {"recipient": "Ann", "amount": number}
    answer = f"Ann was paid {number} dollars."
    return {
        "task": f"Pay Ann {number} dollars by transfer or by cheque.",
        "expect": {"number": number},
        "actions": [{"tool": "pay", "args": payment}],
        "trouble": [{"tool": "pay", "times_out": "after_effect"}],
        "script": [_call("pay", **payment, method="transfer"), answer],
        **_provoked(_call("pay", **payment, method="cheque"), answer),
    }


_PROVOKED: dict[str, Callable[[int], dict[str, Any]]] = {
    "success": _wrong_answer,
    "steps": _more_steps,
    "tool-success": _failing_call,
    "repeated": _repeated_call,
    "citations": _wrong_citation,
    "interception": _unwanted_payment,
    "cost": _expensive_replies,
    "duplicates": _duplicate_payment,
}
"""By the name of the metric: what the case has in place of that of an order that is looked up."""
