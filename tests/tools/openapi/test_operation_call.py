"""Calls over real sockets: what goes out, what comes back, and when a request is sent again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qs, parse_qsl, quote

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples
from tests.tools.egress.site import Got, Reply, Site, redirect

from taoloop import Agent, ScriptedModel
from taoloop.core.events import InDoubt, Observed
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.core.stored_events import encode_fact
from taoloop.errors import EgressRefused, InvalidArguments, MissingKey, ToolError, ToolTimeout
from taoloop.runtime.engine.tool_execution import execute_tool
from taoloop.testing.fakes import FakeClock
from taoloop.tools.egress import EgressRules
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.operation import PlannedTool
from taoloop.tools.openapi.operation_call import (
    MAX_PAUSE_S,
    ApiClient,
    OperationCaller,
    RetryClock,
    make_tool,
    may_repeat,
    pause_s,
    retry_after_s,
)
from taoloop.tools.tool import Tool, ToolContext, ToolOutput

KEY = "key-for-tests-only"


@dataclass
class Waits:
    """A clock that notes pauses and lets them pass at once."""

    time: FakeClock = field(default_factory=lambda: FakeClock(0.0))
    pauses: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time.advance(seconds)

    @property
    def clock(self) -> RetryClock:
        return RetryClock(sleep=self.sleep, now=self.time.now, tick=self.time.tick)


class ForwardLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be set forward, so that time limits end without a wait."""

    _ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self._ahead_s

    def set_forward(self, seconds: float) -> None:
        """Let these seconds have passed. Any thread may call it."""
        self._ahead_s += seconds
        self.call_soon_threadsafe(lambda: None)


def answer(value: Any, status: int = 200, **headers: str) -> Reply:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


