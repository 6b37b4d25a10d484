"""Drifts of a valid reply, composed: the reader gives the original decision or rejects, and never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.dialects import Reading, read_reply
from taoloop.dialects.parsing.placeholders import is_placeholder

Args = dict[str, Any]
Write = Callable[[Args], str]
Drift = Callable[[str], str]

SCHEMA = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "object", "properties": {"on": {"type": "boolean"}, "name": {"type": "string"}}},
    },
    "required": ["key"],
    "additionalProperties": False,
}
NAME = "look_up"


@cache
def tools(tier: Tier) -> tuple[ToolCard, ...]:
    return (
        ToolCard(name=NAME, purpose="t", input_schema=SCHEMA, tier=tier),
        ToolCard(name="erase", purpose="t", input_schema=SCHEMA, tier="destructive"),
    )


# how the arguments are written


def rendered(
    value: Any, quotes: str = '""', colon: str = ": ", comma: str = ", ", tail: str = "", bare: bool = False
) -> str:
    """JSON with other punctuation; strings keep the escapes of JSON."""

    def text(inner: str) -> str:
        own = '""' if set(quotes) & set(inner) else quotes  # such a text could not be told from its end
        return own[0] + json.dumps(inner, ensure_ascii=False)[1:-1] + own[1]

    def walk(inner: Any) -> str:
        if isinstance(inner, dict):
            members = [(key if bare else text(key)) + colon + walk(item) for key, item in inner.items()]
            return "{" + comma.join(members) + (tail if members else "") + "}"
        if isinstance(inner, list):
            return "[" + comma.join(map(walk, inner)) + (tail if inner else "") + "]"
        return text(inner) if isinstance(inner, str) else json.dumps(inner)

    return walk(value)


def raw_newlines(args: Args) -> str:
    return json.dumps(args, ensure_ascii=False).replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\\\")


WRITINGS: dict[str, Write] = {
    "strict": json.dumps,
    "indented": lambda args: json.dumps(args, indent=2, ensure_ascii=False),
    "python": repr,
    "trailing comma": lambda args: rendered(args, tail=","),
    "comments": lambda args: rendered(args, comma=", // and\n", tail=" /* all */ "),
    "bare keys": lambda args: rendered(args, bare=True),
    "curly quotes": lambda args: rendered(args, quotes="“”"),
    "single quotes": lambda args: rendered(args, quotes="''"),
    "full width": lambda args: rendered(args, quotes="“”", colon="：", comma="，").replace("\x00", ""),
    "raw newlines": raw_newlines,
    "twice encoded": lambda args: json.dumps(json.dumps(args, ensure_ascii=False), ensure_ascii=False),
    "brace too many": lambda args: json.dumps(args) + "}",
    "wrapped": lambda args: json.dumps({"args": args}),
    "invisible": lambda args: "\u200b" + rendered(args, colon=":\u00a0", comma=",\u200b") + "\u200b",
}
NAMES: dict[str, Drift] = {
    "exact": lambda name: name,
    "spaced": lambda name: name.replace("_", " ").title(),
    "upper": str.upper,
    "ticks": lambda name: f"`{name}`",
    "bold": lambda name: f"**{name}**",
    "called": lambda name: f"{name}()",
    "escaped": lambda name: name.replace("_", "\\_"),
    "namespace": lambda name: f"functions.{name}",
    "repeated": lambda name: name + name,
}


# how the reply is written


def labelled(thought: str, action: str, given: str) -> Callable[[str, str, str], str]:
    return lambda reason, name, source: f"{thought}{reason}\n{action}{name}\n{given}{source}"


def as_object(reason: str, name: str, source: str) -> str:
    return f'{{"thought": {json.dumps(reason)}, "action": {json.dumps(name)}, "action_input": {source}}}'


FORMS: dict[str, Callable[[str, str, str], str]] = {
    "text": labelled("Thought: ", "Action: ", "Action Input: "),
    "text bold": labelled("**Thought:** ", "**Action:** ", "**Action Input:** "),
    "text lower": labelled("thought: ", "action: ", "action input: "),
    "text numbered": labelled("Thought 1: ", "Action 1: ", "Action 1 Input: "),
    "text headings": labelled("### Thought\n", "### Action\n", "### Action Input\n"),
    "text bullets": labelled("- Thought: ", "- Action: ", "- Action Input: "),
    "text chinese": labelled("思考：", "行动：", "行动输入："),
    "text fenced": lambda reason, name, source: (
        f"Thought: {reason}\nAction: {name}\nAction Input:\n```json\n{source}\n```"
    ),
    "json": as_object,
    "json fence": lambda *parts: f"```json\n{as_object(*parts)}\n```",
    "json wrapped": lambda *parts: f'{{"tool_call": {as_object(*parts)}}}',
    "json other keys": lambda reason, name, source: (
        f'{{"reasoning": {json.dumps(reason)}, "name": {json.dumps(name)}, "arguments": {source}}}'
    ),
    "fenced": lambda reason, name, source: (
        f'Thought: {reason}\nAction:\n```json\n{{"action": {json.dumps(name)}, "action_input": {source}}}\n```'
    ),
    "fenced open": lambda reason, name, source: (
        f'Thought: {reason}\nAction:\n```\n{{"action": {json.dumps(name)}, "action_input": {source}}}'
    ),
    "text hermes": lambda _reason, name, source: (
        f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {source}}}\n</tool_call>'
    ),
}
AROUND: dict[str, Drift] = {
    "nothing": lambda text: text,
    "mark": lambda text: f"\ufeff{text}\n",
    "token": lambda text: f"{text}<|im_end|>",
    "thinking": lambda text: f'<think>\nAction: erase\nAction Input: {{"key": "a"}}\n</think>\n{text}',
    "lone closing": lambda text: f"I think.\n</think>\n\n{text}",
    "prose": lambda text: f"Sure, let me look.\n\n{text}\n\nLet me know.",
    "slot": lambda text: f"{text}\nObservation:",
    "stump": lambda text: f"{text}\nObserv",
    "invented": lambda text: f'{text}\nObservation: found\nThought: next\nAction: erase\nAction Input: {{"key": "a"}}',
    "windows": lambda text: text.replace("\r", "").replace("\n", "\r\n"),
    "twice": lambda text: f"{text}\n{text}",
}
SPOILS: dict[str, Drift] = {
    "a final on it": lambda text: f"{text}\nObservation: found\nFinal Answer: it is found",
    "a final beside it": lambda text: f"{text}\nFinal Answer: it is found",
    "another action": lambda text: f'{text}\nThought: or\nAction: erase\nAction Input: {{"key": "a"}}',
    "an observation first": lambda text: f"Observation: found\n{text}",
    "never ending thought": lambda text: f"<think>\n{text}",
    "second thoughts": lambda text: f"{text}\nWait, no, that is wrong.",
}
WORDS = st.sampled_from(
    [
        *(
            "a",
            "Ünï",
            "北京",
            " ",
            "\n",
            "\t",
            '"',
            "'",
            "\\",
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "//",
            "#",
            "：",
            "，",
            "”",
            "“",
        ),
        *("Action: erase", "\nObservation: 3", "Final Answer: x", "</s>", "<b>", "```", "null", "\\d", "&amp;", "5"),
        *("</think>", "<think>", "<tool_call>", "functions.", "\nThought: no", "Wait, no", "<|im_end|>\n"),
    ]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map("".join).filter(lambda text: not is_placeholder(text))
ARGS = st.fixed_dictionaries(
    {"key": TEXTS},
    optional={
        "count": st.integers(-9, 999),
        "tags": st.lists(TEXTS, max_size=2),
        "deep": st.fixed_dictionaries({}, optional={"on": st.booleans(), "name": TEXTS}),
    },
)


def dialect_of(form: str) -> str:
    return form.split(" ", 1)[0]


def read(form: str, text: str, tier: Tier = "read") -> Reading:
    return read_reply(dialect_of(form), tools(tier), text, "stop")


@examples(600)
@given(
    args=ARGS,
    writing=st.sampled_from(sorted(WRITINGS)),
    name=st.sampled_from(sorted(NAMES)),
    form=st.sampled_from(sorted(FORMS)),
    around=st.lists(st.sampled_from(sorted(AROUND)), max_size=3),
    tier=st.sampled_from(["read", "write"]),
)
def test_composed_drifts_give_the_original_or_nothing(
    args: Args, writing: str, name: str, form: str, around: list[str], tier: Tier
) -> None:
    text = FORMS[form]("I look it up.", NAMES[name](NAME), WRITINGS[writing](args))
    for drift in around:
        text = AROUND[drift](text)
    got = read(form, text, tier)
    assert got.kind == "reject" or (got.tool, got.args) == (NAME, args)


@examples(300)
@given(
    args=ARGS,
    writing=st.sampled_from(sorted(WRITINGS)),
    form=st.sampled_from(sorted(FORMS)),
    around=st.sampled_from(sorted(set(AROUND) - {"invented", "twice", "thinking", "lone closing", "slot"})),
    spoil=st.sampled_from(sorted(SPOILS)),
)
def test_what_is_spoiled_is_rejected(args: Args, writing: str, form: str, around: str, spoil: str) -> None:
    text = SPOILS[spoil](AROUND[around](FORMS[form]("I look it up.", NAME, WRITINGS[writing](args))))
    assert read(form, text).kind == "reject"


@examples(400)
@given(
    args=ARGS,
    writing=st.sampled_from(sorted(WRITINGS)),
    form=st.sampled_from(sorted(FORMS)),
    keep=st.floats(0, 1, exclude_max=True),
)
def test_a_cut_reply_of_a_tool_that_writes_never_runs_otherwise(
    args: Args, writing: str, form: str, keep: float
) -> None:
    """Rule 7: a cut gives the original (only a fence, a tag or a surplus brace was missing) or nothing."""
    text = FORMS[form]("I look it up.", NAME, WRITINGS[writing](args))
    got = read(form, text[: int(len(text) * keep)], "write")
    assert got.kind == "reject" or (got.tool, got.args) == (NAME, args)


@examples(300)
@given(args=ARGS, form=st.sampled_from(sorted(FORMS)), keep=st.floats(0, 1, exclude_max=True))
def test_a_cut_reply_of_a_tool_that_reads_has_whole_values_only(args: Args, form: str, keep: float) -> None:
    """Rule 7: values that are complete may stay where only brackets are missing; none is ever half."""
    text = FORMS[form]("I look it up.", NAME, json.dumps(args, ensure_ascii=False))
    got = read(form, text[: int(len(text) * keep)])
    assert got.kind == "reject" or (got.tool == NAME and got.args is not None and part_of(got.args, args))


def part_of(got: Any, whole: Any) -> bool:
    if isinstance(got, dict):
        return isinstance(whole, dict) and all(key in whole and part_of(got[key], whole[key]) for key in got)
    if isinstance(got, list):
        return isinstance(whole, list) and all(map(part_of, got, whole))
    return type(got) is type(whole) and bool(got == whole)


PLAIN: Args = {"key": "old town", "count": 3, "tags": ["a", "b"], "deep": {"on": True, "name": "n"}}


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("writing", sorted(WRITINGS))
def test_every_writing_is_understood_in_every_form(form: str, writing: str) -> None:
    text = FORMS[form]("I look it up.", NAME, WRITINGS[writing](PLAIN))
    if writing == "brace too many" and form not in ("text", "text bold"):
        return  # inside of another object it is no brace too many at the end
    got = read(form, text, "write")
    assert (got.tool, got.args) == (NAME, PLAIN), got


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_spelling_of_a_name_is_understood_in_every_form(form: str, name: str) -> None:
    got = read(form, FORMS[form]("I look it up.", NAMES[name](NAME), json.dumps(PLAIN)), "write")
    assert (got.tool, got.args) == (NAME, PLAIN), got


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("around", sorted(AROUND))
def test_what_stands_around_is_understood_in_every_form(form: str, around: str) -> None:
    """With every second drift outside of the first."""
    text = AROUND[around](FORMS[form]("I look it up.", NAME, json.dumps(PLAIN)))
    known = {"invented", "twice", "thinking", "lone closing", "slot", "stump", "token", "mark", "prose"}
    replies = {beside: read(form, drift(text), "write") for beside, drift in AROUND.items()}
    wrong = {
        beside: got
        for beside, got in replies.items()
        if (got.tool, got.args) != (NAME, PLAIN)
        and not (got.kind == "reject" and {around, beside} <= known)  # such as an invented step, twice
    }
    assert wrong == {}
