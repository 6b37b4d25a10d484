"""`fetch`: gets one address of the web and gives what it says as text, JSON, or bytes."""

from __future__ import annotations

import asyncio
import base64
import codecs
import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import Field
from pydantic_core import to_json
from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.errors import EgressFailed
from taoloop.tools.egress.addresses import Resolver, resolve_host
from taoloop.tools.egress.client import EgressClient
from taoloop.tools.egress.response import EgressResponse
from taoloop.tools.function import function_tool
from taoloop.tools.load_result import LoadProblem, LoadResult
from taoloop.tools.tool import Tool
from taoloop.tools.web import isolated_reader as pages
from taoloop.tools.web.settings import FetchSettings

if TYPE_CHECKING:
    import ssl

_ACCEPT = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5"
_HTML = ("text/html", "application/xhtml+xml")
_JSON = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?json")
_TEXT = re.compile(
    r"text/.*|.*\+(?:xml|yaml)|application/(?:xml|(?:x-)?javascript|ecmascript|(?:x-)?yaml|toml|sql|graphql|x-sh"
    r"|(?:x-)?ndjson|json-seq|jsonl|x-www-form-urlencoded|rtf|x-tex)"
)
_UNKNOWN = ("", "application/octet-stream", "application/x-unknown")
_LOOKS_LIKE_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_LARGE = 100_000  # bytes; what is read longer than this leaves the event loop to others

_ERRORS = (
    ErrorCard(code="bad_url", advice="Give a whole address such as https://example.com/page."),
    ErrorCard(code="egress_refused", advice="Use another address; this one may not be reached from here."),
    ErrorCard(code="name_not_found", retryable=True, advice="Check the spelling of the host."),
    ErrorCard(code="connection_failed", retryable=True, advice="Check the address, or try again later."),
    ErrorCard(code="tls_failed", advice="Use another address; this server cannot be trusted."),
    ErrorCard(code="http_timeout", retryable=True, advice="Try again later, or another address."),
    ErrorCard(code="http_broken", retryable=True, advice="Try again once, or use another address."),
    ErrorCard(code="too_large", advice="Use the address of a smaller part."),
    ErrorCard(code="wrong_type", advice="Use the address of another form of it."),
    ErrorCard(code="too_many_redirects", advice="Give the address that the page has in the end."),
    ErrorCard(code="unreadable", advice="Use another address."),
)


class Fetched(TypedDict):
    """What `fetch` gives: one of `text`, `json` and `base64`."""

    status: int
    url: str
    type: str
    title: NotRequired[str]
    text: NotRequired[str]
    json: NotRequired[Any]
    base64: NotRequired[str]
    bytes: NotRequired[int]
    note: NotRequired[str]


def fetch_tools(
    settings: FetchSettings | None = None,
    *,
    resolver: Resolver = resolve_host,
    tls: Callable[[], ssl.SSLContext] | None = None,
) -> LoadResult:
    """The tool `fetch` with these settings; a problem instead where its libraries are not installed.

    `resolver` and `tls` are as for `EgressClient`.
    """
    settings = settings if settings is not None else FetchSettings()
    if missing := [name for name in ("httpx2", "resiliparse") if find_spec(name) is None]:
        problem = LoadProblem(
            source=settings.name,
            place="",
            message=f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed.",
            hint="pip install 'taoloop[web]'",
        )
        return LoadResult(problems=(problem,))
    return LoadResult(tools=(_fetch_tool(settings, resolver, tls),))


def _fetch_tool(settings: FetchSettings, resolver: Resolver, tls: Callable[[], ssl.SSLContext] | None) -> Tool:
    client = EgressClient(
        settings.rules,
        timeout_s=settings.timeout_s,
        max_bytes=settings.max_bytes,
        max_redirects=settings.max_redirects,
        resolver=resolver,
        tls=tls,
    )
    headers = {"Accept": _ACCEPT, "User-Agent": settings.user_agent}

    async def fetch(url: Annotated[str, Field(min_length=1, max_length=8_000)]) -> Fetched:
        """Get one address of the web by HTTP GET and read it: pages as text with their links, JSON as JSON.

        Redirects are followed; `url` of the result is the address that answered. A `status` of 400 or more means that
        the server refused or has no such page, and the text is what it said of that.

        Args:
            url: The whole address, with https:// or http://.
        """
        answer = await client.send("GET", url, headers=headers, follow=True, types=settings.types)
        return await _read(answer, settings)

    return function_tool(
        fetch,
        name=settings.name,
        tier="read",
        egress=("url",),
        roles={"url": "target"},
        use_when="The address of a page, a document or a JSON resource is known and what it says is needed.",
        avoid_when="No address is known, or something must be sent, changed or signed in to.",
        errors=_ERRORS,
        examples=(ExampleCard(args={"url": "https://example.com/"}, note="one page"),),
        idempotent=True,
        timeout_s=settings.timeout_s + pages.READ_S + 1,
    )


