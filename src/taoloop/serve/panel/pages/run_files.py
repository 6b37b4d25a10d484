"""What a run contains, whole: texts that its page cuts, prompts, outputs, exports, and the run as a test case."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Final

from aiohttp import web

from taoloop.core.attachments.files import FileInfo
from taoloop.core.events import Event, RunStarted
from taoloop.core.images import media_type_of_image
from taoloop.core.message import Message
from taoloop.core.stored_events import event_line
from taoloop.core.trace import attachments_of
from taoloop.core.views.event_entries import event_entries
from taoloop.errors import ConfigError, RunNotFound
from taoloop.runtime.after.regression_file import case_name, regression_archive
from taoloop.runtime.after.report import FORMATS, export, stored_run
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.pages.run import state_values
from taoloop.serve.panel.rendering import security_headers
from taoloop.serve.panel.run_reading import find_citation


async def whole_text(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/events/{seq}/texts/{number}`: a text of an entry; a part of the page if htmx asks."""
    event = await _event(context)
    texts = event_entries([event], context.language)[0].texts
    number = _index(context, "number")
    if number >= len(texts):
        message = context.say("Event {seq} has no text {number}.", seq=event.seq, number=number)
        raise ConfigError(message, hint=context.say("Open it from the page of the run."))
    if context.is_fragment:
        return context.fragment(
            "run_text.html", text=texts[number], seq=event.seq, number=number, run_id=_run_id(context)
        )
    return context.text(texts[number].text)


async def record(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/events/{seq}/record`: the event as it is exported, as JSON."""
    return context.text(event_line(_run_id(context), await _event(context)), "application/json")


async def prompt(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/events/{seq}/prompt`: what the model was sent for this reply; a part of the page for htmx."""
    values = await state_values(context, _index(context, "seq"))
    if context.is_fragment:
        return context.fragment("run_prompt.html", run_id=_run_id(context), **values)
    if (request := values["request"]) is None:
        message = values["problem"] or context.say("No prompt was sent for event {seq}.", seq=values["seq"])
        raise ConfigError(message, hint=context.say("Open that of a reply of the model."))
    return context.text("\n\n".join(map(_message_text, request.messages)))


async def artifact(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/artifacts/{ref}`: a whole output, never as markup; a file to download, an image to see.

    An image is shown by its type only if its bytes are of a format that has no scripts. Like a file, it is in a
    sandbox of its own origin, should a browser take it for something else.
    """
    ref = context.param("ref")
    stored = await context.journal.artifact(_run_id(context), ref)
    if stored is None:
        message = context.say("The complete output {ref} is not in the journal any more.", ref=ref)
        hint = context.say("The preview in the run is all there is: it may have been removed by retention, or by hand.")
        return context.error(message, hint, 404)
    if not stored.is_binary:
        return context.text(stored.body)
    data = b64decode(stored.body)
    if (shown := media_type_of_image(data)) == stored.form:
        return context.bytes(data, shown)
    return context.bytes(data, "application/octet-stream", filename=await _file_name(context, ref))


async def citation(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/citations/{passage}`: to the observation that contains a passage that the answer cites."""
    passage = context.param("passage")
    seq = await find_citation(context.journal, _run_id(context), passage)
    if seq is None:
        message = context.say("No observation of this run contains {passage}.", passage=passage)
        return context.error(message, context.say("The model cited it without having seen it here."), 404)
    return context.redirect(f"{context.run_path(_run_id(context), seq=seq)}#e-{seq}")


async def export_file(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/export.{form}`: the run as JSON lines, a page or a text, as `tao export` writes it."""
    form = context.param("form")
    if form not in FORMATS:
        message = context.say("There is no format {name!r}.", name=form[:20])
        raise ConfigError(message, hint=context.say("Choose one of: {names}.", names=", ".join(FORMATS)))
    stored = await stored_run(context.journal, _run_id(context))
    text = await asyncio.to_thread(export, stored, form)  # megabytes take seconds
    return context.text(text, FORMATS[form], filename=f"{case_name(_run_id(context))}.{form}")


async def case_archive(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/test-case.zip`: a file of pytest and the run, which today's code must decide as it did."""
    run_id = _run_id(context)
    events = await context.journal.load(run_id)
    started = events[0].fact if events else None
    if not isinstance(started, RunStarted):
        raise ConfigError(context.say("This run never began."), hint=context.say("Choose a run with a task."))
    headers = security_headers(context.nonce)
    headers["Content-Disposition"] = f"attachment; filename=test_{case_name(run_id)}.zip"
    body = regression_archive(run_id, events, started.task)
    return web.Response(body=body, content_type="application/zip", headers=headers)


ROUTES: Final = (
    Route("GET", "/runs/{run_id}/events/{seq}/texts/{number}", whole_text),
    Route("GET", "/runs/{run_id}/events/{seq}/record", record),
    Route("GET", "/runs/{run_id}/events/{seq}/prompt", prompt),
    Route("GET", "/runs/{run_id}/artifacts/{ref}", artifact),
    Route("GET", "/runs/{run_id}/citations/{passage}", citation),
    Route("GET", "/runs/{run_id}/export.{form}", export_file),
    Route("GET", "/runs/{run_id}/test-case.zip", case_archive),
)


def _run_id(context: PanelContext) -> str:
    return context.param("run_id")


async def _file_name(context: PanelContext, ref: str) -> str:
    """The name by which a browser stores a file of the run."""
    for event in await context.journal.load(_run_id(context)):
        for info in attachments_of(event.fact):
            if isinstance(info, FileInfo) and info.ref == ref:
                return info.file_name
    return f"{ref}.bin"


def _index(context: PanelContext, name: str) -> int:
    text = context.param(name)
    if not (text.isascii() and text.isdecimal() and len(text) < 12):  # far enough
        raise RunNotFound(context.say("{text!r} is no number of an event or a text.", text=text[:40]))
    return int(text)


async def _event(context: PanelContext) -> Event:
    seq = _index(context, "seq")
    events = await context.queries.read(_run_id(context), after=seq - 1, before=seq + 1, limit=1)
    if not events:
        raise RunNotFound(context.say("This run has no event {seq}.", seq=seq))
    return events[0]


def _message_text(message: Message) -> str:
    calls = "".join(f"\n→ {call.name} {call.arguments}" for call in message.tool_calls)
    return f"[{message.role}]\n{message.content}{calls}"
