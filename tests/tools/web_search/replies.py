"""Answers of the search services, in the shapes that their documentation and their pages have."""

from __future__ import annotations

import json
from typing import Any

from tests.tools.egress.site import Reply


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"Content-Type": "application/json", **named}, json.dumps(value).encode()


BRAVE = {
    "type": "search",
    "query": {"original": "tea", "show_strict_warning": False, "more_results_available": True},
    "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": False}], "top": [], "side": []},
    "web": {
        "type": "search",
        "family_friendly": True,
        "results": [
            {
                "title": "Green <strong>Tea</strong> &amp; more",
                "url": "https://tea.example/green",
                "is_source_local": False,
                "description": "All about <strong>tea</strong>\nfrom China&#x27;s hills.",
                "page_age": "2025-06-01T12:00:00",
                "age": "June 1, 2025",
                "profile": {"name": "Tea", "url": "https://tea.example"},
                "language": "en",
                "meta_url": {"scheme": "https", "netloc": "tea.example", "hostname": "tea.example", "path": "› green"},
                "extra_snippets": ["More."],
            },
            {"title": "Again", "url": "https://tea.example/green", "description": "The same page."},
            {"title": "No address of the web", "url": "javascript:alert(1)", "description": ""},
            {"title": "Black tea", "url": "https://tea.example/black", "description": "x" * 2_000},
        ],
    },
}
BRAVE_EMPTY = {"type": "search", "query": {"original": "tea"}, "mixed": {"type": "mixed", "main": []}}


def brave_error(code: str, detail: str, status: int) -> dict[str, Any]:
    error = {"id": "5d832250", "code": code, "detail": detail, "status": status, "meta": {"component": "x"}}
    return {"type": "ErrorResponse", "error": error, "time": 1_663_072_993}


TAVILY = {
    "query": "tea",
    "follow_up_questions": None,
    "answer": None,
    "images": [],
    "results": [
        {
            "title": "Green tea",
            "url": "https://tea.example/green",
            "content": "All about tea.",
            "score": 0.98,
            "raw_content": None,
        }
    ],
    "response_time": 1.09,
    "request_id": "123e4567",
}
SEARXNG = {
    "query": "tea",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://tea.example/green",
            "title": "Green tea",
            "content": "All about tea.",
            "publishedDate": "2025-06-01T00:00:00",
            "thumbnail": None,
            "engine": "bing",
            "template": "default.html",
            "parsed_url": ["https", "tea.example", "/green", "", "", ""],
            "engines": ["bing", "mojeek"],
            "positions": [1, 2],
            "score": 3.0,
            "category": "general",
        },
        {"url": "https://tea.example/null", "title": None, "content": None, "publishedDate": None, "engine": "bing"},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": ["green tea"],
    "unresponsive_engines": [["brave", "too many requests"]],
}
DUCKDUCKGO = """<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN"><html><head><title>tea</title>
</head><body class="body--html"><form id="search_form_homepage"></form><div id="links" class="results">
<div class="result results_links results_links_deep result--ad "><div class="links_main links_deep result__body">
<h2 class="result__title"><a rel="nofollow" class="result__a"
 href="https://duckduckgo.com/y.js?ad_domain=shop.example&amp;ad_provider=bingv7aa">Buy tea</a></h2>
<a class="result__snippet" href="https://duckduckgo.com/y.js?ad_domain=shop.example">Cheap.</a></div></div>
<div class="result results_links results_links_deep web-result "><div class="links_main links_deep result__body">
<h2 class="result__title"><a rel="nofollow" class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Ftea.example%2Fgreen%3Fa%3D1%26b%3D2&amp;rut=a">Green <b>tea</b>
 &amp; more</a></h2><div class="result__extras"><a class="result__url" href="//duckduckgo.com/l/?uddg=x">tea</a>
</div><a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">All about <b>tea</b>
 from China&#x27;s hills.</a></div></div>
<div class="result results_links results_links_deep web-result "><h2 class="result__title">
<a rel="nofollow" class="result__a" href="https://tea.example/black">Black tea</a></h2></div>
<div class="result"><a class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js%3Fad_domain%3Dx">
Another advertisement</a></div></div></body></html>"""
DUCKDUCKGO_EMPTY = """<html><body><div class="result results_links results_links_deep web-result result--no-result">
<div class="links_main"><h2 class="result__title"></h2><div class="no-results">No results found.</div></div></div>
</body></html>"""
DUCKDUCKGO_BLOCKED = """<html><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html">
<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form></body></html>"""
