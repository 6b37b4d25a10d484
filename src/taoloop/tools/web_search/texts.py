"""What `web_search` reports to the model in a run."""

from __future__ import annotations

from taoloop.tools.texts import ToolTexts

TEXTS = ToolTexts(
    {
        "key_refused": "{provider} does not accept the key: {reason}.",
        "key_refused_hint": "Only the operator can change that: check {variable}.",
        "no_json": "This SearXNG does not give results as JSON (403).",
        "no_json_hint": "Only the operator can change that: `search.formats` in its settings.yml must list json.",
        "rate_limited": "{provider} takes no more searches for now: {reason}.",
        "rate_limited_hint": "Try again later.",
        "rate_limited_after_hint": "Try again after {seconds} s.",
        "quota_used_up": "The searches of the plan at {provider} are used up: {reason}.",
        "quota_used_up_hint": "Do without searching; only the operator can change the plan.",
        "blocked": "DuckDuckGo takes this program for a robot and gives no results.",
        "blocked_hint": "Do without searching for some minutes; the operator can configure another provider.",
        "query_refused": "{provider} does not accept this search: {reason}.",
        "query_refused_hint": "Change the query.",
        "provider_failed": "{provider} failed: {reason}.",
        "provider_failed_hint": "Try again once, or do without searching.",
        "engines_failed": "none of its engines answered ({engines})",
        "unreadable_results": "{provider} answered with something that is no list of results: {reason}.",
        "unreadable_results_hint": "Do without searching; the operator must check the provider.",
        "not_a_list": "it has no list of results",
        "no_markup": "a page without the known markup",
        "nothing_found": "Nothing was found. Use other or fewer words.",
        "nothing_found_narrowed": "Nothing was found. Use other words, or leave out {arguments}.",
        "language_ignored": "{provider} cannot restrict the language; the results are in any.",
    }
)
