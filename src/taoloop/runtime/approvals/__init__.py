"""Questions to people, their answers, and calls in doubt."""
