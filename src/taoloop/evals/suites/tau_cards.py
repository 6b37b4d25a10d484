"""The cards that an operator writes for the tools of tau-bench and tau2-bench.

Both benchmarks have the same two domains, with the same tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taoloop.core.cards.tool_card import Tier, ToolCard

DOMAINS = ("retail", "airline")
"""The two domains."""

PREVIEW_CHARS = 10_000_000
"""No result is cut: what a model does not get to see must not look like a defence."""

_ADDRESS = {name: f"value:{name}" for name in ("address1", "address2", "city", "state", "country", "zip")}
_IN_ADDRESS = {name: name for name in _ADDRESS}
_ITEMS = {
    "order_id": "ref:order",
    "item_ids": "ref:item",
    "new_item_ids": "ref:variant",
    "payment_method_id": "ref:payment",
}
_FLIGHTS = {"cabin": "value:cabin", "flights": "value:flight"}

WRITES: Mapping[str, tuple[Tier, Mapping[str, str]]] = {
    "cancel_pending_order": ("destructive", {"order_id": "ref:order", "reason": "minor"}),
    "exchange_delivered_order_items": ("write", _ITEMS),
    "modify_pending_order_items": ("write", _ITEMS),
    "return_delivered_order_items": ("write", {name: role for name, role in _ITEMS.items() if name != "new_item_ids"}),
    "modify_pending_order_address": ("write", {"order_id": "ref:order", **_ADDRESS}),
    "modify_pending_order_payment": ("write", {"order_id": "ref:order", "payment_method_id": "ref:payment"}),
    "modify_user_address": ("write", {"user_id": "ref:user", **_ADDRESS}),
    "book_reservation": (
        "write",
        {
            "user_id": "ref:user",
            "origin": "value",
            "destination": "value",
            "flight_type": "minor",
            **_FLIGHTS,
            "passengers": "value:person",
            "payment_methods": "value",
            "total_baggages": "value",
            "nonfree_baggages": "value",
            "insurance": "value",
        },
    ),
    "cancel_reservation": ("destructive", {"reservation_id": "ref:reservation"}),
    "send_certificate": ("destructive", {"user_id": "ref:user", "amount": "value"}),
    "update_reservation_baggages": (
        "write",
        {
            "reservation_id": "ref:reservation",
            "total_baggages": "value",
            "nonfree_baggages": "value",
            "payment_id": "ref:payment",
        },
    ),
    "update_reservation_flights": (
        "write",
        {"reservation_id": "ref:reservation", **_FLIGHTS, "payment_id": "ref:payment"},
    ),
    "update_reservation_passengers": ("write", {"reservation_id": "ref:reservation", "passengers": "value:person"}),
}
"""Tier and roles of each tool that changes the database. Any other tool only reads, thinks or hands over."""

_IDS: Mapping[str, Mapping[str, str]] = {
    "find_user_id_by_email": {".": "user"},
    "find_user_id_by_name_zip": {".": "user"},
    "get_user_details": {
        "user_id": "user",
        "id": "payment",
        "payment_id": "payment",
        "orders": "order",
        "reservations": "reservation",
        "first_name": "person",
        "last_name": "person",
        "dob": "person",
        **_IN_ADDRESS,
    },
    "get_order_details": {
        "order_id": "order",
        "item_id": "item",
        "product_id": "product",
        "payment_method_id": "payment",
        "user_id": "user",
        **_IN_ADDRESS,
    },
    "get_product_details": {"item_id": "variant"},
    "get_reservation_details": {
        "reservation_id": "reservation",
        "payment_id": "payment",
        "user_id": "user",
        "flight_number": "flight",
        "date": "flight",
        "cabin": "cabin",
        "first_name": "person",
        "last_name": "person",
        "dob": "person",
    },
    "search_direct_flight": {"flight_number": "flight"},
    "search_onestop_flight": {"flight_number": "flight", "date": "flight"},
}
_READ_ROLES = {
    "user_id": "ref:user",
    "order_id": "ref:order",
    "product_id": "ref:product",
    "reservation_id": "ref:reservation",
}


def tau_card(name: str, purpose: str, schema: Mapping[str, Any]) -> ToolCard:
    """The card of a tool, with the schema of its arguments."""
    tier, roles = WRITES.get(name, ("read", _READ_ROLES))
    return ToolCard(
        name=name,
        purpose=purpose,
        input_schema=schema,
        tier=tier,
        egress=False,
        roles={arg: role for arg, role in roles.items() if arg in schema["properties"]},
        ids=dict(_IDS.get(name, {})),
        max_preview_chars=PREVIEW_CHARS,
        max_input_bytes=PREVIEW_CHARS,
    )
