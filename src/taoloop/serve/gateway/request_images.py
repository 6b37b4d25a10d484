"""Images in requests: `image_url` of chat completions and `input_image` of responses, as images of a run.

An image comes as a data URI (RFC 2397, base64). A URL with http or https is fetched only where `server.image_urls` of
the gateway file allows its host, by the same egress rules as tools have. The field `detail` has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from taoloop.core.images import MAX_IMAGE_BYTES, MAX_REQUEST_BYTES, MAX_REQUEST_IMAGES, Image
from taoloop.core.message import Message
from taoloop.errors import EgressFailed, EgressRefused, ImageError
from taoloop.models.base import sees_images
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field, missing
from taoloop.serve.gateway.request_schema import ChatMessage
from taoloop.tools.egress.rules import EgressRules

_DATA_URI = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentImage:
    """An image as a client sent it."""

    param: str
    """The field that it came in, for error messages."""

    url: str
    """A data URI, or the address of the image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestImages:
    """The images of a request, taken in: those of the task, and those of the messages before it."""

    task: tuple[Image, ...] = ()
    """The images of the question."""

    history: tuple[Message, ...] = ()
    """The messages before it, with what a trace says of their images."""

    all: tuple[Image, ...] = ()
    """All images, with their bytes."""


def sent_images(message: ChatMessage, param: str) -> tuple[SentImage, ...]:
    """The images in a message of the user, which alone may have some.

    Raises:
        ApiError: a part is neither a text nor an image that can be taken; names it.
    """
    images: list[SentImage] = []
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
            images.append(SentImage(param=field, url=url))
        elif part.type not in ("text", "refusal"):
            only = "only texts and images can be read" if message.role == "user" else "only texts can be read"
            raise invalid_field(field, f"`{field}` is of the type {part.type[:80]!r}; {only}.")
    return tuple(images)


async def take_images(
    sent: Mapping[int | None, Sequence[SentImage]],
    history: Sequence[Message],
    agent: Agent,
    rules: EgressRules | None,
) -> RequestImages:
    """Take in the images of a request: of its question (the key None), and of messages before it (by their index).

    Of the earlier ones only the newest that fit into a request to a model are accepted, as the model sees no more.

    Raises:
        ApiError: an image cannot be fetched, or is none; or the agent's model sees no images, and nothing describes
            them. Names the field.
    """
    bound = bind(agent)
    first = next((image for images in sent.values() for image in images), None)
    if first is not None and not sees_images(bound.model) and agent.describe_image is None:
        message = "The model of this agent sees no images. Send the text alone, or ask for an agent that sees."
        raise invalid(message, first.param, "images_not_supported")
    room, count = MAX_REQUEST_BYTES, 0
    taken: dict[int | None, tuple[Image, ...]] = {}
    for index in sorted(sent, key=lambda index: -1 if index is None else len(history) - index):
        accepted: list[Image] = []
        for image in sent[index]:
            loaded = await _load(image, rules)
            room, count = room - loaded.info.size_bytes, count + 1
            if room >= 0 and count <= MAX_REQUEST_IMAGES:
                accepted.append(loaded)
            elif index is None:
                limit = f"{MAX_REQUEST_IMAGES} images with {MAX_REQUEST_BYTES:,} bytes together"
                raise invalid_field(image.param, f"A message takes at most {limit}.")
        try:
            taken[index] = await bound.take_images(accepted)
        except ImageError as error:
            raise invalid_field(sent[index][0].param, f"{error.message} {error.hint}") from None
    turns = tuple(
        replace(message, images=tuple(image.info for image in taken[index])) if index in taken else message
        for index, message in enumerate(history)
    )
    every = tuple(image for images in taken.values() for image in images)
    return RequestImages(task=taken.get(None, ()), history=turns, all=every)


async def _load(sent: SentImage, rules: EgressRules | None) -> Image:
    try:
        if match := _DATA_URI.match(sent.url):
            return Image.from_base64(sent.url[match.end() :])
        return Image(await _fetch(sent, rules))
    except ImageError as error:
        raise invalid_field(sent.param, f"{error.message} {error.hint}".strip()) from None


async def _fetch(sent: SentImage, rules: EgressRules | None) -> bytes:
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


def _not_fetched(sent: SentImage, why: str) -> ApiError:
    return invalid(f"The image at `{sent.param}` could not be fetched: {why}", sent.param, "invalid_image_url")
