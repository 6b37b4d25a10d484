"""The pure core: events, the trace and its views, cards, limits, policy, guards. No I/O, no clock, no randomness."""
