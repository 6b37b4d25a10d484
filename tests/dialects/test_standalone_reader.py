"""`read_reply`: one reply by itself, judged by the tools that are on offer."""

from __future__ import annotations

import json

import pytest
from tests.dialects.test_rules import CALL, FENCE, OBJECT, TOOLS, tool

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
