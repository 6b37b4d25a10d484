"""What marks a question of the model, who answers as the user, and what asks for a secret."""

from __future__ import annotations

import pytest

from taoloop.core.cards.questions import is_by_starter, secret_asked_for

SERVED = {"key": "shop", "agent": "assistant", "user": "ann"}


@pytest.mark.parametrize(
    ("labels", "by", "authenticated", "is_user"),
    [
        ({"started_by": "os_user:ann"}, "ann", "os_user", True),
        ({"started_by": "os_user:ann"}, "ann", "panel_token", True),
        ({"started_by": "os_user:ann"}, "ann", "", False),
        ({"started_by": "os_user:ann"}, "ann", "gateway_key", False),
        ({"started_by": "os_user:ann"}, "bob", "os_user", False),
        (SERVED, "shop", "gateway_key", True),
        (SERVED, "ann", "gateway_key", False),
        (SERVED, "shop", "os_user", False),
        (SERVED, "shop", "panel_token", False),
        ({"key": ""}, "client", "", False),
        ({"key": ""}, "", "gateway_key", False),
        ({"key": ""}, "user", "program", False),
        ({}, "user", "program", True),
        ({"user": "ann"}, "ann", "program", True),
        ({"user": "ann"}, "user", "program", False),
        ({}, "user", "", False),
        ({}, "ann", "os_user", False),
    ],
)
def test_only_the_person_who_started_a_run_answers_as_its_user(
    labels: dict[str, str], by: str, authenticated: str, is_user: bool
) -> None:
    assert is_by_starter(labels, by, authenticated) is is_user


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is your API key?", "API key"),
        ("Type the admin's password, please.", "password"),
        ("Which PIN?", "PIN"),
        ("What is the one-time code that you got?", "one-time code"),
        ("请输入密码", "密码"),
        ("收到的验证码是多少？", "验证码"),
        ("Which invoice do you mean?", ""),
        ("Is the spinning wheel key to the result?", ""),
    ],
)
def test_words_that_ask_for_a_secret_are_seen(question: str, words: str) -> None:
    assert secret_asked_for(question) == words
