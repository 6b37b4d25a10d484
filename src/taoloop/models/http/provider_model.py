"""A model behind a provider's API: builds the request, sends it, reads or streams the reply, and knows its price."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic_core import PydanticSerializationError, to_json

from taoloop.core.attachments.files import AttachmentInfo, FileInfo
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import listed_cards
from taoloop.core.effects import ModelRequest
from taoloop.core.message import Message, ModelReply, Usage
from taoloop.dialects.prompt import defuse_markers
from taoloop.dialects.texts import TEXTS
from taoloop.errors import ModelReplyUnreadable, ModelRequestRefused, ModelUnavailable
from taoloop.models.base import DeltaFanout, DeltaListener, reply_deltas
from taoloop.models.http.errors import UnsupportedParameters, make_error, parse_provider_error, read_error
from taoloop.models.http.reply_builder import Assembly, SseDecoder, ToolNameMap, parse_json
from taoloop.models.http.transport import HttpResponse, HttpTarget, HttpTransport
from taoloop.models.providers import Endpoint, cost_usd, endpoint, knows_vision, shown_address
from taoloop.models.real_call_switch import require_allowed

_MAX_LESSONS = 10
"""How often one call is made, at most, because the model does not take what the calls before had."""


Sent = tuple[AttachmentInfo, str | None]
"""An image or a PDF that a request has, with its base64; None: the provider fetches it by its URL."""


class ProviderModel(ABC):
    """What all providers share; each API says how its requests look and how its replies are read.

    A parameter that the model refuses as unsupported (temperature, top_p, stop, max_tokens, a schema) is left out from
    then on, and a model that only streams is streamed. After any other failure nothing is
    retried: that is up to the caller.
    """

    _indispensable: ClassVar[frozenset[str]] = frozenset()
    """Parameters without which the API takes no request."""

    is_language_model = True
    dialect = "native"
    """Native tool calls, which such endpoints have."""

    max_image_chars: ClassVar[int | None] = None
    """The largest image that the API takes, in characters of base64; None: as large as any that taoloop takes."""
    max_image_side: ClassVar[int | None] = None
    """The longest side of an image that the API takes, in pixels; None: of any length."""

    def __init__(self, target: Endpoint, *, vision: bool | None = None) -> None:
        self.endpoint = target
        self.vision = vision
        self._unsupported = UnsupportedParameters(self._indispensable)
        self._transport: HttpTransport | None = None
        self._tool_cache: tuple[Any, Any, str, list[dict[str, Any]]] = ((), (), "", [])

    @classmethod
    def from_env(cls, provider: str, model: str, env: Mapping[str, str]) -> Self:
        """The model as the environment configures its provider.

        Raises:
            MissingKey: a variable is not set; names it.
        """
        return cls(endpoint(provider, model, env))

    @property
    def sees_images(self) -> bool:
        """Whether the model gets images: as `vision` says, else as the name of the model is known for."""
        return knows_vision(self.endpoint.model) if self.vision is None else self.vision

    @property
    def reads_pdf(self) -> bool:
        """Whether the model gets PDFs: where its API takes them, those that see images."""
        return self.takes_pdf and self.sees_images

    @property
    def takes_pdf(self) -> bool:
        """Whether the API takes PDFs in messages."""
        return False

    @property
    def spec(self) -> str:
        """`PROVIDER:MODEL`."""
        return f"{self.endpoint.provider}:{self.endpoint.model}"

    @property
    def model(self) -> str:
        """The name of the model at its provider."""
        return self.endpoint.model

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One reply, streamed where there is a listener. A provider that reports no usage leaves it at zero.

        Raises:
            ModelError: there is none; the class says why.
            MissingExtra: the provider's SDK is not installed.
        """
        require_allowed(self.spec)
        names = _names_of(request)
        if self._transport is None:
            self._transport = HttpTransport(self._target())
        for lessons_left in reversed(range(_MAX_LESSONS)):
            streamed = request.on_delta is not None or self._unsupported.whole_replies
            body = self._sendable_body(request, names, streamed=streamed)
            reader = self._reader(names, request.on_delta) if streamed else None
            try:
                answer = await self._transport.post(
                    _encode(body), timeout_s=request.timeout_s, headers=self._headers(body), reader=reader
                )
            except ModelUnavailable:
                if reader is None or not reader.whole:
                    raise
                return reader.reply()  # only the end of the stream was lost, and it has been paid for
            if reader is not None and answer.streamed:
                return reader.reply()
            if answer.ok:
                return self._read_whole(answer, names, request)
            refusal = parse_provider_error(answer.status, answer.body, answer.headers)
            if not lessons_left or not self._unsupported.learn(refusal, body, _schema_text(request)):
                raise make_error(refusal, self.endpoint)
        raise AssertionError("the last round returns or raises")

    def target(self) -> HttpTarget:
        """Where and how the official SDK would call.

        Raises:
            ModelError: it cannot call the address; says why.
            MissingExtra: the provider's SDK is not installed.
        """
        return self._target()

    def batch_body(self, request: ModelRequest) -> tuple[dict[str, Any], Mapping[str, str]]:
        """A request as a batch takes it, whole and not streamed, and the headers that it needs.

        Raises:
            ModelRequestRefused: the API has no such request.
        """
        body = self._sendable_body(request, _names_of(request), streamed=False)
        return body, self._headers(body) or {}

    def batch_reply(self, answer: HttpResponse, body: Mapping[str, Any], request: ModelRequest) -> ModelReply | None:
        """The reply in an answer to a body of `batch_body`; None: send it anew, without what the model does not take.

        Raises:
            ModelError: there is no reply; the class says why.
        """
        if answer.ok:
            return self._read_whole(answer, _names_of(request), request)
        refusal = parse_provider_error(answer.status, answer.body, answer.headers)
        if self._unsupported.learn(refusal, body, _schema_text(request)):
            return None
        raise make_error(refusal, self.endpoint)

    def _sendable_body(self, request: ModelRequest, names: ToolNameMap, *, streamed: bool) -> dict[str, Any]:
        body, untaken = self._body(request, names, streamed=streamed), self._unsupported.parameters
        return {name: value for name, value in body.items() if value is not None and name not in untaken}

    def check_used(self, replies: int) -> None:  # noqa: B027  # there is nothing to implement
        """A provider has no script to check."""

    async def close(self) -> None:
        """Close the connections of the running loop."""
        if self._transport is not None:
            await self._transport.close()

    @abstractmethod
    def _target(self) -> HttpTarget:
        """Where and how the official SDK would call."""

    @abstractmethod
    def _body(self, request: ModelRequest, names: ToolNameMap, *, streamed: bool) -> dict[str, Any]:
        """The request as the API takes it; None stands for what is not sent."""

    @abstractmethod
    def _tool(self, card: ToolCard, names: ToolNameMap, language: str) -> dict[str, Any]:
        """One tool as the API takes it, described in the language of the run."""

    @abstractmethod
    def _reader(self, names: ToolNameMap, on_delta: DeltaListener | None) -> ReplyStream:
        """What reads a reply, streamed or whole."""

    def _headers(self, _body: Mapping[str, Any]) -> Mapping[str, str] | None:
        """Headers of this one request, over those of the SDK."""
        return None

    def _read_whole(self, answer: HttpResponse, names: ToolNameMap, request: ModelRequest) -> ModelReply:
        try:
            value = parse_json(answer.body)
        except ValueError as error:
            raise self.unreadable(_describe_answer(answer)) from error
        if isinstance(value, dict) and value.get("error"):
            raise make_error(read_error(value, 200), self.endpoint)
        try:
            reply = self._reader(names, None).read_whole(value)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise self.unreadable("JSON of another form") from error
        if request.on_delta is not None:  # a server that does not stream: all of it at once
            send = DeltaFanout(request.on_delta)
            for delta in reply_deltas(reply):
                send(delta)
        return reply

    def unreadable(self, what: str) -> ModelReplyUnreadable:
        """The error for an answer that is no reply; HTML comes from another kind of server, again and again."""
        return ModelReplyUnreadable(
            f"{self.spec} answered something that cannot be read: {what}.",
            hint=f"Check that {shown_address(self.endpoint.address)} is the address of its API.",
            retryable=not what.startswith("HTML"),
        )

    def cost(self, model: str, usage: Usage | None, *, cache_write_tokens: int = 0) -> float | None:
        """What a reply cost, None where that is not known."""
        target = self.endpoint
        if target.kind.free:
            return 0.0
        if usage is None:
            return None
        for name in (model, target.model):
            cost = cost_usd(target.address, name, usage, cache_write_tokens=cache_write_tokens)
            if cost is not None:
                return cost
        return None

    def _tools(self, request: ModelRequest, names: ToolNameMap) -> tuple[list[dict[str, Any]], bool]:
        """The tools to send, and whether none may be called."""
        cards = request.tools if request.native else ()
        closing = request.native and not cards and any(message.tool_calls for message in request.messages)
        if closing:  # some servers refuse messages with calls in a request without tools
            cards = request.earlier_tools or request.trace.agent.tools
        agent, cache = request.trace.agent, self._tool_cache
        if cache[0] is not cards or cache[1] is not agent.tools or cache[2] != agent.language:
            tools = [self._tool(card, names, agent.language) for card in listed_cards(cards)]
            self._tool_cache = cache = (cards, agent.tools, agent.language, tools)  # the same for all turns of a run
        return cache[3], closing

    def split_attachments(self, request: ModelRequest, message: Message) -> tuple[list[Sent], str]:
        """The images and PDFs of a message that are sent, and a text with the files that are texts and what is unsent.

        Each comes with its base64, or with None where the provider fetches it.
        """
        language, data = request.trace.agent.language, request.image_data or {}
        sent: list[Sent] = []
        unsent: dict[str, list[str]] = {}
        for image in message.images:
            body, side = data.get(image.ref), max(image.width, image.height)
            if not self.sees_images:
                unsent.setdefault("images_unseen", []).append(image.ref)
            elif image.url:
                sent.append((image, None))
            elif body is None:
                unsent.setdefault("images_left_out", []).append(image.ref)
            elif len(body) > (self.max_image_chars or math.inf) or side > (self.max_image_side or math.inf):
                unsent.setdefault("images_too_large", []).append(image.ref)
            else:
                sent.append((image, body))
        texts: list[str] = []
        for file in message.files:
            body = data.get(file.ref)
            if file.is_pdf and not self.reads_pdf:
                unsent.setdefault("files_unread", []).append(file.ref)
            elif body is None:
                unsent.setdefault("images_left_out", []).append(file.ref)
            elif file.is_text:
                texts.append(_text_of_file(request, file, body))
            else:
                sent.append((file, body))
        notes = (TEXTS.text(language, name, refs=", ".join(refs)) for name, refs in unsent.items())
        return sent, "\n".join([*texts, *notes])

    @staticmethod
    def _stops(request: ModelRequest) -> list[str]:
        """The texts at which the provider is to end the reply."""
        return [*request.stop, *(request.settings or {}).get("stop", ())]

    def _reply_schema(self, request: ModelRequest) -> Mapping[str, Any] | None:
        """The schema to hold the reply to, where the provider can and has not refused it."""
        when = self.endpoint.structured
        if request.reply_schema is None or when == "never":
            return None
        if when == "without_tools" and request.native and request.tools:
            return None
        return None if _schema_text(request) in self._unsupported.schemas else request.reply_schema


