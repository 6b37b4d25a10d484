"""Files that belong to a task, a conversation or a tool result, beside images: what they are, and what a trace says."""
