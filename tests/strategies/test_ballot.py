"""When two answers are the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.strategies.ballot import count_votes, normalise_answer


@pytest.mark.parametrize(
    "notations",
    [
        ("Paris", " paris ", "PARIS.", "The Paris", "**Paris**", "“Paris”", "Paris [doc:4k7m2pq9x0ab]", "Ｐａｒｉｓ"),
        ("1,000", "1000", "1000."),
        ("12,345,678.5 kg", "12345678.5 kg"),
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}'),
        ("well-known", "well known"),
        ("北京。", "北京", "「北京」"),
        ("(B)", "b", "B."),
    ],
)
def test_notations_of_one_answer(notations: tuple[str, ...]) -> None:
    assert len({normalise_answer(text) for text in notations}) == 1, [normalise_answer(text) for text in notations]


@pytest.mark.parametrize(
    "answers",
    [
        ("5", "-5", "0.5", "5%", "5.5", "55"),
        ("A", "B", "A, B", "a B C"),
        ("$5", "5", "€5"),
        ("3/4", "34", "3:4"),
        ("vitamin", "vitamin A"),
        ("yes", "no"),
        ("!", "?"),
        ("[1, 2]", "[2, 1]", "[1"),
        ("C", "C++", "C#"),
        ("2024-01-02", "2024-01-03"),
    ],
)
def test_different_answers_stay_different(answers: tuple[str, ...]) -> None:
    assert len({normalise_answer(text) for text in answers}) == len(answers)


@examples(200)
@given(st.text(max_size=60))
def test_a_normal_form_is_of_any_text_and_does_not_change_again(text: str) -> None:
    form = normalise_answer(text)
    assert bool(form) == bool(text.strip()) or not text.split()
    assert isinstance(form, str)


def test_votes_are_in_the_order_of_their_number_and_then_of_their_first() -> None:
    votes = count_votes([(1, "c"), (2, "b"), (4, "B"), (7, "d"), (8, "D")])
    assert [(vote.answer, vote.samples) for vote in votes] == [("b", (2, 4)), ("d", (7, 8)), ("c", (1,))]
    assert count_votes([]) == ()
