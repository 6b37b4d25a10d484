"""Replies that are shown while they are written: no secret gets out, and what is none is not kept back."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from taoloop.core.redaction.redactor import Redactor
from taoloop.runtime.engine.redacted_stream import RedactedStream

HARMLESS = [
    *(
        "It is ",
        "enough. ",
        "The key ",
        "points: ",
        "consider ",
        "the author, ",
        '{"action_input": "',
        "密切",
        "：",
        "a_b ",
    ),
    *("inside ", "Basic ", "token ", "= ", "\n", "right", "user@example.com ", "https://x.example.com/a ", '"', "\\n"),
]
ANNOUNCED = [
    ('password: "', r"hun ter\" 2x", '"'),
    ("token=", "abc123XYZ9q", " "),
    ("Authorization: Bearer ", "abcdef1234567", "\n"),
    ("postgres://bob:", "s3cretpw", "@h "),
    ("amqp://bob:s3好", "cretpw99", "@h "),
    ('"api_key": "', "a1b2c3d4e5f6", '", '),
    (r"{\"client_secret\": \"", "a1b2c3d4e5f6", r"\"} "),
    ("Cookie: sid=", "zz99yy88", "\n"),
    ("密码：", "h4nter22", "，"),
    ("key sk-", "a1b2c3d4e5f6g7h8i9j0", " "),
    ("password: ", "hunterhunter", " "),
    ("go --password ", "hunterhunter", " "),
    ("the password is ", "swordfish", "."),
    ("密码是", "swordfishes", "。"),
    ("<password>", "hun ter 2x", "</password>"),
    ("<password><![CDATA[", "hun ter 2x", "]]></password>"),
    ("curl -u bob:", "swordfish", " "),
    ("mysql -p", "hunterhunter", " "),
    ("sshpass -p ", "hunterhunter", " "),
    ("docker login -u bob -p ", "swordfish", " "),
    ("CREATE USER bob IDENTIFIED BY '", "sword fish", "'"),
    ("\npassword:\n  ", "hunterhunter", "\n"),
    ("\npassword: |\n  ", "hunter two\n  three four", "\nuser: ann\n"),
    ("\n  db_password: >-\n    ", "hunter two\n\n    three four", "\n  user: ann\n"),
    ("xai-", "a1b2c3d4e5f6g7h8i9j0", " "),
    ("bot123456789:", "AAHabcdefghijklmnopqrstuvwxyz012345", " "),
]


def test_a_known_secret_of_several_words_does_not_hold_up_a_whole_line() -> None:
    """As `Authorization: Bearer TOKEN` of a tool is one; an answer in one long line must come as it is written."""
    stream = RedactedStream(Redactor({"Authorization": "Bearer one-two-three"}, patterns=False))
    assert stream.feed("Be sure to bring a ") == "Be sure to bring a "
    assert stream.feed("Bearer ") == ""
    assert stream.feed("of news, ") == "Bearer of news, "
    assert stream.feed("and Bearer one-two-") == "and "
    assert stream.feed("three, or so.") + stream.end() == "[redacted:Authorization], or so."


SPACED = ["Bearer ", "Bear", "er ", "one-two", "-three", "密码 ", "密", "码 ", " x", "\n"]


@given(st.lists(st.sampled_from(SPACED), max_size=12))
def test_pieces_say_what_the_whole_says_without_its_secrets(pieces: list[str]) -> None:
    redactor = Redactor({"a": "Bearer one-two-three", "b": "密码 one-two"}, patterns=False)
    stream, shown = RedactedStream(redactor), ""
    for piece in pieces:
        shown += stream.feed(piece)
        assert "Bearer one-two-three" not in shown
        assert "密码 one-two" not in shown
    assert shown + stream.end() == redactor.text("".join(pieces))


@given(st.lists(st.sampled_from([*HARMLESS, *ANNOUNCED]), max_size=10), st.integers(1, 9))
def test_what_is_announced_is_never_shown_and_what_is_harmless_is_shown_whole(
    parts: list[str | tuple[str, str, str]], size: int
) -> None:
    redactor = Redactor()
    text = "".join(part if isinstance(part, str) else "".join(part) for part in parts)
    hidden = [part[1] for part in parts if not isinstance(part, str) and part[1] not in redactor.text(text)]
    stream, shown = RedactedStream(redactor), ""
    for at in range(0, len(text), size):
        shown += stream.feed(text[at : at + size])
        assert [secret for secret in hidden if secret in shown] == []
    shown += stream.end()
    assert [secret for secret in hidden if secret in shown] == []
    if redactor.text(text) == text:
        assert shown == text


@pytest.mark.parametrize("head", ["", '{"action": "Final Answer", "action_input": "', "要点：", "Notes: "])
def test_an_answer_that_speaks_of_keys_and_tokens_comes_as_it_is_written(head: str) -> None:
    stream = RedactedStream(Redactor({"Authorization": "Bearer one-two-three"}))
    stream.feed(head)
    text = "Consider the basic key points: an author has tokens inside, which is right enough for a session"
    for word in text.split():
        assert stream.feed(f"{word} ") != ""


def test_a_line_that_announces_something_and_never_ends_is_held_within_bounds() -> None:
    stream, shown = RedactedStream(Redactor()), ""
    for _ in range(3_000):
        shown += stream.feed("authorization: basic words and more of them ")
    assert len(shown) > 100_000


class Counting(Redactor):
    """Counts the characters that it is asked to look at."""

    looked = 0

    def text(self, text: str) -> str:
        self.looked += len(text)
        return super().text(text)

    def partial_secret_at(self, text: str) -> int:
        self.looked += len(text)
        return super().partial_secret_at(text)


@pytest.mark.parametrize("head", ['{"token": "x", ', "authorization: ", 'password: "', "password=h4nter22 ", ""])
def test_a_long_line_is_not_looked_at_again_with_each_piece(head: str) -> None:
    redactor = Counting()
    stream, text = RedactedStream(redactor), head + "basic words and more of them " * 500
    shown = "".join(stream.feed(text[at : at + 4]) for at in range(0, len(text), 4)) + stream.end()
    assert shown == Redactor().text(text)
    assert redactor.looked < 200 * len(text)  # each time the whole line: some 4,000


def test_nothing_of_a_known_secret_is_shown_however_long_it_is() -> None:
    secret = "9f8e" * 400
    stream, shown = RedactedStream(Redactor({"KEY": secret})), ""
    for at in range(0, len(secret), 40):
        shown += stream.feed(secret[at : at + 40])
    assert shown + stream.feed(" is it.") + stream.end() == "[redacted:KEY] is it."
