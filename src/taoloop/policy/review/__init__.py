"""Stored runs seen with another policy: which verdicts would change, and which rules people's answers suggest."""
