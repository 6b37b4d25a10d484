"""The search services behind `web_search`: what each is asked, and what its answers mean.

Sources (read in November 2026): https://api-dashboard.search.brave.com/app/documentation,
https://docs.tavily.com/documentation/api-reference/endpoint/search, https://docs.searxng.org/dev/search_api.html.
DuckDuckGo has no API for results: its page for browsers without scripts is read, as the package `ddgs` does. That
package is not used, because it sends requests by itself, past the egress rules.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

from taoloop.errors import ToolError
from taoloop.tools.egress.response import EgressResponse
from taoloop.tools.web_search.settings import VARIABLES, Provider, WebSearchSettings
from taoloop.tools.web_search.texts import TEXTS

Recency = Literal["day", "week", "month", "year"]

TITLES: Mapping[Provider, str] = {
    "brave": "Brave Search",
    "tavily": "Tavily",
    "searxng": "SearXNG",
    "duckduckgo": "DuckDuckGo",
}
"""What people call the providers."""

MAX_SNIPPET_CHARS = 600
_MAX_TITLE_CHARS = 200
_MAX_URL_CHARS = 2_000
_MAX_REASON_CHARS = 200
_ADDRESSES: Mapping[Provider, str] = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
    "duckduckgo": "https://html.duckduckgo.com/html/",
}
_TAG = re.compile(r"<[^<>]{0,200}>")
_BRAVE_LANGUAGES = {"zh": "zh-hans", "zh-TW": "zh-hant", "zh-HK": "zh-hant", "ja": "jp", "pt": "pt-br", "no": "nb"}
_DUCKDUCKGO_REGIONS = {
    "en": "us-en",
    "zh": "cn-zh",
    "zh-TW": "tw-tzh",
    "zh-HK": "hk-tzh",
    "ja": "jp-jp",
    "ko": "kr-kr",
    "pt-BR": "br-pt",
    "sv": "se-sv",
    "da": "dk-da",
    "cs": "cz-cs",
    "el": "gr-el",
    "uk": "ua-uk",
}
_SAME_REGION = frozenset(
    ("de", "fr", "es", "it", "nl", "pl", "pt", "ru", "tr", "fi", "no", "hu", "ro", "bg", "hr", "lt")
)
_QUOTA_CODES = ("QUOTA_LIMITED", "USAGE_LIMIT_EXCEEDED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched for."""

    query: str
    """The words."""
    count: int
    """At most how many results."""
    recency: Recency | None = None
    """Only pages of the last day, week, month or year."""
    site: str | None = None
    """Only pages of this host."""
    language: str | None = None
    """Only pages in this language: `de`, `zh-TW`."""

    @property
    def words(self) -> str:
        """The words with the operator for the host, which most services understand."""
        return f"{self.query} site:{self.site}" if self.site else self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """The HTTP request of a search."""

    method: str
    """GET or POST."""
    url: str
    """With its query."""
    headers: Mapping[str, str]
    """With the key."""
    body: bytes | None = None
    """Of a POST."""


def address_of(settings: WebSearchSettings) -> str:
    """The address of the service that the settings name."""
    if settings.provider == "searxng":
        return f"{settings.url.rstrip('/').removesuffix('/search')}/search"
    return settings.url or _ADDRESSES[settings.provider]


