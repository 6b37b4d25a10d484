"""The customer of tau2-bench: reads out the instructions of a task, or is played by a model.

The variable `TAU2_CUSTOMER` names the model. A customer who names an order, a user or a mail address of which neither
the instructions nor the question says anything has made it up. One whose model fails, is too slow, or says nothing in
words gives no answer. Both are noted in the world of the trial: they are the simulator's fault, not the agent's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import ModelRequest
from taoloop.core.events import RunStarted
from taoloop.core.message import Message
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, ModelTimeout, TaoError, ToolError
from taoloop.evals.suites.tau_checkout import in_first_person
from taoloop.evals.worlds import current_world
from taoloop.models.registry import resolve_model
from taoloop.runtime.engine.clock import within
from taoloop.tools.function import tool
from taoloop.translation import Translator, mark

translate = Translator("evals")

CUSTOMER = "TAU2_CUSTOMER"
"""The variable with the model that plays the customer."""
CUSTOMER_TIMEOUT = "TAU2_CUSTOMER_TIMEOUT_S"
"""The variable with the seconds after which that model gave no answer; without it, 60."""

_TIMEOUT_S = 60.0
_MOST_TIMEOUT_S = 600.0
_NAMED_IDS = re.compile(r"#W\d+|\b[a-z]+_[a-z]+_\d+\b|[\w.]+@[\w.]+\w")
"""Orders, users and mail addresses, as tau2-bench writes them."""
_WORD = re.compile(r"[^\W_]")
_REASON_CHARS = 200


def first_customer_state(instructions: str) -> dict[str, Any]:
    """The part of a trial's world that is the customer's."""
    return {"instructions": instructions, "made_up": [], "unanswered": []}


def require_customer() -> None:
    """Report what is wrong with the variables before anything is run.

    Raises:
        ConfigError: the model cannot be used, or the limit is no number of seconds.
    """
    _timeout_s()
    if spec := _spec():
        resolve_model(spec)


def stray_details(world: Mapping[str, Any]) -> list[str]:
    """How the customer of a trial strayed from their part; empty if they did not."""
    details = []
    if world["made_up"]:
        details.append(translate("the customer made up {names}", names=", ".join(world["made_up"])))
    if unanswered := world.get("unanswered"):  # earlier versions did not note it
        details.append(translate("the customer gave no answer: {reason}", reason=unanswered[0]))
    return details


@tool(tier="read", egress=False, timeout_s=_MOST_TIMEOUT_S + 30)
async def ask_customer(question: str) -> str:
    """Ask the customer something that they have not said yet.

    Args:
        question: The question.
    """
    state = current_world().state
    try:
        reply = await _customer_reply(state["instructions"], question)
    except TaoError as error:
        reason = str(error)[:_REASON_CHARS]
    except Exception as error:  # noqa: BLE001  # whatever a model does, it is not the agent's fault
        reason = f"{type(error).__name__}: {error}"[:_REASON_CHARS]
    else:
        if _WORD.search(reply):
            known = {*_NAMED_IDS.findall(state["instructions"]), *_NAMED_IDS.findall(question)}
            state["made_up"] += sorted(set(_NAMED_IDS.findall(reply)) - known)
            return reply
        reason = translate("the reply has no word: {reply!r}", reply=reply[:_REASON_CHARS])
    state.setdefault("unanswered", []).append(reason)
    raise ToolError(translate("The customer does not answer."))


async def _customer_reply(instructions: str, question: str) -> str:
    if not (spec := _spec()):
        return in_first_person(instructions)
    model, timeout_s = resolve_model(spec), _timeout_s()
    role = f"You play a customer. Keep to these instructions, and make nothing up:\n{instructions}"
    trace = Trace("customer")
    trace.add(RunStarted(task=question, agent=AgentSpec(name="customer", model=spec), nonce="customer"), 0.0)
    request = ModelRequest(
        task=question,
        trace=trace,
        messages=(Message(role="system", content=role), Message(role="user", content=question)),
        dialect="native",
        timeout_s=timeout_s,
    )

    def late(limit_s: float | None) -> ModelTimeout:
        return ModelTimeout(f"{spec} gave no reply within {limit_s:g} s.")

    try:
        return (await within(timeout_s, model.complete(request), late)).text
    finally:
        await model.close()


def _spec() -> str:
    return os.environ.get(CUSTOMER, "").strip()


def _timeout_s() -> float:
    text = os.environ.get(CUSTOMER_TIMEOUT, "").strip()
    try:
        seconds = float(text or _TIMEOUT_S)
    except ValueError:
        seconds = 0.0
    if 0 < seconds <= _MOST_TIMEOUT_S:
        return seconds
    error = mark("{variable} is {value!r}, not a number of seconds up to {most}.")
    message = translate(error, variable=CUSTOMER_TIMEOUT, value=text, most=f"{_MOST_TIMEOUT_S:g}")
    raise ConfigError(
        message, hint=translate("Correct it, or omit it for {seconds} seconds.", seconds=f"{_TIMEOUT_S:g}")
    )
