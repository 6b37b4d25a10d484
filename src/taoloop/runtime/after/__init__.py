"""What can be done with a stored run: recovery, replay, fork, undo, abandonment."""
