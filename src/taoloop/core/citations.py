"""The citations in an answer: `[doc:ID]` behind a statement names the passage that it rests on."""

from __future__ import annotations

import re

_CITED = re.compile(r"(?<![0-9A-Za-z_])doc:([0-9a-z]{12})(?![0-9A-Za-z_])")


def cited(text: str) -> tuple[str, ...]:
    """The passages that a text cites as `[doc:ID]`, each once, in the order of their first mention, as `doc:ID`."""
    return tuple(dict.fromkeys(f"doc:{found[1]}" for found in _CITED.finditer(text)))
