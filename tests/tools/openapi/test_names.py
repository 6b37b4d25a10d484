"""Names that every provider takes: unique, and the same each time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop.tools.openapi.names import RESERVED, argument_name, is_argument_name, requires_members, tool_name


@pytest.mark.parametrize(
    ("operation_id", "method", "path", "name"),
    [
        ("listPets", "get", "/pets", "listPets"),
        ("objects.class.get", "get", "/x", "objects_class_get"),
        ("pets/list all", "get", "/x", "pets_list_all"),
        ("", "get", "/pets/{petId}", "get_pets_by_petId"),
        ("", "GET", "/{comicId}/info.0.json", "get_by_comicId_info_0_json"),
        ("", "post", "/", "post_root"),
        ("查询天气", "get", "/weather", "get_weather"),
        ("get", "get", "/x", "get"),
        ("...", "delete", "/a/b:cancel", "delete_a_b_cancel"),
        ("", "get", "/pets/{pet-id}/{other id}", "get_pets_by_pet-id_by_other_id"),
    ],
)
def test_the_id_or_else_method_and_path_give_the_name(operation_id: str, method: str, path: str, name: str) -> None:
    assert tool_name(operation_id, method, path, prefix="", used=()) == name


def test_two_that_would_be_the_same_are_told_apart_by_method_and_path() -> None:
    first = tool_name("list", "get", "/a", prefix="", used={"list"})
    second = tool_name("list", "get", "/b", prefix="", used={"list", first})
    assert first.startswith("list_")
    assert first != second
    assert first == tool_name("list", "get", "/a", prefix="", used={"list"})


def test_a_long_name_is_cut_and_still_its_own() -> None:
    one, two = (tool_name("x" * 80 + end, "get", f"/{end}", prefix="api", used=()) for end in "ab")
    assert len(one) == 64
    assert one != two
    assert one.startswith("api_xxx")


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_name_of_the_runtime_is_left_to_it(name: str) -> None:
    assert tool_name(name, "get", "/x", prefix="", used=()).startswith(f"{name}_")


@given(st.lists(st.tuples(st.text(max_size=90), st.text(max_size=60)), max_size=12, unique_by=lambda one: one[1]))
def test_every_provider_takes_every_name(given_names: list[tuple[str, str]]) -> None:
    taken: set[str] = set()
    for operation_id, path in given_names:
        name = tool_name(operation_id, "get", f"/{path}", prefix="", used=taken)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
        assert name not in taken
        taken.add(name)


@pytest.mark.parametrize(
    ("name", "arg"),
    [
        ("StartTime<", "StartTime_lt"),
        ("StartTime>", "StartTime_gt"),
        ("project_ids[]", "project_ids"),
        ("files[0]", "files_0"),
        ("$filter", "filter"),
        ("hate/threatening", "hate_threatening"),
        ("X-Request.Id", "X-Request.Id"),
        ("名称", "query"),
    ],
)
def test_a_parameter_gets_a_name_that_can_be_an_argument(name: str, arg: str) -> None:
    assert argument_name(name, "query", ()) == arg


@given(st.lists(st.text(min_size=1, max_size=80), max_size=8))
def test_arguments_are_unique_and_taken_by_providers(names: list[str]) -> None:
    taken: dict[str, None] = {}
    for name in names:
        arg = argument_name(name, "query", taken)
        assert is_argument_name(arg)
        assert arg not in taken
        taken[arg] = None


def test_a_path_in_another_script_is_not_the_root() -> None:
    names = [tool_name("", "get", path, prefix="", used=()) for path in ("/例/{名}", "/天气")]
    assert all(name.startswith("get_") and len(name) == 10 for name in names)
    assert len(set(names)) == 2


def test_names_that_lose_everything_are_counted() -> None:
    taken: list[str] = []
    for name in ("姓名", "年龄", "地址"):
        taken.append(argument_name(name, "body", taken))
    assert taken == ["body", "body_2", "body_3"]


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"required": ["a"]}, True),
        ({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"type": "object", "required": ["a"]}}}, True),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, True),
        ({"anyOf": [{"required": ["a"]}, {"type": "string"}]}, False),
        ({"type": "array", "items": {"required": ["a"]}}, False),
        ({"type": ["object", "null"], "required": ["a"]}, False),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, False),
    ],
)
def test_a_body_that_must_have_a_member_is_told(schema: dict[str, Any], required: bool) -> None:
    assert requires_members(schema) is required
