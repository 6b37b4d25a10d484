"""How runs, questions and tool cards look on a terminal."""
