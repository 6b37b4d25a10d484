"""Tool cards: the contract of a tool (public in `taoloop.core`), its linter, and the search over cards."""
