"""The answer out of a reply that is being written: never a sign that the reader of the whole reply would not give."""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from tests.growth import assert_linear
from tests.sizes import examples

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.message import Delta, ModelReply
from taoloop.dialects import get_dialect
from taoloop.dialects.answer_stream import AnswerStream, truncated_answer, unsent_suffix
from taoloop.dialects.parsing.patterns import LABEL
from taoloop.dialects.parsing.placeholders import _PLACEHOLDER, _TEMPLATE, is_placeholder
from taoloop.dialects.pending_text import StopCutter, cut_at, may_be_label, may_be_placeholder, normalise_line
from taoloop.dialects.standalone_reader import parse_api_choice

DRIFT = Path(__file__).parent / "corpus" / "drift.jsonl"
REPLIES = Path(__file__).parents[1] / "data" / "higress" / "vectors" / "model_replies.json"
DIALECTS = ["fenced", "json", "native", "text"]
PROSE = ["fenced", "json", "text"]
HELD = 12  # signs that may be held back at the end of a plain answer
SPICE = st.sampled_from(
    [
        *(
            "Action: now",
            "\nAction: now",
            "Final Answer: 5",
            "\nFinal Answer: 5",
            "\nObservation: 7\n",
            "\nObs",
            "观察：1",
        ),
        *(
            "\n观察：",
            "\n**最终答案**：",
            "思考：",
            "\nUser: hi",
            "\n\nUser:",
            "\nThought: x",
            "\n## Final Answer\n",
            "\n- ob",
        ),
        *(
            '"',
            "'",
            "“",
            "{",
            "}",
            "[",
            "]",
            "```",
            "\n```json\n",
            "\\",
            "\n",
            "\r\n",
            "\r",
            "\u200b",
            "\u3000",
            ":",
            "**",
        ),
        *(
            "</think>",
            "<think>",
            "\n<think>\n",
            "\n</think>\n",
            "<|im_end|>",
            "<|",
            "<",
            "<b>",
            "</div>",
            "a < b",
            ">>>",
        ),
        *(
            "<tool_call>",
            "[TOOL_CALLS]",
            "functools[",
            "func",
            ">>> f",
            "</answer>",
            "[link](u)",
            "[/THINK]",
            "<observation>",
        ),
        *(
            "\ud83d",
            "\ude00",
            "😀",
            "None",
            "null.",
            "YOUR_NAME",
            "...",
            "…",
            "the answer",
            "<name>",
            "{{x}}",
            "答案",
            "\u2028",
        ),
        *(
            '{"action": "final", "action_input": "',
            '"action": "lookup"',
            "\nfinish[5]",
            "lookup(1)",
            "\nassistant:",
            "AI: ",
        ),
    ]
)
ANY_TEXT = st.lists(st.one_of(SPICE, st.text(max_size=8)), max_size=10).map("".join)
WORDS = st.lists(
    st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=9), min_size=2, max_size=30
)
CARDS = (
    ToolCard(
        name="lookup",
        purpose="t",
        input_schema={"type": "object", "properties": {"key": {"type": "string"}}},
        tier="read",
    ),
    ToolCard(name="now", purpose="t"),
)


def pieces(text: str, borders: list[int]) -> list[str]:
    """`text` split at those places, each taken round its end."""
    ends = sorted({border % (len(text) + 1) for border in borders} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(ends)]


def stream(dialect: str, parts: list[str], *, tools: bool = True) -> tuple[str, AnswerStream]:
    answer = AnswerStream(dialect, tools_offered=tools, has_schema=False)
    return "".join([answer.feed(Delta(kind="text", text=part)) for part in parts]), answer


BORDERS = st.lists(st.integers(0, 10_000), max_size=12)


@pytest.mark.parametrize("dialect", DIALECTS)
@examples(300)
@example(text="- ob<think>Action: now\nFinal Answer: 5", reason="", borders=[])
@given(text=ANY_TEXT, reason=ANY_TEXT, borders=BORDERS)
def test_what_is_given_is_how_the_answer_begins(dialect: str, text: str, reason: str, borders: list[int]) -> None:
    written = get_dialect(dialect).write(Answer(text=text, reason=reason)).text
    believed_or_retracted(dialect, written, borders)


