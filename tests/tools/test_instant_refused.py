"""What might wait or grow gets a thread: functions that must not run in the loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.tools.test_instant import FACTOR, PRICES, Slow, add, defined, is_instant, upper

from taoloop.errors import ToolDefinitionError
from taoloop.tools.function import tool
from taoloop.tools.instant import Instant

RATE = 3


def loops(n: int) -> int:
    while n:
        n -= 1
    return n


def iterates(n: int) -> list[int]:
    return [one for one in range(n)]  # noqa: C416  # a comprehension is the point


def sleeps(n: int) -> int:
    time.sleep(n)
    return n


def prints(n: int) -> None:
    print(n)  # noqa: T201  # the point


def opens(path: str) -> Any:
    return open(path)  # noqa: PTH123  # the point


def calls_another(n: int) -> int:
    return add(n, 1)


def calls_its_argument(n: Any) -> Any:
    return n()


def reads_an_attribute(n: Any) -> Any:
    return n.real


def imports() -> Any:
    import os  # noqa: PLC0415  # the point

    return os


def makes_a_function(n: int) -> Any:
    return lambda: n


def yields(n: int) -> Any:
    yield n


def is_with(n: Any) -> Any:
    with n:
        return 1


def sorts_by(words: list[str]) -> list[str]:
    return sorted(words, key=len)


def powers(a: int, b: int) -> Any:
    return a**b


def shifts(a: int) -> int:
    return 1 << a


def repeats(text: str, n: int) -> str:
    return text * n


def repeats_a_global(n: int) -> Any:
    return FACTOR * n


def formats(n: int) -> str:
    return "%1000000000d" % n  # noqa: UP031  # the point


def pads(n: int) -> str:
    return f"{n:>1000000000}"


def pads_by_argument(n: int) -> str:
    return f"{n:>{n}}"


def format_method(n: int) -> str:
    return "{:>1000000000}".format(n)  # noqa: UP032  # the point


def rounds_far(n: int) -> int:
    return round(n, -1_000_000_000)


def rounds_by_argument(n: int, digits: int) -> float:
    return round(n, digits)


def replaces(text: str, new: str) -> str:
    return text.replace("", new)


def joins(parts: list[str], between: str) -> str:
    return between.join(parts)


def doubles(text: str) -> str:
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    text = text + text
    return text + text


def nests(items: list[Any]) -> str:
    a = [items, items]
    b: list[Any] = []
    b.append(a)
    b.append(a)
    c: list[Any] = []
    c.append(b)
    c.append(b)
    d: list[Any] = []
    d.append(c)
    d.append(c)
    return str(d)


def multiplies_on(n: int) -> int:
    return (n**8) ** 8


def catches_all(item: str) -> float:
    try:
        return PRICES[item]
    except BaseException:  # noqa: BLE001  # would take Ctrl-C
        return 0


def catches_bare(item: str) -> float:
    try:
        return PRICES[item]
    except:  # noqa: E722  # would take Ctrl-C
        return 0


def ends_the_program() -> None:
    raise SystemExit


def interrupts() -> None:
    raise KeyboardInterrupt


def raises_its_argument(error: Any) -> None:
    raise error


def takes_any(*args: int) -> int:
    return args[0]


def takes_any_name(**names: int) -> int:
    return names["a"]


def rebinds() -> None:
    global RATE  # noqa: PLW0603  # the point
    RATE = 4


def uses_a_caught_error(item: str) -> str:
    try:
        return str(PRICES[item])
    except KeyError as error:
        return f"{error}"


def unpacks(items: list[int]) -> dict[str, Any]:
    return {"all": [*items]}


def is_of_a_class(value: Any) -> bool:
    return isinstance(value, Slow)


def inverts(flag: bool) -> int:
    return ~flag


async def waits(n: int) -> int:
    return n


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (loops, {"n": 1}), (iterates, {"n": 1}), (sleeps, {"n": 1}), (prints, {"n": 1}), (opens, {"path": "x"}),
        (calls_another, {"n": 1}), (calls_its_argument, {"n": 1}), (reads_an_attribute, {"n": 1}), (imports, {}),
        (makes_a_function, {"n": 1}), (yields, {"n": 1}), (is_with, {"n": 1}), (sorts_by, {"words": []}),
        (powers, {"a": 2, "b": 2}), (shifts, {"a": 2}), (repeats, {"text": "x", "n": 2}), (formats, {"n": 1}),
        (repeats_a_global, {"n": 2}), (pads, {"n": 1}), (pads_by_argument, {"n": 1}), (format_method, {"n": 1}),
        (rounds_far, {"n": 1}), (rounds_by_argument, {"n": 1, "digits": 1}), (replaces, {"text": "x", "new": "y"}),
        (joins, {"parts": [], "between": "x"}), (doubles, {"text": "x"}), (nests, {"items": []}),
        (multiplies_on, {"n": 9}), (catches_all, {"item": "tea"}), (catches_bare, {"item": "tea"}),
        (ends_the_program, {}), (interrupts, {}), (raises_its_argument, {"error": 1}), (takes_any, {}),
        (takes_any_name, {"a": 1}), (rebinds, {}), (uses_a_caught_error, {"item": "tea"}), (inverts, {"flag": True}),
        (waits, {"n": 1}), (unpacks, {"items": [1]}), (is_of_a_class, {"value": 1}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)  # fmt: skip
def test_what_might_wait_or_grow_gets_a_thread(function: Callable[..., Any], values: dict[str, Any]) -> None:
    assert not is_instant(function, **values)


def test_code_that_is_exchanged_is_read_again() -> None:
    function = defined("def f(a):\n    return a\n")
    judge = Instant()
    assert judge(function, {"a": 1})
    function.__code__ = loops.__code__.replace(co_varnames=("a",))
    assert not judge(function, {"a": 1})


def test_a_tool_whose_handler_was_exchanged_is_read_again() -> None:
    made = tool(upper)
    assert made.runs_inline({"text": "x"})
    assert not replace(made, handler=sleeps).runs_inline({"n": 1})


def test_an_async_tool_has_no_use_for_it() -> None:
    with pytest.raises(ToolDefinitionError, match="inline"):
        tool(inline=False)(waits)
