"""The text dialect, line by line."""

from __future__ import annotations

import pytest

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.message import ModelReply
from taoloop.dialects import TextDialect
from taoloop.errors import ConfigError


def card(name: str, *parameters: str, kind: str = "string", required: bool = True) -> ToolCard:
    schema = {
        "type": "object",
        "properties": {parameter: {"type": kind} for parameter in parameters},
        "required": list(parameters) if required else [],
    }
    return ToolCard(name=name, purpose="test", input_schema=schema)


CARDS = (
    card("lookup", "key"),
    card("add", "a", "b", kind="integer"),
    card("now"),
    card("sleep", "seconds", kind="number"),
    card("pick", "ids", kind="array"),
)
TEXT = TextDialect()


def read(text: str, finish_reason: str | None = "stop") -> Decision | Problem:
    return TEXT.read(ModelReply(text=text, finish_reason=finish_reason), CARDS)


def act(tool: str, args: object, reason: str = "") -> Act:
    return Act(calls=(Call(tool=tool, args=args),), reason=reason)


def refused(text: str, code: str, *parts: str) -> None:
    problem = read(text)
    assert isinstance(problem, Problem), problem
    assert problem.code == code
    for part in parts:
        assert part in problem.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Thought: t\nAction: lookup\nAction Input: {"key": "a"}', act("lookup", {"key": "a"}, "t")),
        ("Thought: t\nFinal: 10", Answer(text="10", reason="t")),
        ("  Thought:  t  \n\n   Action:  lookup: a.b  \n", act("lookup", {"key": "a.b"}, "t")),
        ('**Action:** lookup\n**Action Input:** {"key": "a"}', act("lookup", {"key": "a"})),
        ("**Thought**: t\n- Action: `lookup`\n- Action Input: a", act("lookup", {"key": "a"}, "t")),
        ("1. Thought: t\n2. Action: now", act("now", {}, "t")),
        ("Thought 1: t\nAction 1: lookup\nAction 1 Input: a", act("lookup", {"key": "a"}, "t")),
        ("### Thought\nt\n### Action\nlookup\n### Action Input\na", act("lookup", {"key": "a"}, "t")),
        ("FINAL ANSWER：好的", Answer(text="好的")),
        ('思考：想\n行动：lookup\n行动输入：{"key": "键"}', act("lookup", {"key": "键"}, "想")),
        ("想法: 想\n动作: lookup\n参数: 键", act("lookup", {"key": "键"}, "想")),
        ("思考：完\n最终回答：十", Answer(text="十", reason="完")),
        ("<think>\nAction: now\n</think>\nFinal Answer: 5", Answer(text="5")),
        ("drafting\n</think>\nFinal Answer: 5", Answer(text="5")),
        ("Action: Final Answer\nAction Input: done", Answer(text="done")),
        ('Action: lookup\nAction Input: ```json\n{"key": "a"}\n```<|im_end|>', act("lookup", {"key": "a"})),
    ],
)
def test_s0_12_labels_are_read_line_by_line(text: str, expected: Decision) -> None:
    """S0-12: lines are trimmed, blank ones skipped; labels in every usual spelling."""
    assert read(text) == expected


def test_s0_13_a_line_with_another_beginning_is_quoted() -> None:
    """S0-13: the problem quotes the line."""
    refused("It is ten.", "stray_text", "It is ten.")
    assert read("Let me see.\nAction: now") == act("now", {})  # beside a decision, words are only words


@pytest.mark.parametrize("text", ["Thought:", "Thought: only a thought"])
def test_s0_14_no_step_is_a_problem(text: str) -> None:
    """S0-14: a reply without one recognisable step."""
    refused(text, "no_decision")


def test_an_empty_reply_is_a_problem_of_its_own() -> None:
    refused(" \n ", "empty")
    refused("<think>\nAction: now\n</think>", "empty")


@pytest.mark.parametrize("text", ["Action: lookup", "Action: : a", "Action: lookup:", "Action:", "Action: None"])
def test_s0_15_an_incomplete_action_is_quoted(text: str) -> None:
    """S0-15: no separator, no tool or no input; the problem quotes the action."""
    refused(text, "bad_action", repr(text.removeprefix("Action:").strip())[1:-1])


def test_s0_17_an_unknown_tool_is_still_a_decision() -> None:
    """S0-17: the executor answers it."""
    assert read("Action: fly: home") == act("fly", "home")


