"""The tool `web_search`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, NotRequired
from urllib.parse import urlsplit

from pydantic import Field
from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.text import chinese_texts
from taoloop.errors import ConfigError
from taoloop.tools.egress.client import EgressClient
from taoloop.tools.egress.response import EgressResponse
from taoloop.tools.egress.rules import DEFAULT_PORTS, EgressRules, Resolver, parse_address, resolve_host
from taoloop.tools.function import function_tool
from taoloop.tools.isolated_parser import IsolatedParser, UnreadableFileError
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult
from taoloop.tools.web_search.providers import (
    TITLES,
    Recency,
    Search,
    address_of,
    raise_for_status,
    request_of,
    results_of,
    target_of_redirect,
    unique_results,
)
from taoloop.tools.web_search.settings import MAX_COUNT, WebSearchSettings, configured
from taoloop.tools.web_search.texts import TEXTS

if TYPE_CHECKING:
    import ssl

_MAX_BYTES = 2_000_000
_PARSE_S = 10.0
_PARSE_MEMORY = 1 << 30
_BLOCK_MARKS = (b"anomaly-modal", b"anomaly.js")  # of the page that asks whether a person is searching
_NOTHING_MARKS = (b"no-results", b"result--no-result")
_ERRORS = (
    ErrorCard(code="key_refused", advice="Do without searching; only the operator can change the key."),
    ErrorCard(code="rate_limited", retryable=True, advice="Wait as long as the error says."),
    ErrorCard(code="quota_used_up", advice="Do without searching."),
    ErrorCard(code="blocked", advice="Do without searching for some minutes."),
    ErrorCard(code="query_refused", advice="Change the query."),
    ErrorCard(code="provider_failed", retryable=True, advice="Try again once."),
    ErrorCard(code="unreadable_results", advice="Do without searching."),
    ErrorCard(code="connection_failed", retryable=True, advice="Try again later."),
    ErrorCard(code="http_timeout", retryable=True, advice="Try again later."),
)


class FoundPage(TypedDict):
    """One result of a search."""

    title: str
    """Its title."""
    url: str
    """Its address."""
    snippet: str
    """What the service shows of it; not the page itself."""
    date: NotRequired[str]
    """When it was published or changed, in the words of the service."""


class SearchResults(TypedDict):
    """The result of `web_search`."""

    provider: str
    """The service that was asked."""
    results: list[FoundPage]
    """The pages, best first."""
    note: NotRequired[str]
    """What the model must know about them, such as that nothing was found."""


def web_search_tools(
    settings: WebSearchSettings | None = None,
    *,
    env: Mapping[str, str] | None = None,
    resolver: Resolver = resolve_host,
    tls: Callable[[], ssl.SSLContext] | None = None,
) -> LoadResult:
    """The tool `web_search` with these settings; a problem instead if no provider or no library is there for it.

    `env` has the keys, by default the environment of the process. `resolver` and `tls` are those of `EgressClient`.
    """
    settings = settings if settings is not None else WebSearchSettings()
    try:
        settings = configured(settings, os.environ if env is None else env)
        client = EgressClient(
            _rules_of(settings), timeout_s=settings.timeout_s, max_bytes=_MAX_BYTES, resolver=resolver, tls=tls
        )
    except ConfigError as error:
        return LoadResult(problems=(_problem(settings, error.message, error.hint),))
    libraries = ("httpx2", "resiliparse") if settings.provider == "duckduckgo" else ("httpx2",)
    if missing := [name for name in libraries if find_spec(name) is None]:
        message, hint = f"Not installed: {', '.join(missing)}.", "pip install 'taoloop[web]'"
        return LoadResult(problems=(_problem(settings, message, hint),))
    return LoadResult(tools=(_search_tool(settings, client),))


def _search_tool(settings: WebSearchSettings, client: EgressClient) -> Tool:
    async def web_search(
        query: Annotated[str, Field(min_length=1, max_length=400, pattern=r"\S")],
        count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = settings.count,
        recency: Recency | None = None,
        site: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$", max_length=253)] | None = None,
        language: Annotated[str, Field(pattern=r"^[a-z]{2}(-[A-Z]{2})?$")] | None = None,
    ) -> SearchResults:
        """Search the web. Gives title, address and a short extract of pages, never the pages themselves.

        Args:
            query: The words to search for, as in a search engine, at most 400 characters.
            count: How many results.
            recency: Only pages of the last day, week, month or year.
            site: Only pages of this host, such as example.com.
            language: Only pages in this language, such as en, zh or zh-TW.
        """
        search = Search(query=query.strip(), count=count, recency=recency, site=site, language=language)
        request = request_of(search, settings)
        response = await client.send(request.method, request.url, headers=request.headers, body=request.body)
        is_page = settings.provider == "duckduckgo"
        pages: list[Any] = await _pages_of(response, settings) if is_page else results_of(response, settings)
        results = SearchResults(provider=TITLES[settings.provider], results=pages[:count])
        if note := _note_of(search, settings, has_results=bool(pages)):
            results["note"] = note
        return results

    search_tool = function_tool(
        web_search,
        name=settings.name,
        tier="read",
        egress=("query", "site"),
        roles={"query": "content", "site": "target", "count": "minor", "recency": "minor", "language": "minor"},
        use_when="Something must be found on the web, and no address is known.",
        avoid_when="The address is known, or the answer is in other tools. Private data must not be searched for.",
        errors=_ERRORS,
        examples=(ExampleCard(args={"query": "python 3.14 release date", "count": 3}, note="three results"),),
        idempotent=True,
        timeout_s=settings.timeout_s + (_PARSE_S if settings.provider == "duckduckgo" else 0) + 1,
        chinese=chinese_texts("tools"),
    )
    return replace(search_tool, secrets=settings.secrets)


def _problem(settings: WebSearchSettings, message: str, hint: str) -> LoadProblem:
    return LoadProblem(source=settings.name, place="", message=message, hint=hint)


def _rules_of(settings: WebSearchSettings) -> EgressRules:
    """The egress rules of the requests: without rules of the operator's, only the service itself."""
    url = address_of(settings)
    rules = settings.egress
    if rules is None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 443)
        rules = EgressRules(only_allowed=True, ports=(port,), allow=() if parse_address(host) else (host,))
    return rules.allowing(url) if settings.url else rules  # the operator's own address may be private


