"""One item of the inbox: the exact call with where its arguments came from, and the answers to it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, get_args

from aiohttp import web

from taoloop.core.cards.decimals import decimal_literals
from taoloop.core.cards.questions import choices_of, is_question
from taoloop.core.events import ApprovalGiven, ApprovalRefused, ApprovalScope, DoubtSettled, Event, Finished, Noted
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import AlreadyAnswered, ConfigError, InvalidArguments, RunNotFound, TaoError
from taoloop.policy.provenance import GUARD
from taoloop.policy.review.argument_origins import argument_origins
from taoloop.runtime.after.abandonment import abandon_run
from taoloop.runtime.approvals.inbox import add_note, answer_approval, settle_doubt
from taoloop.runtime.approvals.inbox_items import WHOLE_RUN, InboxCall, InboxItem
from taoloop.runtime.approvals.request import (
    EXPLICIT_YES_WORDS,
    SETTLINGS,
    ApprovalAnswer,
    Settling,
    approval_request,
)
from taoloop.runtime.approvals.run_excerpt import is_whole, read_evidence
from taoloop.runtime.approvals.user_questions import question_answer, question_warnings
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.inbox_reading import (
    BADGE_NAMES,
    KIND_QUESTIONS,
    LISTED_CHARS,
    MOST_EDITED_CHARS,
    PROBE_NAMES,
    RUN_TITLES,
    ShownCall,
    editable_json,
    shown_call,
)
from taoloop.serve.panel.pages.resumption import item_path, item_url, next_step
from taoloop.serve.panel.stored_run import load_excerpt
from taoloop.translation import error_texts, mark

_LATE, _UNPROCESSABLE = 409, 422


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """What somebody has answered already."""

    by: str
    """Who."""

    at: float
    """When, in seconds since the epoch."""

    text: str
    """How, in the language of the page."""

    note: str = ""
    """What they said about it."""

    authenticated: str = ""
    """How it is known that it was this person; empty: it is what they claimed."""

    args: Mapping[str, Any] | None = None
    """The arguments that they put in place of the model's."""


_HOW: Final = mark(
    {
        "allowed": "allowed",
        "answered": "answered",
        "edited": "allowed with other arguments",
        "rule": "allowed, and further such calls of this run",
        "values": "allowed, and its values are trusted in this run",
        "refused": "refused",
        "True": "it happened",
        "False": "it did not happen, so it runs again",
        "None": "nobody knows, and the model reads that",
        "abandoned": "closed for good",
    }
)


async def item_page(context: PanelContext) -> web.StreamResponse:
    """`GET /inbox/{run_id}/{call_id}`: the item; after an answer, what was said and what happens next."""
    return await _page(context)


async def arguments(context: PanelContext) -> web.StreamResponse:
    """`GET …/arguments`: the arguments of the call, whole, as JSON in a file."""
    trace = await load_excerpt(context, context.param("call_id"))
    if (call := trace.calls.get(context.param("call_id"))) is None:
        raise _no_such_call(context)
    filename = f"{trace.run_id}-{context.param('call_id')}.json"
    return context.text(editable_json(call.args), "application/json", filename)


async def evidence(context: PanelContext) -> web.StreamResponse:
    """`GET …/evidence`: for the page of a long run, which is searched: where each argument of the call came from."""
    run_id, call_id = _key(context)
    listing = await context.panel.inbox.load(run_id=run_id, now=context.panel.clock.now())
    calls = (call for item in listing.items for call in item.calls if item.run_id == run_id)
    call = next((call for call in calls if call.request.call_id == call_id), None)
    trace = None if call is None else await read_evidence(context.journal, run_id, call_id)
    if call is None or trace is None:
        raise _no_such_call(context)
    origins = await asyncio.to_thread(argument_origins, trace, call_id)  # other pages are answered meanwhile
    shown = shown_call(call, context.language, origins)
    return context.fragment("inbox_evidence.html", shown=shown, flaw=await _flaw(context), badge_names=BADGE_NAMES)