@pytest.mark.parametrize("dialect", DIALECTS)
@examples(300)
@given(
    text=ANY_TEXT,
    label=st.sampled_from(["Final Answer: ", "**Final Answer:** ", "最终答案：", "【最终答案】", ""]),
    borders=BORDERS,
)
def test_any_reply_gives_only_how_its_answer_begins(dialect: str, text: str, label: str, borders: list[int]) -> None:
    believed_or_retracted(dialect, f"{label}{text}", borders)
    believed_or_retracted(dialect, f"Thought: {text}\n{label or 'Final Answer: '}It rains.", borders)
    if dialect != "text":
        object_text = json.dumps({"thought": "x", "action": "final", "action_input": text})  # pairs of \u escapes
        believed_or_retracted(dialect, object_text, borders)


def believed_or_retracted(dialect: str, text: str, borders: list[int]) -> None:
    read = get_dialect(dialect).read(ModelReply(text=text), CARDS)
    for parts in (pieces(text, borders), list(text), [text]):
        got, answer = stream(dialect, parts)
        assert answer.started == bool(got)
        if isinstance(read, Answer) and not answer.retracted:
            assert read.text.startswith(got), (read.text, got)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(words=WORDS, borders=BORDERS, chinese=st.booleans())
def test_a_plain_answer_is_given_all_but_a_few_signs(
    dialect: str, words: list[str], borders: list[int], chinese: bool
) -> None:
    text = ("今天的天气是：" if chinese else "It is so: ") + " ".join(words) + "\n\n" + "，".join(words) + "."
    reason = "我知道了" if chinese else "I know"
    written = get_dialect(dialect).write(Answer(text=text, reason=reason)).text
    read = get_dialect(dialect).read(ModelReply(text=written), CARDS)
    if written.startswith("Thought") and "Action: Final Answer" in written:
        return  # the text dialect quotes what could not be read back
    assert isinstance(read, Answer)
    for parts in (pieces(written, borders), list(written), [written]):
        got, _ = stream(dialect, parts)
        assert read.text.startswith(got)
        if not any(may_be_label(normalise_line(line)) or LABEL.search(line) for line in text.split("\n") if line):
            assert len(got) >= len(read.text) - HELD


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_piece_is_given_at_once(dialect: str) -> None:
    words = ["The", "capital", "of", "France", "is", "Paris,", "on", "the", "Seine."]
    written = get_dialect(dialect).write(Answer(text=" ".join(words), reason="I know.")).text
    before, _, after = written.partition(" ".join(words))
    answer = AnswerStream(dialect, tools_offered=True, has_schema=False)
    assert answer.feed(Delta(kind="text", text=before)) == ""
    given_ = [answer.feed(Delta(kind="text", text=part)) for part in [words[0], *(f" {word}" for word in words[1:])]]
    assert given_[1:] == [f" {word}" for word in words[1:]] or "".join(given_) == " ".join(words)
    assert all(given_[2:])
    assert answer.feed(Delta(kind="text", text=after)) == ""


LONG_PIECES = [
    *("It rains in Lyon. ", "It rains.\n", "a ", " ", "\n", "-", "<", "action ", "Thought of the day\n", "Action: b\n"),
    *("Action Input: b\n", "Final Answer:\n", "Final Answer: a\n", '"a": "b", ', '{"action_input": "', "}", "```\n"),
    *("</think>", "<think>", "观察 ", "\nuser\n"),
]


