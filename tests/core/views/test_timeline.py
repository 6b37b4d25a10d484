"""When a run was at work: spans from events, calls side by side, breaks for idle time, few bars for many spans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.core.views.every_fact import FACTS, events_of, reply, requested

from taoloop.core.events import (
    ActionStarted,
    ApprovalGiven,
    Event,
    Fact,
    Finished,
    InDoubt,
    Observed,
    Paused,
    Resumed,
)
from taoloop.core.views.timeline import MAX_BARS, MAX_LANES, Timeline, build_timeline

T0 = 1_800_000_000.0
DAY_S = 86_400.0


def timeline(*timed: tuple[float, Fact]) -> Timeline:
    return build_timeline(Event(seq, T0 + at, fact) for seq, (at, fact) in enumerate(timed))


def spans(drawn: Timeline, kind: str) -> list[tuple[str, float, float]]:
    return [
        (span.label, round(span.start - T0, 3), round(span.end - T0, 3))
        for row in drawn.rows
        if row.kind == kind
        for bar in row.bars
        for span in bar.spans
    ]


def observed(number: int, latency_s: float = 0.0, *, ok: bool = True) -> Observed:
    return Observed(call_id=f"call_{number}", ok=ok, output="", latency_s=latency_s)


def started(number: int, attempt: int = 1) -> ActionStarted:
    return ActionStarted(call_id=f"call_{number}", idempotency_key="k", attempt=attempt)


def test_spans_of_the_model_and_of_tools_come_from_the_events() -> None:
    drawn = timeline(
        (1.0, reply(1, latency_s=1.0)),
        (1.1, requested(1, verdict="allow")),
        (1.2, started(1)),
        (3.0, observed(1, 1.7)),
        (3.0, requested(2, tool="look", verdict="allow", tier="read")),
        (3.5, observed(2, 0.5)),
        (3.6, requested(3, verdict="deny")),
        (3.6, observed(3, ok=False)),
    )
    assert spans(drawn, "model") == [("small-1", 0.0, 1.0)]
    assert spans(drawn, "tool") == [("buy · call_1", 1.2, 3.0), ("look · call_2", 3.0, 3.5)]  # a denied call took none
    assert drawn.busy_s("tool") == pytest.approx(2.3)
    assert [row.bars[0].cost_usd for row in drawn.rows if row.kind == "model"] == [0.002]


def test_parallel_calls_are_side_by_side_and_bars_keep_their_order() -> None:
    drawn = timeline(
        (1.0, reply(1)),
        *((1.0, requested(number, verdict="allow")) for number in (1, 2, 3)),
        *((1.0, started(number)) for number in (1, 2, 3)),
        *((1.0 + number, observed(number)) for number in (1, 2, 3)),
        (4.5, requested(4, verdict="allow")),
        (4.5, started(4)),
        (5.0, observed(4)),
    )
    lanes = [[bar.spans[0].label for bar in row.bars] for row in drawn.rows if row.kind == "tool"]
    assert lanes == [["buy · call_1", "buy · call_4"], ["buy · call_2"], ["buy · call_3"]]
    for row in drawn.rows:
        ends = [bar.x + bar.width for bar in row.bars]
        assert all(end <= bar.x + 1e-9 for end, bar in zip(ends, row.bars[1:], strict=False))


def test_days_of_waiting_are_a_break_with_their_length_and_a_span_of_the_person() -> None:
    drawn = timeline(
        (2.0, reply(1, latency_s=2.0)),
        (2.0, requested(1)),
        (2.0, Paused(reason="ask", waiting_for=("call_1",))),
        (2.0 + 3 * DAY_S, ApprovalGiven(call_id="call_1", digest="d1", by="ann")),
        (2.5 + 3 * DAY_S, Resumed()),
        (2.5 + 3 * DAY_S, started(1)),
        (4.5 + 3 * DAY_S, observed(1, 2.0)),
        (4.5 + 3 * DAY_S, Finished(status="completed", answer="", reason="")),
    )
    assert [round(left_out.seconds / DAY_S) for left_out in drawn.breaks] == [3]
    assert spans(drawn, "person") == [("ann", 2.0, 2.0 + 3 * DAY_S)]
    model, tool = (next(row.bars[0] for row in drawn.rows if row.kind == kind) for kind in ("model", "tool"))
    assert model.width == pytest.approx(tool.width)
    assert model.width > 0.4  # two of four seconds at work, beside the break
    (left_out,) = drawn.breaks
    assert left_out.x == pytest.approx(model.x + model.width)
    assert tool.x + tool.width == pytest.approx(1.0)


def test_waiting_that_goes_on_lasts_until_now() -> None:
    events: list[Event] = [
        Event(0, T0, reply(1)),
        Event(1, T0, requested(1)),
        Event(2, T0, Paused(reason="", waiting_for=("call_1",))),
    ]
    (bar,) = [bar for row in build_timeline(events, now=T0 + DAY_S).rows if row.kind == "person" for bar in row.bars]
    assert bar.spans[0].is_open
    assert bar.busy_s == DAY_S


def test_attempts_of_a_call_are_spans_of_their_own() -> None:
    drawn = timeline(
        (1.0, requested(1, verdict="allow")),
        (1.0, started(1)),
        (2.0, InDoubt(call_id="call_1", reason="timeout")),
        (3.0, started(1, attempt=2)),
        (4.0, observed(1, 1.0)),
    )
    assert spans(drawn, "tool") == [("buy · call_1", 1.0, 2.0), ("buy · call_1", 3.0, 4.0)]
    assert [bar.ok for row in drawn.rows for bar in row.bars] == [False, True]


def long_run(steps: int) -> Iterator[Event]:
    for step in range(steps):
        at = T0 + 3 * step
        yield Event(3 * step, at + 1, reply(step + 1, cost_usd=0.001))
        yield Event(3 * step + 1, at + 1, requested(step + 1, verdict="allow"))
        yield Event(3 * step + 2, at + 2.5, observed(step + 1, 1.5))


def test_ten_thousand_steps_are_a_few_hundred_bars_that_leave_out_nothing() -> None:
    drawn = build_timeline(long_run(10_000))
    assert drawn.spans == 20_000
    assert 50 < drawn.bars <= MAX_BARS
    assert sum(len(bar.spans) for row in drawn.rows for bar in row.bars) == 20_000
    costs = [bar.cost_usd for row in drawn.rows if row.kind == "model" for bar in row.bars]
    assert sum(cost for cost in costs if cost is not None) == pytest.approx(10.0)
    assert all(0 <= bar.x <= bar.x + bar.width <= 1.000001 for row in drawn.rows for bar in row.bars)


def test_more_calls_at_once_than_lanes_share_them() -> None:
    drawn = timeline(
        *((0.0, requested(number, verdict="allow")) for number in range(30)),
        *((0.0, started(number)) for number in range(30)),
        *((1.0, observed(number)) for number in range(30)),
    )
    assert len([row for row in drawn.rows if row.kind == "tool"]) == MAX_LANES
    assert drawn.bars == 30


def test_costs_have_levels_up_to_the_most_expensive_bar() -> None:
    costs = (None, 0.0, 0.1, 0.26, 1.0)
    drawn = timeline(*((float(number), reply(number, cost_usd=cost)) for number, cost in enumerate(costs, 1)))
    assert [bar.cost_level for row in drawn.rows for bar in row.bars] == [0, 0, 1, 2, 4]


def test_a_slice_without_the_start_of_a_call_uses_its_latency() -> None:
    assert spans(timeline((5.0, observed(1, 2.0))), "tool") == [("call_1", 3.0, 5.0)]


def test_every_kind_of_event_and_none_at_all() -> None:
    assert build_timeline([]).rows == ()
    assert build_timeline(events_of(FACTS)).spans > 3


def test_a_clock_that_was_set_back_breaks_nothing() -> None:
    drawn = timeline((10.0, started(1)), (4.0, observed(1, 0.1)), (2.0, reply(1)))
    assert all(0 <= bar.x <= 1 and bar.width >= 0 for row in drawn.rows for bar in row.bars)
