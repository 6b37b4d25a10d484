"""How many examples a property is tried with: few by default, all of them with `scripts/test --all`."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

SMALL = "small"
_SMALLER, _LEAST = 10, 25


def is_small() -> bool:
    """Whether properties are tried in their short form, as they are by default."""
    return settings.get_current_profile_name() == SMALL


def examples(number: int, **options: Any) -> settings:
    """The settings of a property that takes `number` examples: under the profile `small` a tenth, but at least 25."""
    if is_small():
        number = min(number, max(number // _SMALLER, _LEAST))
    return settings(max_examples=number, **options)
