"""Of a reply that was cut, what is certain to be the beginning of its answer."""

from __future__ import annotations

import pytest

from taoloop.dialects.streaming.answer_stream import truncated_answer

ANSWER = "The answer is forty-tw"


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("native", ANSWER),
        ("text", f"Thought: I know.\nFinal Answer: {ANSWER}"),
        ("json", f'{{"thought": "I know.", "final_answer": "{ANSWER}'),
        ("fenced", f'Action:\n```json\n{{"action": "Final Answer", "action_input": "{ANSWER}'),
    ],
)
def test_what_was_written_of_the_answer_counts(dialect: str, text: str) -> None:
    assert truncated_answer(text, dialect, tools_offered=True) == ANSWER


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