def request_of(search: Search, settings: WebSearchSettings) -> SearchRequest:
    """The request that asks the provider of the settings."""
    url, headers = address_of(settings), {"Accept": "application/json", "User-Agent": settings.user_agent}
    match settings.provider:
        case "tavily":
            fields: dict[str, Any] = {"query": search.query, "max_results": search.count}
            fields |= {"time_range": search.recency} if search.recency else {}
            fields |= {"include_domains": [search.site]} if search.site else {}
            body = json.dumps(fields).encode()
            headers |= {"Authorization": f"Bearer {settings.api_key}", "Content-Type": "application/json"}
            return SearchRequest(method="POST", url=url, headers=headers, body=body)
        case "duckduckgo":
            form = {"q": search.words, "kl": _region_of(search.language), "df": (search.recency or "")[:1]}
            headers |= {"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
            return SearchRequest(method="POST", url=url, headers=headers, body=urlencode(form).encode())
        case "searxng":
            query = {"q": search.words, "format": "json", "language": search.language, "time_range": search.recency}
        case _:
            freshness = f"p{search.recency[0]}" if search.recency else None
            query = {"q": search.words, "count": str(search.count), "freshness": freshness}
            query |= {
                "search_lang": _brave_language(search.language),
                "text_decorations": "false",
                "result_filter": "web",
            }
            headers |= {"X-Subscription-Token": settings.api_key}
    return SearchRequest(method="GET", url=f"{url}?{urlencode(_present(query))}", headers=headers)


def _present(query: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _brave_language(language: str | None) -> str | None:
    if language is None:
        return None
    return _BRAVE_LANGUAGES.get(language) or _BRAVE_LANGUAGES.get(language[:2], language[:2])


def _region_of(language: str | None) -> str:
    """The region of DuckDuckGo, which has no languages; without one, and for a language without its own, the world."""
    if language is None:
        return "wt-wt"
    code = language[:2]
    return _DUCKDUCKGO_REGIONS.get(language) or (
        f"{code}-{code}" if code in _SAME_REGION else _DUCKDUCKGO_REGIONS.get(code, "wt-wt")
    )


def results_of(response: EgressResponse, settings: WebSearchSettings) -> list[dict[str, str]]:
    """The results in the answer of a JSON service: `title`, `url`, `snippet`, and `date` where it is known.

    Raises:
        ToolError: the service refused the search or failed; `code` says which.
    """
    provider = TITLES[settings.provider]
    raise_for_status(response, settings)
    try:
        answer = json.loads(response.text)
    except (ValueError, RecursionError) as error:
        raise TEXTS.error("unreadable_results", "unreadable_results", provider=provider, reason="no JSON") from error
    try:
        if settings.provider == "brave" and answer.get("type") == "search":
            answer = answer.get("web") or {"results": []}  # there is no `web` where nothing was found
        items = answer["results"]
        results = [_result_of(item) for item in items if isinstance(item, dict) and isinstance(item.get("url"), str)]
        if items and not results:
            raise TypeError("no result has an address")
    except (KeyError, TypeError, AttributeError) as error:
        reason = TEXTS.run_text("not_a_list")
        raise TEXTS.error("unreadable_results", "unreadable_results", provider=provider, reason=reason) from error
    if not results and settings.provider == "searxng" and (silent := answer.get("unresponsive_engines")):
        engines = ", ".join(": ".join(map(str, engine)) for engine in silent if isinstance(engine, list))
        reason = TEXTS.run_text("engines_failed", engines=engines[:_MAX_REASON_CHARS])
        raise TEXTS.error("provider_failed", "provider_failed", retryable=True, provider=provider, reason=reason)
    return unique_results(results)


def _result_of(item: Mapping[str, Any]) -> dict[str, str]:
    snippet = item.get("description") or item.get("content") or item.get("snippet")
    date = item.get("page_age") or item.get("publishedDate") or item.get("published_date") or item.get("age")
    result = {"title": plain_text(item.get("title")), "url": item["url"], "snippet": plain_text(snippet)}
    return result | ({"date": str(date)[:40]} if date else {})


def unique_results(results: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """The results with an address of the web that no earlier one has, bounded in size."""
    by_url: dict[str, dict[str, str]] = {}
    for result in results:
        url = result["url"]
        if url.startswith(("http://", "https://")) and len(url) <= _MAX_URL_CHARS and url not in by_url:
            bounded = {"title": result["title"][:_MAX_TITLE_CHARS], "snippet": result["snippet"][:MAX_SNIPPET_CHARS]}
            by_url[url] = {**result, **bounded}
    return list(by_url.values())


def plain_text(text: Any) -> str:
    """A title or a snippet without the tags and entities that some services put into them, on one line."""
    return " ".join(html.unescape(_TAG.sub("", text)).split()) if isinstance(text, str) else ""


def raise_for_status(response: EgressResponse, settings: WebSearchSettings) -> None:
    """Say what a status other than success means.

    Raises:
        ToolError: `key_refused`, `rate_limited`, `quota_used_up`, `query_refused`, `unreadable_results` or
            `provider_failed`.
    """
    status, provider = response.status, settings.provider
    if 200 <= status < 300:
        return
    code, reason = _error_in(response)
    values: dict[str, Any] = {"provider": TITLES[provider], "reason": reason}
    if status == 403 and provider == "searxng":
        raise TEXTS.error("no_json", "key_refused")
    if status in (401, 403) or code.startswith("SUBSCRIPTION_"):  # Brave: 422 for a key that it does not know
        values["variable"] = VARIABLES.get(provider, "the settings")
        raise TEXTS.error("key_refused", "key_refused", **values)
    if status in (402, 432, 433) or code in _QUOTA_CODES:  # 432 and 433: the plan, and pay as you go, of Tavily
        raise TEXTS.error("quota_used_up", "quota_used_up", **values)
    if status == 429:
        raise _rate_limited(response, values)
    if status < 400 or status in (404, 405, 410):  # a wrong address: no other query helps
        raise TEXTS.error("unreadable_results", "unreadable_results", **values)
    if status < 500:
        raise TEXTS.error("query_refused", "query_refused", **values)
    raise TEXTS.error("provider_failed", "provider_failed", retryable=True, **values)


def _rate_limited(response: EgressResponse, values: dict[str, Any]) -> ToolError:
    """Brave gives the seconds until each of its limits starts again, the shortest first."""
    after = response.headers.get("retry-after") or response.headers.get("x-ratelimit-reset", "").partition(",")[0]
    hint = TEXTS.run_text("rate_limited_after_hint", seconds=after.strip()) if after.strip().isdigit() else None
    return TEXTS.error("rate_limited", "rate_limited", retryable=True, hint=hint, **values)


def _error_in(response: EgressResponse) -> tuple[str, str]:
    """The code and the words of an error in the forms of these services; else the status."""
    status = f"HTTP {response.status}"
    try:
        answer = json.loads(response.text)
    except (ValueError, RecursionError):
        return "", status
    error = answer.get("error") or answer.get("detail") or answer.get("errors") if isinstance(answer, dict) else None
    if isinstance(error, list):
        error = error[0] if error else None
    if not isinstance(error, dict):
        return "", f"{status}, {plain_text(error)[:_MAX_REASON_CHARS]}" if isinstance(error, str) else status
    words = plain_text(error.get("detail") or error.get("error") or error.get("message"))[:_MAX_REASON_CHARS]
    return str(error.get("code", "")), f"{status}, {words.rstrip('.')}" if words else status


def target_of_redirect(href: str) -> str:
    """The address behind a link of DuckDuckGo, which leads over its own `/l/?uddg=…`; empty for an advertisement."""
    parts = urlsplit(href if not href.startswith("//") else f"https:{href}")
    is_own = (parts.hostname or "").endswith("duckduckgo.com")
    if is_own and parts.path == "/l/":
        href = parse_qs(parts.query).get("uddg", [""])[0]
        parts = urlsplit(href)
        is_own = (parts.hostname or "").endswith("duckduckgo.com")
    return "" if is_own and parts.path == "/y.js" else href
