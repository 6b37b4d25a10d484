"""What is seen of runs from outside: spans, figures and lines of the log."""
