"""Tool cards: the contract of a tool, its linter, and the search over cards."""
