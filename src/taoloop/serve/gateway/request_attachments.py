"""Images and files in requests, as those of a run: `image_url` and `file` of chat completions, and the like of others.

Both come as data URIs (RFC 2397, base64). An image at an http(s) URL is fetched only where `server.image_urls` of the
gateway file allows its host, by the same egress rules as tools have. It is not passed on to the model's server either,
which may stand in a network that clients must not reach. The field `detail` has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from taoloop.core.attachments.files import Attachment, File, infos_of
from taoloop.core.images import MAX_IMAGE_BYTES, MAX_REQUEST_BYTES, MAX_REQUEST_IMAGES, Image
from taoloop.core.message import Message
from taoloop.errors import EgressFailed, EgressRefused, FileError, ImageError
from taoloop.models.base import sees_images
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field, missing
from taoloop.serve.gateway.request_schema import ChatMessage, MessagePart
from taoloop.tools.egress.rules import EgressRules

_DATA_URI = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAttachment:
    """An image or a file as a client sent it."""

    param: str
    """The field that it came in, for error messages."""

    url: str
    """A data URI, or the address of an image."""

    filename: str | None = None
    """The name of a file; None: it is an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAttachments:
    """The images and files of a request, taken in: those of the task, and those of the messages before it."""

    task: tuple[Attachment, ...] = ()
    """Those of the question."""

    history: tuple[Message, ...] = ()
    """The messages before it, with what a trace says of theirs."""

    all: tuple[Attachment, ...] = ()
    """All of them, with their bytes."""


def sent_attachments(message: ChatMessage, param: str) -> tuple[SentAttachment, ...]:
    """The images and files in a message of the user, which alone may have some.

    Raises:
        ApiError: a part is neither a text, nor an image or a file that can be taken; names it.
    """
    sent: list[SentAttachment] = []
    for number, part in enumerate(message.content if isinstance(message.content, list) else ()):
        field = f"{param}[{number}]"
        if part.type == "image_url" and message.role == "user":
            if part.image_url is None:
                raise missing(f"{field}.image_url")
            is_plain = isinstance(part.image_url, str)  # as responses have it
            url = part.image_url if isinstance(part.image_url, str) else part.image_url.url
            field = f"{field}.image_url" if is_plain else f"{field}.image_url.url"
            if not _DATA_URI.match(url) and not _WEB_URL.match(url):
                raise invalid_field(field, "It must be a data URI with base64, or an http(s) URL.")
            sent.append(SentAttachment(param=field, url=url))
        elif part.type == "file" and message.role == "user":
            sent.append(_sent_file(part, f"{field}.file"))
        elif part.type not in ("text", "refusal"):
            only = "only texts, images and files can be read" if message.role == "user" else "only texts can be read"
            raise invalid_field(field, f"`{field}` is of the type {part.type[:80]!r}; {only}.")
    return tuple(sent)


def _sent_file(part: MessagePart, field: str) -> SentAttachment:
    if part.file is None:
        raise missing(field)
    if part.file.file_id is not None:
        raise invalid_field(f"{field}.file_id", "This server keeps no files. Send the file itself, as `file_data`.")
    if part.file.file_data is None:
        raise missing(f"{field}.file_data")
    return SentAttachment(param=f"{field}.file_data", url=part.file.file_data, filename=part.file.filename or "")


async def take_attachments(
    sent: Mapping[int | None, Sequence[SentAttachment]],
    history: Sequence[Message],
    agent: Agent,
    rules: EgressRules | None,
) -> RequestAttachments:
    """Take in the images and files of a request: of its question (the key None), and of earlier messages (by index).

    Of the earlier ones only the newest that fit into a request to a model are accepted, as the model sees no more.

    Raises:
        ApiError: one cannot be fetched, or is none; or the agent's model sees no images, and nothing describes them, or
            reads no PDF. Names the field.
    """
    bound = bind(agent)
    first = next((item for items in sent.values() for item in items if item.filename is None), None)
    if first is not None and not sees_images(bound.model) and agent.describe_image is None:
        message = "The model of this agent sees no images. Send the text alone, or ask for an agent that sees."
        raise invalid(message, first.param, "images_not_supported")
    room, count = MAX_REQUEST_BYTES, 0
    taken: dict[int | None, tuple[Attachment, ...]] = {}
    for index in sorted(sent, key=lambda index: -1 if index is None else len(history) - index):
        accepted: list[Attachment] = []
        for item in sent[index]:
            loaded = await _load(item, rules)
            room, count = room - loaded.info.size_bytes, count + 1
            if room >= 0 and count <= MAX_REQUEST_IMAGES:
                accepted.append(loaded)
            elif index is None:
                limit = f"{MAX_REQUEST_IMAGES} images and files with {MAX_REQUEST_BYTES:,} bytes together"
                raise invalid_field(item.param, f"A message takes at most {limit}.")
        try:
            taken[index] = await bound.take_attachments(accepted)
        except (ImageError, FileError) as error:
            raise invalid_field(sent[index][0].param, f"{error.message} {error.hint}") from None
    turns = tuple(
        replace(message, **infos_of(taken[index])) if index in taken else message
        for index, message in enumerate(history)
    )
    every = tuple(item for items in taken.values() for item in items)
    return RequestAttachments(task=taken.get(None, ()), history=turns, all=every)


async def _load(sent: SentAttachment, rules: EgressRules | None) -> Attachment:
    try:
        if sent.filename is not None:
            return File.from_data_uri(sent.url, name=sent.filename)
        if match := _DATA_URI.match(sent.url):
            return Image.from_base64(sent.url[match.end() :])
        return Image(await _fetch(sent, rules))
    except (ImageError, FileError) as error:
        raise invalid_field(sent.param, f"{error.message} {error.hint}".strip()) from None


async def _fetch(sent: SentAttachment, rules: EgressRules | None) -> bytes:
    if rules is None:
        message = "This server fetches no images. Send the image itself, as a data URI (`data:image/png;base64,…`)."
        raise invalid(message, sent.param, "image_url_not_allowed")
    from taoloop.tools.egress.client import EgressClient  # noqa: PLC0415  # only where it is allowed

    client = EgressClient(rules, max_bytes=MAX_IMAGE_BYTES)
    try:
        response = await client.send("GET", sent.url, follow=True, types=("image/*", "application/octet-stream"))
    except EgressRefused as error:
        raise invalid(error.message, sent.param, "image_url_not_allowed") from None
    except EgressFailed as error:
        raise _not_fetched(sent, error.message) from None
    finally:
        await client.close()
    if not 200 <= response.status < 300:
        raise _not_fetched(sent, f"its server answered {response.status}.")
    if response.is_cut:
        raise _not_fetched(sent, f"it has more than {MAX_IMAGE_BYTES:,} bytes.")
    return response.body


def _not_fetched(sent: SentAttachment, why: str) -> ApiError:
    return invalid(f"The image at `{sent.param}` could not be fetched: {why}", sent.param, "invalid_image_url")
