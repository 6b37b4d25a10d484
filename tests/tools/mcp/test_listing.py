"""Lists with bad entries: the good ones come through, whatever stands beside them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st
from mcp_types import methods
from tests.sizes import examples

from taoloop.tools.mcp.listing import DROPPED, RAW, filter_list

GOOD: dict[str, dict[str, Any]] = {
    "tools": {"name": "good", "inputSchema": {"type": "object"}},
    "resources": {"uri": "a://b", "name": "good"},
    "resourceTemplates": {"uriTemplate": "a://{x}", "name": "good"},
    "prompts": {"name": "good"},
}
METHODS = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}
FIELDS = ["name", "uri", "uriTemplate", "inputSchema", "outputSchema", "description", "annotations", "_meta", "type"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("key", GOOD)
@given(entries=st.lists(JSON, max_size=4))
@examples(40)
def test_a_good_entry_comes_through_and_what_comes_through_is_good(key: str, version: str, entries: list[Any]) -> None:
    rest = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if version == "2026-07-28" else {}
    given_result = {key: [*entries, GOOD[key]], **rest}
    before = copy.deepcopy(given_result)
    found = filter_list(given_result, version)
    assert given_result == before
    assert len(found[key]) + len(found["_meta"][DROPPED]) == len(entries) + 1
    assert found[key][-1]["name"] == "good"
    methods.validate_server_result(METHODS[key], version, found)


def test_a_tool_is_kept_as_it_came_and_cannot_forge_that() -> None:
    forged = {**GOOD["tools"], "outputSchema": {"type": "object"}, "_meta": {RAW: {"name": "other"}}}
    [entry] = filter_list({"tools": [forged]}, "2025-11-25")["tools"]
    assert entry["_meta"][RAW] == forged
    assert "outputSchema" not in entry


def test_reasons_are_bounded() -> None:
    found = filter_list({"tools": [None] * 500}, "2025-11-25")
    assert len(found["_meta"][DROPPED]) == 21


@pytest.mark.parametrize(
    "result", [{}, {"content": [], "tools": [1]}, {"tools": "none"}, {"structured": {"tools": [1]}}]
)
def test_what_is_no_list_is_left_alone(result: dict[str, Any]) -> None:
    assert filter_list(result, "2025-11-25") is result
