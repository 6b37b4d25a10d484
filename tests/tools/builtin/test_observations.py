from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from taoloop.errors import InvalidArguments, ToolError
from taoloop.tools.builtin.observations import read_observation
from taoloop.tools.tool import ToolContext

RECORDS = json.dumps({"items": [{"id": n, "name": f"name {n}"} for n in range(2_000)], "a/b": 1})
ARTIFACTS = {"text": "".join(f"line {n}\n" for n in range(5_000)), "json": RECORDS, "empty": ""}


def read(**args: Any) -> str:
    async def artifact(ref: str) -> str | None:
        return ARTIFACTS.get(ref)

    values = read_observation.prepare(args).values
    text: str = asyncio.run(read_observation.invoke(values, ToolContext(read_artifact=artifact)))
    return text


def refused(**args: Any) -> str:
    with pytest.raises(ToolError) as caught:
        read(**args)
    return caught.value.code


def test_pages_join_to_the_whole() -> None:
    """S2-28: what was left out can be read."""
    start, parts = 0, []
    while True:
        head, _, part = read(artifact="text", start=start, chars=8_000).partition("\n")
        parts.append(part)
        if "next: start=" not in head:
            break
        start = int(head.partition("next: start=")[2].rstrip("]"))
    assert "".join(parts) == ARTIFACTS["text"]
    assert "this is the end" in head


def test_a_page_is_never_cut_again() -> None:
    assert len(read(artifact="text", chars=8_000)) <= read_observation.card.max_preview_chars


def test_a_search_tells_positions_and_how_many_there_are() -> None:
    found = read(artifact="text", search="LINE 4999")
    assert found.startswith("[1 matches of 'LINE 4999'")
    position = int(found.split("\nat ")[1].split(":")[0].replace(",", ""))
    assert ARTIFACTS["text"][position:].startswith("line 4999")
    many = read(artifact="text", search="line", chars=500)
    assert "5,000 matches" in many
    assert len(many) < 700


def test_a_pointer_gives_one_value() -> None:
    assert read(artifact="json", pointer="/items/1234/name").endswith("\nname 1234")
    assert read(artifact="json", pointer="/items/3").endswith('\n{"id":3,"name":"name 3"}')
    assert read(artifact="json", pointer="/a~1b").endswith("\n1")


@pytest.mark.parametrize("pointer", ["items", "/item", "/items/2000", "/items/-1", "/items/0/id/x", "/items/01"])
def test_a_pointer_that_leads_nowhere_is_told(pointer: str) -> None:
    assert refused(artifact="json", pointer=pointer) == "bad_pointer"


def test_what_cannot_be_read_is_told() -> None:
    assert refused(artifact="nope") == "unknown_artifact"
    assert refused(artifact="text", start=10**9) == "out_of_range"
    assert refused(artifact="text", pointer="/a") == "not_json"
    assert read(artifact="empty").startswith("[characters 0 to 0 of 0")


@pytest.mark.parametrize("args", [{"chars": 0}, {"chars": 8_001}, {"start": -1}, {}])
def test_bounds_are_in_the_schema(args: dict[str, Any]) -> None:
    """S3-50."""
    with pytest.raises(InvalidArguments):
        read_observation.prepare(args if not args else {"artifact": "text", **args})
