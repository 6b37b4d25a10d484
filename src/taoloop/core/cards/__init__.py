"""Tool cards: the contract of a tool, its linter, and the search over cards."""

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard

__all__ = ["ErrorCard", "ExampleCard", "ToolCard"]
