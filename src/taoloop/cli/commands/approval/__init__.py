"""Commands that list and answer the calls that wait for a person."""
