"""Another model, prompt or policy on stored runs: compared step by step, until they part, without any effect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.after.test_replay import SCRIPTS, recorded
from tests.runtime.planning import TASK, Person, Shop, planner
from tests.scripting import call
from tests.strategies.test_self_consistency import run as votes, says

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ModelReplied
from taoloop.core.message import ModelReply
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, ModelUnavailable, RunNotFound
from taoloop.evals.stored_runs.counterfactual import TriedChange, require_change, try_change
from taoloop.evals.stored_runs.divergences import Counterfactual, RunTrial
from taoloop.evals.stored_runs.run_selection import RunSelection, selected_runs
from taoloop.runtime import mark_run

LEDGER: list[Path] = []


@tool(tier="read")
def price(item: str, count: int = 1) -> int:
    """The price of an item."""
    _write("price")
    return 3 * count


@tool(tier="write")
def order(item: str) -> str:
    """Order an item."""
    _write("order")
    return f"ordered {item}"


def _write(line: str) -> None:
    """What the tools do to the world: a line in a file that anybody can see."""
    with LEDGER[0].open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


PRICE, ORDER = call("price", item="tea"), call("order", item="tea")


@pytest.fixture
def journal(tmp_path: Path) -> MemoryJournal:
    LEDGER[:] = [tmp_path / "ledger.txt"]
    journal = MemoryJournal()
    agent(journal, [PRICE, ORDER, "Ordered for 3."]).run_sync("Order tea.")
    assert LEDGER[0].read_text(encoding="utf-8") == "price\norder\n"
    return journal


def agent(journal: MemoryJournal | None = None, replies: Sequence[Any] = (), **options: Any) -> Agent:
    model = ScriptedModel(replies, strict=False)
    return Agent(model=model, tools=[price, order], journal=journal, approve=lambda _: True, **options)


def tried(journal: MemoryJournal, change: TriedChange, **options: Any) -> Counterfactual:
    return asyncio.run(try_change(change, selected_runs(journal, RunSelection()), journal, **options))


def by_model(journal: MemoryJournal, *replies: Any) -> RunTrial:
    [trial] = tried(journal, TriedChange(model=ScriptedModel(replies, strict=False))).trials
    return trial


def test_nothing_is_called_asked_or_written_whatever_the_model_wants(journal: MemoryJournal) -> None:
    """The tools would write to the ledger if they were called, and the journal if something were stored."""
    before = LEDGER[0].read_text(encoding="utf-8")
    [row] = asyncio.run(journal.runs())
    events = asyncio.run(journal.load(row.run_id))
    strict = Policy(profile="read-only")
    replacement = ScriptedModel([PRICE, call("order", item="coffee"), ORDER], strict=False)
    new_agent = agent(None, [PRICE, ORDER, "Ordered for 3."], instructions="Be quick.", policy=strict)
    for change in (
        TriedChange(model=replacement),
        TriedChange(policy=strict),
        TriedChange(agent=new_agent, model=ScriptedModel([PRICE, ORDER, "Other."])),
    ):
        assert tried(journal, change).trials[0].outcome == "diverged"
    assert LEDGER[0].read_text(encoding="utf-8") == before
    assert asyncio.run(journal.load(row.run_id)) == events
    assert len(asyncio.run(journal.runs())) == 1


@pytest.mark.parametrize(
    ("replies", "step", "kind", "what"),
    [
        ([ORDER], 1, "tool", "price → order"),
        ([PRICE, call("order", item="coffee")], 2, "arguments", "order(item)"),
        (["3."], 1, "early_answer", "price"),
        ([PRICE, ORDER, PRICE], 3, "further_calls", "price"),
        ([PRICE, ORDER, "It failed."], 3, "answer", ""),
        (["", ""], 1, "unreadable", "empty"),
    ],
)
def test_the_first_decision_that_differs_ends_the_comparison(
    journal: MemoryJournal, replies: list[Any], step: int, kind: str, what: str
) -> None:
    trial = by_model(journal, *replies)
    assert trial.outcome == "diverged"
    assert trial.divergence is not None
    assert (trial.divergence.step, trial.divergence.kind, trial.divergence.what) == (step, kind, what)
    assert trial.steps == step - 1


def test_the_same_decisions_are_the_same_in_other_words(journal: MemoryJournal) -> None:
    """Lossless corrections of arguments, the case of an answer and a reply that is repaired make no difference."""
    assert by_model(journal, PRICE, ORDER, "ordered, for 3").outcome == "same"
    assert by_model(journal, call("price", item="tea"), ORDER, "Ordered for 3.").steps == 3


class Garbled:
    """A model whose first reply cannot be read."""

    spec, dialect = "garbled", "native"

    def __init__(self) -> None:
        self.purposes: list[str] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.purposes.append(request.purpose)
        if len(self.purposes) == 1:
            return ModelReply(text="", model=self.spec)
        if len(self.purposes) > 2:
            raise ModelUnavailable("down")
        return await ScriptedModel([PRICE] * 9, strict=False).complete(request)

    def check_used(self, replies: int) -> None: ...

    async def close(self) -> None: ...


def test_a_reply_is_repaired_as_in_a_run_and_a_failing_model_decides_nothing(journal: MemoryJournal) -> None:
    model = Garbled()
    result = tried(journal, TriedChange(model=model))
    [trial] = result.trials
    assert model.purposes == ["decide", "repair", "decide"]
    assert (trial.outcome, trial.reason) == ("failed", "down")
    assert result.compared == ()
    assert result.same_rate.value is None  # none is not zero


def test_a_policy_is_tried_without_asking_a_model(journal: MemoryJournal) -> None:
    [trial] = tried(journal, TriedChange(policy=Policy(profile="read-only"))).trials
    assert trial.divergence is not None
    assert trial.divergence.kind == "verdict"
    assert trial.divergence.what == "order: ask → deny"
    [same] = tried(journal, TriedChange(policy=Policy())).trials
    assert same.outcome == "same"


def test_a_prompt_is_tried_on_the_recorded_observations(journal: MemoryJournal) -> None:
    prompts: list[str] = []

    class Recorder(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            prompts.append("\n".join(message.content for message in request.messages))
            return await super().complete(request)

    model = Recorder([PRICE, ORDER, "Ordered for 3."])
    new = agent(None, ["unused"], instructions="Never overpay.")
    [trial] = tried(journal, TriedChange(agent=new, model=model)).trials
    assert trial.outcome == "same"
    assert all("Never overpay." in prompt for prompt in prompts)
    assert "ordered tea" in prompts[2]
    [other] = tried(journal, TriedChange(agent=agent(name="clerk"), model=model)).trials
    assert (other.outcome, other.reason) == ("left_out", "It is a run of the agent 'agent'.")


def test_runs_are_grouped_by_what_differs_with_the_marks_of_people(journal: MemoryJournal) -> None:
    agent(journal, [PRICE, "3."]).run_sync("What is the price of tea?")
    agent(journal, ["Hello."]).run_sync("Say hello.")
    runs = asyncio.run(journal.runs())
    asyncio.run(mark_run(journal, runs[1].run_id, "wrong"))
    model = ScriptedModel(["Hello."] * 9, strict=False)
    result = tried(journal, TriedChange(model=model), described={"model": "new"})
    assert [trial.outcome for trial in result.trials] == ["same", "diverged", "diverged"]
    [group] = result.groups
    assert group.text() == "answers instead of calling price"
    assert group.marks == {"wrong": 1, "": 1}
    assert result.same_rate.value == pytest.approx(1 / 3)
    record = result.to_json()
    assert record["groups"][0]["marks"] == {"wrong": 1, "unmarked": 1}
    assert record["runs"] == {"same": 1, "diverged": 2, "failed": 0, "left_out": 0}


def test_a_run_that_cannot_be_read_is_reported_as_it_is(journal: MemoryJournal) -> None:
    async def runs() -> AsyncIterator[Trace]:
        yield Trace("gone", await journal.load("gone"))

    with pytest.raises(RunNotFound, match="gone"):
        asyncio.run(try_change(TriedChange(policy=Policy()), runs(), journal))


def test_the_limit_of_cost_ends_the_asking(journal: MemoryJournal) -> None:
    model = ScriptedModel([{**PRICE, "cost_usd": 0.02}, ORDER], strict=False)
    result = tried(journal, TriedChange(model=model), max_cost_usd=0.01)
    assert result.cost_usd == pytest.approx(0.02)
    assert (result.trials[0].outcome, result.trials[0].steps) == ("left_out", 1)
    with pytest.raises(ConfigError, match="There is nothing to try"):
        require_change(TriedChange())


class Again:
    """A model that gives the recorded replies of a run again."""

    spec, dialect = "again", "native"

    def __init__(self, trace: Trace) -> None:
        self._replies = [event.fact for event in trace if isinstance(event.fact, ModelReplied)]

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = self._replies[sum(isinstance(event.fact, ModelReplied) for event in request.trace)]
        return ModelReply(text=reply.text, tool_calls=reply.tool_calls, finish_reason=reply.finish_reason)

    def check_used(self, replies: int) -> None: ...

    async def close(self) -> None: ...


HANDLES = Policy(observations="handles")
RUNS: dict[str, Callable[[], Trace]] = {
    **{f"react: {name}": partial(recorded, name) for name in SCRIPTS},
    "votes": lambda: votes("cot_sc:n=3", says("a"), "nothing readable", says("A")).trace,
    "plan": lambda: planner(Shop(), approve=Person()).run_sync(TASK).trace,
    "reflection": lambda: agent(None, [PRICE, "3.", "NONE"], strategy="reflect").run_sync("What is the price?").trace,
    "handles": lambda: agent(None, [PRICE, "It is {obs:call_1}."], policy=HANDLES).run_sync("The price?").trace,
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_the_same_with_the_replies_that_it_had(name: str, tmp_path: Path) -> None:
    LEDGER[:] = [tmp_path / "ledger.txt"]
    trace = RUNS[name]()

    async def runs() -> AsyncIterator[Trace]:
        yield trace

    [trial] = asyncio.run(try_change(TriedChange(model=Again(trace)), runs(), MemoryJournal())).trials
    assert (trial.outcome, trial.divergence, trial.reason) == ("same", None, "")
