"""From a source to tools: what was planned before comes from the cache, the rest is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from taoloop.tools.load_result import LoadResult
from taoloop.tools.openapi.document.document import fetch_document
from taoloop.tools.openapi.http.operation_call import ApiClient, make_tool
from taoloop.tools.openapi.plan import Plan, PlanCache, PlannedTool, dump_plan, key_of, load_plan
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.tool import Checker, Tool

LEAST_KEPT_BYTES = 100_000
"""A smaller document is read again each time: that takes no longer than looking for it."""


def openapi_tools(source: OpenapiSource) -> LoadResult:
    """The operations of an API as tools, and what in its document could not be used.

    Raises:
        ToolSourceError: the document is none, or cannot be read.
    """
    plan = _plan(source)
    api = ApiClient(source)
    return LoadResult(tools=tuple(_tool(one, source, api) for one in plan.tools), problems=plan.problems)


def _plan(source: OpenapiSource) -> Plan:
    given = fetch_document(source)
    cache = None
    if source.cache and len(given.data) >= LEAST_KEPT_BYTES:
        cache = PlanCache(Path(source.cache_folder).expanduser() if source.cache_folder else None)
    key = key_of(source, given.data, given.uri)
    if cache is not None and (plan := load_plan(cache.get(key), given.folder)) is not None:
        return plan
    from taoloop.tools.openapi.planner import build_plan  # noqa: PLC0415  # what is kept needs none of it

    plan = build_plan(source, given)
    if cache is not None:
        cache.put(key, dump_plan(plan))
    return plan


def _tool(planned: PlannedTool, source: OpenapiSource, api: ApiClient) -> Tool:
    card, whole = planned.card, planned.whole
    judging = card if whole is None else replace(card, input_schema=whole)
    tool = make_tool(planned.operation, source, judging, api, is_valid=True)
    check = _back(tool.check, planned.renamed) if planned.renamed else tool.check
    return replace(tool, card=card, whole_schema=whole, check=check)


def _back(check: Checker, renamed: Mapping[str, str]) -> Checker:
    """The judge of arguments, whose values carry the names of the document again."""

    def judged(raw: bytes) -> Mapping[str, Any]:
        from taoloop.tools.openapi.schema.property_renames import restore_names  # noqa: PLC0415  # only few documents need it

        values: Mapping[str, Any] = restore_names(check(raw), renamed)
        return values

    return judged
