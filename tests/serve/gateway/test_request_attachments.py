"""Images and files in requests: passed to the agent, fetched where that is allowed, refused with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.pictures import PDF, png
from tests.serve.gateway.clients import post
from tests.serve.gateway.conftest import Running, Upstream, agent, client, config_of, gateway, upstream

from taoloop import File, Image
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.config.model import ServedAgent
from taoloop.testing import HttpDouble
from taoloop.tools.egress.rules import EgressRules

CAT, CHART = Image(png(4, 4)), Image(png(5, 5))


def data_uri(image: Image, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{image.base64}"


TABLE = File(b"month,sum\nmay,7\n", name="sales.csv")


def file_part(file: File) -> dict[str, Any]:
    data = f"data:{file.media_type};base64,{file.base64}"
    return {"type": "file", "file": {"filename": file.name, "file_data": data}}


def part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


def sent_file(data: str, name: str = "a") -> dict[str, Any]:
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def asking(*parts: Any, text: str = "What is in it?") -> Any:
    return [{"role": "user", "content": [{"type": "text", "text": text}, *parts]}]


def sent_urls(body: dict[str, Any]) -> list[str]:
    """The images that the model server got, in the order of the messages."""
    contents = (message["content"] for message in body["messages"] if isinstance(message["content"], list))
    return [item["image_url"]["url"] for content in contents for item in content if item["type"] == "image_url"]


@pytest.fixture(scope="module")
def seeing() -> Iterator[tuple[Running, Upstream]]:
    with upstream("A cat.") as server, gateway(config_of(agent(server, vision=True))) as running:
        yield running, server


def test_a_data_uri_of_a_chat_reaches_the_model_and_the_trace(seeing: tuple[Running, Upstream]) -> None:
    running, server = seeing
    answer = client(running).chat.completions.create(
        model="assistant", messages=asking(part(data_uri(CAT, "image/jpeg")))
    )
    assert answer.choices[0].message.content == "A cat."
    assert sent_urls(server.asked[-1]) == [data_uri(CAT)], "its type is that of its bytes"
    trace = running.traces()[-1]
    assert trace.started is not None
    assert (trace.task, trace.started.images) == ("What is in it?", (CAT.info,))


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_an_image_alone_is_a_question(seeing: tuple[Running, Upstream], api: str) -> None:
    """A person who sends a picture without words asks what the model makes of it."""
    running, server = seeing
    if api == "chat":
        alone: Any = [{"role": "user", "content": [part(data_uri(CAT))]}]
        answer = client(running).chat.completions.create(model="assistant", messages=alone)
        assert answer.choices[0].message.content == "A cat."
    else:
        sent: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": data_uri(CAT)}]}]
        assert client(running).responses.create(model="assistant", input=sent).output_text == "A cat."
    assert sent_urls(server.asked[-1]) == [data_uri(CAT)]
    trace = running.traces()[-1]
    assert trace.started is not None
    assert (trace.task, trace.started.images) == ("", (CAT.info,))


def test_files_reach_the_model_in_its_form(seeing: tuple[Running, Upstream]) -> None:
    running, server = seeing
    answer = client(running).chat.completions.create(
        model="assistant", messages=asking(file_part(TABLE), text="How much?")
    )
    assert answer.choices[0].message.content == "A cat."
    assert "may,7" in str(server.asked[-1])
    started = running.traces()[-1].started
    assert started is not None
    assert (started.files, started.tainted) == ((TABLE.info,), True)
    content: Any = [
        {"type": "input_text", "text": "How much?"},
        {"type": "input_file", "filename": "sales.csv", "file_data": file_part(TABLE)["file"]["file_data"]},
    ]
    first = client(running).responses.create(model="assistant", input=[{"role": "user", "content": content}])
    assert "may,7" in str(server.asked[-1])
    client(running).responses.create(model="assistant", input="And in June?", previous_response_id=first.id)
    assert "may,7" in str(server.asked[-1]), "the file of the turn before"


def test_images_of_earlier_messages_stay_in_their_places(seeing: tuple[Running, Upstream]) -> None:
    running, server = seeing
    earlier = [*asking(part(data_uri(CAT))), {"role": "assistant", "content": "A cat."}]
    client(running).chat.completions.create(model="assistant", messages=[*earlier, *asking(part(data_uri(CHART)))])
    assert sent_urls(server.asked[-1]) == [data_uri(CAT), data_uri(CHART)]
    client(running).chat.completions.create(model="assistant", messages=[*earlier, {"role": "user", "content": "So?"}])
    assert sent_urls(server.asked[-1]) == [data_uri(CAT)]


def test_responses_take_attachments_and_continue_with_them(seeing: tuple[Running, Upstream]) -> None:
    running, server = seeing
    content: Any = [
        {"type": "input_text", "text": "What is in it?"},
        {"type": "input_image", "image_url": data_uri(CAT), "detail": "auto"},
    ]
    first = client(running).responses.create(model="assistant", input=[{"role": "user", "content": content}])
    assert sent_urls(server.asked[-1]) == [data_uri(CAT)]
    client(running).responses.create(model="assistant", input="Which colour?", previous_response_id=first.id)
    assert sent_urls(server.asked[-1]) == [data_uri(CAT)]


@pytest.mark.parametrize(
    ("messages", "param", "why"),
    [
        (asking(part("data:image/png;base64,aGVsbG8=")), "messages[0].content[1].image_url.url", "no PNG, JPEG"),
        (asking(part("data:image/png;base64,***")), "messages[0].content[1].image_url.url", "base64"),
        (asking(part("data:image/png,abc")), "messages[0].content[1].image_url.url", "data URI with base64"),
        (asking(part("file:///etc/passwd")), "messages[0].content[1].image_url.url", "data URI with base64"),
        (asking(part("http://127.0.0.1/a.png")), "messages[0].content[1].image_url.url", "fetches no images"),
        (asking({"type": "image_url"}), "messages[0].content[1].image_url", "Missing"),
        (asking({"type": "image_url", "image_url": {"url": 5}}), "messages[0].content[1].image_url.url", ""),
        (asking(*[part(data_uri(CAT))] * 21), "messages[0].content[21].image_url.url", "at most 20 images"),
        (asking(part("data:image/png;base64," + CAT.base64[:-16])), "messages[0].content[1].image_url.url", "cut off"),
        (asking(text=" "), "messages[0].content", "no text"),
        (asking({"type": "file", "file": {"file_id": "f"}}), "messages[0].content[1].file.file_id", "keeps no files"),
        (asking(sent_file("https://a.example/a.pdf")), "messages[0].content[1].file.file_data", "no data URI"),
        (asking(sent_file("data:text/csv;base64,")), "messages[0].content[1].file.file_data", "is empty"),
        (asking(sent_file("data:text/csv;base64,AA==")), "messages[0].content[1].file.file_data", "octet-stream"),
        (asking(sent_file("data:;base64,aGk=", "a.pdf")), "messages[0].content[1].file.file_data", "named as"),
        (asking(file_part(File(PDF))), "messages[0].content[1].file.file_data", "not known to read PDF"),
        (
            [{"role": "system", "content": [part(data_uri(CAT))]}, *asking()],
            "messages[0].content[0]",
            "only texts can be read",
        ),
    ],
)
def test_a_bad_image_is_a_400_that_names_the_field(
    seeing: tuple[Running, Upstream], messages: Any, param: str, why: str
) -> None:
    running, server = seeing
    before = len(server.asked)
    status, body = post(running, {"model": "assistant", "messages": messages})
    assert (status, body["error"]["param"]) == (400, param)
    assert why in body["error"]["message"]
    assert len(server.asked) == before


def test_a_model_that_does_not_see_is_a_400_unless_something_describes() -> None:
    with upstream("Hello.") as server:
        blind = agent(server)
        described = replace(blind, name="described", describe_image=lambda image: f"{image.info.width} red pixels")
        with gateway(config_of(blind, described)) as running:
            with pytest.raises(openai.BadRequestError) as refused:
                client(running).chat.completions.create(model="assistant", messages=asking(part(data_uri(CAT))))
            assert (refused.value.code, refused.value.param) == (
                "images_not_supported",
                "messages[0].content[1].image_url.url",
            )
            alone: Any = {"model": blind.name, "messages": [{"role": "user", "content": [part(data_uri(CAT))]}]}
            status, body = post(running, alone)
            assert (status, body["error"]["code"]) == (400, "images_not_supported")
            assert "sees no images" in body["error"]["message"]
            assert server.asked == []
            client(running).chat.completions.create(model="described", messages=asking(part(data_uri(CAT))))
        assert sent_urls(server.asked[-1]) == []
        assert f"{CAT.info.ref}: 4 red pixels]" in str(server.asked[-1]["messages"])


def test_a_url_is_fetched_only_where_the_rules_allow_it() -> None:
    def answer(body: bytes, status: int = 200) -> Any:
        fields = f"content-type: image/png\r\ncontent-length: {len(body)}\r\nconnection: close"
        return lambda connection: connection.sendall(f"HTTP/1.1 {status} X\r\n{fields}\r\n\r\n".encode() + body)

    with upstream("A cat.") as server, ImageServer([answer(CAT.data), answer(b"gone", 404)]) as images:
        rules = EgressRules(allow=(f"127.0.0.1:{images.port}",), only_allowed=True)
        served = ServedAgent(name="assistant", agent=agent(server, vision=True), image_urls=rules)
        with gateway(config_of(served)) as running:
            url = f"{images.url}/cat.png"
            client(running).chat.completions.create(model="assistant", messages=asking(part(url)))
            assert sent_urls(server.asked[-1]) == [data_uri(CAT)]
            for other, why in ((url, "answered 404"), ("http://localhost:9/a.png", "not allowed")):
                status, body = post(running, {"model": "assistant", "messages": asking(part(other))})
                assert status == 400
                assert why in body["error"]["message"], body


class ImageServer(HttpDouble):
    """The same for GET requests, which have no body."""

    def __enter__(self) -> ImageServer:
        server = super().__enter__()
        handler: Any = self._server.RequestHandlerClass
        answers: list[Any] = self.answers
        handler.do_GET = lambda request: answers.pop(0)(request.connection)
        return server


def test_a_gateway_file_says_where_images_may_be_fetched_from(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("model: offline\nvision: true\n")
    path = tmp_path / "gateway.yaml"
    path.write_text("server:\n  image_urls: {allow: [images.example.com], only_allowed: true}\nagents:\n  a: a.yaml\n")
    [served] = load_config(path).agents.values()
    assert served.image_urls == EgressRules(allow=("images.example.com",), only_allowed=True)
    assert served.agent.vision is True
    path.write_text("agents:\n  a: a.yaml\n")
    [served] = load_config(path).agents.values()
    assert served.image_urls is None
