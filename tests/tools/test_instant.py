"""Which calls need no thread: what is certain to end at once, and how many ways there are not to be certain."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from taoloop.errors import ToolError
from taoloop.tools.base import Tool, ToolContext
from taoloop.tools.calculator import calculator
from taoloop.tools.function import tool
from taoloop.tools.instant import Instant

PRICES = {"tea": 3.5, "coffee": 4}
WORDS = ["one", "two"]
RATE = 3
FACTOR = "a text"
CALLS: list[Any] = []
COUNTER = {"n": 0}


class SlowDict(dict[str, float]):
    def __getitem__(self, key: str) -> float:
        time.sleep(60)
        return super().__getitem__(key)


class SlowList(list[Any]):
    def append(self, item: Any) -> None:
        time.sleep(60)
        super().append(item)


class SlowText(str):
    __slots__ = ()

    def upper(self) -> str:
        time.sleep(60)
        return super().upper()


class Slow:
    @property
    def value(self) -> int:
        time.sleep(60)
        return 1

    def __add__(self, other: int) -> int:
        time.sleep(60)
        return other

    def __hash__(self) -> int:
        return hash("tea")

    def __eq__(self, other: object) -> bool:
        time.sleep(60)
        return False


SLOW_DICT, SLOW_LIST, SLOW_TEXT, SLOW = SlowDict(tea=1.0), SlowList(), SlowText("x"), Slow()
SLOW_KEYS: dict[Any, int] = {SLOW: 1, "x": 1}
SLOW_INSIDE = {"a": [1, {"b": SLOW}]}
LARGE = dict.fromkeys(map(str, range(10_000)), 1)
LONG = "x" * 100_000


def is_instant(function: Callable[..., Any], **values: Any) -> bool:
    return Instant()(function, values)


# What ends at once.


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def many_operators(a: float, b: float = 2) -> float:
    c = a
    if a > 0 and not (a == b or b < 1):
        c -= 1
    elif b > 9:
        pass
    return c + round(abs(-a) * 2 / 3 // 1 % 7 + a**2 - min(a, b), 2) if b else max(a, 0)


def texts(text: str, n: int = 3) -> str:
    first, _, rest = text.strip().partition(" ")
    cut = rest[:n].replace("a", "b").title()
    return f"{first!r}: {cut.upper():>10} {n:,} {len(text)} " + ", ".join(text.split())


def containers(items: list[int], options: dict[str, Any]) -> dict[str, Any]:
    best: list[int] = sorted(items, reverse=True)
    options["best"] = best[0]
    return {"sum": sum(items), "keys": list(options.keys()), "get": options.get("x", 0)}


def price(item: str, count: int = 1) -> float:
    """Look a price up."""
    if item not in PRICES:
        raise ToolError(f"There is no {item}.", code="unknown_item", hint=f"Known: {', '.join(sorted(PRICES))}.")
    return PRICES[item] * count


def guarded(item: str) -> str:
    try:
        found = PRICES[item]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no {item}") from error
    return f"{item} costs {found:.2f}"


def records(what: str) -> str:
    CALLS.append((what, len(CALLS)))
    return "noted"


def counts() -> int:
    COUNTER["n"] += 1
    return COUNTER["n"]


def kinds(value: Any) -> str:
    other = "other"
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, (int, float)) else other


def literal(place: Literal["a", "b"], n: Annotated[int, "said of it"]) -> str | None:
    return None if place == "a" else f"{place}{n}"


def closing() -> Callable[..., Any]:
    seen: list[int] = []
    table = {"x": 1}

    def inner(
        key: str,
        more: int = 4,
    ) -> int:
        """Several lines.

        And a second paragraph.
        """
        seen.append(more)
        return table[key] * more

    return inner


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (add, {"a": 1, "b": 2}),
        (many_operators, {"a": 3}),
        (texts, {"text": "some words"}),
        (containers, {"items": [1, 2], "options": {"x": [1]}}),
        (price, {"item": "tea"}),
        (price, {"item": "none", "count": 3}),
        (guarded, {"item": "tea"}),
        (records, {"what": "x"}),
        (counts, {}),
        (kinds, {"value": [1]}),
        (literal, {"place": "b", "n": 1}),
        (closing(), {"key": "x"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_straight_code_on_plain_data_ends_at_once(function: Callable[..., Any], values: dict[str, Any]) -> None:
    assert is_instant(function, **values)


def test_a_function_that_has_run_often_is_still_the_same_code() -> None:
    """The interpreter rewrites code that is hot."""

    def sub(a: int, b: int) -> int:
        return a - b

    for n in range(5_000):
        sub(n, 1)
    assert is_instant(sub, a=1, b=2)


# What may not: the code itself.


# What may not: what the code works on.


def upper(text: str) -> str:
    return text.upper()


def increment(n: Any, by: Any = 1) -> Any:
    return n + by


class Model(BaseModel):
    n: int


@pytest.mark.parametrize(
    "value",
    [SLOW, SLOW_TEXT, SLOW_LIST, SLOW_DICT, SLOW_KEYS, SLOW_INSIDE, Model(n=1), LARGE, LONG, 10**10_000, b"x"],
    ids=lambda one: type(one).__name__,
)
def test_a_value_that_is_not_plain_or_not_small_gets_a_thread(value: Any) -> None:
    assert not is_instant(increment, n=value)
    assert is_instant(increment, n=1)


def test_values_are_looked_at_and_annotations_are_not_relied_on() -> None:
    """A validator may make anything of an argument."""

    def slow(value: Annotated[int, AfterValidator(lambda _: SLOW)]) -> Any:
        return value + 1

    made = tool(slow)
    assert not made.runs_inline(made.prepare({"value": 1}).values)
    assert is_instant(slow, value=1)


def test_a_number_that_is_a_text_is_not_multiplied_here() -> None:
    def times(a: int, b: int) -> int:
        return a * b

    assert is_instant(times, a=2, b=3)
    assert not is_instant(times, a="x", b=3)
    assert not is_instant(times, a=[1], b=3)


def test_numbers_from_a_list_that_the_function_appends_to_are_not_multiplied_here() -> None:
    both: list[Any] = [1]
    other: list[Any] = []
    kept: list[Any] = both

    def times(text: str) -> Any:
        kept.append(text)
        return both[-1] * 10**8

    assert not is_instant(times, text="x")
    kept = other
    assert is_instant(times, text="x")


def test_a_default_that_is_an_object_gets_a_thread() -> None:
    def default(n: int, by: Any = SLOW) -> Any:
        return n + by

    def default_by_name(n: int, *, by: Any = SLOW) -> Any:
        return n + by

    assert not is_instant(default, n=1)
    assert not is_instant(default_by_name, n=1)


def test_a_default_that_is_not_used_does_not_matter() -> None:
    def required(n: int = Field(ge=1)) -> int:
        return n + 1

    made = tool(required)
    assert made.runs_inline(made.prepare({"n": 1}).values)
    assert not made.runs_inline({})


def test_a_default_counts_as_the_argument() -> None:
    def times(a: int, b: Any = "x", *, c: Any = 1) -> Any:
        return a * c * b

    assert not is_instant(times, a=1)
    assert is_instant(times, a=1, b=2)


def test_a_global_or_enclosing_object_of_another_kind_gets_a_thread() -> None:
    def by_key(key: str) -> float:
        return SLOW_DICT[key]

    def by_odd_keys(key: str) -> float:
        return SLOW_KEYS[key]

    def into_list(key: str) -> None:
        SLOW_LIST.append(key)

    def of_text() -> str:
        return SLOW_TEXT.upper()

    def of_property() -> int:
        return SLOW.value

    def of_large(key: str) -> int:
        return LARGE[key]

    enclosing = SlowDict()

    def of_enclosing(key: str) -> float:
        return enclosing[key]

    for function in (by_key, by_odd_keys, into_list, of_large, of_enclosing):
        assert not is_instant(function, key="tea")
    assert not is_instant(of_text)
    assert not is_instant(of_property)


def test_what_a_name_stands_for_is_looked_at_in_every_call() -> None:
    table: Any = {"tea": 1}
    calls: Any = []

    def look(key: str) -> Any:
        return table[key]

    def note(key: str) -> None:
        calls.append(key)

    looked, noted = partial(Instant(), look), partial(Instant(), note)
    assert looked({"key": "tea"})
    assert noted({"key": "tea"})
    table["tea"] = SLOW
    calls = SlowList()
    assert not looked({"key": "tea"})
    assert not noted({"key": "tea"})
    table = {"tea": 2}
    calls = [SLOW]  # what is in a list does not matter for one more
    assert looked({"key": "tea"})
    assert noted({"key": "tea"})


def defined(source: str, **names: Any) -> Any:
    """`f` of a module of its own, whose source can be found."""
    file = f"<test {time.perf_counter_ns()}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module: dict[str, Any] = {"__name__": "m", **names}
    exec(compile(source, file, "exec", dont_inherit=True), module)  # noqa: S102  # the test's own source
    return module["f"]


LENGTH = "def f(text):\n    return len(text)\n"


def test_a_shadowed_builtin_gets_a_thread() -> None:
    assert is_instant(defined(LENGTH), text="x")
    assert not is_instant(defined(LENGTH, len=lambda _: time.sleep(60)), text="x")
    assert not is_instant(defined(LENGTH, __builtins__={"len": lambda _: time.sleep(60)}), text="x")
    assert not is_instant(defined("def f(text):\n    len = text\n    return len(text)\n"), text="x")
    assert not is_instant(defined("def f(text, len):\n    return len(text)\n"), text="x", len=1)


def test_a_builtin_that_is_shadowed_later_gets_a_thread() -> None:
    function = defined(LENGTH)
    judge = Instant()
    assert judge(function, {"text": "x"})
    function.__globals__["len"] = lambda _: time.sleep(60)
    assert not judge(function, {"text": "x"})


def test_an_error_class_of_ones_own_gets_a_thread() -> None:
    source = "def f():\n    raise ValueError('x')\n"

    class Own(ValueError):
        def __str__(self) -> str:
            time.sleep(60)
            return ""

    assert is_instant(defined(source))
    assert not is_instant(defined(source, ValueError=Own))
    assert not is_instant(defined("def f():\n    raise ToolError('x')\n", ToolError=type("T", (ToolError,), {})))


def test_globals_with_a_mind_of_their_own_get_a_thread() -> None:
    class Names(dict[str, Any]):
        pass

    function = defined("def f(a):\n    return a + 1\n")
    odd = type(function)(function.__code__, Names(function.__globals__), "f")
    assert is_instant(function, a=1)
    assert not is_instant(odd, a=1)


# What may not: what is called is not what was read.


def test_a_function_whose_source_says_something_else_gets_a_thread() -> None:
    function = defined("def f(a):\n    while a:\n        pass\n")
    linecache.cache[function.__code__.co_filename] = (1, None, ["def f(a):\n", "    return a\n"], "")
    assert not is_instant(function, a=0)


def test_a_function_without_source_gets_a_thread() -> None:
    function = defined("def f(a):\n    return a\n")
    del linecache.cache[function.__code__.co_filename]
    assert not is_instant(function, a=0)


def test_a_function_that_is_redefined_under_the_same_name_is_read_by_itself() -> None:
    source = "def f(a):\n    while a:\n        pass\ng = f\ndef f(a):\n    return a\n"
    function = defined(source)
    assert is_instant(function, a=1)
    assert not is_instant(function.__globals__["g"], a=0)


def test_constants_that_are_equal_but_not_the_same_are_told_apart() -> None:
    function = defined("def f(a):\n    return a * 1\n")
    function.__code__ = function.__code__.replace(co_consts=(None, 1.0))
    assert not is_instant(function, a=1)


def test_a_function_of_very_many_lines_gets_a_thread() -> None:
    assert is_instant(defined("def f(a):\n" + "    a\n" * 190 + "    return a\n"), a=1)
    assert not is_instant(defined("def f(a):\n" + "    a\n" * 200 + "    return a\n"), a=1)


def test_lambdas_get_a_thread() -> None:
    first, second = (lambda a: a, lambda a: time.sleep(a))
    assert not is_instant(first, a=1)
    assert not is_instant(second, a=1)


def test_a_lambda_in_a_decorator_is_not_taken_for_the_function() -> None:
    source = "kept = []\n@(lambda f: kept.append(f) or (lambda a: f.g(a)))\ndef f(a):\n    return a\n"
    assert not is_instant(defined(source), a=1)


def test_a_wrapped_function_a_partial_and_an_object_get_a_thread() -> None:
    @wraps(add)
    def wrapped(*args: Any, **names: Any) -> Any:
        time.sleep(60)
        return add(*args, **names)

    @wraps(add)
    def straight(a: int, b: int) -> Any:
        return SLOW + a + b

    class Called:
        def __call__(self, a: int, b: int) -> int:
            return a + b

        def method(self, a: int, b: int) -> int:
            return a + b

    for function in (wrapped, straight, partial(add, 1), Called(), Called().method, len):
        assert not is_instant(function, a=1, b=2)


def test_a_method_read_as_a_function_counts_like_any_other() -> None:
    class Holder:
        @staticmethod
        def plus(a: int, b: int) -> int:
            return a + b

    assert is_instant(Holder.plus, a=1, b=2)


# What tools make of it.


def test_a_tool_is_inline_by_its_word_or_by_its_code() -> None:
    def waits_maybe(n: int) -> int:
        time.sleep(n)
        return n

    def runs_inline(made: Tool) -> bool:
        return made.runs_inline({"n": 1})

    assert runs_inline(tool(inline=True)(waits_maybe))
    assert not runs_inline(tool(waits_maybe))
    assert not tool(inline=False)(add).runs_inline({"a": 1, "b": 2})
    assert tool(add).runs_inline({"a": 1, "b": 2})
    assert tool(add).with_card(timeout_s=1).runs_inline({"a": 1, "b": 2})


def test_a_tool_that_takes_its_context_gets_a_thread() -> None:
    @tool
    def key(n: int, context: ToolContext) -> int:
        """Take the context."""
        return n

    assert not key.runs_inline({"n": 1})


def test_the_calculator_is_bounded_by_itself() -> None:
    assert calculator.inline
