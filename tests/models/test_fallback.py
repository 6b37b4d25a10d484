"""Where one model fails the next one answers, and the error says what each of them said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.models.asking import HANG, Told, asking, kinds

from taoloop.core.message import Delta, ModelReply
from taoloop.errors import (
    ConfigError,
    ModelAuthError,
    ModelContentRefused,
    ModelContextOverflow,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RealCallsForbidden,
    ScriptExhausted,
)
from taoloop.models.retry import Fallback

DOWN = ModelUnavailable("a:x answered 503.", hint="Wait.")


def ask(*models: Told, **fields: Any) -> ModelReply:
    return asyncio.run(Fallback(models).complete(asking(**fields)))


def failing(*models: Told, **fields: Any) -> ModelError:
    with pytest.raises(ModelError) as raised:
        ask(*models, **fields)
    return raised.value


def test_the_first_model_answers_while_it_can() -> None:
    first, second = Told("hello", spec="a:x"), Told("hi", spec="b:y")
    reply = ask(first, second)
    assert (reply.text, reply.model, second.requests) == ("hello", "a:x", [])


@pytest.mark.parametrize("error", [DOWN, ModelAuthError("wrong key"), ModelTimeout("slow")])
def test_the_next_model_answers_where_one_failed(error: ModelError) -> None:
    reply = ask(Told(error, spec="a:x"), Told("hi", spec="b:y"))
    assert (reply.text, reply.model) == ("hi", "b:y")


@pytest.mark.parametrize("kind", [ModelContentRefused, ModelContextOverflow, RealCallsForbidden, ScriptExhausted])
def test_some_errors_are_not_got_round(kind: type[ModelError]) -> None:
    second = Told("hi")
    assert type(failing(Told(kind("no")), second)) is kind
    assert second.requests == []


def test_each_request_begins_with_the_first_model_again() -> None:
    async def twice() -> list[str]:
        model = Fallback([Told(DOWN, "back again", spec="a:x"), Told("hi", spec="b:y")])
        return [(await model.complete(asking())).text for _ in range(2)]

    assert asyncio.run(twice()) == ["hi", "back again"]


def test_the_error_names_every_model_and_what_it_said() -> None:
    error = failing(Told(DOWN, spec="a:x"), Told(ModelAuthError("wrong key"), spec="b:y"))
    assert error.message == "None of 2 models answered. a:x answered 503. b:y: wrong key"
    assert (type(error), error.retryable) == (ModelUnavailable, True)


def test_models_that_failed_alike_keep_the_class_of_the_error() -> None:
    error = failing(Told(ModelTimeout("a:x is slow."), spec="a:x"), Told(ModelTimeout("b:y is slow."), spec="b:y"))
    assert (type(error), error.message) == (ModelTimeout, "None of 2 models answered. a:x is slow. b:y is slow.")


def test_a_model_that_hangs_leaves_its_share_to_the_next() -> None:
    first, second = Told(HANG, spec="a:x"), Told("hi", spec="b:y")
    assert ask(first, second, timeout_s=0.02).text == "hi"
    assert first.requests[0].timeout_s == pytest.approx(0.01, rel=0.2)


def test_time_that_a_model_did_not_use_belongs_to_the_next() -> None:
    second = Told("hi")
    ask(Told(DOWN), second, timeout_s=100.0)
    assert second.requests[0].timeout_s == pytest.approx(100, abs=1)


def test_the_reply_being_shown_begins_anew_with_the_next_model() -> None:
    seen: list[Delta] = []
    failing(Told(DOWN), Told(DOWN), on_delta=seen.append)
    assert kinds(seen) == ["text", "restart", "text"]


@pytest.mark.parametrize(
    ("dialects", "chosen"),
    [
        (["native", "native"], "native"),
        (["json", "json"], "json"),
        (["native", "text"], "text"),
        (["json", "native"], "json"),
        (["text", "json"], "text"),
    ],
)
def test_the_dialect_suits_every_model(dialects: list[str], chosen: str) -> None:
    assert Fallback([Told("hi", dialect=name) for name in dialects]).dialect == chosen


def test_it_is_named_after_all_models_and_closes_them() -> None:
    models = [Told(spec="a:x"), Told(spec="b:y")]
    asyncio.run(Fallback(models).close())
    assert Fallback(models).spec == "a:x | b:y"
    assert [model.closed for model in models] == [1, 1]


def test_a_fallback_without_models_is_refused() -> None:
    with pytest.raises(ConfigError, match="no models"):
        Fallback([])
