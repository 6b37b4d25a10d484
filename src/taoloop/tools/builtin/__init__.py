"""The built-in tools: `catalog` has them by name."""
