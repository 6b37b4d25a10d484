"""The inbox: everything that waits for a person, by kind, with answers to several calls of one question; live."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from urllib.parse import quote, unquote

from aiohttp import web

from taoloop.errors import ConfigError
from taoloop.runtime.approvals.batch_answers import answer_batch
from taoloop.runtime.approvals.inbox_items import INBOX_KINDS, InboxItem, InboxKind
from taoloop.runtime.approvals.request import ApprovalAnswer
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.inbox_reading import (
    BADGE_NAMES,
    KIND_NAMES,
    KIND_QUESTIONS,
    LISTED_CHARS,
    question_groups,
    shown_call,
)
from taoloop.serve.panel.pages.resumption import item_url, next_step
from taoloop.translation import error_texts

SHOWN_AT_ONCE: Final = 100
"""How many items a page shows."""

_APPROVALS: Final[tuple[InboxKind, ...]] = ("approval",)


async def inbox_page(context: PanelContext) -> web.StreamResponse:
    """`GET /inbox`: what waits; for htmx only the list."""
    values = await _listed(context)
    if context.is_fragment:
        return context.fragment("inbox_list.html", **values)
    return context.page("inbox.html", **values)


async def badge(context: PanelContext) -> web.StreamResponse:
    """`GET /inbox/badge`: how much waits, for the navigation."""
    await context.panel.count_inbox()
    return context.fragment("inbox_count.html")


async def answer_several(context: PanelContext) -> web.StreamResponse:
    """`POST /inbox/batch`: one answer to the chosen calls, which must be one question. Shows what came of each."""
    form = await context.form()
    chosen = dict(_chosen(str(text)) for text in form.getall("item", []))
    if not chosen:
        hint = context.say("Tick the calls that your answer is for.")
        raise ConfigError(context.say("No call is chosen."), hint=hint)
    listing = await context.panel.inbox.load(kinds=_APPROVALS, now=context.panel.clock.now())
    by_key = {item.key: item for item in listing.items}
    items = [by_key[key] for key in chosen if key in by_key]
    gone = [key for key in chosen if key not in by_key]
    answer = ApprovalAnswer(
        approved=form.get("action") == "approve",
        by=context.identity.name,
        authenticated=context.identity.authenticated,
        note=str(form.get("note", "")).strip(),
    )
    outcomes = []
    if items:
        outcomes = await answer_batch(context.journal, items, answer, digests=chosen, clock=context.panel.clock)
    runs = {item.outer: item for item in items}
    traces = [await read_excerpt(context.journal, item.run_id) for item in runs.values()]
    return context.page(
        "inbox_answered.html",
        outcomes=outcomes,
        gone=gone,
        approved=answer.approved,
        steps=[await next_step(context, trace) for trace in traces],
        item_url=partial(item_url, context),
        item_name="",
        error_text=lambda error: " ".join(error_texts(error, context.language)).strip(),
    )


def _choice(item: InboxItem) -> str:
    """The value of a checkbox: run, call and digest."""
    parts = (item.run_id, item.call_id, item.calls[0].request.digest)
    return "/".join(quote(part, safe="") for part in parts)


def _chosen(text: str) -> tuple[tuple[str, str], str]:
    """The run, the call and the digest in the value of a checkbox."""
    run_id, call_id, digest = (unquote(part) for part in f"{text}//".split("/")[:3])
    return (run_id, call_id), digest


async def _listed(context: PanelContext) -> dict[str, Any]:
    listing = await context.panel.inbox.load(now=context.panel.clock.now())
    kind, now = context.query("kind"), context.panel.clock.now()
    counts = {name: len(listing.of(name)) for name in INBOX_KINDS}
    kinds: tuple[InboxKind, ...] = tuple(name for name in INBOX_KINDS if kind in ("", name))
    first = int(number) if (number := context.query("from")).isascii() and number.isdecimal() and len(number) < 9 else 0
    items = listing.of(*kinds)
    page = items[first : first + SHOWN_AT_ONCE]
    context.panel.inbox_count = len(listing.items) + len(listing.unreadable)
    approvals = [item for item in page if item.kind == "approval"]
    return {
        "kind": kind,
        "counts": counts,
        "total": len(listing.items),
        "groups": question_groups(approvals),
        "others": [(name, [item for item in page if item.kind == name]) for name in kinds if name != "approval"],
        "shown": {item.key: _shown(item, context.language) for item in page},
        "unreadable": listing.unreadable,
        "is_cut": listing.is_cut,
        "selected": context.query("select"),
        "first": first,
        "next_first": first + SHOWN_AT_ONCE if len(items) > first + SHOWN_AT_ONCE else None,
        "now": now,
        "item_url": partial(item_url, context),
        "choice": _choice,
        "kind_names": KIND_NAMES,
        "kind_questions": KIND_QUESTIONS,
        "badge_names": BADGE_NAMES,
    }


def _shown(item: InboxItem, language: str) -> list[Any]:
    return [shown_call(call, language, most_chars=LISTED_CHARS) for call in item.calls]


ROUTES: Final = (
    Route("GET", "/inbox", inbox_page),
    Route("GET", "/inbox/badge", badge),
    Route("POST", "/inbox/batch", answer_several, role="approver"),
)