class ReplyStream(ABC):
    """Reads one reply, streamed or whole; each API says what its events mean."""

    _unit: ClassVar[str]
    """What one event of the stream is, for messages."""

    def __init__(self, model: ProviderModel, names: ToolNameMap, on_delta: DeltaListener | None) -> None:
        self._model = model
        self._assembly = Assembly(model.spec, names, on_delta)
        self._events = SseDecoder()
        self._answered_by = ""
        self._done = False

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the stream; True at its last event.

        Raises:
            ModelError: an event is an error, cannot be read, or is larger than a reply may be.
        """
        for data in self._events.feed(piece):
            try:
                self._take(data)
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                raise self._model.unreadable(f"a piece of its stream is no {self._unit}") from error
            if self._done:
                return True
        self._assembly.bound(self._events.pending)
        return False

    @property
    def whole(self) -> bool:
        """Whether the reply has all of its parts."""
        return self._done

    def reply(self) -> ModelReply:
        """The reply.

        Raises:
            ModelUnavailable: the stream ended before the reply was whole.
            ModelContentRefused: the model refused to answer.
        """
        if not self.whole:
            raise ModelUnavailable(f"{self._model.spec} ended its stream before the reply was whole.")
        return self._reply()

    @abstractmethod
    def read_whole(self, value: Mapping[str, Any]) -> ModelReply:
        """The reply in an answer that was not streamed. A KeyError, TypeError or the like says that it is none.

        Raises:
            ModelContentRefused: the model refused to answer.
        """

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Add one event. A KeyError, TypeError or the like says that it is none."""

    @abstractmethod
    def _reply(self) -> ModelReply:
        """The reply, once it is whole."""

    def _finish(self, finish_reason: str | None, usage: Usage | None, *, cache_write_tokens: int = 0) -> ModelReply:
        model = self._answered_by or self._model.model
        return self._assembly.reply(
            finish_reason=finish_reason,
            model=model,
            usage=usage or Usage(),
            cost_usd=self._model.cost(model, usage, cache_write_tokens=cache_write_tokens),
        )


