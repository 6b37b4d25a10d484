"""Graphs as runs: every kind of node, branches, loops, joins, early exit, people, crashes, replay."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from taoloop import (
    END,
    EXIT,
    START,
    Agent,
    ApprovalAnswer,
    ApprovalRequest,
    Graph,
    Limits,
    MemoryJournal,
    Node,
    Person,
    Result,
    ScriptedModel,
    tool,
)
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, GraphError, ToolError
from taoloop.runtime import replay
from taoloop.strategies.graph import draw_mermaid, graph_progress
from taoloop.testing import assert_effect_once, restarts
from taoloop.testing.killed_journal import Moment


class Order(BaseModel):
    order_id: str = ""
    amount: float = 0
    verdict: str = ""
    approved: bool = False
    notes: list[str] = []
    rounds: int = 0


class Found(BaseModel):
    amount: float


@tool(tier="read")
def look_up(order_id: str) -> Found:
    """Look up an order."""
    return Found(amount=120.0 if order_id == "A-17" else 20.0)


@tool(tier="read")
def history(order_id: str) -> str:
    """What happened before."""
    return f"history of {order_id}"


@tool(tier="read")
def stock(order_id: str) -> str:
    """What is in stock."""
    return f"stock for {order_id}"


@tool(tier="read")
def one_more(rounds: int) -> int:
    """Count."""
    return rounds + 1


def yes(_request: ApprovalRequest) -> ApprovalAnswer:
    return ApprovalAnswer(approved=True, by="ann")


def refund_graph(ledger: list[str], *, judge: Agent | None = None) -> Graph:
    @tool(tier="draft", probe=lambda order_id, amount: f"paid {amount:g}" if order_id in ledger else False)
    def pay(order_id: str, amount: float) -> str:
        """Pay the money back."""
        ledger.append(order_id)
        return f"paid {amount:g}"

    judge = judge or Agent(model=ScriptedModel(["refund"], strict=False))
    return Graph(
        state=Order,
        nodes={
            "look_up": look_up,
            "history": Node(history, writes="notes"),
            "stock": Node(stock, writes="notes"),
            "judge": Node(judge, args={"task": "Judge {order_id}: {notes}"}, writes="verdict"),
            "manager": Person("Refund {amount} for {order_id}?", writes="approved"),
            "pay": Node(pay, writes="verdict"),
        },
        edges={
            START: "look_up",
            "look_up": ["history", "stock"],
            "history": "judge",
            "stock": "judge",
            "judge": {"amount > 100": "manager", "verdict == 'refund'": "pay", "else": END},
            "manager": {"approved": "pay", "else": END},
            "pay": END,
        },
        merge={"notes": "append"},
        answer="{verdict} ({order_id})",
    )


def assert_replays(trace: Trace) -> None:
    assert all(event.same for event in replay(trace))


def state_of(result: Result) -> dict[str, Any]:
    return graph_progress(result.trace).state


def test_functions_an_agent_and_a_join_reach_the_answer_and_replay_without_any_code() -> None:
    ledger: list[str] = []
    result = refund_graph(ledger).agent().run_sync('{"order_id": "B-1"}')
    assert (result.status, result.answer, ledger) == ("completed", "paid 20 (B-1)", ["B-1"])
    assert state_of(result)["notes"] == ["history of B-1", "stock for B-1"]
    visits = graph_progress(result.trace).visits
    assert visits == {"look_up": 1, "history": 1, "stock": 1, "judge": 1, "pay": 1}
    assert len({call.requested.step for call in list(result.trace.calls.values())[1:3]}) == 1  # in parallel
    assert result.trace.model_calls == 0, "the graph decides, and only its agent asks a model"
    assert_replays(result.trace)


def test_a_person_node_waits_without_a_process_and_is_answered_by_a_resume() -> None:
    ledger: list[str] = []
    journal = MemoryJournal()
    waiting = refund_graph(ledger).agent(journal=journal).run_sync('{"order_id": "A-17"}')
    assert (waiting.status, ledger) == ("waiting", [])
    result = refund_graph(ledger).agent(journal=journal, approve=yes).resume_sync(waiting.run_id)
    assert (result.status, result.answer, ledger) == ("completed", "paid 120 (A-17)", ["A-17"])
    assert_replays(result.trace)


def test_a_refusal_is_the_answer_no() -> None:
    ledger: list[str] = []
    agent = refund_graph(ledger).agent(approve=lambda _: ApprovalAnswer(approved=False, by="ann"))
    result = agent.run_sync('{"order_id": "A-17"}')
    assert (result.status, state_of(result)["approved"], ledger) == ("completed", False, [])


class Reply(BaseModel):
    verdict: Literal["pay", "wait"]


def test_a_person_fills_in_fields_and_is_asked_again_for_an_answer_that_lacks_them() -> None:
    graph = Graph(
        state=Order,
        nodes={"ask": Person("And {order_id}?", fields=Reply)},
        edges={START: "ask", "ask": END},
        answer="{verdict}",
    )
    answers = iter([None, {"verdict": "wait"}])
    agent = graph.agent(approve=lambda _: ApprovalAnswer(approved=True, by="ann", args=next(answers)))
    result = agent.run_sync('{"order_id": "A"}')
    assert (result.status, result.answer, len(result.trace.calls)) == ("completed", "wait", 2)
    assert_replays(result.trace)


def counting(**node: Any) -> Graph:
    return Graph(
        state=Order,
        nodes={"count": Node(one_more, writes="rounds", **node), "late": Node(history, writes="verdict")},
        edges={START: "count", "count": {"rounds >= 5": "late", "else": "count"}, "late": END},
    )


def test_a_loop_ends_by_its_condition_or_at_its_limit_and_a_resume_goes_on() -> None:
    assert state_of(counting(max_visits=9).agent().run_sync("{}"))["rounds"] == 5
    agent = counting(max_visits=3).agent(journal=MemoryJournal())
    result = agent.run_sync("{}")
    assert (result.status, result.trace.finished and result.trace.finished.limit) == (
        "max_steps_exceeded",
        "max_visits",
    )
    assert "'count' was entered 3 times" in result.reason
    assert_replays(result.trace)
    assert agent.resume_sync(result.run_id).status == "completed"
    other = counting(max_visits=3, at_limit="late").agent().run_sync('{"order_id": "x"}')
    assert (other.status, state_of(other)["verdict"]) == ("completed", "history of x")


def test_exit_ends_the_run_while_other_branches_have_more_to_do() -> None:
    graph = Graph(
        state=Order,
        nodes={
            "a": Node(history, writes="verdict"),
            "b": Node(one_more, writes="rounds"),
            "c": Node(one_more, writes="rounds"),
        },
        edges={START: ["a", "b"], "a": {"order_id == 'x'": EXIT, "else": END}, "b": "c", "c": END},
    )
    left = graph.agent().run_sync('{"order_id": "x"}')
    assert state_of(left)["rounds"] == 1
    assert left.reason == "The graph reached its end; nodes run: 2."
    assert state_of(graph.agent().run_sync('{"order_id": "y"}'))["rounds"] == 2


@tool(tier="read")
def broken(order_id: str) -> str:
    """Fail."""
    raise ToolError("no connection", code="offline", retryable=True)


def test_a_failure_is_retried_then_followed_by_on_error_or_ends_the_run_at_its_node() -> None:
    def graph(**node: Any) -> Graph:
        told = Node(history, args={"order_id": "{error.node}: {error.code}"}, writes="verdict")
        nodes = {"try": Node(broken, writes="notes", **node), "tell": told}
        return Graph(
            state=Order, nodes=nodes, edges={START: "try", "try": {"amount < 0": "tell", "else": END}, "tell": END}
        )

    result = graph(on_error="tell", retries=1).agent().run_sync("{}")
    assert (result.status, state_of(result)["verdict"]) == ("completed", "history of try: offline")
    assert len(result.trace.calls) == 3
    agent = graph().agent(journal=MemoryJournal())
    failed = agent.run_sync("{}")
    assert failed.status == "too_many_errors"
    assert "'try' failed: offline: no connection" in failed.reason
    again = agent.resume_sync(failed.run_id)  # it is tried again, and nothing before it
    assert (again.status, len(again.trace.calls)) == ("too_many_errors", 2)
    assert_replays(again.trace)


def test_a_result_or_a_task_that_does_not_fit_the_state_is_a_clear_end() -> None:
    @tool(tier="read")
    def wrong(order_id: str) -> dict[str, Any]:
        """Return something else."""
        return {"sum": "a lot"}

    graph = Graph(
        state=Order, nodes={"wrong": Node(wrong, writes={"amount": "sum"})}, edges={START: "wrong", "wrong": END}
    )
    result = graph.agent().run_sync("{}")
    assert "'wrong' failed: its result does not fit the state: amount must be number" in result.reason
    for task, text in (("hello", "JSON object"), ('{"id": 1}', "no field 'id'"), ('{"amount": "x"}', "amount must be")):
        refused = graph.agent().run_sync(task)
        assert (refused.status, text in refused.reason) == ("unreadable", True)


def test_limits_end_the_run_and_are_reported() -> None:
    result = counting(max_visits=9).agent(limits=Limits(max_steps=2)).run_sync("{}")
    assert (result.status, len(result.trace.calls)) == ("max_steps_exceeded", 2)
    assert_replays(result.trace)


def test_a_run_keeps_its_graph_when_the_agent_has_another_one(caplog: pytest.LogCaptureFixture) -> None:
    ledger: list[str] = []
    journal = MemoryJournal()
    waiting = refund_graph(ledger).agent(journal=journal).run_sync('{"order_id": "A-17"}')
    changed = refund_graph(ledger)
    object.__setattr__(changed, "edges", {**changed.edges, "manager": END})
    result = changed.agent(journal=journal, approve=yes).resume_sync(waiting.run_id)
    assert (result.status, ledger) == ("completed", ["A-17"])
    assert "the graph that it began with" in caplog.text


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_any_boundary_it_is_resumed_and_nothing_is_done_twice(moment: Moment) -> None:
    ledger: list[str] = []
    count = 0
    for restart in restarts(
        lambda: refund_graph(ledger).agent(approve=yes),
        '{"order_id": "A-17"}',
        effects=lambda: ledger,
        reset=ledger.clear,
        moments=[moment],
    ):
        assert_effect_once(restart)
        result, count = restart.result, count + 1
        assert (result.status, result.answer) == ("completed", "paid 120 (A-17)"), restart.point
        assert_replays(result.trace)
    assert count >= 10
    assert ledger == ["A-17"]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 6))
    names = [f"n{number}" for number in range(count)]
    target = st.sampled_from([*names, END, EXIT])
    targets = st.one_of(target, st.lists(target, min_size=1, max_size=3, unique=True))
    edges: dict[str, Any] = {START: draw(targets)}
    nodes = {}
    for name in names:
        edges[name] = draw(st.one_of(targets, st.fixed_dictionaries({"rounds > 3": targets, "else": targets})))
        limit = draw(st.one_of(st.none(), st.integers(1, 3)))
        at_limit = draw(st.one_of(st.none(), target)) if limit else None
        nodes[name] = Node(one_more, writes="rounds", max_visits=limit, at_limit=at_limit)
    return Graph(state=Order, nodes=nodes, edges=edges, merge={"rounds": "last"})


@given(graphs())
def test_a_graph_that_passes_its_check_ends_or_reaches_a_limit_of_its_loops(graph: Graph) -> None:
    try:
        agent = graph.agent()
    except GraphError:
        return
    result = agent.run_sync("{}")
    assert result.status in ("completed", "max_steps_exceeded")
    assert_replays(result.trace)
    assert draw_mermaid(graph.workflow, result.trace).startswith("flowchart TD")


def problem_of(**changes: Any) -> str:
    settings: dict[str, Any] = {
        "state": Order,
        "nodes": {"a": Node(history, writes="verdict"), "b": Node(stock, writes="verdict")},
        "edges": {START: "a", "a": "b", "b": END},
    }
    with pytest.raises(GraphError) as caught:
        Graph(**{**settings, **changes}).check()
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"edges": {START: "a", "a": END, "b": END}}, "No path leads to 'b'. Add an edge to it"),
        ({"edges": {START: "a", "a": "b"}}, "Nothing follows 'b'. Add an edge: edges['b']"),
        ({"edges": {START: "a", "a": "x", "b": END}}, "leads to 'x', which is no node. Known nodes: a, b"),
        ({"edges": {START: "a", "a": {"amount > 1": "b"}, "b": END}}, 'where none of its conditions holds. Add "else"'),
        ({"edges": {START: "a", "a": {"sum > 1": "b", "else": END}, "b": END}}, "reads 'sum', which is no field"),
        (
            {"edges": {START: "a", "a": {"order_id.total > 1": "b", "else": END}, "b": END}},
            "'a': the condition 'order_id.total > 1' reads 'order_id.total', and there is no such part in the field",
        ),
        ({"answer": "{notes[0].text}"}, "the answer '{notes[0].text}' reads 'notes[0].text', and there is no such"),
        (
            {"edges": {START: "a", "a": {"notes == [] or not (amount > 'x')": "b", "else": END}, "b": END}},
            "compares 'amount', which is number, with string",
        ),
        (
            {"edges": {START: "a", "a": {"order_id < rounds": "b", "else": END}, "b": END}},
            "which is string, with integer",
        ),
        ({"edges": {START: "a", "a": {"amount >": "b", "else": END}, "b": END}}, "cannot be read"),
        ({"edges": {START: "a", "a": {"exec('x')": "b", "else": END}, "b": END}}, "is not allowed in a condition"),
        ({"edges": {START: "a", "a": "b", "b": "a"}}, "the graph cannot end. Add a branch to END"),
        ({"edges": {START: "a", "a": "b", "b": {"approved": END, "else": "a"}}}, "has no limit. Give a node in it one"),
        (
            {"edges": {START: ["a", "b"], "a": END, "b": END}},
            "'a' and 'b' may run in parallel, and both write 'verdict'",
        ),
        ({"nodes": {"a": Node(history, writes="verdict"), "b": "no_such"}}, "no_such"),
        ({"nodes": {"a": Node(history, writes="sum"), "b": look_up}}, "'a' writes 'sum', which is no field"),
        (
            {"nodes": {"a": Node(one_more, writes="approved"), "b": look_up}},
            "'a' writes integer to 'approved', which is boo",
        ),
        ({"nodes": {"a": history, "b": look_up}}, "'a': the result of 'history' has no field"),
        (
            {"nodes": {"a": Node(look_up, args={"order_id": "{amount}"}), "b": look_up}},
            "and the field 'amount' is number",
        ),
        ({"nodes": {"a": Node(look_up, args={"x": 1}), "b": look_up}}, "takes no argument 'x'"),
        ({"merge": {"amount": "append"}}, "needs a list"),
        ({"input": "text"}, "The input is 'text'"),
        ({"answer": "{nothing}"}, "reads 'nothing'"),
    ],
)
def test_each_mistake_in_a_graph_names_its_node_and_the_way_out(changes: dict[str, Any], text: str) -> None:
    try:
        problem = problem_of(**changes)
    except ConfigError as error:  # an unknown name of a tool is found where tools are
        problem = str(error)
    assert text in problem


def test_conditions_that_may_hold_pass_the_check() -> None:
    conditions = ["amount >= rounds", "notes[0] == 'x'", "len(notes) > 1", "'a' < order_id", "error.code == 'x'"]
    edges: dict[str, Any] = {START: "a", "a": {**dict.fromkeys(conditions, "b"), "else": END}, "b": END}
    nodes = {"a": Node(history, writes="verdict"), "b": Node(stock, writes="verdict")}
    Graph(state=Order, nodes=nodes, edges=edges, answer="{notes[0]} {order_id}").check()


def test_the_drawing_marks_the_path_of_a_run() -> None:
    graph = counting(max_visits=9)
    plain, marked = graph.mermaid(), graph.mermaid(graph.agent().run_sync("{}").trace)
    assert 'n0["count<br/>≤ 9"]' in plain
    assert "linkStyle" not in plain
    assert 'n0["count ×5<br/>≤ 9"]' in marked
    assert "class n0,n1 passed" in marked


def test_an_effect_whose_result_is_lost_is_never_taken_for_a_value() -> None:
    ledger: list[str] = []

    @tool(tier="draft", probe=lambda order_id: order_id in ledger)
    def book(order_id: str) -> str:
        """Book something."""
        ledger.append(order_id)
        return "booked"

    graph = Graph(state=Order, nodes={"book": Node(book, writes="verdict")}, edges={START: "book", "book": END})
    reasons = []
    for restart in restarts(
        graph.agent, '{"order_id": "A"}', effects=lambda: ledger, reset=ledger.clear, moments=["before"]
    ):
        assert_effect_once(restart)
        result = restart.result
        assert state_of(result)["verdict"] == ("booked" if result.status == "completed" else "")
        reasons.append(result.reason)
    assert any("its call happened, and its result" in reason for reason in reasons), reasons
