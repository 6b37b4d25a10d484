"""The problem in a reply is told in the language of the run, under the same code."""

from __future__ import annotations

import pytest

from taoloop.core.decision import Problem
from taoloop.dialects.parsing.cleanup import clean_reply
from taoloop.dialects.parsing.reply_parser import parse_reply
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.dialects.texts import LocalizedText, ReplyParseError, problem_message


def parse_error(text: str) -> ReplyParseError:
    with pytest.raises(ReplyParseError) as caught:
        parse_reply(clean_reply(text), ())
    return caught.value


def test_a_problem_keeps_its_code_in_every_language() -> None:
    problem = parse_error("Thought: hm\nAction: a\nAction Input: {}\nAction: b\nAction Input: {}").problem
    assert problem.code == "two_decisions"
    assert problem.message == problem_message(problem, "en")
    assert "'a' and 'b'" in problem.message
    assert problem_message(problem, "zh") == ("一次回复中有两个不同的行动：“a”和“b”，均未执行。请只给出一个决定。")


def test_what_completes_a_message_is_in_its_language_too() -> None:
    problem = parse_error('Thought: hm\nAction: a\nAction Input: {"x": 1, "x": 2}').problem
    assert problem_message(problem, "zh") == (
        "“a”的输入不是合法的 JSON：键“x”出现了两次且值不同。此前可用的部分：思考。"
    )


def test_a_problem_of_another_dialect_keeps_its_message() -> None:
    assert problem_message(Problem(code="empty", message="nothing"), "zh") == "nothing"


def test_two_equal_problems_are_equal() -> None:
    assert parse_error("").problem == parse_error("").problem


def test_the_reason_why_a_text_is_no_json_has_every_language() -> None:
    with pytest.raises(NotJsonError) as caught:
        loads("[1, 2")
    assert str(caught.value) == "it stops in the middle"
    assert caught.value.text.render("zh") == "内容中途中断"


def test_an_unknown_language_reads_english() -> None:
    assert LocalizedText("thought_part").render("fr") == "the thought"


def test_a_reply_that_is_only_the_stump_of_a_label_is_empty() -> None:
    assert parse_error("\u2028\nObs").problem.code == "empty"