async def state(context: PanelContext) -> web.StreamResponse:
    """`GET …/state`: for an open page, whether somebody has answered or the call is another one by now."""
    item = await _find(context)
    values: dict[str, Any] = {"answer": None, "is_open": item is not None, "is_changed": False}
    if item is None:
        values["answer"] = _answer_of(context, await load_excerpt(context, context.param("call_id")))
    elif item.call is not None:
        values["is_changed"] = item.call.request.digest != context.query("digest")
    return context.fragment("inbox_state.html", path=item_path(context, *_key(context)), **values)


async def approve(context: PanelContext) -> web.StreamResponse:
    """`POST …/approve`: this exact call, perhaps with other arguments, perhaps with more calls."""
    form = await context.form()
    fields = {name: str(form[name]) for name in ("args", "note", "scope", "confirm", "batch", "digest") if name in form}
    item = await _find(context)
    is_edited = "args" in fields
    if item is not None and item.kind == "approval" and item.calls[0].request.grave and not _is_confirmed(fields):
        problem = context.say("This is hard to undo, and nobody named what it acts on. Type yes in full to allow it.")
        return await _page(context, problem=problem, at="edit" if is_edited else "approve", fields=fields)
    try:
        args = _parsed(context, fields["args"]) if is_edited else None
    except ConfigError as error:
        return await _page(context, problem=error.message, at="edit", fields=fields)
    answer = ApprovalAnswer(
        approved=True,
        args=args,
        digits=None if args is None else decimal_literals(args, (fields["args"],)),
        scope=next((scope for scope in get_args(ApprovalScope) if scope == fields.get("scope")), "call"),
        batch="batch" in fields and not is_edited,
        **_signed(context, fields.get("note", "")),
    )
    digest = fields.get("digest", "")
    answering = answer_approval(context.journal, *_key(context), answer, digest=digest, clock=context.panel.clock)
    return await _answered(context, answering, at="edit" if is_edited else "approve", fields=fields)


def _is_confirmed(fields: Mapping[str, str]) -> bool:
    """Whether the person typed the whole word, where one click must not be enough."""
    return fields.get("confirm", "").strip().casefold() in EXPLICIT_YES_WORDS


async def refuse(context: PanelContext) -> web.StreamResponse:
    """`POST …/refuse`: not this call; the model reads why."""
    fields = await _fields(context, "note", "batch", "digest")
    answer = ApprovalAnswer(approved=False, batch="batch" in fields, **_signed(context, fields.get("note", "")))
    digest = fields.get("digest", "")
    answering = answer_approval(context.journal, *_key(context), answer, digest=digest, clock=context.panel.clock)
    return await _answered(context, answering, at="refuse", fields=fields)


async def answer_question(context: PanelContext) -> web.StreamResponse:
    """`POST …/answer`: the answer to a question of the model."""
    fields = await _fields(context, "answer", "digest")
    item = await _find(context)
    if item is None or item.kind != "question":
        return await _page(context, status=_LATE, is_late=True)
    identity = context.identity
    try:
        answer = question_answer(
            item.calls[0].request,
            fields.get("answer", ""),
            by=identity.name,
            authenticated=identity.authenticated,
        )
    except InvalidArguments as error:
        message, hint = error_texts(error, context.language)
        return await _page(context, problem=f"{message} {hint}".strip(), at="answer", fields=fields)
    digest = fields.get("digest", "")
    answering = answer_approval(context.journal, *_key(context), answer, digest=digest, clock=context.panel.clock)
    return await _answered(context, answering, at="answer", fields=fields)


async def settle(context: PanelContext) -> web.StreamResponse:
    """`POST …/settle`: whether a call in doubt happened."""
    fields = await _fields(context, "note", "how", "digest")
    how: Settling | None = next((how for how in SETTLINGS if how == fields.get("how")), None)
    if how is None:
        return await _page(context, problem=context.say("Choose one of the three."), at="settle", fields=fields)
    signed = _signed(context, fields.get("note", ""))
    digest = fields.get("digest", "")
    settling = settle_doubt(context.journal, *_key(context), how, digest=digest, clock=context.panel.clock, **signed)
    return await _answered(context, settling, at="settle", fields=fields)