def _names_of(request: ModelRequest) -> ToolNameMap:
    return ToolNameMap(card.name for card in (*request.trace.agent.tools, *request.tools))


def chosen_tool(request: ModelRequest) -> str | None:
    """The `tool_choice` of the settings, in a step that offers tools as tools of the API; else None.

    Raises:
        ModelRequestRefused: it names a tool that is not on offer.
    """
    choice: str | None = (request.settings or {}).get("tool_choice")
    if choice is None or request.purpose != "decide" or not request.native or not request.tools:
        return None
    if choice not in ("auto", "required") and choice not in (card.name for card in listed_cards(request.tools)):
        raise ModelRequestRefused(
            f"The tool_choice {choice!r} is no tool of this step.",
            hint="Write `auto`, `required` or the name of a tool on offer.",
        )
    return choice


def _schema_text(request: ModelRequest) -> str | None:
    schema = request.reply_schema
    return None if schema is None else json.dumps(schema, sort_keys=True, default=str)


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return to_json(body)
    except PydanticSerializationError:  # a text with half of a surrogate pair: escaped, as JSON allows
        return json.dumps(body, default=str).encode()


def _describe_answer(answer: HttpResponse) -> str:
    """What an answer is that is no JSON, in a few words."""
    start = answer.body[:200].lstrip().lower()
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not start:
        return "nothing"
    if start.startswith((b"<!doctype html", b"<html")) or kind == "text/html":
        return "HTML, as a web page or a proxy sends it"
    try:
        answer.body.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"bytes that are not UTF-8 (byte {error.start})"
    return "broken JSON" if kind.endswith("json") else f"it is not JSON ({kind or 'of no stated type'})"


def _text_of_file(request: ModelRequest, file: FileInfo, body: str) -> str:
    """A file that is a text, framed by the nonce of the run: whoever wrote it is not whoever asks."""
    started = request.trace.started
    nonce = "" if started is None else started.nonce
    text = defuse_markers(b64decode(body).decode("utf-8-sig", "replace"), nonce)
    return TEXTS.text(request.trace.agent.language, "file_text", nonce=nonce, name=file.ref, content=text)
