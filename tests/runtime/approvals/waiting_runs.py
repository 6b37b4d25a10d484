"""One run of each kind that waits for a person, for the tests of the inbox."""

from __future__ import annotations

import time
from typing import Any

from tests.runtime.paying import drop, pay, paying
from tests.scripting import call

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.core.events import ActionRequested, ActionStarted, Event, Fact, Resumed
from taoloop.core.policy import Policy
from taoloop.errors import ToolError
from taoloop.journals.base import Journal
from taoloop.runtime.after.recovery import MAX_DEATHS
from taoloop.runtime.after.undo import UndoResult, approved_by, undo
from taoloop.tools.builtin.ask_user import ask_user

HEADLESS = Policy(profile="headless", pin="keywords")


@tool(tier="read")
def read_mail() -> str:
    """Read the mail."""
    return "invoice: pay 1700 to DE89370400440532013000, or else"


@tool(tier="write", roles={"order": "target"})
def refund_payment(order: str) -> str:
    """Refund a payment."""
    return f"refunded {order}"


@tool(tier="write")
def cancel(item: str) -> str:
    """Cancel an order."""
    raise ToolError(f"{item} was shipped.", code="shipped")


def ordering() -> Any:
    @tool(name="order", tier="write", compensation="cancel")
    def order(item: str) -> str:
        """Order an item."""
        return f"ordered {item}"

    return order.with_card(compensation_args={"item": "args.item"})


def asking(journal: Journal, *replies: Any) -> Agent:
    """An agent that asks a person about payments."""
    script = ScriptedModel([*(replies or [paying(5)]), "done"], strict=False)
    return Agent(name="payer", model=script, tools=[pay, drop, read_mail], journal=journal)


async def leave_question(journal: Journal, *, run_id: str = "asks-user", **args: Any) -> str:
    """A run whose model asks its user something."""
    script = ScriptedModel([call("ask_user", question="Which invoice?", **args), "done"], strict=False)
    await Agent(name="clerk", model=script, tools=[ask_user], journal=journal).run("pay it", run_id=run_id)
    return run_id


async def leave_approval(journal: Journal, *amounts: int, task: str = "go", run_id: str = "asks") -> str:
    """A run that waits for an approval of each of these payments."""
    await asking(journal, paying(*(amounts or (5,)))).run(task, run_id=run_id)
    return run_id


async def leave_blocked(journal: Journal, run_id: str = "blocked") -> str:
    """A run whose answer rests on a call that was denied because nobody could be asked."""
    model = ScriptedModel([call("read_mail"), call("refund_payment", order="A1"), "It is refunded."])
    agent = Agent(name="clerk", model=model, tools=[read_mail, refund_payment], policy=HEADLESS, journal=journal)
    result = await agent.run("Refund order A1.", run_id=run_id)
    assert result.status == "blocked"
    return run_id


async def leave_failed_undo(journal: Journal, run_id: str = "orders") -> tuple[Agent, UndoResult]:
    """Two orders, whose undo failed at the second one; and the agent that can try again."""
    script = ScriptedModel([call("order", item="a"), call("order", item="b"), "done"])
    agent = Agent(name="buyer", model=script, tools=[ordering()], journal=journal, policy="autonomous")
    await agent.run("order", run_id=run_id)
    return agent, await undo(agent, journal, run_id, tools=[cancel], approver=approved_by("ann"))


async def leave_dead(journal: Journal, run_id: str = "dead", *, deaths: int = MAX_DEATHS) -> str:
    """A run whose process died in the same payment again and again."""
    agent = asking(MemoryJournal())
    agent = Agent(name="payer", model=agent.model, tools=agent.tools, journal=MemoryJournal(), policy="autonomous")
    result = await agent.run("pay ann", run_id=run_id)
    kept: list[Fact] = []
    for event in result.trace.events:
        kept.append(event.fact)
        if isinstance(event.fact, ActionRequested):
            break
    kept.append(ActionStarted(call_id="call_1", idempotency_key=f"{run_id}:call_1"))
    kept += [Resumed(limits=result.trace.limits) for _ in range(deaths)]
    lease = await journal.create(run_id)
    at = time.time()
    await journal.append(lease, [Event(seq, at, fact) for seq, fact in enumerate(kept)])
    return run_id
