"""What a key may still use: refused at once when it is used up, and never kept waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.serve.gateway.conftest import agent, config_of, gateway, until, upstream

from taoloop import Agent, MemoryJournal
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, Fact, ModelReplied, Observed, RunStarted
from taoloop.core.message import Usage
from taoloop.errors import Refused
from taoloop.journals.costs import CostRow, cost_rows
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.serve.gateway.a2a.push_configs import PushConfigs
from taoloop.serve.gateway.auth.keys import ApiKey, new_key
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.model import ServedAgent, ServerLimits
from taoloop.serve.gateway.observe.metrics import Metrics
from taoloop.serve.gateway.observe.readiness import StorageProbe
from taoloop.serve.gateway.quotas import Quotas, RunAccounts, RunRecorder, late_warnings
from taoloop.serve.gateway.repeats.ledger import RequestLedger
from taoloop.serve.gateway.shared.conversations import Conversations
from taoloop.serve.gateway.shared.database import GatewayDatabase
from taoloop.testing import FakeClock

TEN = datetime(2027, 1, 15, 10, tzinfo=UTC).timestamp()


def key(name: str = "shop", **limits: Any) -> ApiKey:
    return ApiKey(name=name, digest=new_key(name)[1].digest, **limits)


def made(clock: FakeClock | None = None, *, spent: list[CostRow] | None = None, **limits: Any) -> Quotas:
    return Quotas(ServerLimits(**limits), spent=spent or [], clock=clock or FakeClock(TEN))


def use(allowances: Quotas, key: ApiKey | None, **used: Any) -> None:
    """A whole run: it enters, uses something, and leaves."""
    allowances.enter(key)
    allowances.book(key, **used)
    allowances.leave(key)


def record(allowances: Quotas, key: ApiKey | None) -> AbstractContextManager[RunRecorder]:
    database, clock = GatewayDatabase(), FakeClock(TEN)
    accounts = RunAccounts(
        quotas=allowances,
        metrics=Metrics(),
        ledger=RequestLedger(database, clock),
        conversations=Conversations(database, clock),
        push_configs=PushConfigs(database, clock),
        storage=StorageProbe(MemoryJournal()),
    )
    return accounts.record_run(ServedAgent(name="a", agent=Agent(model="offline")), key, "r")


def refused(enter: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as raised:
        enter()
    return raised.value


def test_a_key_without_limits_may_do_anything() -> None:
    allowances = made()
    for _ in range(100):
        use(allowances, key(), tokens=10**9, cost_usd=10.0**6)
        use(allowances, None)
    assert allowances.active_runs == 0


def test_requests_of_a_minute_are_counted_and_the_next_is_told_when_to_come() -> None:  # S3-46
    clock = FakeClock(TEN)
    allowances, shop = made(clock), key(requests_per_minute=2)
    use(allowances, shop)
    clock.advance(20)
    use(allowances, shop)
    clock.advance(10)
    error = refused(lambda: allowances.enter(shop))
    assert (error.why, error.retry_after_s) == ("requests", 30.0)
    assert "2 requests per minute" in error.message
    clock.advance(29)
    assert refused(lambda: allowances.enter(shop)).retry_after_s == 1.0
    clock.advance(1)
    use(allowances, shop)
    assert refused(lambda: allowances.enter(shop)).retry_after_s == 20.0


def test_one_key_does_not_use_up_what_is_of_another() -> None:
    allowances = made()
    one, other = key("one", requests_per_minute=1), key("other", requests_per_minute=1)
    allowances.enter(one)
    allowances.enter(other)
    assert refused(lambda: allowances.enter(one)).why == "requests"


def test_a_refused_request_counts_for_nothing() -> None:
    allowances, shop = made(max_runs=1), key(requests_per_minute=1)
    allowances.enter(None)
    for _ in range(5):
        assert refused(lambda: allowances.enter(shop)).why == "runs"
    allowances.leave(None)
    allowances.enter(shop)


@given(st.lists(st.floats(min_value=0, max_value=40), max_size=60), st.integers(min_value=1, max_value=5))
def test_no_minute_ever_holds_more_requests_than_allowed(gaps: list[float], allowed: int) -> None:
    clock = FakeClock(TEN)
    allowances, shop = made(clock), key(requests_per_minute=allowed)
    taken: list[float] = []
    waits: list[float] = []
    for gap in gaps:
        clock.advance(gap)
        try:
            use(allowances, shop)
        except Refused as error:
            waits.append(error.retry_after_s)
        else:
            taken.append(clock.tick())
    assert all(0 < wait <= 60 for wait in waits)
    for at in taken:
        assert sum(at <= other < at + 59.999 for other in taken) <= allowed


def test_tokens_are_booked_afterwards_and_who_overdrew_waits_until_there_is_room() -> None:
    clock = FakeClock(TEN)
    allowances, shop = made(clock), key(tokens_per_minute=100)
    use(allowances, shop, tokens=60)
    clock.advance(30)
    use(allowances, shop, tokens=500)  # there was room for one more token, so it went through
    error = refused(lambda: allowances.enter(shop))
    assert (error.why, error.retry_after_s) == ("tokens", 60.0)
    clock.advance(59)
    assert refused(lambda: allowances.enter(shop)).retry_after_s == 1.0
    clock.advance(1)
    use(allowances, shop)


def test_tokens_count_for_who_comes_while_the_run_is_still_under_way() -> None:
    allowances, shop = made(), key(tokens_per_minute=100, usd_per_day=1.0)
    allowances.enter(shop)
    allowances.book(shop, tokens=100, cost_usd=0.5)
    assert refused(lambda: allowances.enter(shop)).why == "tokens"
    allowances.book(shop, tokens=1, cost_usd=0.25)
    allowances.leave(shop)
    assert allowances.spent_today("shop") == 0.75


def test_events_are_booked_as_they_happen_even_if_the_run_is_cut_off() -> None:
    allowances, shop = made(), key(usd_per_day=1.0, tokens_per_minute=100)
    used = Usage(input_tokens=30, output_tokens=10)
    facts: list[Fact] = [
        RunStarted(task="t", agent=AgentSpec(), nonce="n"),
        ModelReplied(step=1, purpose="decide", text="", decision=None, usage=used, cost_usd=0.25),
        Observed(call_id="call_1", ok=True, output="x"),
        Observed(call_id="call_2", ok=True, output="x", child="r.2", usage=used, cost_usd=None),
    ]
    with record(allowances, shop) as recorder:
        for seq, fact in enumerate(facts):
            recorder.on_event(Event(seq, TEN, fact))
    assert allowances.spent_today("shop") == 0.25
    assert refused(lambda: allowances.enter(key(tokens_per_minute=80))).why == "tokens"
    use(allowances, key(tokens_per_minute=81))


def test_runs_at_once_are_bounded_in_all_and_per_key() -> None:
    allowances = made(max_runs=3, max_runs_per_key=2)
    shop = key("shop")
    allowances.enter(shop)
    allowances.enter(shop)
    error = refused(lambda: allowances.enter(key("shop")))
    assert (error.why, error.retry_after_s) == ("runs", 1.0)
    assert "2 active runs" in error.message
    allowances.enter(None)
    assert "busy" in refused(lambda: allowances.enter(key("other"))).message
    allowances.leave(shop)
    assert allowances.active_runs == 2
    allowances.enter(key("other"))
    assert allowances.active_runs == 3


def test_a_turn_leaves_by_itself() -> None:
    allowances = made(max_runs=1)
    with pytest.raises(KeyError), record(allowances, None):
        raise KeyError(allowances.active_runs)
    assert allowances.active_runs == 0


def test_new_limits_hold_at_once_and_nothing_is_forgotten() -> None:
    allowances, shop = made(max_runs=8), key(requests_per_minute=2)
    allowances.enter(shop)
    allowances.limits = ServerLimits(max_runs=1)
    assert refused(lambda: allowances.enter(shop)).why == "runs"
    allowances.limits = ServerLimits(max_runs=8)
    allowances.enter(shop)
    assert refused(lambda: allowances.enter(shop)).why == "requests"


@pytest.mark.parametrize("changed", [1, 2, 3, 30])
def test_a_key_whose_limit_was_changed_has_not_been_forgiven_what_it_used(changed: int) -> None:
    allowances = made()
    before, after = key(requests_per_minute=2), key(requests_per_minute=changed)
    for shop in [before] * 2 + [after] * max(0, changed - 2):
        use(allowances, shop)
    assert refused(lambda: allowances.enter(after)).retry_after_s == 60.0


def test_tokens_of_a_run_that_began_under_another_limit_count() -> None:
    allowances = made()
    before = key(tokens_per_minute=100)
    allowances.enter(before)
    allowances.book(before, tokens=50)
    assert refused(lambda: allowances.enter(key(tokens_per_minute=40))).why == "tokens"


def test_the_budget_of_a_day_ends_at_midnight_utc() -> None:
    clock = FakeClock(TEN)
    allowances, shop = made(clock), key(usd_per_day=1.0)
    use(allowances, shop, cost_usd=0.99)
    use(allowances, shop, cost_usd=0.02)
    error = refused(lambda: allowances.enter(shop))
    assert (error.why, error.retry_after_s) == ("budget", 14 * 3600.0)
    clock.advance(14 * 3600)
    assert allowances.spent_today("shop") == 0.0
    use(allowances, shop)


def test_a_cost_that_nobody_knows_counts_as_nothing() -> None:
    allowances, shop = made(), key(usd_per_day=1.0)
    use(allowances, shop, cost_usd=None)
    assert allowances.spent_today("shop") == 0.0


def test_what_was_spent_today_survives_a_restart(tmp_path: Path) -> None:
    """The budget is that of the journal, whatever process wrote it; yesterday does not count."""

    async def run() -> list[CostRow]:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            for number, (at, cost) in enumerate([(TEN - 86_400, 9.0), (TEN - 60, 0.75), (TEN - 30, None)]):
                lease = await journal.create(f"r{number}")
                started = RunStarted(task="t", agent=AgentSpec(), nonce="n", labels={"key": "shop"})
                reply = ModelReplied(step=1, purpose="decide", text="", decision=None, cost_usd=cost)
                await journal.append(lease, [Event(0, at, started), Event(1, at, reply)])
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            return await cost_rows(journal, TEN - 10 * 3600)

    allowances = made(spent=asyncio.run(run()))
    assert allowances.spent_today("shop") == 0.75
    assert refused(lambda: allowances.enter(key(usd_per_day=0.75))).why == "budget"
    allowances.enter(key(usd_per_day=0.76))


def test_yesterdays_spending_is_left_out() -> None:
    allowances = made(spent=[CostRow(day="2027-01-14", key="shop", agent="a", cost_usd=5.0)])
    assert allowances.spent_today("shop") == 0.0


KEY = replace(new_key("shop")[1], usd_per_day=5.0)


OPENAI = {"OPENAI_API_KEY": "x"}


@pytest.mark.parametrize(
    ("model", "env", "key", "told"),
    [
        ("openai:gpt-4o-mini", OPENAI, KEY, False),
        ("openai:nobody-knows-it", OPENAI, KEY, True),
        ("openai:gpt-4o-mini", {**OPENAI, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, KEY, True),
        ("openai:nobody-knows-it", OPENAI, replace(KEY, usd_per_day=None), False),
        ("openai:nobody-knows-it", OPENAI, replace(KEY, agents=("another",)), False),
        ("openai:nobody-knows-it", OPENAI, replace(KEY, agents=("assistant",)), True),
        ("ollama:llama3", {}, KEY, False),
        ("offline", {}, KEY, False),
    ],
)
def test_a_model_without_a_price_is_told_to_who_has_a_budget(
    model: str, env: dict[str, str], key: ApiKey, told: bool
) -> None:
    config = config_of(Agent(model=model, env=env, name="assistant"), keys=(key,))
    found = list(late_warnings(config))
    assert len(found) == told
    for one in found:
        assert "shop" in one
        assert model in one
        assert one in config_summary(config)


def test_each_of_the_models_that_may_stand_in_is_looked_at() -> None:
    made = Agent(model="openai:gpt-4o-mini", fallback=["openai:nobody-knows-it"], env=OPENAI, name="assistant")
    [told] = late_warnings(config_of(made, keys=(KEY,)))
    assert "openai:nobody-knows-it" in told


def test_it_is_told_at_the_start_and_after_a_change() -> None:
    with upstream("Hello.") as server:
        config = config_of(agent(server), keys=(KEY,))
        with gateway(config, load=lambda: replace(config, port=0)) as running:
            assert len([text for text in running.said if "usd_per_day" in text]) == 1
            running.reload()
            until(lambda: len([text for text in running.said if "usd_per_day" in text]) == 2)
