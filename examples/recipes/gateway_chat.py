"""The tools of `gateway_chat.yaml`: a shop whose orders wait for a yes in the chat.

Run:  cd examples/recipes
      tao serve gateway_chat.yaml --allow-origin http://127.0.0.1:9200       one terminal
      python -m http.server 9200 --bind 127.0.0.1                            another one
and open http://127.0.0.1:9200/gateway_chat.html. With a real model: TAOLOOP_MODEL=openai:gpt-4o-mini tao serve …
Needs: pip install 'taoloop[serve]'
"""

from __future__ import annotations

from taoloop import ToolError, tool

STOCK = {"tea": 12, "coffee": 0}
ORDERS: list[tuple[str, int]] = []


@tool(tier="read")
def stock(item: str) -> int:
    """Say how many pieces of an item are in stock.

    Args:
        item: The item in lower case, such as tea.
    """
    if item not in STOCK:
        raise ToolError(f"There is no item {item!r}.", code="unknown_item", hint=f"Known: {', '.join(STOCK)}.")
    return STOCK[item]


@tool(tier="write", approval="required", egress=False, roles={"count": "value"})
def order(item: str, count: int) -> str:
    """Order pieces of an item.

    Args:
        item: The item in lower case, such as tea.
        count: How many pieces.
    """
    ORDERS.append((item, count))
    return f"ordered {count} of {item}"
