"""Requests for every operation of six documents, judged by Prism in its strict mode. Run by `scripts/check-prism`.

`PRISM` names the program. The documents lie in the folder of test data beside the project.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from checks.prism.arguments import NoValueError, arguments

from taoloop.errors import TaoError
from taoloop.tools.egress import EgressClient, EgressResponse
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.document import fetch_document, parse_document
from taoloop.tools.openapi.operation import Scheme
from taoloop.tools.openapi.operation_call import ApiClient, OperationCaller
from taoloop.tools.openapi.operation_reader import OperationReader
from taoloop.tools.openapi.request import build_request
from taoloop.tools.tool import Tool

DOCUMENTS = Path(__file__).resolve().parents[3] / "shared" / "openapi"
ACCEPTED = 0.95
UP_WITHIN_S = 120.0

CASES: dict[str, dict[str, Any]] = {
    "museum-3.1.yaml": {},
    "petstore-3.0.yaml": {},
    "realworld-3.yml": {},
    "qdrant-3.0.json": {},
    "slack-web-2.0.json": {"secrets": {"token": "xoxb-for-tests"}},
    "twilio-api-3.0.json": {},
}


@contextmanager
def served(document: Path) -> Iterator[str]:
    """Prism with one document; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*os.environ["PRISM"].split(), "mock", "-p", str(port), "--errors", "-v", "silent", str(document)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as prism:
        try:
            _wait(port, prism)
            yield f"http://127.0.0.1:{port}"
        finally:
            prism.terminate()


def _wait(port: int, prism: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < ends and prism.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("Prism did not come up")


def secret(scheme: Scheme) -> str:
    return "anna:for-tests" if scheme.kind == "basic" else "for-tests"


def violations(answered: EgressResponse) -> list[str]:
    """What Prism says is wrong with the request. What is wrong with its own answer does not count."""
    if answered.headers.get("content-type", "").startswith("application/problem+json"):
        told = json.loads(answered.body or b"{}")
        if str(told.get("type", "")).endswith(("NO_PATH_MATCHED_ERROR", "NO_METHOD_MATCHED_ERROR")):
            return [str(told.get("title"))]
        if str(told.get("type", "")).endswith("UNAUTHORIZED"):
            return [str(told.get("title"))]
    found = json.loads(answered.headers.get("sl-violations", "[]"))
    return [f"{'.'.join(one['location'])}: {one['message']}" for one in found if one["location"][0] == "request"]


async def refusals(tools: list[Tool], client: EgressClient) -> AsyncIterator[tuple[str, str]]:
    """The operations whose requests are not taken, and why."""
    for tool in tools:
        caller = tool.handler
        assert isinstance(caller, OperationCaller)
        for optional in (False, True):
            try:
                values = tool.prepare(arguments(tool.card.input_schema, optional=optional)).values
                made = build_request(caller.operation, values, caller.api.source)
                answered = await client.send(made.method, made.url, headers=made.headers, body=made.body)
                wrong = violations(answered)
            except (NoValueError, TaoError) as error:
                wrong = [f"not sent: {error}"]
            if wrong:
                yield tool.name, f"{'all' if optional else 'required'} arguments: {'; '.join(wrong)[:300]}"
                break


@pytest.mark.parametrize("name", CASES)
def test_requests_made_from_the_schemas_are_taken(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = DOCUMENTS / name
    if not document.is_file():
        pytest.skip("the test data does not lie beside this checkout")
    plain = OpenapiSource(document=str(document), include_deprecated=True, max_card_bytes=10_000_000, **CASES[name])
    operations = tuple(OperationReader(parse_document(fetch_document(plain)), plain).operations())
    schemes = {one.name: secret(one) for operation in operations for one in operation.schemes.values()}
    with served(document) as url:
        source = OpenapiSource(
            document=str(document),
            base_url=url,
            include_deprecated=True,
            max_card_bytes=10_000_000,
            auth=schemes,
            timeout_s=60,
            **CASES[name],
        )
        tools = list(openapi_tools(source).tools)
        client = ApiClient(source).client_for(url)

        async def gathered() -> list[tuple[str, str]]:
            return [one async for one in refusals(tools, client)]

        refused = asyncio.run(gathered())
    accepted = len(operations) - len(refused)
    with capsys.disabled():
        lines = [f"{name}: {accepted} of {len(operations)} operations taken ({accepted / len(operations):.1%})"]
        sys.stdout.write("\n".join(["", *lines, *(f"  {tool}: {why}" for tool, why in refused), ""]))
    assert accepted >= ACCEPTED * len(operations)