async def note(context: PanelContext) -> web.StreamResponse:
    """`POST …/note`: a text for the model of a blocked run, which reads it when the run is resumed."""
    fields = await _fields(context, "note")
    noting = add_note(
        context.journal,
        context.param("run_id"),
        fields.get("note", ""),
        by=context.identity.name,
        authenticated=context.identity.authenticated,
        clock=context.panel.clock,
    )
    return await _answered(context, noting, at="note", fields=fields)


async def close(context: PanelContext) -> web.StreamResponse:
    """`POST …/close`: ends the run for good; nothing is undone, and nobody can resume it."""
    fields = await _fields(context, "note")
    signed = _signed(context, fields.get("note", ""))
    closing = abandon_run(context.journal, context.param("run_id"), clock=context.panel.clock, **signed)
    return await _answered(context, closing, at="close", fields=fields)


async def _answered(
    context: PanelContext, answering: Coroutine[Any, Any, Any], *, at: str, fields: Mapping[str, str]
) -> web.StreamResponse:
    """Records an answer, and leads back to the item; where that fails, the page with what was typed, and why.

    Of two people the first counts: the page then says who answered, when and how.
    """
    try:
        await answering
    except RunNotFound:
        raise
    except AlreadyAnswered:
        return await _page(context, status=_LATE, is_late=True)
    except TaoError as error:
        message, hint = error_texts(error, context.language)
        return await _page(context, problem=f"{message} {hint}".strip(), at=at, fields=fields)
    return context.redirect(item_path(context, *_key(context)))


async def _page(
    context: PanelContext,
    *,
    status: int = 200,
    problem: str = "",
    at: str = "",
    fields: Mapping[str, str] | None = None,
    is_late: bool = False,
) -> web.StreamResponse:
    """The page of an item; `problem` is what was wrong with the form `at`, which keeps its `fields`."""
    trace = await load_excerpt(context, context.param("call_id"))
    item = await _find(context)
    answer = _answer_of(context, trace) if item is None else None
    if item is None and answer is None and context.param("call_id") not in (*trace.calls, WHOLE_RUN):
        raise _no_such_call(context)
    flaw = await _flaw(context) if is_whole(trace) else ""
    values: dict[str, Any] = {
        "item": item,
        "answer": answer,
        "trace": trace,
        "call_id": context.param("call_id"),
        "calls": [] if item is None else [_shown(context, trace, call) for call in item.calls],
        "alike": [] if item is None else [_shown_alike(context, trace, call_id) for call_id in item.alike],
        "args_json": "" if item is None or item.call is None else editable_json(item.call.request.args),
        "choices": () if item is None or item.call is None else choices_of(item.call.request.args),
        "warnings": _warnings_of(context, item),
        "most_edited": MOST_EDITED_CHARS,
        "flaw": flaw,
        "is_long": not is_whole(trace),
        "notes": _notes_of(trace),
        "problem": problem,
        "at": at,
        "fields": fields or {},
        "is_late": is_late,
        "path": item_path(context, *_key(context)),
        "now": context.panel.clock.now(),
        "step": await next_step(context, trace),
        "item_url": partial(item_url, context),
        "titles": RUN_TITLES,
        "kind_questions": KIND_QUESTIONS,
        "badge_names": BADGE_NAMES,
        "probe_names": PROBE_NAMES,
    }
    if problem:
        status = _UNPROCESSABLE
    return context.page("inbox_item.html", status=status, **values)


def _shown(context: PanelContext, trace: Trace, call: InboxCall) -> ShownCall:
    """The call as the page shows it; of a long run the places where its arguments came from are asked for apart."""
    origins = argument_origins(trace, call.request.call_id) if is_whole(trace) else ()
    return shown_call(call, context.language, origins)


async def _find(context: PanelContext) -> InboxItem | None:
    """The item in the address; None: it was answered, or never waited."""
    listing = await context.panel.inbox.load(run_id=context.param("run_id"), now=context.panel.clock.now())
    return listing.find(*_key(context))


async def _flaw(context: PanelContext) -> str:
    """What is not as it was written in the run; empty if nothing is."""
    flaw = (await context.journal.verify(context.param("run_id"))).first
    return "" if flaw is None else context.without_path(flaw.text)


