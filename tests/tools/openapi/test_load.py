"""What was read once comes from the cache, the same, and never stale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tools.openapi.documents import body, document, query

from taoloop.errors import ConfigError
from taoloop.testing import FakeEmbedder
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.load import MIN_CACHED_BYTES, PlanCache, load_or_build_plan

LARGE = {"x-filler": "x" * MIN_CACHED_BYTES}


@pytest.fixture
def source(tmp_path: Path) -> OpenapiSource:
    path = tmp_path / "api.json"
    paths = {
        "/a/{id}": {
            "get": {
                "operationId": "a",
                "tags": ["t"],
                "security": [{"key": []}, {"oauth": ["read"]}],
                "parameters": [query("q", {"$ref": "#/components/schemas/Q"}, style="pipeDelimited", explode=False)],
                "responses": {"404": {"description": "gone"}},
                "x-idempotency": True,
            },
            "post": body({"properties": {"x y": {"$ref": "#/components/schemas/Q"}}}, "multipart/form-data"),
            "put": body({"type": "array", "items": {"properties": {"a b": {}}}}),
            "delete": {"deprecated": True, "parameters": [{"$ref": "#/gone"}]},
        }
    }
    schemes = {
        "key": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "oauth": {
            "type": "oauth2",
            "flows": {"clientCredentials": {"tokenUrl": "https://a/t", "scopes": {"read": ""}}},
        },
    }
    schemas = {"Q": {"type": "array", "items": {"$ref": "#/components/schemas/Q"}}}
    more = {"schemas": schemas, "securitySchemes": schemes}
    path.write_text(document(paths, components=more, **LARGE))
    return OpenapiSource(document=str(path), cache_folder=str(tmp_path / "cache"), max_card_bytes=500)


def kept(source: OpenapiSource) -> list[Path]:
    return sorted(Path(source.cache_folder).glob("*"))


def test_from_the_cache_everything_is_the_same(source: OpenapiSource) -> None:
    first = load_or_build_plan(source)
    assert len(kept(source)) == 1
    kept(source)[0].write_text(kept(source)[0].read_text().replace("gone", "from the cache"))
    second = load_or_build_plan(source)
    assert second.tools[0].operation.responses[0].description == "from the cache"
    kept(source)[0].unlink()
    load_or_build_plan(source)
    assert load_or_build_plan(source) == first
    assert [one.name for one in openapi_tools(source).tools] == [one.card.name for one in first.tools]


def test_nobody_else_can_read_it(source: OpenapiSource) -> None:
    openapi_tools(source)
    assert Path(source.cache_folder).stat().st_mode & 0o077 == 0
    assert kept(source)[0].stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "change", [{"name": "x"}, {"tags": ("t",)}, {"tiers": {"a": "write"}}, {"secrets": {"q": "s"}}, {"timeout_s": 5.0}]
)
def test_other_settings_are_another_entry(source: OpenapiSource, change: dict[str, Any]) -> None:
    openapi_tools(source)
    other = OpenapiSource(**{**vars(source), **change})
    cards = [one.card for one in openapi_tools(other).tools]
    assert len(kept(source)) == 2
    assert cards == [one.card for one in openapi_tools(OpenapiSource(**{**vars(other), "cache": False})).tools]


def test_no_secret_is_kept(source: OpenapiSource) -> None:
    openapi_tools(
        OpenapiSource(
            **{**vars(source), "secrets": {"q": "s3cret"}, "auth": {"key": "s3cret"}, "headers": {"X": "s3cret"}}
        )
    )
    assert "s3cret" not in "".join(path.name + path.read_text() for path in kept(source))


def test_a_changed_document_is_read_anew(source: OpenapiSource) -> None:
    openapi_tools(source)
    Path(source.document).write_text(document({"/b": {"get": {"operationId": "b"}}}, **LARGE))
    assert [one.name for one in openapi_tools(source).tools] == ["b"]


def test_a_changed_file_beside_it_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(document({"/a": {"$ref": "item.yaml"}}, **LARGE))
    source = OpenapiSource(document=str(tmp_path / "api.json"), cache_folder=str(tmp_path / "cache"))
    for name in ("first", "second"):
        (tmp_path / "item.yaml").write_text(f"get: {{operationId: {name}}}\n")
        assert [one.name for one in openapi_tools(source).tools] == [name]
        assert [one.name for one in openapi_tools(source).tools] == [name]
    (tmp_path / "item.yaml").unlink()
    assert openapi_tools(source).tools == ()


@pytest.mark.parametrize(
    "junk", [b"", b"{}", b"[]", b"\xff", b'{"tools": [{}], "components": [], "files": {}}', b"[" * 9_999]
)
def test_a_broken_entry_is_as_none(source: OpenapiSource, junk: bytes) -> None:
    names = [one.name for one in openapi_tools(source).tools]
    kept(source)[0].write_bytes(junk)
    assert [one.name for one in openapi_tools(source).tools] == names


def test_a_folder_that_cannot_be_written_changes_nothing(source: OpenapiSource, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    other = OpenapiSource(**{**vars(source), "cache_folder": str(tmp_path / "file" / "cache")})
    assert len(openapi_tools(other).tools) == 3


def test_only_the_newest_entries_stay(tmp_path: Path) -> None:
    cache = PlanCache(tmp_path)
    for number in range(70):
        cache.store(f"{number:03}", b"%d" % number)
    assert len(list(tmp_path.glob("*.json"))) == 64
    assert cache.get("069") == b"69"


def test_a_small_document_is_not_kept(tmp_path: Path) -> None:
    openapi_tools(OpenapiSource(document=document({"/a": {"get": {}}}), cache_folder=str(tmp_path / "cache")))
    assert not (tmp_path / "cache").exists()


def test_an_embedding_model_reaches_the_tools_and_leaves_the_cache_valid(source: OpenapiSource) -> None:
    assert openapi_tools(source).tools[0].embedder is None
    cached = kept(source)
    embedder = FakeEmbedder()
    assert {tool.embedder for tool in openapi_tools(replace(source, embedder=embedder)).tools} == {embedder}
    assert kept(source) == cached
    with pytest.raises(ConfigError, match="OpenapiSource has embedder"):
        replace(source, embedder=FakeEmbedder)  # type: ignore[arg-type]  # the class instead of an object