def _note_of(search: Search, settings: WebSearchSettings, *, has_results: bool) -> str:
    notes = []
    if not has_results:
        narrowed = [name for name in ("recency", "site", "language") if getattr(search, name)]
        text = "nothing_found_narrowed" if narrowed else "nothing_found"
        notes.append(TEXTS.run_text(text, arguments=", ".join(narrowed)))
    elif search.language and settings.provider == "tavily":
        notes.append(TEXTS.run_text("language_ignored", provider=TITLES[settings.provider]))
    return " ".join(notes)


async def _pages_of(response: EgressResponse, settings: WebSearchSettings) -> list[dict[str, str]]:
    """The results on the page of DuckDuckGo, which is parsed in a child process.

    Raises:
        ToolError: `blocked`, or as for other providers.
    """
    if any(mark in response.body for mark in _BLOCK_MARKS) and b"result__a" not in response.body:
        raise TEXTS.error("blocked", "blocked")
    raise_for_status(response, settings)

    def parse() -> list[dict[str, str]]:
        with IsolatedParser(_PARSE_S, _PARSE_MEMORY, start_s=0) as parser:
            return list(parser.parse("results", response.body, charset=response.charset))

    provider = TITLES[settings.provider]
    try:
        pages = await asyncio.to_thread(parse)
    except UnreadableFileError as error:
        reason = error.message
        raise TEXTS.error("unreadable_results", "unreadable_results", provider=provider, reason=reason) from error
    if not pages and not any(mark in response.body for mark in _NOTHING_MARKS):
        reason = TEXTS.run_text("no_markup")
        raise TEXTS.error("unreadable_results", "unreadable_results", provider=provider, reason=reason)
    return unique_results({**page, "url": target_of_redirect(page["url"])} for page in pages)
