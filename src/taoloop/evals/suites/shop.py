"""The tools of a small shop, for suites: orders, mails and pages to read, and effects that can be counted.

Orders, mails, pages, payments and everything else are the state of the trial's world. Mails, pages and notes of
customers are where an attacker's text comes in.
"""

from __future__ import annotations

from typing import Any, Literal

from taoloop.errors import ToolError
from taoloop.evals.worlds import current_world
from taoloop.tools.function import tool
from taoloop.tools.tool import RunContext


@tool(tier="read")
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order: its state, its total in dollars, its address, and the note of the customer.

    Args:
        order_id: The id of the order, such as A1.
    """
    return {"order_id": order_id, **_order(order_id)}


@tool(tier="read")
def read_mail(mail_id: str) -> str:
    """Read a mail of the inbox.

    Args:
        mail_id: The id of the mail, such as m1.
    """
    return str(_entry("mails", "mail", mail_id))


@tool(tier="read")
def read_page(title: str) -> str:
    """Read a page of the handbook.

    Args:
        title: The title of the page.
    """
    return str(_entry("pages", "page", title))


@tool(tier="read")
def list_payments() -> list[Any]:
    """List the payments that were made."""
    payments: list[Any] = current_world().state.get("payments", [])
    return payments


@tool(tier="write", egress=False)
def cancel_order(order_id: str) -> str:
    """Cancel an order.

    Args:
        order_id: The id of the order.
    """
    _order(order_id)["state"] = "cancelled"
    return f"{order_id} is cancelled."


@tool(tier="write", egress=False)
def change_address(order_id: str, address: str) -> str:
    """Change the address that an order is sent to.

    Args:
        order_id: The id of the order.
        address: The new address.
    """
    _order(order_id)["address"] = address
    return f"{order_id} goes to {address}."


@tool(tier="destructive", egress=False)
def delete_order(order_id: str) -> str:
    """Delete an order for good.

    Args:
        order_id: The id of the order.
    """
    _order(order_id)
    del current_world().state["orders"][order_id]
    current_world().state.setdefault("deleted", []).append(order_id)
    return f"{order_id} is deleted."


@tool(tier="write", egress=True, roles={"text": "content"})
def send_mail(to: str, text: str) -> str:
    """Send a mail.

    Args:
        to: The address.
        text: What the mail says.
    """
    _record("sent", {"to": to, "text": text})
    return f"The mail to {to} is sent."


@tool(tier="write", egress=True, idempotent=True, roles={"method": "content"})
def pay(
    recipient: str,
    amount: int,
    method: Literal["transfer", "cheque"] = "transfer",
    *,
    call: RunContext,
) -> str:
    """Pay an amount in dollars.

    Args:
        recipient: Who is paid.
        amount: The amount.
        method: How.
        call: The call, whose key makes a repeated transfer the same one.
    """
    # Declared idempotent, which is true of transfers, whose key the bank knows; cheques are a mistake on purpose.
    keys = current_world().state.setdefault("keys", [])
    if method == "cheque" or call.idempotency_key not in keys:
        keys.append(call.idempotency_key)
        _record("payments", {"recipient": recipient, "amount": amount})
    return f"{recipient} was paid ${amount}."


def find_transfer(call: RunContext) -> bool:
    """Whether a transfer is on the account."""
    return call.idempotency_key in current_world().state.get("keys", [])


@tool(tier="write", egress=True, probe=find_transfer)
def transfer(recipient: str, amount: int, *, call: RunContext) -> str:
    """Transfer an amount in dollars; the account shows whether it happened.

    Args:
        recipient: Who gets it.
        amount: The amount.
        call: The call, whose key the account shows.
    """
    current_world().state.setdefault("keys", []).append(call.idempotency_key)
    _record("transfers", {"recipient": recipient, "amount": amount})
    return f"${amount} are transferred to {recipient}."


def _record(name: str, entry: dict[str, Any]) -> None:
    current_world().state.setdefault(name, []).append(entry)


def _order(order_id: str) -> dict[str, Any]:
    order: dict[str, Any] = _entry("orders", "order", order_id)
    return order


def _entry(table: str, what: str, key: str) -> Any:
    entries = current_world().state.get(table, {})
    if key not in entries:
        raise ToolError(f"The shop has no {what} {key!r}.")
    return entries[key]
