"""The parts of a prompt that the dialects share."""
