from __future__ import annotations

import pytest

from taoloop.tools.openapi.http.retry import MAX_PAUSE_S, may_repeat, pause_s, retry_after_s


def test_what_was_never_sent_may_be_sent_again() -> None:
    assert may_repeat(None, was_sent=False, is_repeatable=False)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, None])
def test_what_was_sent_goes_again_only_where_a_second_time_has_no_second_effect(status: int | None) -> None:  # S1-58
    assert may_repeat(status, was_sent=True, is_repeatable=True)
    assert not may_repeat(status, was_sent=True, is_repeatable=False)


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 409, 422, 501])
def test_an_answer_that_will_not_change_is_not_asked_for_again(status: int) -> None:
    assert not may_repeat(status, was_sent=True, is_repeatable=True)


def test_the_pause_grows() -> None:
    assert [pause_s(attempt, "", 0.0) for attempt in (1, 2, 3)] == [1.0, 2.0, 3.0]


def test_the_pause_is_what_the_server_asks_for_unless_it_is_too_long() -> None:
    assert pause_s(1, "7", 0.0) == 7.0
    assert pause_s(1, "Thu, 01 Jan 1970 00:00:05 GMT", 2.0) == 3.0
    assert pause_s(1, "Thu, 01 Jan 1970 00:00:05 GMT", 9.0) == 0.0
    assert pause_s(1, str(MAX_PAUSE_S + 1), 0.0) is None


@pytest.mark.parametrize("said", ["", "soon", "-1", "9e9", "Thu, 99 Jan"])
def test_what_cannot_be_read_asks_for_nothing(said: str) -> None:
    assert retry_after_s(said, 0.0) is None
