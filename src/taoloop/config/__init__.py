"""Files that people write: agents, tools and policies, read with line numbers in every complaint."""
