"""Several endpoints of one model: shared by weight; one that fails is left out, tried again, and taken back."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

import pytest
from tests.models.asking import Told, asking

from taoloop.errors import (
    ConfigError,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRequestRefused,
    ModelUnavailable,
)
from taoloop.models.endpoint_balance import COOL_DOWN_S, Balanced
from taoloop.testing import FakePace

DOWN = ModelUnavailable("told answered 503.")


class CyclingPace(FakePace):
    """Gives 0.05, 0.15 … 0.95 in turn."""

    count = 0

    def random(self) -> float:
        self.count += 1
        return (self.count - 1) % 10 / 10 + 0.05


def ask(model: Balanced) -> str:
    return asyncio.run(model.complete(asking())).text


def test_calls_are_shared_by_weight() -> None:
    model = Balanced([Told("a"), Told("b")], [9, 1], pace=CyclingPace())
    shares = Counter(asyncio.run(_texts(model, 40)))
    assert shares["a"] > shares["b"] > 0


async def _texts(model: Balanced, count: int) -> list[str]:
    return [(await model.complete(asking())).text for _ in range(count)]


@pytest.mark.parametrize(
    "error", [DOWN, ModelAuthError("401"), ModelRateLimited("429"), ModelUnavailable("502", retryable=False)]
)
def test_one_that_fails_is_left_out_and_tried_again_after_its_cool_down(
    error: ModelError, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    pace, bad, good = FakePace(part=0.0), Told(error, error, "a"), Told("b")
    model = Balanced([bad, good], names=["east", "west"], pace=pace)
    assert [ask(model), ask(model)] == ["b", "b"]
    assert len(bad.requests) == 1  # nobody asks it meanwhile
    assert [(health.is_healthy, health.code) for health in model.health] == [(False, error.code), (True, "")]
    pace.clock.advance(COOL_DOWN_S)
    assert ask(model) == "b"  # half-open, and it fails again: twice as long
    pace.clock.advance(COOL_DOWN_S)
    assert ask(model) == "b"
    assert len(bad.requests) == 2
    pace.clock.advance(COOL_DOWN_S)
    assert ask(model) == "a"
    assert all(health.is_healthy for health in model.health)
    assert "endpoint east is left out for 30 s" in caplog.text
    assert "endpoint east answers again" in caplog.text


def test_retry_after_is_obeyed_even_where_nobody_else_is_left() -> None:
    pace = FakePace(part=0.0)
    limited = Told(ModelRateLimited("429", retry_after_s=100.0), "a")
    model = Balanced([limited], pace=pace)
    with pytest.raises(ModelRateLimited):
        ask(model)
    pace.clock.advance(60)
    with pytest.raises(ModelRateLimited) as raised:
        ask(model)
    assert raised.value.retry_after_s == 40
    assert len(limited.requests) == 1
    pace.clock.advance(40)
    assert ask(model) == "a"


def test_where_all_are_left_out_they_are_tried_all_the_same() -> None:
    model = Balanced([Told(DOWN, "a"), Told(DOWN)], names=["east", "west"], pace=FakePace(part=0.0))
    with pytest.raises(ModelUnavailable, match="None of 2 models answered"):
        ask(model)
    assert ask(model) == "a"


def test_a_refusal_of_the_request_is_the_same_everywhere() -> None:
    first, second = Told(ModelRequestRefused("400")), Told("b")
    model = Balanced([first, second], pace=FakePace(part=0.0))
    with pytest.raises(ModelRequestRefused):
        ask(model)
    assert not second.requests
    assert all(health.is_healthy for health in model.health)


def test_calls_that_fail_together_count_as_one_failure() -> None:
    async def run() -> None:
        await asyncio.gather(*(model.complete(asking()) for _ in range(8)), return_exceptions=True)

    class Slow(Told):
        async def complete(self, request):  # type: ignore[no-untyped-def]  # as `Told`
            await asyncio.sleep(0)
            pace.clock.advance(1)
            return await super().complete(request)

    pace = FakePace(part=0.0)
    model = Balanced([Slow(DOWN)], pace=pace)
    asyncio.run(run())
    assert model.health[0].failures == 1


def test_settings_that_do_not_fit_are_refused() -> None:
    for models, weights in (([], []), ([Told()], [0]), ([Told()], [1, 2])):
        with pytest.raises(ConfigError):
            Balanced(models, weights)
