"""What a call cost, from the kept price list `genai-prices` (extras `openai` and `anthropic`): never from the network.

A price is looked up by the address that was called, so that a model of the same name at another place is not given
OpenAI's price. What the list does not know is unknown: None, and not zero.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from taoloop.core.message import Usage


def cost_usd(base_url: str, model: str, usage: Usage, *, cache_write_tokens: int = 0) -> float | None:
    """US dollars for one call of `model` at `base_url`; None where the price, or the whole list, is not known.

    `cache_write_tokens` is the part of the input that was written to a cache, which some providers price apart.
    """
    prices = _list()
    if prices is None or not usage.total_tokens or not _is_known(base_url, model):
        return None
    used = prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=cache_write_tokens or None,
    )
    try:
        return float(prices.calc_price(used, model, provider_api_url=base_url).total_price)
    except (LookupError, ValueError):  # counts that contradict each other
        return None


def is_priced(base_url: str, model: str) -> bool:
    """Whether calls of `model` at `base_url` have a known price."""
    return _list() is not None and _is_known(base_url, model)


@lru_cache(maxsize=1024)
def _is_known(base_url: str, model: str) -> bool:
    """Whether the list has the model; looking in vain costs more than a price."""
    prices = _list()
    try:
        prices.calc_price(prices.Usage(input_tokens=1), model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return False
    return True


@cache
def _list() -> Any:
    try:
        import genai_prices  # noqa: PLC0415  # optional, and 0.1 s of CPU
    except ImportError:
        return None
    return genai_prices
