"""`read_reply`: one reply by itself, judged by the tools that are on offer."""

from __future__ import annotations

import json

import pytest
from tests.dialects.test_rules import CALL, FENCE, OBJECT, TOOLS, native, tool

from taoloop.dialects import read_reply


@pytest.mark.parametrize("reason", ["length", "content_filter", "max_tokens"])
def test_what_the_provider_cut_is_refused(reason: str) -> None:
    """Rule 7, whatever the reply looks like."""
    for dialect, text in (("text", CALL), ("json", OBJECT), ("fenced", FENCE)):
        problem = read_reply(dialect, TOOLS, text, reason).problem
        assert problem is not None
        assert problem.code == "truncated"


def test_an_undeclared_tool_is_repaired_no_more_than_one_that_writes() -> None:
    """Rule 7: nobody said that it only reads."""
    undeclared = [{key: value for key, value in TOOLS[0].items() if key != "effect"}]
    assert read_reply("text", undeclared, CALL[:-1]).kind == "reject"
    assert read_reply("text", undeclared, CALL).kind == "action"


def test_an_exact_name_comes_before_a_similar_one() -> None:
    """Rule 4: exactly one known tool must fit."""
    twins = [tool("do_it", "read"), tool("doIt", "read")]
    assert read_reply("text", twins, "Action: doIt").tool == "doIt"
    assert read_reply("text", twins, "Action: Do It").kind == "reject"


def test_s1_25_to_s1_29_the_forms_of_the_first_agents() -> None:
    """S1-25, S1-27, S1-28, S1-29: nothing, Final Answer as an action, fences, keys matched loosely."""
    assert read_reply("fenced", TOOLS, " ").kind == "reject"
    assert read_reply("fenced", TOOLS, '{"action": "Final Answer", "action_input": "It is 5."}').answer == "It is 5."
    spellings = (("Action", "Action Input"), ("Action Name", "Action_Input"), ("tool", "tool_input"))
    objects = [json.dumps({action: "find_hotel", given: {"city": "Rome"}}) for action, given in spellings]
    for text in (FENCE, OBJECT, *objects):
        reply = read_reply("fenced", TOOLS, text)
        assert (reply.tool, reply.args) == ("find_hotel", {"city": "Rome"})
    assert read_reply("fenced", TOOLS, '{"the action": "find_hotel", "the input": {"city": "Rome"}}').kind == "reject"


@pytest.mark.parametrize(
    "tail", ["but only if needed", "if it still exists.", "provided that Ann agrees", "如果它还存在"]
)
def test_a_condition_behind_a_call_that_changes_something_is_refused(tail: str) -> None:
    """A call knows no conditions, so it would be made in any case; what only reads does no harm."""
    for dialect, text in (
        ("text", "Thought: t\nAction: {tool}\nAction Input: {args}"),
        ("json", '{{"thought": "t", "action": "{tool}", "action_input": {args}}}'),
        ("json_final", '{{"thought": "t", "action": "{tool}", "args": {args}}}'),
    ):
        dropped = text.format(tool="drop_table", args='{"table": "old"}')
        assert read_reply(dialect, TOOLS, dropped).kind == "action"
        problem = read_reply(dialect, TOOLS, f"{dropped} {tail}").problem
        assert problem is not None
        assert problem.code == "stray_text"
        assert (
            read_reply(dialect, TOOLS, text.format(tool="web_search", args='{"q": "a"}') + f" {tail}").kind == "action"
        )


@pytest.mark.parametrize(
    "text",
    [
        'Calling web_search(q="a")',
        'I will call web_search(q="a").',
        'It is not here. I will now use the tool `web_search(q="a")`.',
        '我现在调用 `web_search(q="a")`。',
        '我先使用工具 web_search(q="a")。',
    ],
)
def test_a_sentence_that_makes_a_call_is_that_call(text: str) -> None:
    reading = read_reply("native", TOOLS, native(text))
    assert (reading.kind, reading.tool, reading.args) == ("action", "web_search", {"q": "a"})
    writes = native(text.replace('web_search(q="a")', 'drop_table(table="a")'))
    assert read_reply("native", TOOLS, writes).kind == "reject"


@pytest.mark.parametrize(
    "text",
    [
        'You can call web_search(q="a").',
        'To see more, call web_search(q="a").',
        'I will not call web_search(q="a").',
        'If you like, I will call web_search(q="a").',
        'For example, I call web_search(q="a").',
        '接下来你可以调用 web_search(q="a")。',
    ],
)
def test_a_sentence_about_a_call_is_an_answer(text: str) -> None:
    assert read_reply("native", TOOLS, native(text)).answer == text


@pytest.mark.parametrize(
    "text",
    [
        'First I look: find_hotel(city="Rome"), and then: web_search(q="a")',
        'I will call find_hotel(city="Rome") and then call web_search(q="a").',
    ],
)
def test_two_calls_in_sentences_are_two(text: str) -> None:
    problem = read_reply("native", TOOLS, native(text)).problem
    assert problem is not None
    assert problem.code == "two_decisions"


def test_a_label_in_bold_before_a_call_does_not_make_it_an_answer() -> None:
    assert read_reply("native", TOOLS, native('**Tool call:** web_search(q="a")')).kind == "reject"