def _notes_of(trace: Trace) -> list[tuple[float, Noted]]:
    """The notes of people since the model last decided, and when they were added."""
    facts = ((event.at, event.fact) for event in trace.events)
    return [(at, fact) for at, fact in facts if isinstance(fact, Noted) and fact.by != GUARD and not fact.about]


def _shown_alike(context: PanelContext, trace: Trace, call_id: str) -> ShownCall:
    call = InboxCall(request=approval_request(trace, trace.calls[call_id]))
    return shown_call(call, context.language, most_chars=LISTED_CHARS)


def _warnings_of(context: PanelContext, item: InboxItem | None) -> tuple[str, ...]:
    question = None if item is None or item.kind != "question" else item.calls[0].request.question
    return () if question is None else question_warnings(question, context.language)


def _answer_of(context: PanelContext, trace: Trace) -> RecordedAnswer | None:
    """What was answered: the last word about the call, or about the run as a whole."""
    call_id = context.param("call_id")
    for event in reversed(trace.events):
        match event.fact:
            case ApprovalGiven() as fact if fact.call_id == call_id:
                is_asked = is_question(trace.card(trace.calls[call_id].requested.tool))
                how = "edited" if fact.args is not None else "allowed" if fact.scope == "call" else fact.scope
                return _recorded(
                    context, event, fact.by, "answered" if is_asked else how, fact.note, fact.authenticated, fact.args
                )
            case ApprovalRefused() as fact if fact.call_id == call_id:
                return _recorded(context, event, fact.by, "refused", fact.note, fact.authenticated)
            case DoubtSettled() as fact if fact.call_id == call_id and fact.by != PROBE:
                return _recorded(context, event, fact.by, str(fact.happened), fact.note, fact.authenticated)
            case Finished(abandoned_by=by) as fact if by:
                return _recorded(context, event, by, "abandoned", fact.reason, fact.authenticated)
            case _:
                pass
    return None


def _recorded(
    context: PanelContext,
    event: Event,
    by: str,
    how: str,
    note: str,
    authenticated: str,
    args: Mapping[str, Any] | None = None,
) -> RecordedAnswer:
    text = context.say(_HOW[how])
    return RecordedAnswer(by=by, at=event.at, text=text, note=note, authenticated=authenticated, args=args)


def _parsed(context: PanelContext, text: str) -> Mapping[str, Any]:
    """The arguments in a form.

    Raises:
        ConfigError: it is no JSON object; says where.
    """
    try:
        args = loads(text)
    except NotJsonError as error:
        raise ConfigError(context.say("This is not JSON: {why}.", why=error.text.render(context.language))) from None
    if not isinstance(args, Mapping):
        raise ConfigError(context.say("Arguments are a JSON object, as in {example}.", example='{"to": "ann"}'))
    return args


def _signed(context: PanelContext, note: str) -> dict[str, Any]:
    """Who answers, how that is known, and what they say."""
    identity = context.identity
    return {"by": identity.name, "authenticated": identity.authenticated, "note": note.strip()}


async def _fields(context: PanelContext, *names: str) -> dict[str, str]:
    form = await context.form()
    return {name: str(form[name]) for name in names if name in form}


def _key(context: PanelContext) -> tuple[str, str]:
    return context.param("run_id"), context.param("call_id")


def _no_such_call(context: PanelContext) -> TaoError:
    run_id, call_id = _key(context)
    message = context.say("Run {run_id} has no call {call_id}.", run_id=run_id, call_id=call_id)
    return RunNotFound(message, hint=context.say("The inbox lists what waits."))


_ITEM = "/inbox/{run_id}/{call_id}"

ROUTES: Final = (
    Route("GET", _ITEM, item_page),
    Route("GET", f"{_ITEM}/arguments", arguments),
    Route("GET", f"{_ITEM}/evidence", evidence),
    Route("GET", f"{_ITEM}/state", state),
    Route("POST", f"{_ITEM}/approve", approve, role="approver"),
    Route("POST", f"{_ITEM}/answer", answer_question, role="approver"),
    Route("POST", f"{_ITEM}/refuse", refuse, role="approver"),
    Route("POST", f"{_ITEM}/settle", settle, role="approver"),
    Route("POST", f"{_ITEM}/note", note, role="approver"),
    Route("POST", f"{_ITEM}/close", close, role="admin"),
)
