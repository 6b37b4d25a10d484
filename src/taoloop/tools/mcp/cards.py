"""Cards of a server's tools: our names, our tiers, and what the server says of itself only where that is stricter."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import Any

from taoloop.core.cards.tool_card import TIERS, ErrorCard, Tier, ToolCard
from taoloop.tools.mcp.listing import Definition
from taoloop.tools.mcp.schemas import MAX_SCHEMA_CHARS, SchemaError, bounded, normalised, rewritten
from taoloop.tools.mcp.settings import McpServer

_MAX_NAME = 64
_MAX_PURPOSE_CHARS = 2_000
_REFUSED = re.compile(r"[^A-Za-z0-9_.-]")

ERRORS = (
    ErrorCard(code="tool_failed", advice="Read what the tool says, and correct the arguments."),
    ErrorCard(code="server_away", retryable=True, advice="Try again later, or use another tool."),
    ErrorCard(code="tool_changed", advice="Use another tool, or tell the user."),
)


def model_tool_names(server: str, tools: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Names for the model: `server.tool`, with what providers refuse replaced, at most 64 signs, all different.

    A name that had to be changed and is not alone ends with a digest of the server's own. The order of `tools` has no
    say: a server cannot give the name of one tool to another by listing them anew.
    """
    plain = {tool: f"{server}.{_REFUSED.sub('_', tool)}" for tool in tools}
    often = Counter(plain.values())
    names, gone = {}, {*reserved, *often}
    for tool, name in plain.items():
        is_own = often[name] == 1 or name == f"{server}.{tool}"
        if is_own and len(name) <= _MAX_NAME and name not in reserved:
            names[tool] = name
            continue
        ends = (_ended(name, tool, turn) for turn in count())  # a server may have taken the first ones itself
        names[tool] = next(suffix for suffix in ends if suffix not in gone)
        gone.add(names[tool])
    return names


def _ended(name: str, tool: str, turn: int) -> str:
    digest = hashlib.sha256(f"{tool}{turn or ''}".encode()).hexdigest()[:8]
    return f"{name[: _MAX_NAME - 9]}_{digest}"


def card_of(server: McpServer, definition: Definition, name: str) -> ToolCard:
    """The card of one tool.

    Raises:
        SchemaError: its input schema cannot be used.
    """
    raw = definition.raw
    input_schema = normalised(raw.get("inputSchema") or {"type": "object"})
    if len(json.dumps(input_schema)) > MAX_SCHEMA_CHARS:
        raise SchemaError(f"it is longer than {MAX_SCHEMA_CHARS:,} characters")
    hints = raw.get("annotations") or {}
    tier = stricter_tier(server.tier_of(definition.name), hints)
    return ToolCard(
        name=name,
        purpose=_purpose(raw, definition.name),
        input_schema=input_schema,
        output_schema=output_schema_of(definition),
        errors=ERRORS,
        tier=tier,
        egress=_sends_out(server.sends_out_of(definition.name), tier, hints),
        timeout_s=server.timeout_s,
    )


def stricter_tier(declared: Tier | None, hints: Mapping[str, Any]) -> Tier | None:
    """The tier of the configuration, or what a server's hints say where that is worse; None where nobody said any."""
    if hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        hinted: Tier = "destructive"
    elif hints.get("readOnlyHint") is False:
        hinted = "write"
    else:
        return declared
    if declared is None:
        return "destructive" if hinted == "destructive" else None
    return max(declared, hinted, key=TIERS.index)


def output_schema_of(definition: Definition) -> dict[str, Any] | None:
    """What the tool says of its structured results, if that can be used."""
    schema = definition.raw.get("outputSchema")
    if not isinstance(schema, dict) or len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
        return None
    try:
        normalised_schema = rewritten(schema)
    except SchemaError:
        return None
    return normalised_schema if isinstance(normalised_schema, dict) else None


def _sends_out(declared: bool | None, tier: Tier | None, hints: Mapping[str, Any]) -> bool | None:
    if declared is not None or tier != "read":
        return declared
    return True if hints.get("openWorldHint") is True else None


def _purpose(raw: Mapping[str, Any], name: str) -> str:
    annotations = raw.get("annotations") or {}
    text = raw.get("description") or raw.get("title") or annotations.get("title") or name
    return bounded(str(text), _MAX_PURPOSE_CHARS)
