"""The built-in tools. `builtin_tools` gives them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taoloop.tools.builtin.catalog import builtin_tools

__all__ = ["builtin_tools"]


def __getattr__(name: str) -> Any:
    """Load the catalogue where it is asked for: a single tool is imported without the others."""
    if name == "builtin_tools":
        from taoloop.tools.builtin.catalog import builtin_tools  # noqa: PLC0415  # it loads every built-in tool

        return builtin_tools
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
