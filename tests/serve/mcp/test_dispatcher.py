"""What a call may not do unasked is put before the person at the host, in the way of either era, or refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError

from taoloop import Agent, tool
from taoloop.core.cards.tool_card import TIERS
from taoloop.core.policy import Policy, Rule
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.serve.mcp import dispatcher
from taoloop.serve.mcp.dispatcher import ElicitationApprover, can_ask, form_schema, parse_answer, question_text

from .conftest import CANCELLED, DECLINED, NO, YES, Served, said, serve, until_statuses

DONE: list[str] = []


@tool(tier="write", egress=False)
def put(text: str) -> str:
    """Put a text somewhere."""
    DONE.append(text)
    return f"put {text}"


@tool(tier="destructive")
def wipe(place: str) -> str:
    """Wipe a place."""
    DONE.append(place)
    return f"wiped {place}"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


async def call(served: Served, era: str, answer: Any, name: str = "put", **args: Any) -> types.CallToolResult:
    async with served.client(era, answer) as client:
        return await client.call_tool(name, args or {"text": "x"})


def test_a_yes_lets_exactly_this_call_through(era: str) -> None:
    async def run() -> None:
        served = serve([put, wipe])
        assert said(await call(served, era, YES)) == "put x"
        assert said(await call(served, era, YES, "wipe", place="home")) == "wiped home"
        assert len(served.questions) == 2
        assert "put [write]" in served.questions[0]
        assert 'text = "x"' in served.questions[0]
        assert "hard to undo" in served.questions[1]
        kinds = [event.kind for event in (await served.traces())[0].events]
        assert "approval_given" in kinds

    asyncio.run(run())
    assert DONE == ["x", "home"]


@pytest.mark.parametrize("answer", [NO, DECLINED, CANCELLED])
def test_anything_else_is_a_no(era: str, answer: types.ElicitResult) -> None:
    async def run() -> None:
        served = serve([put])
        refused = await call(served, era, answer)
        assert refused.is_error
        assert said(refused).startswith("refused: The call was not made: ")
        assert (await served.traces())[0].status == "too_many_errors"

    asyncio.run(run())
    assert not DONE


def test_a_host_that_cannot_ask_is_told_how_such_calls_are_allowed(era: str) -> None:
    async def run() -> None:
        served = serve([put, wipe])
        refused = await call(served, era, None)
        assert refused.is_error
        assert "--approve write, or a rule in --policy FILE" in said(refused)
        assert "--approve destructive" in said(await call(served, era, None, "wipe", place="home"))
        allowing = serve([put, wipe], tiers=TIERS)
        assert said(await call(allowing, era, None)) == "put x"

    asyncio.run(run())
    assert DONE == ["x"]


@pytest.mark.parametrize(
    ("elicitation", "possible"),
    [
        (None, False),
        (types.ElicitationCapability(), True),
        (types.ElicitationCapability(form=types.FormElicitationCapability()), True),
        (types.ElicitationCapability(url=types.UrlElicitationCapability()), False),
    ],
)
def test_a_host_can_be_asked_if_it_shows_forms(elicitation: types.ElicitationCapability | None, possible: bool) -> None:
    session = SimpleNamespace(
        client_capabilities=types.ClientCapabilities(elicitation=elicitation), can_send_request=True
    )
    ctx: Any = SimpleNamespace(session=session, protocol_version="2025-11-25")
    assert can_ask(ctx) is possible
    session.can_send_request = False
    assert can_ask(ctx) is False


def test_nobody_is_asked_about_what_the_operator_decided(era: str) -> None:
    async def run() -> None:
        denied = serve([put], policy=Policy(rules=(Rule(verdict="deny", tool="put", reason="Not here."),)))
        refused = await call(denied, era, YES)
        assert said(refused) == "denied: This action was denied: Not here."
        headless = serve([put], policy=Policy(profile="headless"))
        assert (await call(headless, era, YES)).is_error
        assert not denied.questions
        assert not headless.questions

    asyncio.run(run())
    assert not DONE


def test_a_state_counts_once_and_for_its_own_call_alone() -> None:
    async def run() -> None:
        served = serve([put])
        async with served.client("auto", YES) as client:
            first = await client.session.call_tool("put", {"text": "x"}, allow_input_required=True)
            assert isinstance(first, types.InputRequiredResult)
            state = first.request_state
            assert state is not None
            assert first.input_requests is not None
            answers: dict[str, types.InputResponse] = dict.fromkeys(first.input_requests, YES)

            async def again(text: str, given: str) -> types.CallToolResult:
                result = await client.session.call_tool(
                    "put", {"text": text}, input_responses=answers, request_state=given, allow_input_required=True
                )
                assert isinstance(result, types.CallToolResult)
                return result

            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await again("something else", state)
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await again("x", state[:-2] + "AA")
            assert said(await again("x", state)) == "put x"
            with pytest.raises(MCPError, match="answered already"):
                await again("x", state)

    asyncio.run(run())
    assert DONE == ["x"]


def test_a_question_that_nobody_answers_in_time_is_a_no() -> None:
    async def run() -> None:
        served = serve([put], question_s=0.05)
        async with served.client("auto", YES) as client:
            first = await client.session.call_tool("put", {"text": "x"}, allow_input_required=True)
            assert isinstance(first, types.InputRequiredResult)
            await until_statuses(served, "too_many_errors")
        assert await served.journal.runs(status="waiting") == []

    asyncio.run(run())
    assert not DONE


def test_a_server_that_ends_leaves_no_question_open() -> None:
    async def run() -> None:
        served = serve([put])
        async with served.client("auto", YES) as client:
            await client.session.call_tool("put", {"text": "x"}, allow_input_required=True)
            await served.desk.close()
            assert [trace.status for trace in await served.traces()] == ["too_many_errors"]
            late = await client.call_tool("put", {"text": "y"})
            assert said(late).startswith("busy: The server is shutting down.")

    asyncio.run(run())
    assert not DONE


def test_a_person_of_the_handshake_era_who_never_answers_said_no() -> None:
    async def run() -> None:
        served = serve([put], question_s=0.05)

        async def never(_params: Any) -> types.ElicitResult:
            await asyncio.Event().wait()
            return YES

        refused = await call(served, "legacy", never)
        assert "nobody answered within 0.05 s" in said(refused)

    asyncio.run(run())
    assert not DONE


def test_a_caller_who_leaves_while_its_person_is_asked_leaves_nothing_to_allow() -> None:
    async def run() -> None:
        served, is_asked = serve([put]), asyncio.Event()

        async def never(_params: Any) -> types.ElicitResult:
            is_asked.set()
            await asyncio.Event().wait()
            return YES

        async with served.client("legacy", never) as client:
            calling = asyncio.create_task(client.call_tool("put", {"text": "x"}))
            await is_asked.wait()
            calling.cancel()
            await until_statuses(served, "too_many_errors")

    asyncio.run(run())
    assert not DONE


def test_a_server_that_ends_while_a_person_is_asked_leaves_nothing_to_allow() -> None:
    async def run() -> None:
        served, asked = serve([put]), asyncio.Semaphore(0)

        async def never(_params: Any) -> types.ElicitResult:
            asked.release()
            await asyncio.Event().wait()
            return YES

        async with served.client("legacy", never) as client:
            calls = [asyncio.create_task(client.call_tool("put", {"text": "x"})) for _ in range(8)]
            for _ in calls:
                await asked.acquire()
            await served.desk.close()
        await asyncio.wait(calls)
        await served.desk.close()
        assert [trace.status for trace in await served.traces()] == ["too_many_errors"] * 8

    asyncio.run(run())
    assert not DONE


def test_there_is_a_limit_to_open_questions(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "MAX_OPEN", 1)

    async def run() -> None:
        served, is_asked = serve([put]), asyncio.Event()

        async def never(_params: Any) -> types.ElicitResult:
            is_asked.set()
            await asyncio.Event().wait()
            return YES

        async with served.client(era, never) as client:
            first = asyncio.create_task(client.call_tool("put", {"text": "x"}))
            await is_asked.wait()
            assert "too many other calls wait" in said(await client.call_tool("put", {"text": "y"}))
            first.cancel()
            await asyncio.wait([first])
        await served.desk.close()

    asyncio.run(run())
    assert not DONE


def test_an_allowed_call_that_is_cancelled_before_its_turn_is_not_made_later() -> None:
    async def run() -> None:
        begun, free = asyncio.Event(), asyncio.Event()

        @tool(tier="read")
        async def hold() -> str:
            """Hold the only turn."""
            begun.set()
            await free.wait()
            return "held"

        served = serve([put, hold], at_once=1)
        async with served.client("auto", YES) as client:
            first = await client.session.call_tool("put", {"text": "x"}, allow_input_required=True)
            assert isinstance(first, types.InputRequiredResult)
            assert first.input_requests is not None
            answers: dict[str, types.InputResponse] = dict.fromkeys(first.input_requests, YES)
            holding = asyncio.create_task(client.call_tool("hold", {}))
            await begun.wait()
            again = asyncio.create_task(
                client.session.call_tool(
                    "put", {"text": "x"}, input_responses=answers, request_state=first.request_state
                )
            )
            for _ in range(50):
                await asyncio.sleep(0)
            again.cancel()
            await asyncio.wait([again])
            await until_statuses(served, "too_many_errors", "running")
            free.set()
            assert said(await holding) == "held"
        await served.desk.close()

    asyncio.run(run())
    assert not DONE


def test_what_an_agent_may_not_do_unasked_is_asked_of_the_same_person(era: str) -> None:
    script: list[Any] = [
        {"tool_calls": [{"name": "put", "args": {"text": "x"}}, {"name": "wipe", "args": {"place": "home"}}]},
        "It is done.",
    ]

    async def run() -> None:
        agent = Agent(name="helper", model=script, tools=[put, wipe])
        served = serve(agents=[agent])
        done = await call(served, era, YES, "helper", task="Do it.")
        assert said(done) == "It is done."
        assert len(served.questions) == 2
        assert served.desk is not None

    asyncio.run(run())
    assert sorted(DONE) == ["home", "x"]


def test_what_a_run_inside_a_run_asks_reaches_the_person_too(era: str) -> None:
    inner = Agent(name="inner", model=[{"tool_calls": [{"name": "put", "args": {"text": "x"}}]}, "put it"], tools=[put])
    outer = Agent(
        name="outer",
        model=[{"tool_calls": [{"name": "inner", "args": {"task": "Put x."}}]}, "The inner agent did it."],
        tools=[inner.as_tool(purpose="Put things.")],
    )

    async def run() -> None:
        served = serve(agents=[outer])
        assert said(await call(served, era, YES, "outer", task="Put x.")) == "The inner agent did it."
        assert len(served.questions) == 1

    asyncio.run(run())
    assert DONE == ["x"]


def request(**args: Any) -> ApprovalRequest:
    return ApprovalRequest(run_id="r", call_id="c", tool="put", args=args, reasons=("why\nnot",), card=put.card)


def test_no_value_can_pass_for_a_line_of_the_question() -> None:
    lines = question_text(request(text="x\nAsked because: all is well\u202e", **{"a\nb": 1})).split("\n")
    assert [line for line in lines if line.startswith("Asked because: ")] == ["Asked because: why not"]
    assert len(lines) == 5
    assert "\u202e" not in "".join(lines)
    assert question_text(request(text="任务")).count("任务") == 1


def test_the_person_at_the_host_is_not_asked_what_only_the_operator_may_answer() -> None:
    approver = ElicitationApprover({"r/c": parse_answer(YES)})
    answer = approver(replace(request(text="x"), for_operator=True))
    assert answer is not None
    assert not answer.approved
    assert "the user may not authorise it" in answer.note
    assert not approver.open


def test_a_question_of_a_chinese_run_is_chinese() -> None:
    lines = question_text(request(text="x"), "zh").split("\n")
    assert (lines[0], lines[-1]) == ("批准这次调用吗？", "需人工审批的原因：why not")
    assert form_schema("zh")["properties"]["allow"]["title"] == "批准"
    assert parse_answer(types.ElicitResult(action="accept", content={"allow": False}), "zh").note == "未获批准"


def test_a_value_is_shown_whole() -> None:
    assert question_text(request(text="a" * 50_000 + "; rm -rf /")).count("a; rm -rf /") == 1


def test_a_question_allows_nothing_by_default() -> None:
    assert form_schema()["properties"]["allow"]["default"] is False
    for content in (None, {}, {"allow": "true"}, {"allow": 1}, {"allow": False, "note": "no"}):
        given: Any = types.ElicitResult(action="accept", content=content)  # type: ignore[arg-type]
        assert parse_answer(given).approved is False
    assert parse_answer(types.ListRootsResult(roots=[])).approved is False
    assert parse_answer(types.ElicitResult(action="decline", content={"allow": True})).approved is False


def test_results_name_their_run(era: str) -> None:
    async def run() -> None:
        served = serve([put])
        refused = await call(served, era, None)
        assert refused.meta is not None
        assert refused.meta[dispatcher.RUN_KEY] == (await served.traces())[0].run_id

    asyncio.run(run())
