"""Which operations are offered, and when only a search for them stands in the prompt."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.openapi.documents import document, read, tools

PATHS = {
    "/pets": {
        "get": {"operationId": "pets.list", "tags": ["Pets"]},
        "post": {"operationId": "pets.create", "tags": ["Pets", "Admin"]},
    },
    "/pets/{id}": {"delete": {"operationId": "pets.delete", "tags": ["Admin"]}},
    "/old": {"get": {"operationId": "old", "deprecated": True}},
}


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["pets_list", "pets_create", "pets_delete"]),
        ({"tags": ("pets",)}, ["pets_list", "pets_create"]),
        ({"tags": ("ADMIN",), "methods": ("delete",)}, ["pets_delete"]),
        ({"methods": ("GET",)}, ["pets_list"]),
        ({"operations": ("pets.list", "pets_delete")}, ["pets_list", "pets_delete"]),
        ({"operations": ("*create",)}, ["pets_create"]),
        ({"pattern": "/pets/"}, ["pets_delete"]),
        ({"pattern": "POST"}, ["pets_create"]),
        ({"include_deprecated": True}, ["pets_list", "pets_create", "pets_delete", "old"]),
        ({"operations": ("old",)}, ["old"]),
        ({"operations": ("nothing",)}, []),
        ({"name": "shop"}, ["shop_pets_list", "shop_pets_create", "shop_pets_delete"]),
    ],
)
def test_operations_are_chosen(settings: dict[str, Any], names: list[str]) -> None:
    assert [one.name for one in read(document(PATHS), **settings)[0]] == names


def test_a_name_does_not_depend_on_the_choice() -> None:
    paths = {path: {"get": {"operationId": "same", "tags": [path]}} for path in ("/a", "/b")}
    every = [one.name for one in read(document(paths))[0]]
    assert [one.name for one in read(document(paths), tags=("/b",))[0]] == every[1:]


def test_many_operations_are_not_listed_in_the_prompt() -> None:
    assert all(one.card.listed for one in tools(document(PATHS), search_above=3).values())
    assert not any(one.card.listed for one in tools(document(PATHS), search_above=2).values())
