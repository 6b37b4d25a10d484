"""What must hold at the end of a trial: how each kind of check compares, and whether it can fail at all."""