def in_turn(*replies: Any) -> Callable[[Got], Any]:
    """Answers one after the other; the last one stays."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/v1/orders/7": answer({"id": 7})}) as served:
        yield served


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Orders", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9/v1"}],
    "security": [{"api_key": []}],
    "paths": {
        "/orders/{id}": {
            "get": {
                "operationId": "get_order",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                    {"name": "price", "in": "query", "schema": {"type": "number"}},
                ],
            }
        },
        "/orders": {
            "post": {
                "operationId": "create_order",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["amount"],
                                "properties": {"amount": {"type": "number"}},
                            }
                        }
                    },
                },
            }
        },
    },
    "components": {"securitySchemes": {"api_key": {"type": "apiKey", "in": "query", "name": "key"}}},
}


def source(site: Site, **options: Any) -> OpenapiSource:
    options = {"base_url": f"{site.url}/v1", "auth": {"api_key": KEY}, "timeout_s": 20.0, **options}
    return OpenapiSource(document=json.dumps(DOCUMENT), **options)


def tool(site: Site, name: str, waits: Waits | None = None, **options: Any) -> Tool:
    where = source(site, **options)
    made = next(one for one in openapi_tools(where).tools if one.name == name)
    caller = made.handler
    assert isinstance(caller, OperationCaller)
    api = ApiClient(where, clock=(waits or Waits()).clock)
    return make_tool(PlannedTool(operation=caller.operation, card=made.card), api)


def run(tool: Tool, context: ToolContext | None = None, /, **args: Any) -> Any:
    async def once() -> Any:
        return await tool.invoke(tool.prepare(args).values, context or ToolContext())

    return asyncio.run(once())


def error(tool: Tool, context: ToolContext | None = None, /, **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        run(tool, context, **args)
    return caught.value


def test_a_call_sends_what_the_document_says_and_gives_status_and_body(site: Site) -> None:  # S1-8, S1-61
    assert run(tool(site, "get_order"), id=7, price=1.5) == ToolOutput(
        text='{"status":200,"body":{"id": 7}}', form="json"
    )
    (got,) = site.got
    assert (got.method, got.path) == ("GET", f"/v1/orders/7?price=1.5&key={KEY}")
    assert got.headers["accept"].startswith("application/json")


def test_a_body_arrives_with_its_type(site: Site) -> None:  # S1-32, S1-34
    site.routes["/v1/orders"] = answer({}, 201)
    run(tool(site, "create_order"), amount=12)
    assert (site.got[0].headers["content-type"], site.got[0].body) == ("application/json", b'{"amount":12}')


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({}, "missing_argument"),
        ({"id": "x"}, "invalid_argument"),
        ({"id": 1, "y": 2}, "unknown_argument"),
        ({"id": True}, "invalid_argument"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_anything_is_sent(
    site: Site, args: dict[str, Any], code: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        tool(site, "get_order").prepare(args)
    assert caught.value.code == code
    assert "Expected:" in caught.value.hint
    assert site.got == []


def test_what_can_be_read_as_a_number_is_one(site: Site) -> None:
    run(tool(site, "get_order"), id="7")
    assert site.got[0].path.startswith("/v1/orders/7?")


def test_a_read_is_tried_again_after_growing_pauses(site: Site) -> None:  # S1-54
    site.routes["/v1/orders/7"] = in_turn(answer({}, 503), answer({}, 502), answer({"id": 7}))
    waits = Waits()
    assert run(tool(site, "get_order", waits), id=7).text == '{"status":200,"body":{"id": 7}}'
    assert waits.pauses == [1.0, 2.0]


def test_the_last_attempt_is_told_as_such(site: Site) -> None:  # S1-54
    site.routes["/v1/orders/7"] = answer({"why": "down"}, 503)
    waits = Waits()
    failed = error(tool(site, "get_order", waits, retries=3), id=7)
    assert failed.code == "max_retries_exceeded"
    assert "Max retries exceeded after 4 attempts" in failed.message
    assert "HTTP 503" in failed.message
    assert '{"why": "down"}' in failed.message
    assert (waits.pauses, len(site.got)) == ([1.0, 2.0, 3.0], 4)


def test_a_pause_that_the_server_asks_for_is_kept_and_never_longer_than_the_time_limit(site: Site) -> None:
    site.routes["/v1/orders/7"] = in_turn(answer({}, 429, **{"Retry-After": "7"}), answer({"id": 7}))
    waits = Waits()
    run(tool(site, "get_order", waits), id=7)
    assert waits.pauses == [7.0]
    site.routes["/v1/orders/7"] = answer({}, 429, **{"Retry-After": "25"})
    failed = error(tool(site, "get_order", waits), id=7)
    assert failed.code == "rate_limited"
    assert "The API asks to wait: 25." in failed.hint
    assert waits.pauses == [7.0]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_call_that_changes_something_is_never_repeated(site: Site, status: int) -> None:  # S1-58
    site.routes["/v1/orders"] = answer({}, status)
    failed = error(tool(site, "create_order"), amount=1)
    assert len(site.got) == 1
    assert "idempotency-key" not in site.got[0].headers
    assert failed.code != "max_retries_exceeded"


def test_with_a_key_of_its_own_it_is_repeated_under_that_key(site: Site) -> None:  # S1-58
    site.routes["/v1/orders"] = in_turn(answer({}, 500), answer({"ok": True}, 201))
    made = tool(site, "create_order", idempotency=("create_order",))
    assert made.card.idempotent
    run(made, ToolContext(idempotency_key="run_1:call_1"), amount=1)
    assert [got.headers["idempotency-key"] for got in site.got] == ["run_1:call_1"] * 2


def test_by_hand_each_call_has_a_key_of_its_own(site: Site) -> None:
    site.routes["/v1/orders"] = answer({})
    made = tool(site, "create_order", idempotency=("create_order",))
    run(made, amount=1)
    run(made, amount=1)
    assert len({got.headers["idempotency-key"] for got in site.got}) == 2


def test_what_was_never_sent_may_be_sent_again_whatever_it_changes() -> None:  # S1-58
    with Site() as gone:
        pass
    waits = Waits()
    failed = error(tool(gone, "create_order", waits), amount=1)
    assert (failed.code, waits.pauses) == ("max_retries_exceeded", [1.0, 2.0])
    assert "connection_failed" in failed.message
    assert KEY not in str(failed)


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"garbage\r\n\r\n"])
def test_a_change_whose_answer_broke_off_may_have_happened(site: Site, reply: bytes) -> None:  # S1-58
    site.routes["/v1/orders"] = lambda _: reply
    failed = error(tool(site, "create_order"), amount=1)
    assert isinstance(failed, ToolTimeout)
    assert not failed.retryable
    assert "may or may not have taken effect" in failed.message
    assert len(site.got) == 1


def test_a_call_ends_with_the_time_limit_of_its_api(site: Site) -> None:  # S1-35
    waits = Waits()

    def let_time_pass(_: Got) -> None:
        waits.time.advance(20.0)
        loops[-1].set_forward(20.0)

    def failure(name: str, **args: Any) -> ToolError:
        called = tool(site, name, waits, timeout_s=20.0)
        with asyncio.Runner(loop_factory=ForwardLoop) as runner:
            loops.append(cast("ForwardLoop", runner.get_loop()))
            with pytest.raises(ToolError) as caught:
                runner.run(called.invoke(called.prepare(args).values, ToolContext()))
        return caught.value

    loops: list[ForwardLoop] = []
    site.routes["/v1/orders/7"] = site.routes["/v1/orders"] = let_time_pass
    failed = failure("create_order", amount=1)
    assert (type(failed), failed.code) == (ToolTimeout, "http_timeout")
    assert "within 20 s" in failed.message
    assert failure("get_order", id=7).code == "http_timeout"
    assert waits.pauses == []


def test_an_error_keeps_its_body_and_no_secret(site: Site) -> None:  # S1-36
    site.routes["/v1/orders/7"] = answer({"you": KEY, "why": "no such order"}, 404)
    failed = error(tool(site, "get_order"), id=7)
    assert failed.code == "not_found"
    assert "no such order" in failed.message
    assert KEY not in str(failed)
    assert "/v1/orders/7 returned HTTP 404" in failed.message


def test_an_answer_that_gives_the_key_back_is_cleaned(site: Site) -> None:
    site.routes["/v1/orders/7"] = answer({"you": KEY})
    assert KEY not in run(tool(site, "get_order"), id=7).text


def test_a_missing_secret_is_told_and_nothing_is_sent(site: Site) -> None:
    with pytest.raises(MissingKey, match="API_KEY"):
        run(tool(site, "get_order", auth={}), id=7)
    assert site.got == []


def test_a_private_place_that_only_the_document_names_is_refused(site: Site) -> None:
    with pytest.raises(EgressRefused):
        run(tool(site, "get_order", base_url=""), id=7)


def test_a_redirect_of_a_read_is_followed_without_secrets_and_that_of_a_change_is_told(site: Site) -> None:
    with Site({"/elsewhere": answer({"id": 8})}) as other:
        site.routes["/v1/orders/7"] = redirect(f"{other.url}/elsewhere")
        with pytest.raises(EgressRefused):
            run(tool(site, "get_order"), id=7)
        site.routes["/v1/orders"] = redirect("/v1/orders/7", 307)
        failed = error(tool(site, "create_order"), amount=1)
        assert (failed.code, other.got) == ("redirected", [])
        site.routes["/v1/orders/7"] = redirect("/v1/moved")
        site.routes["/v1/moved"] = answer({"id": 7})
        assert '"id": 7' in run(tool(site, "get_order"), id=7).text


def test_no_secret_goes_along_to_another_host_even_where_the_rules_let_the_request_go_there(site: Site) -> None:
    with Site({"/elsewhere": answer({"id": 8})}) as other:
        site.routes["/v1/orders/7"] = redirect(f"{other.url}/elsewhere")
        rules = EgressRules(allow=(f"127.0.0.1:{other.port}",), only_allowed=True)
        made = tool(site, "get_order", egress=rules, headers={"X-Secret": "for-the-api-only"})
        assert '"id": 8' in run(made, id=7).text
        (got,) = other.got
        assert got.path == "/elsewhere"
        assert "x-secret" not in got.headers
        assert site.got[0].headers["x-secret"] == "for-the-api-only"


def oauth(site: Site, waits: Waits, life_s: int = 100) -> Tool:
    numbers = iter(range(1, 99))
    site.routes["/v1/token"] = lambda _: answer({"access_token": f"token-{next(numbers)}", "expires_in": life_s})
    scheme = {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/v1/token", "scopes": {"read": ""}}}}
    document = {**DOCUMENT, "security": [{"oauth": ["read"]}], "components": {"securitySchemes": {"oauth": scheme}}}
    where = OpenapiSource(
        document=json.dumps(document),
        base_url=f"{site.url}/v1",
        auth={"oauth": {"client_id": "i d", "client_secret": "secret-for-tests"}},
    )
    made = next(one for one in openapi_tools(where).tools if one.name == "get_order")
    assert isinstance(made.handler, OperationCaller)
    planned = PlannedTool(operation=made.handler.operation, card=made.card)
    return make_tool(planned, ApiClient(where, clock=waits.clock))


def bearers(site: Site) -> list[str]:
    return [got.headers["authorization"] for got in site.got if got.path != "/v1/token"]


def test_a_token_is_fetched_once_and_renewed_before_it_expires(site: Site) -> None:
    waits = Waits()
    made = oauth(site, waits)

    async def twice() -> None:
        await asyncio.gather(*(made.invoke({"id": 7}, ToolContext()) for _ in range(2)))

    asyncio.run(twice())
    assert bearers(site) == ["Bearer token-1"] * 2
    asked = next(got for got in site.got if got.path == "/v1/token")
    assert parse_qs(asked.body.decode()) == {"grant_type": ["client_credentials"], "scope": ["read"]}
    assert asked.headers["authorization"] == "Basic aSUyMGQ6c2VjcmV0LWZvci10ZXN0cw=="
    waits.time.advance(71)
    run(made, id=7)
    assert bearers(site)[-1] == "Bearer token-2"


def test_a_token_that_is_not_taken_is_renewed_once(site: Site) -> None:
    made = oauth(site, Waits())
    site.routes["/v1/orders/7"] = in_turn(answer({}, 401), answer({"you": "token-2"}), answer({}, 401))
    assert "token-2" not in run(made, id=7).text
    assert bearers(site) == ["Bearer token-1", "Bearer token-2"]
    assert error(made, id=7).code == "unauthorized"
    assert bearers(site)[2:] == ["Bearer token-2", "Bearer token-3"]


def test_a_server_of_tokens_that_gives_none_is_told_without_the_secret(site: Site) -> None:
    made = oauth(site, Waits())
    site.routes["/v1/token"] = answer({"error": "invalid_client", "you": "secret-for-tests"}, 401)
    failed = error(made, id=7)
    assert failed.code == "token_refused"
    assert "invalid_client" in failed.message
    assert "secret-for-tests" not in str(failed)
    assert [got.body.count(b"client_secret") for got in site.got] == [0, 1]


def test_a_whole_run_has_the_digits_as_the_model_wrote_them_and_no_secret_in_its_trace(site: Site) -> None:
    site.routes["/v1/orders"] = answer({"you": KEY}, 201)
    made = tool(site, "create_order").with_card(tier="draft")
    calls = (ToolCallText(name="create_order", arguments='{"amount": 0.12345678901234567890}'),)
    result = Agent(model=ScriptedModel([ModelReply(text="", tool_calls=calls), "done"]), tools=[made]).run_sync("x")
    assert site.got[0].body == b'{"amount":0.12345678901234567890}'
    (observed,) = [event.fact for event in result.trace.events if isinstance(event.fact, Observed)]
    assert observed.ok
    assert observed.output.startswith('{"status":201,"body":{"you"')
    assert all(KEY.encode() not in encode_fact(event.fact) for event in result.trace.events)


@pytest.mark.parametrize("early", [True, False])
def test_a_read_has_the_digits_too_though_it_may_begin_early(site: Site, early: bool) -> None:
    calls = (ToolCallText(name="get_order", arguments='{"id": 7, "price": 1.10}'),)
    script = ScriptedModel([ModelReply(text="", tool_calls=calls), "done"])
    Agent(model=script, tools=[tool(site, "get_order")], early_reads=early).run_sync("x")
    assert site.got[0].path == f"/v1/orders/7?price=1.10&key={KEY}"


def test_the_secrets_of_tools_are_redacted_wherever_they_turn_up_in_a_run(site: Site) -> None:
    result = Agent(model=ScriptedModel([f"the key is {KEY}"]), tools=[tool(site, "get_order")]).run_sync("x")
    assert KEY not in str(result.answer)
    assert KEY not in repr(tool(site, "get_order"))


def test_two_apis_may_call_their_secrets_the_same(site: Site) -> None:
    one = tool(site, "get_order").with_card(name="one")
    two = tool(site, "get_order", auth={"api_key": "another-key-for-tests"}).with_card(name="two")
    told = f"{KEY} and another-key-for-tests"
    result = Agent(model=ScriptedModel([told]), tools=[one, two]).run_sync("x")
    assert "for-tests" not in str(result.answer)


def test_a_binary_answer_is_kept_whole_as_an_artifact(site: Site) -> None:
    site.routes["/v1/orders/7"] = (200, {"Content-Type": "image/png"}, bytes(range(256)) * 40)
    made = tool(site, "get_order")

    async def once() -> Any:
        return await execute_tool(made, {"id": 7}, "call_1", ToolContext(), 10.0, FakeClock())

    outcome = asyncio.run(once())
    assert len(outcome.observed.output) <= made.card.max_preview_chars
    assert '"type":"image/png"' in outcome.observed.output
    [artifact] = outcome.artifacts
    assert json.loads(artifact.body)["bytes"] == 10_240


def test_a_long_answer_is_cut_by_its_structure_and_keeps_its_status(site: Site) -> None:
    site.routes["/v1/orders/7"] = answer([{"id": number, "text": "x" * 300} for number in range(100)])
    made = tool(site, "get_order")

    async def once() -> Any:
        return await execute_tool(made, {"id": 7}, "call_1", ToolContext(), 10.0, FakeClock())

    shown = json.loads(asyncio.run(once()).observed.output)
    assert shown["status"] == 200
    assert shown["body"][0]["id"] == 0


def test_a_change_without_an_answer_is_in_doubt_in_a_run(site: Site) -> None:  # S1-58
    site.routes["/v1/orders"] = lambda _: b""
    calls = (ToolCallText(name="create_order", arguments='{"amount":1}'),)
    agent = Agent(
        model=ScriptedModel([ModelReply(text="", tool_calls=calls), "done"]),
        tools=[tool(site, "create_order")],
        approve=lambda _: True,
    )
    result = agent.run_sync("create an order")
    assert any(isinstance(event.fact, InDoubt) for event in result.trace.events)
    assert len(site.got) == 1


_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)


def test_what_arrives_is_what_was_given(site: Site) -> None:
    document = {
        **DOCUMENT,
        "security": [],
        "paths": {
            "/a/{p}/b": {
                "post": {
                    "operationId": "echo",
                    "parameters": [
                        {"name": "p", "in": "path", "required": True, "schema": {"type": "string"}},
                        {"name": "q", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    ],
                    "requestBody": {"content": {"application/json": {"schema": {}}}},
                }
            }
        },
    }
    where = OpenapiSource(document=json.dumps(document), base_url=site.url)
    (echo,) = openapi_tools(where).tools
    with asyncio.Runner() as runner:

        @examples(60)
        @given(
            _TEXT, st.lists(_TEXT, max_size=3), st.recursive(st.integers() | _TEXT | st.none(), st.lists, max_leaves=5)
        )
        def check(in_path: str, in_query: list[str], body: Any) -> None:
            site.got.clear()
            try:
                runner.run(echo.invoke({"p": in_path, "q": in_query, "body": body}, ToolContext()))
            except InvalidArguments:
                return
            except ToolError as failed:
                assert failed.code == "not_found"  # noqa: PT017  # every path is unknown to the site
            (got,) = site.got
            path, _, query = got.path.partition("?")
            assert path == f"/a/{quote(in_path, safe='')}/b"
            assert parse_qsl(query, keep_blank_values=True) == [("q", one) for one in in_query]
            assert json.loads(got.body) == body

        check()


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