@pytest.mark.parametrize("piece", LONG_PIECES)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("chars_per_delta", [pytest.param(1, marks=pytest.mark.nightly), 7])
def test_the_time_grows_with_the_length_only(dialect: str, piece: str, chars_per_delta: int) -> None:
    """Seven characters: the time for a delta is seen to grow as well, and its borders are anywhere in the pieces."""

    def work(chars: int) -> None:
        long = piece * (chars // len(piece))
        for start in ("", "a ", "<think>", "Final Answer: a", '{"final_answer": "'):
            text = start + long
            stream(dialect, [text[at : at + chars_per_delta] for at in range(0, len(text), chars_per_delta)])

    assert_linear(work, 8_000)


def parser_calls(dialect: str, text: str) -> int:
    """How often the dialect reads something while this reply arrives, a character at a time."""
    codes = []

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "read":
            codes.append(frame.f_code)

    sys.setprofile(count)
    try:
        stream(dialect, list(text))
    finally:
        sys.setprofile(None)
    return len(codes)


@pytest.mark.parametrize("dialect", PROSE)
@pytest.mark.parametrize("piece", ["It rains. ", "It rains.\n", "\nAction: b\nAction Input: c\n", '{"thought": "a", '])
def test_a_longer_reply_is_not_read_more_often(dialect: str, piece: str) -> None:
    for form in ("Thought: {}\nFinal Answer: It rains.", "Final Answer: It rains. {}"):
        counts = [parser_calls(dialect, form.replace("{}", piece * times)) for times in (100, 200)]
        assert counts[0] == counts[1] <= 30


def test_blanks_without_end_are_not_kept() -> None:
    got, answer = stream("native", ["a", *" " * 5_000, "b"])
    assert (got, answer.retracted) == ("", False)


@pytest.mark.parametrize("dialect", PROSE)
@given(reason=ANY_TEXT, borders=BORDERS, key=st.text(max_size=9))
def test_thoughts_and_calls_give_nothing(dialect: str, reason: str, borders: list[int], key: str) -> None:
    call = Act(calls=(Call(tool="lookup", args={"key": key}),), reason=reason)
    written = get_dialect(dialect).write(call).text
    read = get_dialect(dialect).read(ModelReply(text=written), CARDS)
    if isinstance(read, Act):
        assert stream(dialect, pieces(written, borders))[0] == ""


CASES = [json.loads(line) for line in DRIFT.read_text("utf-8").splitlines()]
SHARED = Path(__file__).parents[3] / "shared" / "drift" / "dev.jsonl"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_drift_gives_anything_else(dialect: str) -> None:
    for case in CASES:
        if case["dialect"] == dialect:
            gives_only_its_answer(case)


@pytest.mark.skipif(not SHARED.exists(), reason="the drift corpus is not on this machine")
def test_no_drift_of_the_shared_corpus_gives_anything_else() -> None:
    for line in SHARED.read_text("utf-8").splitlines():
        gives_only_its_answer(json.loads(line))


def gives_only_its_answer(case: dict[str, Any]) -> None:
    dialect = case["dialect"]
    reply = parse_api_choice(case["output"]) if dialect == "native" else ModelReply(text=case["output"])
    if not isinstance(reply, ModelReply):
        return
    tools = [
        ToolCard(name=one["name"], purpose="t", input_schema=one["parameters"], tier=one["effect"])
        for one in case["tools"]
    ]
    read = get_dialect(dialect).read(reply, tools)
    for size in (1, 2, 5, 17, 1000):
        parts = [reply.text[at : at + size] for at in range(0, len(reply.text), size)]
        got, answer = stream(dialect, parts)
        if isinstance(read, Answer):
            assert answer.retracted or read.text.startswith(got), case["id"]
        elif isinstance(read, Act) and dialect != "native":
            assert got == "", case["id"]
        assert got in reply.text.replace("\r\n", "\n") or dialect != "native"


def test_the_replies_of_the_vectors() -> None:
    for vector in json.loads(REPLIES.read_text("utf-8")):
        expect, text = vector["expect"], vector["text"]
        got, _ = stream("fenced", list(text))
        if expect["kind"] == "final" and len(expect["answer"]) > HELD and "{" not in expect["answer"]:
            assert got == expect["answer"], vector["name"]
        elif expect["kind"] != "final":
            assert got == "", vector["name"]


def test_a_call_behind_the_text_retracts_it_where_calls_come_beside_it() -> None:
    for dialect, retracted in (("native", True), ("json", False)):
        text = get_dialect(dialect).write(Answer(text="Let me look that up.")).text
        got, answer = stream(dialect, [text])
        assert (got, answer.retracted) == ("Let me look that up.", False)
        assert answer.feed(Delta(kind="call", name="lookup", text="{")) == ""
        assert answer.retracted is retracted
        assert answer.feed(Delta(kind="text", text=" more")) == ""


def test_text_behind_a_call_is_none_of_the_answer() -> None:
    answer = AnswerStream("native", tools_offered=True, has_schema=False)
    assert answer.feed(Delta(kind="call", name="lookup", text="{}", done=True)) == ""
    assert answer.feed(Delta(kind="text", text="I look it up.")) == ""
    assert (answer.started, answer.retracted) == (False, False)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_reply_that_begins_anew_voids_what_was_given(dialect: str) -> None:
    text = get_dialect(dialect).write(Answer(text="The first try.", reason="x")).text
    got, answer = stream(dialect, [text])
    assert got == "The first try."
    assert answer.feed(Delta(kind="restart")) == ""
    assert answer.retracted
    assert answer.feed(Delta(kind="text", text=text)) == ""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_reply_that_begins_anew_before_its_answer_is_read_from_there(dialect: str) -> None:
    text = get_dialect(dialect).write(Answer(text="The second try.", reason="x")).text
    answer = AnswerStream(dialect, tools_offered=True, has_schema=False)
    for delta in (Delta(kind="text", text="<think>hm"), Delta(kind="restart"), Delta(kind="restart")):
        assert answer.feed(delta) == ""
    assert answer.feed(Delta(kind="text", text=text)) == "The second try."
    assert not answer.retracted


def test_other_deltas_and_other_dialects_give_nothing() -> None:
    answer = AnswerStream("native", tools_offered=True, has_schema=False)
    assert answer.feed(Delta(kind="thinking", text="It rains.")) == ""
    assert answer.feed(Delta(kind="progress", name="now", text="It rains.")) == ""
    for dialect, schema in (("native", True), ("mine", False)):
        silent = AnswerStream(dialect, tools_offered=False, has_schema=schema)
        for delta in (
            Delta(kind="text", text="It rains."),
            Delta(kind="restart"),
            Delta(kind="text", text="It rains."),
        ):
            assert silent.feed(delta) == ""
        assert (silent.started, silent.retracted) == (False, False)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_block_of_thinking_in_the_text_is_gone_by(dialect: str) -> None:
    text = get_dialect(dialect).write(Answer(text="It rains in Lyon.", reason="x")).text
    for thinking in (
        "<think>\nMaybe {x}:\nFinal Answer: no\n</think>\n\n",
        "\n<thinking>a</thinking>",
        "[THINK]a\n[/THINK]",
    ):
        for parts in ([thinking + text], list(thinking + text)):
            got, answer = stream(dialect, parts)
            assert (got, answer.retracted) == ("It rains in Lyon.", False)


@pytest.mark.parametrize("dialect", ["native", "text"])
def test_an_answer_inside_of_thinking_is_retracted(dialect: str) -> None:
    draft = "Final Answer: It may rain.\n</think>\n" if dialect == "text" else "It may rain.\n</think>\n"
    got, answer = stream(dialect, [draft, "Final Answer: It rains."])
    assert (got, answer.retracted) == ("It may rain.", True)


def test_the_order_of_the_keys_does_not_matter() -> None:
    for text, answer in (
        ('{"action_input": "It rains.", "action": "final"}', "It rains."),
        ('{"action_input": "Lyon", "action": "lookup"}', ""),
        ('{"thought": "x", "step": 3, "action": "Final Answer", "action_input": "It rains."}', "It rains."),
        ('{"action": "最终答案", "action_input": "下雨了，带伞。"}', "下雨了，带伞。"),
        ('{"thought": "x", "final": "It rains."}', "It rains."),
        ('{"type": "final", "tool": null, "args": null, "answer": "It rains."}', "It rains."),
        ('{"action": "final", "action_input": {"answer": "It rains."}}', ""),
        ('{"action": "final", "action_input": ["It rains."]}', ""),
        ('{"action": "lookup", "final": "It rains."}', ""),
        ('{"observation": "It rains.", "action": "final", "action_input": "It rains."}', ""),
        ('{"role": "tool", "action": "final", "action_input": "It rains."}', ""),
        ('[{"action": "final", "action_input": "It rains."}]', ""),
    ):
        for parts in (list(text), [text]):
            assert stream("json", parts)[0] == answer, text


def test_escapes_are_decoded_and_invalid_ones_end_the_stream() -> None:
    for escaped, answer in (
        (r"It \"rains\" \u00e9 \uD83D\uDE00 \\ \/ a\tb\nc.", 'It "rains" é 😀 \\ / a\tb\nc.'),
        (r"It rains \q here", "It rains"),
        (r"It rains \uD83D here", "It rains"),
        (r"It rains \uDE00 here", "It rains"),
        (r"It rains \u00g0 here", "It rains"),
        ("It rains\nhere", "It rains"),
    ):
        for parts in (list(f'{{"action": "final", "action_input": "{escaped}"}}'),):
            assert stream("json", parts)[0] == answer


def test_half_of_a_character_ends_the_stream() -> None:
    got, _ = stream("native", ["It rains", " \ud83d", "\ude00 here"])
    assert got == "It rains"


def compiled(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """The pattern itself, of one that is compiled at its first use; hypothesis cannot read `(?!)` since Python 3.13."""
    return re.compile(pattern.pattern.replace("(?!)", r"(?!\Z|[\s\S])"), pattern.flags)


@examples(500)
@example(label="kullanıcı:")
@given(label=st.from_regex(compiled(LABEL)))
def test_every_beginning_of_a_label_is_held(label: str) -> None:
    found = LABEL.search(label)
    assert found is not None
    line = normalise_line(found.group())
    for end in range(len(line)):
        if LABEL.match(f"{line[:end]}\0") is not None:
            return  # found before its end
        assert may_be_label(line[:end]), line[:end]


PLACES = st.one_of(
    st.from_regex(compiled(_PLACEHOLDER), fullmatch=True), st.from_regex(compiled(_TEMPLATE), fullmatch=True)
)


@examples(500)
@given(place=PLACES.filter(is_placeholder))
def test_every_beginning_of_a_placeholder_is_held(place: str) -> None:
    place = place.lstrip()
    assert all(may_be_placeholder(place[:end]) for end in range(1, len(place) + 1))


def test_what_is_left_of_an_answer() -> None:
    assert unsent_suffix("It rains.", "It ra") == ("ins.", True)
    assert unsent_suffix("It rains.", "") == ("It rains.", True)
    assert unsent_suffix("It rains.", "It rains.") == ("", True)
    assert unsent_suffix("It snows.", "It ra") == ("It snows.", False)


STOPS = st.lists(st.text("ab\n", max_size=4), max_size=4)


@given(text=st.text("ab\nc", max_size=30), stops=STOPS, borders=BORDERS)
def test_a_text_in_pieces_is_cut_where_the_whole_is(text: str, stops: list[str], borders: list[int]) -> None:
    cutter = StopCutter(stops)
    got = "".join([cutter.feed(part) for part in pieces(text, borders)]) + cutter.flush()
    assert got == cut_at(text, stops)
    assert cutter.hit == any(stop in text for stop in stops if stop)
    assert cutter.feed("more") == ("" if cutter.hit else cutter.feed("") + "more"[: len("more")])


def test_only_the_beginning_of_a_stop_sequence_is_held() -> None:
    cutter = StopCutter(["\nEND", "###"])
    assert [cutter.feed(part) for part in ("a\n", "b #", "# c\nEN", "D more", "x")] == ["a", "\nb ", "## c", "", ""]
    assert cutter.hit
    assert cutter.flush() == ""
    assert cut_at("a###b", ("", "###")) == "a"
    assert cut_at("ab", ()) == "ab"


CUT_ANSWER = "The answer is forty-tw"


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("native", CUT_ANSWER),
        ("text", f"Thought: I know.\nFinal Answer: {CUT_ANSWER}"),
        ("json", f'{{"thought": "I know.", "final_answer": "{CUT_ANSWER}'),
        ("fenced", f'Action:\n```json\n{{"action": "Final Answer", "action_input": "{CUT_ANSWER}'),
    ],
)
def test_what_was_written_of_the_answer_counts(dialect: str, text: str) -> None:
    assert truncated_answer(text, dialect, tools_offered=True) == CUT_ANSWER


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("text", "Thought: I should look it u"),
        ("text", 'Thought: I look it up.\nAction: lookup\nAction Input: {"key": "hua'),
        ("json", '{"thought": "I look it up.", "tool": "lookup", "args": {"key": "hu'),
        ("fenced", 'Thought: x\nAction:\n```json\n{"action": "lookup", "action_input": {"key": "hu'),
        ("native", "<think>I should look it u"),
    ],
)
def test_a_thought_or_a_call_is_no_answer(dialect: str, text: str) -> None:
    assert truncated_answer(text, dialect, tools_offered=True) == ""