@pytest.mark.parametrize("turn", ["Question: more?\nAction: now", "Observation: x\nFinal: 6", "问题：还有吗"])
def test_s0_23_nothing_behind_a_final_is_executed(turn: str) -> None:
    """S0-23: an invented next turn is cut; an action at once behind the final is refused."""
    assert read(f"Final: 5\n{turn}") == Answer(text="5")
    refused("Final: 5\nAction: now", "two_decisions")


@pytest.mark.parametrize("label", ["Observation", "OBSERVATION", "**Observation 1**", "观察", "观测", "Tool Result"])
def test_s0_24_an_invented_observation_is_never_believed(label: str) -> None:
    """S0-24: the action before it stands, a final on it does not; alone it is a problem."""
    start = f"Thought: t\nAction: lookup: a\n{label}: 7\n"
    assert read(start + "Thought: next\nAction: now") == act("lookup", {"key": "a"}, "t")
    refused(start + "Final Answer: 7", "invented_observation")
    refused(start + "Action: finish\nAction Input: 7", "invented_observation")
    refused(f"Thought: t\n{label}: 7\nAction: now", "invented_observation")


@pytest.mark.parametrize("end", ["Observation:", "Observ", "观察："])
def test_an_empty_slot_or_a_stump_is_nothing(end: str) -> None:
    assert read(f"Action: now\n{end}") == act("now", {})


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("Action: add(a=1, b=2)", {"a": 1, "b": 2}),
        ('Action: add({"a": 1, "b": 2})', {"a": 1, "b": 2}),
        ('Action: lookup(key="a \\"b\\" (c), d=1")', {"key": 'a "b" (c), d=1'}),
        ("Action: lookup('a')", {"key": "a"}),
        ('Action: lookup: {"key": "a:b"}', {"key": "a:b"}),
        ("Action: now()", {}),
    ],
)
def test_s2_2_and_s0_30_the_short_forms_carry_json_arguments(action: str, args: object) -> None:
    """S2-2, S0-30: `tool(arg="…")` and `tool: input` are read, behind a repeated question as well."""
    decision = read(f"Question: q\nThought: t\n{action}\nObservation:")
    assert isinstance(decision, Act)
    assert decision.reason == "t"
    assert decision.calls[0].args == args
    written = TEXT.write(decision).text
    assert written.startswith("Thought: t\nAction: ")
    assert read(written) == decision


@pytest.mark.parametrize(
    "action",
    ["add(1, 2)", "add(1)", "lookup(a + b)", 'lookup(key="a)', 'lookup(key="a", key="b")', "lookup(key=NaN)"],
)
def test_ambiguous_and_broken_calls_are_refused(action: str) -> None:
    refused(f"Action: {action}", "bad_json", action[:6])


@pytest.mark.parametrize(
    ("tool", "given", "args"),
    [
        ("lookup", "huala.post_count", {"key": "huala.post_count"}),
        ("lookup", '"quoted"', {"key": "quoted"}),
        ("lookup", '"{\\"key\\": \\"a\\"}"', {"key": "a"}),
        ("sleep", "5", {"seconds": "5"}),
        ("pick", "[1, 2]", {"ids": [1, 2]}),
        ("add", "8,2", "8,2"),
        ("add", '{"a": 8, "b": 2}', {"a": 8, "b": 2}),
        ("now", "{}", {}),
    ],
)
def test_s3_34_a_bare_input_stands_for_the_only_argument(tool: str, given: str, args: object) -> None:
    """S3-34: with several parameters a bare text stays what it is, and the executor answers."""
    assert read(f"Action: {tool}\nAction Input: {given}") == act(tool, args)


@pytest.mark.parametrize(
    "text",
    [
        "Action: lookup: a\nAction: lookup: b",
        "Action: lookup: a\nThought: better\nAction: now",
        "Action: lookup: a\nFinal Answer: it is a",
        "Final: 1\nFinal: 2",
    ],
)
def test_s0_47_two_decisions_are_refused(text: str) -> None:
    """S0-47: one decision per turn; a Final beside an action is refused."""
    refused(text, "two_decisions")


def test_s0_47_the_same_decision_twice_is_one() -> None:
    """S0-47: a repetition is no second decision."""
    once = 'Thought: t\nAction: lookup\nAction Input: {"key": "a"}\n'
    assert read(once + once) == act("lookup", {"key": "a"}, "t")
    assert read("Final: 1\nFinal Answer: 1") == Answer(text="1")


