"""The events of AG-UI as they are written, without a server."""

from __future__ import annotations

import json
from typing import Any

from tests.serve.gateway.protocol_judging import agui_problems

from taoloop.core.decision import Act, Call
from taoloop.core.events import ActionRequested, Event, Fact, Fault, ModelReplied, Observed
from taoloop.serve.gateway.agui.encoder import AguiEncoder, error_body
from taoloop.serve.gateway.agui.run_input import read_run_input
from taoloop.serve.gateway.errors import ApiError

RUN = "20270115-080000-1a2b3c4d"
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def encoder(**changes: Any) -> AguiEncoder:
    body = {"threadId": "t", "runId": "r", "messages": [], "state": {"page": 1}}
    options: dict[str, Any] = {"is_repeat": False, "for_user": False, **changes}
    return AguiEncoder(read_run_input(json.dumps(body).encode()), RUN, None, **options)


def events_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(block.removeprefix("data: ")) for block in data.decode().split("\n\n") if block]


def facts(*given: Fact) -> list[Event]:
    return [Event(seq=seq, at=0.0, fact=fact) for seq, fact in enumerate(given)]


def replied(*calls: Call, reason: str = "", step: int = 1) -> ModelReplied:
    return ModelReplied(step=step, purpose="decide", text="", decision=Act(calls=calls, reason=reason))


def requested(tool: str, args: Any, call_id: str = "call_1") -> ActionRequested:
    return ActionRequested(step=1, call_id=call_id, tool=tool, args=args, tier="read", verdict="allow", digest="")


def test_thinking_is_reasoning_and_ends_before_the_text() -> None:
    made = encoder()
    data = made.thought("Hm") + made.thought("m.") + made.piece("It is 8.") + made._end_text() + made._leave_step()
    events = [*events_of(data), FINISHED]
    kinds = [event["type"] for event in events]
    assert kinds.index("REASONING_END") < kinds.index("TEXT_MESSAGE_START")
    assert "".join(event["delta"] for event in events if event["type"] == "REASONING_MESSAGE_CONTENT") == "Hmm."
    assert agui_problems(events) == []


def test_a_reason_beside_calls_is_reasoning_unless_it_was_written_as_text() -> None:
    call = Call(tool="look", args={})
    made = encoder()
    [event] = facts(replied(call, reason="I must look."))
    assert "REASONING_START" in made.step(event).decode()
    made = encoder()
    data = made.piece("I must look.") + made.step(event)
    assert "REASONING_START" not in data.decode()


def test_a_todo_list_is_the_state_beside_that_of_the_client() -> None:
    made = encoder()
    todos = [{"text": "Look", "state": "open"}]
    calls = facts(
        replied(Call(tool="track_todos", args={"todos": todos})),
        requested("track_todos", {"todos": todos}),
        Observed(call_id="call_1", ok=True, output="ok"),
    )
    events = events_of(b"".join(map(made.step, calls)))
    [state] = [event for event in events if event["type"] == "STATE_SNAPSHOT"]
    assert state["snapshot"] == {"page": 1, "todos": todos}
    assert agui_problems([*events, FINISHED]) == []


def test_an_end_user_does_not_read_why_the_operator_denies_a_call() -> None:
    fault = Fault(code="denied", message="Rule 7 of the operator.", hint="")
    calls = facts(replied(Call(tool="look", args={})), requested("look", {}))
    denied = Event(seq=2, at=0.0, fact=Observed(call_id="call_1", ok=False, output="", error=fault))
    for for_user, content in ((False, "Rule 7 of the operator."), (True, "denied")):
        made = encoder(for_user=for_user)
        for event in calls:
            made.step(event)
        assert events_of(made.step(denied))[0]["content"] == content


def test_a_step_whose_calls_have_no_outcome_ends_with_the_next_one() -> None:
    made = encoder()
    both = replied(Call(tool="a", args={}), Call(tool="b", args={}))
    data = b"".join(map(made.step, facts(both, requested("a", {}), replied(Call(tool="a", args={}), step=2))))
    names = [event["stepName"] for event in events_of(data) if event["type"].startswith("STEP")]
    assert names == ["step 1", "step 1", "step 2"]


def test_an_error_after_an_effect_names_the_run() -> None:
    error = ApiError(status=424, message="It failed.", effects="done", run_id=RUN)
    assert error_body(error) == {
        "type": "RUN_ERROR",
        "message": "It failed.",
        "code": "run_error",
        "metadata": {"run_id": RUN, "effects": "done"},
    }