async def _read(answer: EgressResponse, settings: FetchSettings) -> Fetched:
    kind = answer.media_type
    fetched = Fetched(status=answer.status, url=answer.url, type=kind)
    if not answer.body:
        fetched["text"] = ""
        return fetched
    looks = _form(kind, answer.body, _charset_of(answer), is_cut=answer.is_cut)
    if looks == "json" and not answer.is_cut:
        ok, value = await asyncio.to_thread(_json, answer.body) if len(answer.body) > _LARGE else _json(answer.body)
        if ok:
            fetched["json"] = value
            return fetched
    if looks == "binary":
        return _binary(fetched, answer, settings)
    await _text(fetched, answer, settings, is_html=looks == "html")
    return fetched


def _charset_of(answer: EgressResponse) -> str:
    """The charset that the headers name; empty if none."""
    return found[1] if (found := _CHARSET.search(answer.headers.get("content-type", ""))) else ""


def _form(kind: str, body: bytes, charset: str, *, is_cut: bool) -> str:
    """Whether a body is html, json, text or binary: by its type, or as it looks where that says nothing."""
    if kind in _HTML:
        return "html"
    if _JSON.fullmatch(kind):
        return "json"
    start = body[:2_000]
    if kind in _UNKNOWN or kind == "text/plain":
        if start.startswith((b"\xff\xfe", b"\xfe\xff")) or charset.lower().startswith("utf-16"):
            return "text"
        if b"\0" in start:
            return "binary"
        if kind == "" and start.lstrip().startswith(b"<") and _LOOKS_LIKE_HTML.search(start):
            return "html"
        return "text" if kind == "text/plain" else _text_or_binary(body, is_cut=is_cut)
    return "text" if _TEXT.fullmatch(kind) else "binary"


def _text_or_binary(body: bytes, *, is_cut: bool) -> str:
    return "binary" if _utf8(body, "", is_cut=is_cut) is None else "text"


def _json(body: bytes) -> tuple[bool, Any]:
    """Whether a body is JSON that can be given on, and its value.

    What is nested too deep or has halves of characters is none. A number that a float cannot hold stays as it was
    written, as a text.
    """
    try:
        value = json.loads(body, parse_float=_number, parse_constant=str)
        to_json({"json": value})
    except (ValueError, RecursionError):
        return False, None
    return True, value


def _number(written: str) -> float | str:
    value = float(written)
    try:
        return value if Decimal(repr(value)) == Decimal(written) else written
    except InvalidOperation:  # an exponent of 20 digits
        return written


def _binary(fetched: Fetched, answer: EgressResponse, settings: FetchSettings) -> Fetched:
    if answer.is_cut:
        raise EgressFailed(
            f"{answer.url[:200]} is {answer.media_type or 'no text'} of more than {settings.max_bytes:,} bytes.",
            code="too_large",
            hint="Use the address of a smaller part.",
        )
    fetched["bytes"] = len(answer.body)
    fetched["note"] = f"{answer.media_type or 'data'}, no text: {len(answer.body):,} bytes, in base64."
    fetched["base64"] = base64.b64encode(answer.body).decode("ascii")
    return fetched


async def _text(fetched: Fetched, answer: EgressResponse, settings: FetchSettings, *, is_html: bool) -> None:
    charset = _charset_of(answer)
    is_cut = answer.is_cut
    plain = None if is_html else _utf8(answer.body, charset, is_cut=is_cut)
    if plain is None:
        page = await pages.read(
            answer.body,
            charset=charset,
            is_html=is_html,
            url=answer.url,
            links=settings.links,
            max_chars=settings.max_bytes,
        )
        plain, is_cut = page.text, is_cut or page.is_cut
        if page.title:
            fetched["title"] = page.title
    fetched["text"] = plain
    if is_cut:
        fetched["note"] = f"Only the first {settings.max_bytes:,} bytes were read; there is more."


def _utf8(body: bytes, charset: str, *, is_cut: bool) -> str | None:
    """The text, if it is UTF-8 as far as anybody says."""
    if charset.lower() not in ("", "utf-8", "utf8", "us-ascii", "ascii"):
        return None
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(body, not is_cut)  # it may be cut within a character
    except UnicodeDecodeError:
        return None
