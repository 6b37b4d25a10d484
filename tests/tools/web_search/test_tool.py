"""The tool `web_search` against servers that answer as the services do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.tools.egress.site import Got, Reply, Site, page
from tests.tools.web_search import replies

from taoloop import Agent, ScriptedModel
from taoloop.core.cards.card_lint import lint
from taoloop.errors import ConfigError, ToolError
from taoloop.testing import observations
from taoloop.tools.egress import EgressRules
from taoloop.tools.tool import Tool
from taoloop.tools.web_search import WebSearchSettings, web_search_tools

PROVIDERS = ("brave", "tavily", "searxng", "duckduckgo")
ROUTES = {"brave": "/brave", "tavily": "/tavily", "searxng": "/searx/search", "duckduckgo": "/html/"}
GOOD: dict[str, Reply] = {
    "brave": replies.as_json(replies.BRAVE),
    "tavily": replies.as_json(replies.TAVILY),
    "searxng": replies.as_json(replies.SEARXNG),
    "duckduckgo": page(replies.DUCKDUCKGO, "text/html; charset=UTF-8"),
}
KEY = "key-of-the-operator"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as served:
        yield served


def searcher(site: Site, provider: Any, **options: Any) -> Tool:
    path = "/searx/" if provider == "searxng" else ROUTES[provider]
    key = KEY if provider in ("brave", "tavily") else ""
    settings = WebSearchSettings(provider=provider, url=site.url + path, api_key=key, **options)
    loaded = web_search_tools(settings, env={})
    assert not loaded.problems
    return loaded.tools[0]


def search(made: Tool, **args: Any) -> dict[str, Any]:
    values = made.prepare({"query": "tea", **args}).values
    results: dict[str, Any] = json.loads(made.render(asyncio.run(made.handler(**values))).text)
    return results


def answered(served: Site, provider: str, reply: Reply, **args: Any) -> dict[str, Any]:
    served.routes[ROUTES[provider]] = reply
    return search(searcher(served, provider), **args)


def refused(site: Site, provider: str, reply: Reply) -> ToolError:
    with pytest.raises(ToolError) as caught:
        answered(site, provider, reply)
    assert KEY not in f"{caught.value}{caught.value.hint}"
    return caught.value


def test_each_provider_gives_title_address_and_snippet(site: Site) -> None:
    brave = answered(site, "brave", GOOD["brave"])
    assert brave["provider"] == "Brave Search"
    assert brave["results"][0] == {
        "title": "Green Tea & more",
        "url": "https://tea.example/green",
        "snippet": "All about tea from China's hills.",
        "date": "2025-06-01T12:00:00",
    }
    assert [result["url"] for result in brave["results"]] == ["https://tea.example/green", "https://tea.example/black"]
    assert len(brave["results"][1]["snippet"]) == 600
    first = {"title": "Green tea", "url": "https://tea.example/green", "snippet": "All about tea."}
    assert answered(site, "tavily", GOOD["tavily"]) == {"provider": "Tavily", "results": [first]}
    searxng = answered(site, "searxng", GOOD["searxng"])["results"]
    assert searxng == [
        {**first, "date": "2025-06-01T00:00:00"},
        {"title": "", "url": "https://tea.example/null", "snippet": ""},
    ]
    assert answered(site, "duckduckgo", GOOD["duckduckgo"])["results"] == [
        {
            "title": "Green tea & more",
            "url": "https://tea.example/green?a=1&b=2",
            "snippet": "All about tea from China's hills.",
        },
        {"title": "Black tea", "url": "https://tea.example/black", "snippet": ""},
    ]


def sent(served: Site, provider: str, **args: Any) -> tuple[Got, dict[str, Any]]:
    """The request of a search, and what it asks for."""
    answered(served, provider, GOOD[provider], **args)
    got = served.got[-1]
    if provider == "tavily":
        return got, json.loads(got.body)
    text = got.body.decode() if got.method == "POST" else urlsplit(got.path).query
    return got, {name: values[0] for name, values in parse_qs(text).items()}


def test_each_provider_is_asked_in_its_own_words(site: Site) -> None:
    narrowed = {"count": 3, "recency": "week", "site": "tea.example", "language": "zh-TW"}
    got, query = sent(site, "brave", **narrowed)
    assert (got.method, got.headers["x-subscription-token"]) == ("GET", KEY)
    assert query["q"] == "tea site:tea.example"
    assert (query["count"], query["freshness"], query["search_lang"]) == ("3", "pw", "zh-hant")
    got, fields = sent(site, "tavily", **narrowed)
    assert (got.method, got.headers["authorization"]) == ("POST", f"Bearer {KEY}")
    assert fields == {"query": "tea", "max_results": 3, "time_range": "week", "include_domains": ["tea.example"]}
    got, query = sent(site, "searxng", **narrowed)
    assert query == {"q": "tea site:tea.example", "format": "json", "language": "zh-TW", "time_range": "week"}
    got, form = sent(site, "duckduckgo", **narrowed)
    assert (got.method, form) == ("POST", {"q": "tea site:tea.example", "kl": "tw-tzh", "df": "w"})
    assert got.headers["user-agent"] == "taoloop"
    assert sent(site, "duckduckgo")[1] == {"q": "tea", "kl": "wt-wt"}
    assert sent(site, "brave", language="ja")[1]["search_lang"] == "jp"
    assert "search_lang" not in sent(site, "brave")[1]
    assert sent(site, "tavily")[1] == {"query": "tea", "max_results": 5}


def test_no_more_results_than_asked_for(site: Site) -> None:
    for provider in ("brave", "searxng", "duckduckgo"):
        assert len(answered(site, provider, GOOD[provider], count=1)["results"]) == 1


def test_nothing_found_is_said_and_is_no_error(site: Site) -> None:
    empty: dict[str, Reply] = {
        "brave": replies.as_json(replies.BRAVE_EMPTY),
        "tavily": replies.as_json({**replies.TAVILY, "results": []}),
        "searxng": replies.as_json({**replies.SEARXNG, "results": [], "unresponsive_engines": []}),
        "duckduckgo": page(replies.DUCKDUCKGO_EMPTY, "text/html"),
    }
    for provider, reply in empty.items():
        answer = answered(site, provider, reply)
        assert (answer["results"], answer["note"]) == ([], "Nothing was found. Use other or fewer words.")
    note = answered(site, "brave", empty["brave"], site="tea.example", recency="day")["note"]
    assert note == "Nothing was found. Use other words, or leave out recency, site."


def test_a_language_that_cannot_be_chosen_is_said(site: Site) -> None:
    assert "cannot restrict the language" in answered(site, "tavily", GOOD["tavily"], language="de")["note"]


@pytest.mark.parametrize(
    ("provider", "reply", "code", "message", "hint"),
    [
        (
            "brave",
            replies.as_json(replies.brave_error("SUBSCRIPTION_TOKEN_INVALID", "The token is invalid.", 422), 422),
            "key_refused",
            "Brave Search does not accept the key: HTTP 422, The token is invalid.",
            "check BRAVE_API_KEY",
        ),
        (
            "tavily",
            replies.as_json({"detail": {"error": "Unauthorized: missing or invalid API key."}}, 401),
            "key_refused",
            "Tavily does not accept the key: HTTP 401, Unauthorized: missing or invalid API key.",
            "check TAVILY_API_KEY",
        ),
        ("searxng", page("<h1>Forbidden</h1>", "text/html", 403), "key_refused", "as JSON (403)", "search.formats"),
        (
            "brave",
            replies.as_json(replies.brave_error("RATE_LIMITED", "Too many.", 429), 429, X_RateLimit_Reset="2, 1419704"),
            "rate_limited",
            "takes no more searches for now",
            "Try again after 2 s.",
        ),
        (
            "tavily",
            replies.as_json({"detail": {"error": "Blocked due to excessive requests."}}, 429, Retry_After="60"),
            "rate_limited",
            "HTTP 429, Blocked due to excessive requests.",
            "Try again after 60 s.",
        ),
        ("searxng", page("slow down", status=429), "rate_limited", "HTTP 429", "Try again later."),
        (
            "brave",
            replies.as_json(replies.brave_error("QUOTA_LIMITED", "Request quota limit exceeded.", 429), 429),
            "quota_used_up",
            "used up",
            "the operator",
        ),
        (
            "tavily",
            replies.as_json({"detail": {"error": "This request exceeds your plan's set usage limit."}}, 432),
            "quota_used_up",
            "exceeds your plan",
            "the operator",
        ),
        (
            "tavily",
            replies.as_json({"detail": {"error": "Query is too long."}}, 400),
            "query_refused",
            "Query is too long.",
            "Change the query.",
        ),
        ("brave", page("<html>bad gateway</html>", "text/html", 502), "provider_failed", "HTTP 502", "Try again once"),
        (
            "searxng",
            replies.as_json({**replies.SEARXNG, "results": [], "unresponsive_engines": [["bing", "CAPTCHA"]]}),
            "provider_failed",
            "none of its engines answered (bing: CAPTCHA)",
            "Try again once",
        ),
        ("duckduckgo", page(replies.DUCKDUCKGO_BLOCKED, "text/html", 202), "blocked", "a robot", "another provider"),
        ("duckduckgo", page(replies.DUCKDUCKGO_BLOCKED, "text/html", 200), "blocked", "a robot", "another provider"),
        (
            "duckduckgo",
            page("<p>new markup", "text/html"),
            "unreadable_results",
            "without the known markup",
            "operator",
        ),
        ("brave", page("<html>", "text/html"), "unreadable_results", "no JSON", "operator"),
        ("tavily", replies.as_json({"answer": "x"}), "unreadable_results", "no list of results", "operator"),
        ("searxng", page("not found", status=404), "unreadable_results", "HTTP 404", "operator"),
        ("brave", page("", status=302), "unreadable_results", "HTTP 302", "operator"),
        ("searxng", replies.as_json({"results": ["x", {"title": "t"}]}), "unreadable_results", "no list", "operator"),
        ("searxng", replies.as_json([1]), "unreadable_results", "no list of results", "operator"),
        ("brave", replies.as_json({"web": None}), "unreadable_results", "no list of results", "operator"),
    ],
)
def test_what_a_provider_refuses_is_clear(
    site: Site, provider: str, reply: Reply, code: str, message: str, hint: str
) -> None:
    error = refused(site, provider, reply)
    assert error.code == code
    assert message in error.message
    assert hint in error.hint
    assert error.retryable == (code in ("rate_limited", "provider_failed"))


def test_an_entry_that_is_no_page_does_not_hide_the_others(site: Site) -> None:
    entries = [
        "x",
        {"title": "a key and a value"},
        {"title": "t", "url": None},
        {"title": "Tea", "url": "https://a.example/"},
    ]
    found = answered(site, "searxng", replies.as_json({"results": entries}))
    assert found["results"] == [{"title": "Tea", "url": "https://a.example/", "snippet": ""}]


@pytest.mark.parametrize(
    ("env", "provider"),
    [
        ({"BRAVE_API_KEY": "b"}, "brave"),
        ({"TAVILY_API_KEY": "t"}, "tavily"),
        ({"SEARXNG_URL": "http://10.0.0.5:8080"}, "searxng"),
        ({"TAVILY_API_KEY": "t", "BRAVE_API_KEY": "b", "SEARXNG_URL": "http://10.0.0.5:8080/searx"}, "searxng"),
        ({"TAVILY_API_KEY": "t", "BRAVE_API_KEY": "b", "SEARXNG_URL": " "}, "brave"),
    ],
)
def test_the_environment_chooses_the_provider(env: dict[str, str], provider: str) -> None:
    [made] = web_search_tools(env=env).tools
    chosen = {"brave": {"BRAVE_API_KEY": "b"}, "tavily": {"TAVILY_API_KEY": "t"}, "searxng": {}}
    assert made.secrets == chosen[provider]


def test_a_setting_chooses_it_over_the_environment(site: Site) -> None:
    settings = WebSearchSettings(provider="searxng", url=f"{site.url}/searx")
    site.routes["/searx/search"] = GOOD["searxng"]
    [made] = web_search_tools(settings, env={"BRAVE_API_KEY": "b"}).tools
    assert search(made)["provider"] == "SearXNG"


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({}, "No provider for web_search is configured.", "BRAVE_API_KEY"),
        ({"provider": "brave"}, "needs BRAVE_API_KEY", "Set that variable"),
        ({"provider": "searxng"}, "needs SEARXNG_URL", "Set that variable"),
        ({"api_key": "x"}, "does not name it", "provider: brave"),
        ({"url": "http://a.example"}, "does not name it", "provider: brave"),
    ],
)
def test_what_is_not_configured_is_said(options: dict[str, Any], message: str, hint: str) -> None:
    loaded = web_search_tools(WebSearchSettings(**options), env={"OTHER": "x"})
    assert loaded.tools == ()
    assert message in loaded.problems[0].message
    assert hint in loaded.problems[0].hint


@pytest.mark.parametrize(
    "options", [{"provider": "bing"}, {"count": 0}, {"count": 21}, {"url": "ftp://x"}, {"name": "a b"}]
)
def test_settings_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        WebSearchSettings(**options)


def test_the_key_is_not_shown() -> None:
    settings = WebSearchSettings(provider="brave", api_key=KEY)
    [made] = web_search_tools(settings, env={}).tools
    assert KEY not in f"{settings!r}{made!r}"


def test_requests_go_nowhere_but_to_the_service(site: Site) -> None:
    settings = WebSearchSettings(provider="searxng", url=site.url, egress=EgressRules(deny=("127.0.0.1",)))
    [made] = web_search_tools(settings, env={}).tools
    with pytest.raises(ToolError, match="deny list"):
        search(made)
    with Site() as other:
        assert refused(site, "searxng", (302, {"Location": f"{other.url}/search"}, b"")).code == "unreadable_results"
        assert other.got == []


@pytest.mark.parametrize(
    "args",
    [
        {"query": ""},
        {"query": " \n"},
        {"query": "x" * 401},
        {"count": 21},
        {"recency": "hour"},
        {"site": "a b"},
        {"site": "https://a.example/x"},
        {"language": "german"},
    ],
)
def test_arguments_are_checked(args: dict[str, Any]) -> None:
    [made] = web_search_tools(env={"BRAVE_API_KEY": "b"}).tools
    with pytest.raises(ToolError):
        made.prepare({"query": "tea", **args})


def test_the_card_is_good_in_both_languages() -> None:
    [made] = web_search_tools(env={"BRAVE_API_KEY": "b"}).tools
    assert lint(made.card) == ()
    assert (made.card.tier, made.card.egress) == ("read", ("query", "site"))
    chinese = made.card_in("zh")
    assert chinese.purpose.startswith("搜索网页")
    assert all(not rule["description"].isascii() for rule in chinese.parameters.values())


def test_in_a_run_results_are_untrusted_and_the_key_stays_out(site: Site) -> None:
    web = {"results": [{"title": KEY, "url": "https://a.example"}]}
    site.routes["/brave"] = replies.as_json({"type": "search", "web": web})
    ask = {"tool_calls": [{"name": "web_search", "args": {"query": "tea from China"}}]}
    again = {"tool_calls": [{"name": "web_search", "args": {"query": "what ann told me in private"}}]}
    agent = Agent(model=ScriptedModel([ask, again]), tools=[searcher(site, "brave")])
    result = agent.run_sync("What is green tea?")
    verdicts = [call.requested.verdict for call in result.trace.calls.values()]
    assert verdicts == ["allow", "ask"]  # what the model makes up once it has read untrusted text asks
    assert "a.example" in observations(result)[0][2]
    assert KEY not in str(result.trace.events)
    assert len(site.got) == 1
