"""A document is taken from a file, an address or a text; what is none is said in one line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.tools.openapi.documents import document, one, query, read_operations

from taoloop.errors import ConfigError, ToolSourceError
from taoloop.tools.openapi import OpenapiSource, document_findings, openapi_tools

YAML = """\
openapi: 3.0.3
info: {title: T, version: 1}
servers: [{url: https://api.example.com}]
paths:
  /ping:
    get: {operationId: ping, responses: {200: {description: ok}}}
"""


def names(given: str) -> list[str]:
    return [one.name for one in read_operations(OpenapiSource(document=given, cache=False))[0]]


def refusal(given: str) -> ToolSourceError:
    with pytest.raises(ToolSourceError) as caught:
        openapi_tools(OpenapiSource(document=given, cache=False))
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_text_is_read_as_yaml_or_json() -> None:
    assert names(YAML) == names(one({"operationId": "ping"})) == ["ping"]


@pytest.mark.parametrize("suffix", [".yaml", ".json", ""])
def test_a_file_is_read_whatever_its_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"api{suffix}"
    path.write_text(YAML)
    assert names(str(path)) == ["ping"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_mark_of_the_encoding_is_understood(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "api.yaml"
    path.write_text(YAML, encoding=encoding)
    assert names(str(path)) == ["ping"]


def test_json_with_halves_of_surrogate_pairs_is_read() -> None:
    assert names(one({"operationId": "ping", "summary": "\ud83d\ude00 \ud83d"})) == ["ping"]


def test_flow_yaml_that_looks_like_json_is_read() -> None:
    assert names("{openapi: 3.1.0, info: {title: t, version: '1'}, paths: {/a: {get: {operationId: ping}}}}") == [
        "ping"
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"mcpServers": {}}', "a configuration of MCP servers"),
        ("asyncapi: 3.0.0\nchannels: {}\n", "an AsyncAPI document"),
        ('{"$schema": "https://json-schema.org/draft/2020-12/schema"}', "a JSON Schema"),
        ('{"info": {}, "item": []}', "a Postman collection"),
        ("{}", "neither 'openapi' nor 'swagger'"),
        ("[1, 2]", "a list"),
        ("one\ntwo\n", "plain text"),
        ("<!doctype html>\n<html></html>", "HTML or XML"),
        ("\n \n", "document"),
        ("openapi: 4.0.0\npaths: {}\n", "version '4.0.0'"),
        ("swagger: '1.2'\napis: []\n", "version '1.2'"),
        ("openapi: 3.1.0\npaths: [1]\n", "not a mapping"),
        ('{"openapi": "3.1.0", "paths": {', "line 1"),
        ("openapi: 3.1.0\npaths: {a: b: c}\n", "line 2"),
        ("[" * 100_000 + "\n", "nested"),
        ('{"openapi": "3.1.0", "n": ' + "1" * 5_000 + "}", "not JSON"),
    ],
)
def test_a_document_that_is_none_is_said_in_one_line(text: str, told: str) -> None:
    try:
        error: ConfigError = refusal(text)
    except AssertionError:
        raise
    except ConfigError as found:  # an empty one is refused by the settings
        error = found
    assert told in str(error)


def test_a_file_that_cannot_be_read_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "api.yaml"
    assert str(refusal(str(path))).startswith(f"{path}: It cannot be read: No such file")
    assert "a folder" in str(refusal(str(tmp_path)))
    path.write_bytes(b"openapi: \xff\xfe\x00")
    assert "not UTF-8 text (byte 9)" in str(refusal(str(path)))
    path.write_bytes(b"")
    error = refusal(str(path))
    assert "It is empty." in str(error)
    assert (error.code, error.source) == ("tool_source", str(path))


@pytest.mark.parametrize("paths", [None, {}])
def test_a_document_without_operations_gives_none_and_says_so(paths: object) -> None:
    text = json.dumps(
        {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "webhooks": {"a": {}}, "paths": paths}
    )
    operations, problems = read_operations(OpenapiSource(document=text, cache=False))
    assert operations == ()
    assert any("only describes webhooks" in str(problem) for problem in problems)


@contextmanager
def served(status: int, text: str, *, location: str = "") -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/docs/api.json"
        finally:
            server.shutdown()
            thread.join()


def test_an_address_is_fetched_and_its_relative_servers_count_from_there() -> None:
    with served(200, document({"/a": {"get": {}}}, servers=[{"url": "../v2"}])) as address:
        operations, problems = read_operations(OpenapiSource(document=address, cache=False))
    assert not problems
    assert operations[0].servers == (address.replace("/docs/api.json", "/v2"),)


def test_an_address_without_a_document_is_refused() -> None:
    with served(404, "") as address:
        assert "status 404" in str(refusal(address))
    assert "cannot be fetched" in str(refusal(address + "?key=secret"))
    assert "secret" not in str(refusal(address + "?key=secret"))


def test_a_reference_to_a_host_is_only_followed_if_the_settings_name_it(tmp_path: Path) -> None:
    with served(200, json.dumps({"limit": query("limit")})) as address:
        host = address.split("/")[2]
        text = one({"parameters": [{"$ref": f"{address}#/limit"}]})
        (operation,), (problem,) = read_operations(OpenapiSource(document=text, cache=False))
        assert not operation.parameters
        assert "is not fetched" in problem.message
        assert f"Add {host!r} to `reference_hosts`" in problem.message
        source = OpenapiSource(document=text + " " * 100_000, reference_hosts=(host,), cache_folder=str(tmp_path))
        (operation,), problems = read_operations(source)
        openapi_tools(source)
    assert not problems
    assert [parameter.name for parameter in operation.parameters] == ["limit"]
    assert not list(tmp_path.iterdir())  # a stored plan could not tell that the other document changed


def test_a_redirect_elsewhere_is_not_followed() -> None:
    with served(302, "", location="http://169.254.169.254/latest") as address:
        assert "cannot be fetched" in str(refusal(address))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"document": " "}, "document"),
        ({"document": "x", "base_url": "ftp://x"}, "base_url"),
        ({"document": "x", "name": "a b"}, "name"),
        ({"document": "x", "tiers": {"a": "wild"}}, "tiers"),
        ({"document": "x", "timeout_s": 0}, "timeout_s"),
        ({"document": "x", "retries": -1}, "retries"),
        ({"document": "x", "tags": "pets"}, "tags"),
        ({"document": "x", "pattern": "("}, "pattern"),
        ({"document": "x", "auth": "secret-key"}, "auth"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused_by_name(settings: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        OpenapiSource(**settings)  # type: ignore[arg-type]  # wrong on purpose
    assert "secret-key" not in str(caught.value)


CONFORMING = {
    "2.0": 'swagger: "2.0"\ninfo: {title: t, version: "1"}\npaths: {}\n',
    "3.0": 'openapi: 3.0.3\ninfo: {title: t, version: "1"}\npaths: {}\n',
    "3.1": 'openapi: 3.1.0\ninfo: {title: t, version: "1"}\npaths: {}\n',
    "3.2": 'openapi: 3.2.0\ninfo: {title: t, version: "1"}\npaths: {}\n',
}


@pytest.mark.parametrize("version", CONFORMING)
def test_a_good_document_has_no_findings(version: str) -> None:
    assert document_findings(OpenapiSource(document=CONFORMING[version])) == ()


@pytest.mark.parametrize("version", CONFORMING)
def test_a_missing_title_is_found(version: str) -> None:
    (found,) = document_findings(OpenapiSource(document=CONFORMING[version].replace("title: t, ", "")))
    assert (found.place, "title" in found.message) == ("info", True)


def test_the_real_documents_follow_their_specification(shared: Path) -> None:
    for path in sorted((shared / "openapi").glob("*.[yj]*")):
        assert document_findings(OpenapiSource(document=str(path))) == (), path.name
