"""Server-sent events: what an open page is told.

Events carry no markup: they say that a run has grown, with its seq as the id, and the page fetches what it shows. A
browser that reconnects sends the last id (`Last-Event-ID`), so nothing is missed. Source: HTML Standard, section
"Server-sent events".
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web

from taoloop.serve.panel.context import PanelContext
from taoloop.serve.panel.rendering import security_headers

HEARTBEAT_S: Final = 15.0
"""How often an idle stream sends a comment, so that proxies keep it and a browser that left is noticed."""

MOST_PER_S: Final = 5
"""How many times in a second a page is told, so that one that watches a run of a thousand steps a second does not take
its processor away; what is new after that is told together."""

GROWN: Final = "grown"
"""The event that says which runs have grown, as `{run: seq}`."""
AWAY: Final = "journal-away"
"""The event that says that the database cannot be read at the moment."""
BACK: Final = "journal-back"
"""The event that says that it can be read again, or is another one: what the page shows may be old."""


async def send_events(context: PanelContext, run_id: str | None = None) -> web.StreamResponse:
    """Answer with a stream that says what grows: `grown`, with the seq as id and `{run: seq}` as data.

    With `run_id` only of this run, and at once if it has more than the request knows (`Last-Event-ID`, or `after` in
    the address). Without it the first event comes at once, for what happened since the page was made. Ends with the
    session, before anything more is told.
    """
    broadcaster = context.panel.broadcaster
    headers = security_headers(context.nonce) | {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    was_away, returns = False, broadcaster.returns
    loop, sent = asyncio.get_running_loop(), deque[float](maxlen=MOST_PER_S)
    with suppress(ConnectionError):
        async with broadcaster.listen(run_id) as listener:
            runs = {} if run_id is None else await _missed(context, run_id)
            await response.prepare(context.request)
            await response.write(b": connected\n\n")
            if runs or run_id is None:
                await _send(response, runs, run_id)
            while True:
                if (was_away, returns) != (broadcaster.is_away, broadcaster.returns):
                    was_away, returns = broadcaster.is_away, broadcaster.returns
                    await response.write(f"event: {AWAY if was_away else BACK}\ndata: {{}}\n\n".encode())
                if len(sent) == MOST_PER_S:
                    await asyncio.sleep(sent[0] + 1 - loop.time())
                runs = await listener.next(HEARTBEAT_S)
                if not await context.panel.sessions.is_open(context.session):
                    break  # the browser connects again, and is told to log in
                if runs:
                    await _send(response, runs, run_id)
                    sent.append(loop.time())
                else:
                    await response.write(b": alive\n\n")
    return response


async def _missed(context: PanelContext, run_id: str) -> dict[str, int]:
    """The run if it has events that the page does not know."""
    last = context.request.headers.get("Last-Event-ID") or context.query("after")
    if not (last.isascii() and last.removeprefix("-").isdecimal()):
        return {}
    newer = await context.queries.read(run_id, after=int(last), limit=1, last=True)
    return {run_id: newer[-1].seq} if newer else {}


async def _send(response: web.StreamResponse, runs: Mapping[str, int], run_id: str | None) -> None:
    identifier = "" if run_id is None else f"id: {runs[run_id]}\n"
    await response.write(f"{identifier}event: {GROWN}\ndata: {json.dumps(dict(runs))}\n\n".encode())