def test_s0_48_thought_and_final_may_have_many_lines() -> None:
    """S0-48: both go on to the next label; labels in a code block of the answer are content."""
    answer = "one\n\n```yaml\nAction: allow\n```\ntwo: `Action: x`"
    assert read(f"Thought: a\nb: c\nFinal Answer: {answer}") == Answer(text=answer, reason="a\nb: c")


@pytest.mark.parametrize("tail", ["Wait, no: b.", '{"key": "b"}', "Thought: wait, no", "and now() too"])
def test_s0_49_the_usable_part_is_named(tail: str) -> None:
    """S0-49: a bad later line says what was readable before it."""
    problem = read(f'Action: lookup\nAction Input: {{"key": "a"}}\n{tail}')
    assert isinstance(problem, Problem)
    assert problem.code in ("stray_text", "two_decisions")
    assert "'lookup'" in problem.message


@pytest.mark.parametrize("tail", ["I will report back.", "}", "(this returns the key)", "Observ"])
def test_words_behind_a_decision_are_let_pass(tail: str) -> None:
    assert read(f'Action: lookup\nAction Input: {{"key": "a"}}\n{tail}') == act("lookup", {"key": "a"})


@pytest.mark.parametrize(
    "given",
    [
        '{"key": "a',
        '{"key": "a"',
        '{"key": a}',
        '{"key": NaN}',
        '{"key": 1e999}',
        '{"key": "a", "key": "b"}',
        '{"key": "\\ud800"}',
        '{"key": ' + "[" * 200 + "]" * 200 + "}",
    ],
)
def test_s3_69_broken_json_never_runs(given: str) -> None:
    """S3-69: cut or broken JSON, NaN and Infinity, and one key with two values are refused."""
    refused(f"Action: lookup\nAction Input: {given}", "bad_json")
    refused(f"Action: lookup: {given}", "bad_json")


@pytest.mark.parametrize("reason", ["length", "content_filter", "MAX_TOKENS"])
def test_a_reply_that_the_provider_cut_is_refused(reason: str) -> None:
    problem = read("Final Answer: 5", reason)
    assert isinstance(problem, Problem)
    assert problem.code == "truncated"


@pytest.mark.parametrize("text", ["<think>\nAction: now", "Thought: <think>\nAction: now", "Final: a\n```\nAction: x"])
def test_what_was_never_closed_is_refused(text: str) -> None:
    refused(text, "truncated")


@pytest.mark.parametrize("text", ["Final Answer:", "Final:  \n\n", "Final Answer: <your answer>", "Action: final"])
def test_s4_58_an_empty_final_is_no_final(text: str) -> None:
    """S4-58: nor is the placeholder of the template."""
    refused(text, "bad_final")


@pytest.mark.parametrize("value", ["<user_email>", "{{id}}", "${key}", " <the key> "])
def test_unfilled_places_are_no_values(value: str) -> None:
    refused(f'Action: lookup\nAction Input: {{"key": "{value}"}}', "bad_action", "placeholder")
    assert read('Action: lookup\nAction Input: {"key": "<div>"}') == act("lookup", {"key": "<div>"})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Action Input: a", "bad_action"),
        ("Action: lookup: a\nAction Input: b", "two_decisions"),
        ("Action: lookup\nsome words\nAction Input: a", "stray_text"),
        ("Action: lookup\nAction Input: a\nb", "stray_text"),
        ("Action: lookup\nAction Input: a Observation: 7", "stray_text"),
        ("Action: lookup\nAction Input:", "bad_action"),
        ("Action: " + "x" * 200, "bad_action"),
        ("Final: \ud800", "stray_text"),
    ],
)
def test_doubtful_replies_are_refused(text: str, code: str) -> None:
    refused(text, code)


def test_write_gives_the_canonical_form() -> None:
    assert TEXT.write(act("add", {"和": 1}, "想")).text == 'Thought: 想\nAction: add\nAction Input: {"和": 1}'
    assert TEXT.write(Answer(text="5")).text == "Final Answer: 5"
    hard = Answer(text="first\nAction: now\nObservation: x", reason="Action: a\nFinal: b")
    kept = read(TEXT.write(hard).text)
    assert isinstance(kept, Answer)
    assert kept.text == hard.text


def test_two_calls_cannot_be_written() -> None:
    call = Call(tool="now", args={})
    with pytest.raises(ConfigError, match="one call per reply"):
        TEXT.write(Act(calls=(call, call)))
