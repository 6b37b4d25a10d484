"""Commands that inspect, compare, replay, undo and export stored runs."""
