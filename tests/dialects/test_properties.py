"""What holds for every reply: read without an exception, in linear time, and what is written is read back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.growth import assert_linear
from tests.sizes import examples

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects import DIALECTS, get_dialect
from taoloop.dialects.parsing.cleanup import EDGE_CHARS, clean_reply
from taoloop.dialects.parsing.placeholders import is_placeholder
from taoloop.dialects.parsing.reply_parser import parse_reply
from taoloop.dialects.prompt import defuse_markers
from taoloop.dialects.text_dialect import TextReplyDialect
from taoloop.dialects.texts import ReplyParseError

NAMES = sorted(DIALECTS)
PROSE = ["fenced", "json", "text"]
CARDS = (
    ToolCard(
        name="lookup",
        purpose="t",
        input_schema={"type": "object", "properties": {"key": {"type": "string"}, "城市": {}}},
        tier="read",
    ),
    ToolCard(name="now", purpose="t"),
)
SPICE = st.sampled_from(
    [
        "Action: now",
        "Final Answer: 5",
        "\nObservation: 7\n",
        "观察：",
        "思考：",
        '"',
        "'",
        "“",
        "{",
        "}",
        "[",
        "```",
        "\\",
        "\n",
        "\u200b",
        ":",
        "</think>",
        "<think>",
        "<|im_end|>",
        "<tool_call>",
        "//",
        "\ud800",
    ]
)
ANY_TEXT = st.lists(st.one_of(SPICE, st.text(max_size=8)), max_size=12).map("".join)
VALUE_TEXT = ANY_TEXT.filter(lambda text: usable(text))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | VALUE_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(VALUE_TEXT, inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(st.sampled_from(["key", "城市", "a b", "Observation:"]), VALUES, max_size=3)
TOOLS = st.sampled_from(["lookup", "now", "天气查询", "ns.tool_2"])
PLAIN = st.text(st.characters(codec="utf-8", categories=["L", "N", "Zs"]), max_size=20).map(str.strip)
ANSWERS = st.one_of(
    PLAIN.filter(lambda text: bool(text) and usable(text)),
    VALUE_TEXT.map(lambda text: text.strip(EDGE_CHARS)).filter(
        lambda text: text and usable(text) and not text.endswith(("|>", "</s>"))
    ),
)


def usable(text: str) -> bool:
    """Neither a placeholder nor half of a surrogate pair."""
    return encodable(text) and not text.strip().startswith(("<", "{{", "${")) and not is_placeholder(text)


def encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)


def read(name: str, reply: ModelReply) -> Decision | Problem:
    return get_dialect(name).read(reply, CARDS)


def tolerant(text: str) -> Decision | Problem:
    """What the tolerant reader makes of a text, without the short way before it."""
    try:
        return parse_reply(clean_reply(text), CARDS)
    except ReplyParseError as refused:
        return refused.problem


@pytest.mark.parametrize("name", NAMES)
@given(tool=TOOLS, args=ARGS, reason=PLAIN)
def test_a_written_action_is_read_back(name: str, tool: str, args: dict[str, Any], reason: str) -> None:
    decision = Act(calls=(Call(tool=tool, args=args),), reason=reason)
    assert read(name, get_dialect(name).write(decision)) == decision


@pytest.mark.parametrize("name", PROSE)
@given(text=ANSWERS, reason=PLAIN)
def test_a_written_answer_is_read_back(name: str, text: str, reason: str) -> None:
    decision = Answer(text=text, reason=reason)
    assert read(name, get_dialect(name).write(decision)) == decision


@given(text=PLAIN.filter(lambda text: bool(text) and usable(text)))
def test_a_written_native_answer_is_read_back(text: str) -> None:
    assert read("native", get_dialect("native").write(Answer(text=text))) == Answer(text=text)


@given(tool=TOOLS, args=ARGS, reason=ANY_TEXT.filter(encodable))
def test_no_reason_changes_the_written_action(tool: str, args: dict[str, Any], reason: str) -> None:
    """Whatever a reason holds, the call behind it is the one that is read."""
    for name in PROSE:
        kept = read(name, get_dialect(name).write(Act(calls=(Call(tool=tool, args=args),), reason=reason)))
        assert isinstance(kept, Act), (name, kept)
        assert kept.calls == (Call(tool=tool, args=args),)


@pytest.mark.parametrize("name", PROSE)
@examples(300)
@given(args=ARGS, reason=ANY_TEXT, text=ANY_TEXT, final=st.booleans(), cut=st.integers(0, 80), put=st.none() | SPICE)
def test_the_short_way_and_the_tolerant_reader_agree(
    name: str, args: dict[str, Any], reason: str, text: str, final: bool, cut: int, put: str | None
) -> None:
    """Where the short way reads a reply at all, the tolerant reader reads the same."""
    dialect = get_dialect(name)
    assert isinstance(dialect, TextReplyDialect)
    decision = (
        Answer(text=text, reason=reason) if final else Act(calls=(Call(tool="lookup", args=args),), reason=reason)
    )
    written = dialect.write(decision).text
    if put is not None:
        written = written[:cut] + put + written[cut:]
    quick = dialect.parse_canonical(written, CARDS)
    assert quick is None or tolerant(written) == quick


@pytest.mark.parametrize("name", NAMES)
@given(text=st.one_of(ANY_TEXT, st.text(st.characters())), arguments=st.none() | ANY_TEXT)
def test_reading_never_raises(name: str, text: str, arguments: str | None) -> None:
    calls = () if arguments is None else (ToolCallText(name=text[:5], arguments=arguments),)
    decision = read(name, ModelReply(text=text, tool_calls=calls))
    assert isinstance(decision, Act | Answer | Problem)


@pytest.mark.parametrize("name", NAMES)
@given(args=ARGS, cut=st.integers(0, 200), put=SPICE, drop=st.integers(0, 3))
def test_no_mutation_of_a_valid_reply_raises(name: str, args: dict[str, Any], cut: int, put: str, drop: int) -> None:
    written = get_dialect(name).write(Act(calls=(Call(tool="lookup", args=args),), reason="why"))
    calls = tuple(
        ToolCallText(name=call.name, arguments=call.arguments[:cut] + put + call.arguments[cut + drop :])
        for call in written.tool_calls
    )
    text = written.text[:cut] + put + written.text[cut + drop :]
    assert isinstance(read(name, ModelReply(text=text, tool_calls=calls)), Act | Answer | Problem)


@pytest.mark.parametrize("name", ["text", "json", "native"])
@given(args=ARGS.filter(bool), cut=st.integers(1, 200))
def test_a_cut_action_never_runs(name: str, args: dict[str, Any], cut: int) -> None:
    """Design, promise 2: truncated arguments never run, whatever the provider says."""
    written = get_dialect(name).write(Act(calls=(Call(tool="other", args=args),)))
    if name == "native":
        source = written.tool_calls[0].arguments
        reply = ModelReply(tool_calls=(ToolCallText(name="other", arguments=source[: -min(cut, len(source) - 1)]),))
    else:
        start = written.text.index("{", 2)
        reply = ModelReply(text=written.text[: max(start + 1, len(written.text) - cut)])
    assert isinstance(read(name, reply), Problem)


PIECES = [
    *("{", "[", "(", "}", '"', "'", "“", "\\", "`", "<", "：", "-", " ", "\n", "**", "{}", "{a} ", '{"a":', "a."),
    *("Action: ", "Action: now\n", "Action\t", "Action: lookup(", "Thought:", "Thought: a\n", "Final: a\n```\n"),
    *("<think>", "</think>", "<think>\n", "</think>\n", "```", "```\n", "```\nThought: a\n```\n", "Observation: a\n"),
    *("<tool_call>", "<function=now>", "<|im_end|>\n", "<|", "/*", "#", '" ', "Observation:\n", '{"a":1}', "now("),
]


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("name", NAMES)
def test_the_time_of_reading_grows_with_the_length_only(name: str, piece: str) -> None:
    assert_linear(lambda chars: read_long(name, piece, chars), 16_000)


@pytest.mark.nightly
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("name", NAMES)
def test_a_megabyte_of_anything_is_read(name: str, piece: str) -> None:
    """Linear time: with anything quadratic this would not finish. `benchmarks/reading.py` has the seconds."""
    read_long(name, piece, 1_000_000)


def read_long(name: str, piece: str, chars: int) -> None:
    """Read replies that consist of this piece, in each place of a reply."""
    long = piece * (chars // len(piece))
    for text in (long, f"Final Answer: {long}", f'Action: lookup\nAction Input: {{"key": {long}', f"Thought: {long}"):
        decision = read(name, ModelReply(text=text))
        assert isinstance(decision, Act | Answer | Problem)
        if isinstance(decision, Problem):
            assert len(decision.excerpt) <= 200
            assert len(decision.message) < 1_000
    if name == "native":
        reply = ModelReply(tool_calls=(ToolCallText(name=piece, arguments=long), ToolCallText(name=long, arguments="")))
        assert isinstance(read(name, reply), Act | Problem)
    assert len(defuse_markers(long, "9f3c2a")) >= len(long)


@examples(200)
@given(text=ANY_TEXT)
def test_neutral_text_is_stable(text: str) -> None:
    """Done twice is done once, and the result can always be encoded."""
    once = defuse_markers(text, "9f3c2a")
    assert defuse_markers(once, "9f3c2a") == once
    once.encode()
