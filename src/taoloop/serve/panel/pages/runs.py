"""The list of runs: counters by status that are filters, search, saved views, paging by cursor, live."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from taoloop.errors import ConfigError
from taoloop.journals.base import RunRow, locks_of
from taoloop.journals.queries import RunQuery
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.event_stream import send_events
from taoloop.translation import mark

PAGE_SIZE: Final = 50
"""How many runs a page shows."""

_FIELDS = ("q", "status", "agent", "model", "key", "since", "until", "inner")
_ORDER = ("running", "waiting", "blocked", "completed")
_VIEWS_SETTING: Final = "taoloop_views"
_MOST_VIEWS, _LONGEST_VIEW = 12, 300
_YEAR_S = 365 * 86_400

_GIVEN_VIEWS: Final = {
    mark("Needs a person"): "status=waiting&status=blocked&status=unsupported",
    mark("Failed"): "status=too_many_errors&status=model_failed&status=unreadable",
}
"""Views that everyone has: the name of each, and its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """What the address says about the runs to show."""

    query: RunQuery
    """The same for the journal."""

    fields: Mapping[str, tuple[str, ...]]
    """The fields of the address that are set, but for the cursor."""

    @classmethod
    def of(cls, context: PanelContext) -> RunFilter:
        """The filter in the address of a request.

        Raises:
            ConfigError: a day is none.
        """
        parameters = context.request.query
        fields = {name: tuple(text for text in parameters.getall(name, []) if text.strip()) for name in _FIELDS}
        first = {name: texts[0].strip() if texts else "" for name, texts in fields.items()}
        query = RunQuery(
            text=first["q"],
            statuses=fields["status"],
            agent=first["agent"] or None,
            model=first["model"] or None,
            key=first["key"] or None,
            since=_day(first["since"]),
            until=_day(first["until"], end=True),
            only_outermost=first["inner"] != "1",
        )
        return cls(query=query, fields={name: texts for name, texts in fields.items() if texts})

    @property
    def is_set(self) -> bool:
        """Whether it leaves any run out that the plain list has."""
        return bool(self.fields)


async def runs_page(context: PanelContext) -> web.StreamResponse:
    """`GET /runs`: the list; for htmx only its table and counters."""
    run_filter = RunFilter.of(context)
    context.panel.prepare_search()
    cursor = context.query("cursor") or None
    page = await context.queries.find(run_filter.query, cursor=cursor, limit=PAGE_SIZE)
    counts = await context.queries.count(replace(run_filter.query, statuses=()))
    values: dict[str, Any] = {
        "filter": run_filter,
        "rows": page.rows,
        "states": await run_states(context, page.rows),
        "counters": _in_order(counts),
        "total": sum(counts.values()),
        "cursor": cursor,
        "next_cursor": page.cursor,
        "given_views": _GIVEN_VIEWS,
        "views": _views(context),
    }
    if context.is_fragment:
        return context.fragment("runs_list.html", **values)
    return context.page("runs.html", **values)


async def live(context: PanelContext) -> web.StreamResponse:
    """`GET /live`: server-sent events about every run."""
    return await send_events(context)


async def save_view(context: PanelContext) -> web.StreamResponse:
    """`POST /views`: names the filter of the list, or forgets a name; the browser keeps them."""
    form = await context.form()
    name, query = str(form.get("name", "")).strip()[:60], str(form.get("query", ""))[:_LONGEST_VIEW]
    views = _views(context)
    if "forget" in form:
        views.pop(str(form["forget"]), None)
    elif not name:
        raise ConfigError("The view has no name.", hint="Write what the list shows, such as: refunds of this week.")
    else:
        views = {name: query, **{other: text for other, text in views.items() if other != name}}
    response = context.redirect(context.path("/runs") + (f"?{query}" if query.isprintable() and query else ""))
    stored_views = dict(list(views.items())[:_MOST_VIEWS])
    value = json.dumps(stored_views, separators=(",", ":")).encode().hex()
    response.set_cookie(
        _VIEWS_SETTING,
        value,
        max_age=_YEAR_S,
        path="/",
        httponly=True,
        samesite="Lax",
        secure=context.panel.is_secure,
    )
    return response


ROUTES: Final = (
    Route("GET", "/runs", runs_page),
    Route("GET", "/live", live),
    Route("POST", "/views", save_view),
)


async def run_states(context: PanelContext, rows: tuple[RunRow, ...]) -> dict[str, str]:
    """The state of each run: its status, or `lost` where it is `running` and no process is at work on it."""
    states = {row.run_id: row.status for row in rows}
    if (locks := locks_of(context.journal)) is not None:
        for row in rows:
            if row.status == "running" and await locks.holder(row.run_id) is None:
                states[row.run_id] = "lost"
    return states


def _in_order(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The counters, those that need attention first."""
    order = {status: position for position, status in enumerate(_ORDER)}
    return sorted(counts.items(), key=lambda counter: (order.get(counter[0], len(order)), counter[0]))


def _day(text: str, *, end: bool = False) -> float | None:
    """The begin of a day in UTC, or its end.

    Raises:
        ConfigError: it is no day.
    """
    if not text:
        return None
    try:
        start = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigError(f"{text[:40]!r} is not a day of the calendar.", hint="Write it as 2026-01-31.") from None
    return start + 86_400 if end else start


def _views(context: PanelContext) -> dict[str, str]:
    """The views that the browser keeps; a cookie that somebody broke has none."""
    try:
        stored = json.loads(bytes.fromhex(context.request.cookies.get(_VIEWS_SETTING, "")) or b"{}")
    except ValueError:
        return {}
    if not isinstance(stored, dict):
        return {}
    return {str(name)[:60]: str(query)[:_LONGEST_VIEW] for name, query in list(stored.items())[:_MOST_VIEWS]}
