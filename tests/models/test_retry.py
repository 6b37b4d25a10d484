"""A failed call is tried again where that may help, within the time, and the error says how often it was."""

from __future__ import annotations

import asyncio
import logging
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.models.asking import HANG, Told, asking, kinds

from taoloop.core.message import Delta, ModelReply
from taoloop.errors import (
    ConfigError,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
)
from taoloop.models.retry import Retrying
from taoloop.models.settings import Retry
from taoloop.testing import FakePace

DOWN = ModelUnavailable("told answered 503.", hint="Wait.")


def ask(model: Told, retry: Retry | None = None, pace: FakePace | None = None, **fields: Any) -> ModelReply:
    return asyncio.run(Retrying(model, retry, pace=pace or FakePace()).complete(asking(**fields)))


def failing(model: Told, retry: Retry | None = None, pace: FakePace | None = None, **fields: Any) -> ModelError:
    with pytest.raises(ModelError) as raised:
        ask(model, retry, pace, **fields)
    return raised.value


def test_the_first_reply_that_comes_counts() -> None:
    model = Told(DOWN, DOWN, "hello")
    assert ask(model).text == "hello"
    assert len(model.requests) == 3


def test_pauses_double_up_to_a_bound_and_are_a_random_part_of_it() -> None:
    pace = FakePace(part=0.5)
    failing(Told(DOWN), Retry(attempts=6, first_wait_s=1, max_wait_s=4), pace)
    assert pace.slept == [0.5, 1.0, 2.0, 2.0, 2.0]


@given(st.integers(1, 12), st.floats(0, 100), st.floats(0, 100), st.floats(0, 0.999))
def test_no_pause_is_longer_than_its_bound(attempts: int, first: float, most: float, part: float) -> None:
    pace = FakePace(part=part)
    failing(Told(DOWN), Retry(attempts=attempts, first_wait_s=first, max_wait_s=most), pace)
    assert len(pace.slept) == attempts - 1
    assert all(0 <= pause <= most for pause in pace.slept)


def test_a_provider_that_says_how_long_to_wait_is_obeyed() -> None:
    pace = FakePace(part=0.5)
    model = Told(ModelRateLimited("full", retry_after_s=40.0), "hello")
    assert ask(model, Retry(max_wait_s=1), pace).text == "hello"
    assert pace.slept == [40.25]  # half of first_wait_s more, so that not everybody comes back at once


def test_what_will_fail_again_is_not_tried_again() -> None:
    model = Told(ModelAuthError("wrong key"))
    error = failing(model)
    assert (type(error), error.message, len(model.requests)) == (ModelAuthError, "wrong key", 1)


def test_an_error_that_says_it_is_for_good_is_not_tried_again() -> None:
    """Used-up money comes as the same status as a full provider."""
    model = Told(ModelRateLimited("no money", retryable=False))
    failing(model)
    assert len(model.requests) == 1


def test_the_last_error_names_the_attempts_and_keeps_its_class_and_hint() -> None:
    error = failing(Told(DOWN))
    assert (type(error), error.message, error.hint) == (
        ModelUnavailable, "After 3 attempts: told answered 503.", "Wait.",
    )  # fmt: skip
    assert str(error) == "After 3 attempts: told answered 503. Wait."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301  # our own


def test_a_wait_beyond_the_time_of_the_request_is_not_begun() -> None:
    pace = FakePace()
    error = failing(Told(ModelRateLimited("full", retry_after_s=30.0)), None, pace, timeout_s=10.0)
    assert pace.slept == []
    assert error.message == "full The provider asks for a wait of 30.2 s, and 10.0 s are left."


def test_attempts_get_what_is_left_of_the_time() -> None:
    model = Told(DOWN, "hello")
    ask(model, Retry(first_wait_s=4), FakePace(part=0.5), timeout_s=10.0)
    assert [request.timeout_s for request in model.requests] == [10.0, 8.0]


def test_without_a_limit_attempts_have_none() -> None:
    model = Told(DOWN, "hello")
    ask(model, timeout_s=None)
    assert [request.timeout_s for request in model.requests] == [None, None]


def test_an_attempt_that_hangs_is_given_up_for_another() -> None:
    model = Told(HANG, "hello")
    assert ask(model, Retry(attempt_timeout_s=0.01), timeout_s=100.0).text == "hello"
    assert model.requests[0].timeout_s == 0.01


def test_attempts_that_all_hang_do_not_look_like_a_run_out_of_time() -> None:
    """`ModelTimeout` means that the time of the request is used up; here there is some left."""
    error = failing(Told(HANG), Retry(attempt_timeout_s=0.01), timeout_s=100.0)
    assert (type(error), error.message) == (
        ModelUnavailable, "After 3 attempts: told gave no reply within 0.01 s.",
    )  # fmt: skip


def test_a_timeout_of_the_whole_request_stays_one() -> None:
    error = failing(Told(ModelTimeout("slow")), Retry(attempts=1), timeout_s=5.0)
    assert (type(error), error.message) == (ModelTimeout, "slow")


def test_a_pause_can_be_cancelled() -> None:
    async def run() -> None:
        model = Told(DOWN)
        task = asyncio.create_task(Retrying(model, Retry(first_wait_s=3600, max_wait_s=3600)).complete(asking()))
        await model.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_errors_of_another_kind_go_through() -> None:
    with pytest.raises(ZeroDivisionError):
        ask(Told(ZeroDivisionError()))


def test_who_watches_is_told_that_the_reply_begins_anew() -> None:
    seen: list[Delta] = []
    ask(Told(DOWN, DOWN, "hello"), on_delta=seen.append)
    assert kinds(seen) == ["text", "restart", "text", "restart", "text"]


def test_who_watches_hears_no_restart_where_nothing_was_shown() -> None:
    class Silent(Told):
        async def complete(self, request: Any) -> ModelReply:
            self.requests.append(request)
            if len(self.requests) == 1:
                raise DOWN
            return ModelReply(text="hello")

    seen: list[Delta] = []
    ask(Silent(), on_delta=seen.append)
    assert seen == []


def test_every_failed_attempt_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "taoloop"):
        ask(Told(DOWN, "hello"))
    assert caplog.messages == ["told failed (attempt 1 of 3): told answered 503. Trying again in 0.2 s."]


def test_the_rest_is_left_to_the_model() -> None:
    model = Told("hello", spec="a:b", dialect="json")
    retrying = Retrying(model)
    retrying.check_used(4)
    asyncio.run(retrying.close())
    assert (retrying.spec, retrying.dialect, model.checked, model.closed) == ("a:b", "json", [4], 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [("attempts", 0), ("attempts", True), ("first_wait_s", -1), ("max_wait_s", float("nan")), ("attempt_timeout_s", 0)],
)
def test_settings_that_mean_nothing_are_refused(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=field):
        Retry(**{field: value})  # type: ignore[arg-type]  # that is the test
