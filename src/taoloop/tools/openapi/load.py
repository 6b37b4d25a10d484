"""Loading the tools of a source: from a cached plan if there is one, else from its document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from taoloop.tools.openapi.document.document import fetch_document
from taoloop.tools.openapi.http.operation_call import ApiClient, make_tool
from taoloop.tools.openapi.plan import Plan, PlanCache, PlannedTool, cache_key, dump_plan, load_plan
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.tool import Checker, Tool
from taoloop.tools.toolbox import LoadResult

MIN_CACHED_BYTES = 100_000
"""A smaller document is not cached: parsing it takes no longer than reading the cache."""


def openapi_tools(source: OpenapiSource) -> LoadResult:
    """The operations of an API as tools, and what in its document could not be used.

    Raises:
        ToolSourceError: it is not an OpenAPI document, or cannot be read.
    """
    plan = load_or_build_plan(source)
    api = ApiClient(source)
    return LoadResult(
        tools=tuple(_make_planned_tool(planned, source, api) for planned in plan.tools), problems=plan.problems
    )


def load_or_build_plan(source: OpenapiSource) -> Plan:
    """The plan of a source, from the cache if it is there.

    Raises:
        ToolSourceError: as for `openapi_tools`.
    """
    document = fetch_document(source)
    cache = None
    if source.cache and len(document.data) >= MIN_CACHED_BYTES:
        cache = PlanCache(Path(source.cache_folder).expanduser() if source.cache_folder else None)
    key = cache_key(source, document.data, document.uri)
    if cache is not None and (plan := load_plan(cache.get(key), document.folder)) is not None:
        return plan
    from taoloop.tools.openapi.planner import build_plan  # noqa: PLC0415  # a cached plan needs none of it

    plan = build_plan(source, document)
    if cache is not None:
        cache.store(key, dump_plan(plan))
    return plan


def _make_planned_tool(planned: PlannedTool, source: OpenapiSource, api: ApiClient) -> Tool:
    card, whole = planned.card, planned.whole_schema
    checked_card = card if whole is None else replace(card, input_schema=whole)
    tool = make_tool(planned.operation, source, checked_card, api, is_valid=True)
    check = _restoring_checker(tool.check, planned.original_names) if planned.original_names else tool.check
    return replace(tool, card=card, whole_schema=whole, check=check)


def _restoring_checker(check: Checker, original_names: Mapping[str, str]) -> Checker:
    """A checker whose result has the property names of the document again."""

    def check_and_restore(raw: bytes) -> Mapping[str, Any]:
        from taoloop.tools.openapi.schema.property_renames import restore_names  # noqa: PLC0415  # few documents need it

        values: Mapping[str, Any] = restore_names(check(raw), original_names)
        return values

    return check_and_restore
