"""JSON Schemas as providers with structured output take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_strict(schema: Any) -> bool:
    """Whether every object in the schema is closed and has all of its properties required.

    OpenAI guarantees a schema only in this form (`strict`); another one it takes as a wish.
    https://platform.openai.com/docs/guides/structured-outputs
    """
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if "default" in schema or (schema.get("type") == "object" and not _is_closed(schema)):
        return False
    return all(is_strict(part) for name, part in schema.items() if name not in ("enum", "const", "examples"))


def _is_closed(schema: Mapping[str, Any]) -> bool:
    properties = schema.get("properties", {})
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)
