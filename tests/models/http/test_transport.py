"""Connections to a provider: kept while they can be, and gone with their loop."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.models.certificate import make_certificate
from tests.models.provider_answers import asking

from taoloop import Agent
from taoloop.errors import MissingExtra, ModelError, ModelUnavailable
from taoloop.models.openai import OpenAIModel
from taoloop.models.providers import Endpoint, extra_of
from taoloop.models.registry import resolve_model

WHOLE = b'{"choices": [{"message": {"content": "5"}, "finish_reason": "stop"}]}'
STREAM = b'data: {"choices": [{"delta": {"content": "5"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


class Provider(asyncio.Protocol):
    """Keeps its connections open; counts them."""

    connections = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Provider.connections += 1
        self._transport: Any = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]):
            return
        self._data = b""
        if b'"stream":true' in body:
            pieces = b"%x\r\n%s\r\n0\r\n\r\n" % (len(STREAM), STREAM)
            self._transport.write(
                b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + pieces
            )
        else:
            self._transport.write(b"HTTP/1.1 200 x\r\ncontent-length: %d\r\n\r\n%s" % (len(WHOLE), WHOLE))


def test_one_connection_serves_calls_that_follow_each_other() -> None:
    async def calls() -> list[str]:
        Provider.connections = 0
        server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = OpenAIModel(Endpoint(provider="openai", model="m", api_key="k", base_url=url))
        listeners = (None, lambda _delta: None) * 3
        texts = [(await model.complete(asking(on_delta=listener))).text for listener in listeners]
        await model.close()
        server.close()
        return texts

    assert asyncio.run(calls()) == ["5"] * 6
    assert Provider.connections == 1


@pytest.mark.parametrize("trusted", [True, False])
def test_a_certificate_is_checked(trusted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "untrusted.pem")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def call() -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0, ssl=context)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = OpenAIModel(Endpoint(provider="openai", model="m", api_key="k", base_url=url))
        try:
            return (await model.complete(asking())).text
        finally:
            await model.close()
            server.close()

    if trusted:
        assert asyncio.run(call()) == "5"
        return
    with pytest.raises(ModelUnavailable, match=r"cannot be trusted at https://127.0.0.1.*self.signed") as caught:
        asyncio.run(call())
    assert "SSL_CERT_FILE" in caught.value.hint
    assert not caught.value.retryable


def test_certificates_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for file in ("missing.pem", "empty.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
        model = OpenAIModel(Endpoint(provider="openai", model="m", api_key="k", base_url="https://127.0.0.1:9/v1"))
        with pytest.raises(ModelError, match="SSL_CERT_FILE"):
            asyncio.run(model.complete(asking()))


FORGETFUL = """
import asyncio, gc, os, sys, threading
sys.path.insert(0, sys.argv[1])
from tests.models.http.test_transport import Provider, asking
from taoloop.models.openai import OpenAIModel
from taoloop.models.providers import Endpoint

loop, ports = asyncio.new_event_loop(), []
threading.Thread(target=loop.run_forever, daemon=True).start()
serving = asyncio.run_coroutine_threadsafe(loop.create_server(Provider, "127.0.0.1", 0), loop)
url = f"http://127.0.0.1:{serving.result().sockets[0].getsockname()[1]}/v1"
model = OpenAIModel(Endpoint(provider="openai", model="m", api_key="k", base_url=url))

async def calls():
    await asyncio.gather(*(model.complete(asking()) for _ in range(3)))

for _ in range(2):
    asyncio.run(calls())
gc.collect()
print(len(model._transport._sessions), Provider.connections, flush=True)
os._exit(0)  # the server's own side stays open until the end
"""


def test_a_model_that_nobody_closes_leaves_nothing_open(request: pytest.FixtureRequest) -> None:
    command = [
        sys.executable,
        "-W",
        "error::ResourceWarning",
        "-c",
        FORGETFUL,
        str(request.config.rootpath),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0 6\n", "")


@pytest.mark.parametrize("absent", ["the SDK", "aiohttp"])
@pytest.mark.parametrize("spec", ["openai:x", "azure:x", "ollama:x", "anthropic:x"])
def test_what_is_not_installed_is_named_with_its_extra(spec: str, absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = extra_of(spec)
    monkeypatch.setitem(sys.modules, extra if absent == "the SDK" else "aiohttp", None)  # as if it were not there
    env = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "AZURE_OPENAI_API_KEY": "k"}
    address = {"AZURE_OPENAI_BASE_URL": "http://127.0.0.1:9"}
    with pytest.raises(MissingExtra, match="is not installed"):
        asyncio.run(resolve_model(spec, env | address).complete(asking()))
    result = Agent(model=spec, env=env | address).run_sync("hello")
    assert result.status == "model_failed"
    assert f"pip install 'taoloop[{'openai' if absent == 'aiohttp' else extra}]'" in result.reason
