"""The tool `fetch`: reads a page or a resource of the web, under egress rules."""

from __future__ import annotations

import asyncio
import base64
import codecs
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import Field
from pydantic_core import to_json
from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.errors import EgressFailed
from taoloop.tools.egress.client import EgressClient
from taoloop.tools.egress.response import EgressResponse
from taoloop.tools.egress.rules import EgressRules, Resolver, resolve_host
from taoloop.tools.function import function_tool
from taoloop.tools.isolated_parser import IsolatedParser, ParserKind, ParserTimeoutError, UnreadableFileError
from taoloop.tools.settings_check import Count, Seconds, check_fields
from taoloop.tools.texts import TEXTS
from taoloop.tools.toolbox import LoadProblem, LoadResult

if TYPE_CHECKING:
    import ssl

__all__ = ["FetchSettings", "fetch_tools"]

_ACCEPT = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5"
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_JSON_TYPE = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?json")
_TEXT_TYPE = re.compile(
    r"text/.*|.*\+(?:xml|yaml)|application/(?:xml|(?:x-)?javascript|ecmascript|(?:x-)?yaml|toml|sql|graphql|x-sh"
    r"|(?:x-)?ndjson|json-seq|jsonl|x-www-form-urlencoded|rtf|x-tex)"
)
_UNKNOWN_TYPES = ("", "application/octet-stream", "application/x-unknown")
_LOOKS_LIKE_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_BLOCKING_BYTES = 100_000  # a larger JSON body is parsed in a thread, so that it does not block the event loop
_PARSE_S = 10.0  # time limit for parsing a page; pages of 5 MB take 1 to 5 s
_PARSE_MEMORY = 1 << 30
_PARSER_THREADS = ThreadPoolExecutor(4, "taoloop-pages")  # separate: the threads of the loop resolve host names
_ERRORS = (
    ErrorCard(code="bad_url", advice="Give a complete URL such as https://example.com/page."),
    ErrorCard(code="egress_refused", advice="Use another URL; this one may not be reached from here."),
    ErrorCard(code="name_not_found", retryable=True, advice="Check the spelling of the host."),
    ErrorCard(code="connection_failed", retryable=True, advice="Check the URL, or try again later."),
    ErrorCard(code="tls_failed", advice="Use another URL; this server cannot be trusted."),
    ErrorCard(code="http_timeout", retryable=True, advice="Try again later, or use another URL."),
    ErrorCard(code="http_broken", retryable=True, advice="Try again once, or use another URL."),
    ErrorCard(code="too_large", advice="Use the URL of a smaller part."),
    ErrorCard(code="wrong_type", advice="Use the URL of another representation."),
    ErrorCard(code="too_many_redirects", advice="Use the final URL of the page."),
    ErrorCard(code="unreadable", advice="Use another URL."),
)


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """The settings of one `fetch` tool."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")] = "fetch"
    """The name of the tool."""
    allow: tuple[str, ...] = ()
    """Targets that may be reached besides public ones, as for `EgressRules.allow`."""
    deny: tuple[str, ...] = ()
    """Targets that are always refused."""
    only_allowed: bool = False
    """Whether only the targets in `allow` may be reached."""
    schemes: tuple[str, ...] = ("http", "https")
    """The allowed schemes."""
    ports: tuple[int, ...] = (80, 443)
    """The ports that are allowed for every host."""
    timeout_s: Seconds = 20.0
    """Time limit of one request in seconds, including redirects and the body."""
    max_bytes: Count = 5_000_000
    """How much of a response is read, after decompression."""
    max_redirects: Annotated[int, Field(ge=0, le=20)] = 5
    """How many redirects are followed."""
    types: tuple[Annotated[str, Field(pattern=r"^[^/]*/[^/]*$")], ...] = ()
    """The accepted media types (`text/*`, `application/json`); empty: all."""
    links: bool = True
    """Whether the text of a page contains the URLs of its links."""
    user_agent: Annotated[str, Field(pattern=r"^[ -~]*[!-~][ -~]*$")] = "taoloop"
    """The header `User-Agent` of the requests."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigError: a field is not valid; the error names it.
        """
        check_fields(self, "The tool fetch")
        _ = self.rules

    @property
    def rules(self) -> EgressRules:
        """The egress rules of the requests.

        Raises:
            ConfigError: an entry of a list is not valid.
        """
        return EgressRules(
            allow=self.allow, deny=self.deny, only_allowed=self.only_allowed, schemes=self.schemes, ports=self.ports
        )


class Fetched(TypedDict):
    """The result of `fetch`, with one of `text`, `json` and `base64`."""

    status: int
    """The HTTP status."""
    url: str
    """The final URL, after redirects."""
    type: str
    """The media type; empty if the server names none."""
    title: NotRequired[str]
    """The title of a page."""
    text: NotRequired[str]
    """The text of a page or of a text resource."""
    json: NotRequired[Any]
    """The value of a JSON resource."""
    base64: NotRequired[str]
    """Any other content."""
    bytes: NotRequired[int]
    """The size of content in base64, in bytes."""
    note: NotRequired[str]
    """What the model must know about the content, such as that it was cut."""


def fetch_tools(
    settings: FetchSettings | None = None,
    *,
    resolver: Resolver = resolve_host,
    tls: Callable[[], ssl.SSLContext] | None = None,
) -> LoadResult:
    """The tool `fetch` with these settings; a problem instead if its libraries are not installed.

    `resolver` and `tls` are those of `EgressClient`.
    """
    settings = settings if settings is not None else FetchSettings()
    if missing := [name for name in ("httpx2", "resiliparse") if find_spec(name) is None]:
        message = f"Not installed: {', '.join(missing)}."
        hint = "pip install 'taoloop[web]'"
        return LoadResult(problems=(LoadProblem(source=settings.name, place="", message=message, hint=hint),))
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
        """Get a URL with HTTP GET and read it: pages as text with their links, JSON as JSON.

        Redirects are followed; `url` of the result is the final URL. A `status` of 400 or more means that the server
        refused the request or has no such page; the text is its error message.

        Args:
            url: The complete URL, with https:// or http://.
        """
        response = await client.send("GET", url, headers=headers, follow=True, types=settings.types)
        return await _fetched_content(response, settings)

    fetch_tool = function_tool(
        fetch,
        name=settings.name,
        tier="read",
        egress=("url",),
        roles={"url": "target"},
        use_when="The URL of a page, a document or a JSON resource is known, and its content is needed.",
        avoid_when="No URL is known, or something must be sent or changed, or a sign-in is required.",
        errors=_ERRORS,
        examples=(ExampleCard(args={"url": "https://example.com/"}, note="one page"),),
        idempotent=True,
        timeout_s=settings.timeout_s + _PARSE_S + 1,
    )
    return LoadResult(tools=(fetch_tool,))


async def _fetched_content(response: EgressResponse, settings: FetchSettings) -> Fetched:
    media_type = response.media_type
    fetched = Fetched(status=response.status, url=response.url, type=media_type)
    if not response.body:
        fetched["text"] = ""
        return fetched
    form = _content_form(media_type, response.body, response.charset, is_cut=response.is_cut)
    if form == "json" and not response.is_cut:
        is_small = len(response.body) <= _BLOCKING_BYTES
        is_json, value = _parse_json(response.body) if is_small else await asyncio.to_thread(_parse_json, response.body)
        if is_json:
            fetched["json"] = value
            return fetched
    if form == "binary":
        _add_binary(fetched, response, settings)
    else:
        await _add_text(fetched, response, settings, is_html=form == "html")
    return fetched


def _content_form(media_type: str, body: bytes, charset: str, *, is_cut: bool) -> str:
    """Whether a body is html, json, text or binary: by its media type, or by its bytes if the type does not tell."""
    if media_type in _HTML_TYPES:
        return "html"
    if _JSON_TYPE.fullmatch(media_type):
        return "json"
    head = body[:2_000]
    if media_type in _UNKNOWN_TYPES or media_type == "text/plain":
        if head.startswith((b"\xff\xfe", b"\xfe\xff")) or charset.lower().startswith("utf-16"):
            return "text"
        if b"\0" in head:
            return "binary"
        if media_type == "" and head.lstrip().startswith(b"<") and _LOOKS_LIKE_HTML.search(head):
            return "html"
        is_text = media_type == "text/plain" or _decode_utf8(body, "", is_cut=is_cut) is not None
        return "text" if is_text else "binary"
    return "text" if _TEXT_TYPE.fullmatch(media_type) else "binary"


def _parse_json(body: bytes) -> tuple[bool, Any]:
    """Whether a body is JSON that can be passed on, and its value.

    JSON that is nested too deeply or contains half characters is not. A number that a float cannot represent becomes a
    text with its digits.
    """
    try:
        value = json.loads(body, parse_float=_parse_float, parse_constant=str)
        to_json({"json": value})
    except (ValueError, RecursionError):
        return False, None
    return True, value


def _parse_float(literal: str) -> float | str:
    value = float(literal)
    try:
        return value if Decimal(repr(value)) == Decimal(literal) else literal
    except InvalidOperation:  # an exponent of 20 digits
        return literal


def _add_binary(fetched: Fetched, response: EgressResponse, settings: FetchSettings) -> None:
    media_type = response.media_type or TEXTS.run_text("response_data")
    if response.is_cut:
        values: dict[str, Any] = {"media_type": media_type, "max_bytes": settings.max_bytes}
        raise TEXTS.error("response_large", "too_large", error_type=EgressFailed, url=response.url[:200], **values)
    fetched["bytes"] = len(response.body)
    fetched["note"] = TEXTS.run_text("response_binary", media_type=media_type, size=len(response.body))
    fetched["base64"] = base64.b64encode(response.body).decode("ascii")


async def _add_text(fetched: Fetched, response: EgressResponse, settings: FetchSettings, *, is_html: bool) -> None:
    charset = response.charset
    is_cut = response.is_cut
    plain = None if is_html else _decode_utf8(response.body, charset, is_cut=is_cut)
    if plain is None:
        page = await _parse_page(response, settings, kind="html" if is_html else "text")
        plain, is_cut = page["text"], is_cut or page.get("is_cut", False)
        if title := page.get("title"):
            fetched["title"] = title
    fetched["text"] = plain
    if is_cut:
        fetched["note"] = TEXTS.run_text("response_cut", max_bytes=settings.max_bytes)


async def _parse_page(response: EgressResponse, settings: FetchSettings, *, kind: ParserKind) -> dict[str, Any]:
    """Parse a page, or text in an unknown encoding, in a child process of its own.

    Raises:
        ToolError: `unreadable`: it cannot be parsed within the limits.
    """
    of_page = {"url": response.url, "links": settings.links, "max_chars": settings.max_bytes}
    options: dict[str, Any] = of_page if kind == "html" else {"is_html": False}

    def parse() -> dict[str, Any]:
        with IsolatedParser(_PARSE_S, _PARSE_MEMORY, start_s=0) as parser:
            (page,) = parser.parse(kind, response.body, charset=response.charset, **options)
            return page

    try:
        return await asyncio.get_running_loop().run_in_executor(_PARSER_THREADS, parse)
    except ParserTimeoutError as error:
        raise TEXTS.error("unreadable_timeout", "unreadable", seconds=_PARSE_S) from error
    except UnreadableFileError as error:
        raise TEXTS.error("unreadable", "unreadable", reason=error.message) from error


def _decode_utf8(body: bytes, charset: str, *, is_cut: bool) -> str | None:
    """The text of a body, if no other charset is declared and it is UTF-8; else None."""
    if charset.lower() not in ("", "utf-8", "utf8", "us-ascii", "ascii"):
        return None
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        return decoder.decode(body, not is_cut)  # it may be truncated within a character
    except UnicodeDecodeError:
        return None
