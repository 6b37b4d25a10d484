"""What waits for a person, as it is told to other programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from taoloop.core.text import blank_unprintable
from taoloop.runtime.approvals.inbox_items import InboxItem, InboxKind

TYPES: Final[dict[InboxKind, str]] = {
    "approval": "approval.requested",
    "question": "question.asked",
    "doubt": "call.in_doubt",
    "undo": "undo.failed",
    "blocked": "run.blocked",
    "dead": "run.given_up",
}
"""The `type` of the message by kind, as the Standard Webhooks specification wants it: words with full stops."""

MOST_CHARS = 200
"""How much of a task, or of a reason, a notice has."""

LinkTo = Callable[[str, str], str]
"""The address where a person answers, for a run and a call; "": there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that waits for a person.

    It has no arguments of the call: they may be confidential, and who answers must see them beside where they came
    from, not in a chat. The texts of a run are cut and without control characters, but they are nobody's but the
    model's and the task's: a receiver must show them as plain text.
    """

    id: str
    """The same for the same question, in every process and after a restart: a receiver drops what it has had."""

    kind: InboxKind
    """Why it waits."""

    run_id: str
    """The run that waits; for `undo` the run that undoes."""

    call_id: str
    """The call in it, or `run` for what concerns the whole run. With `run_id` it names the item of the inbox."""

    task: str
    """The task of the run, shortened."""

    agent: str
    """The name of the agent."""

    tools: tuple[str, ...] = ()
    """The tools of the calls that it is about, each once."""

    tier: str | None = None
    """What a call of the first tool can change; None: there is no such tool, or its card does not say."""

    reasons: tuple[str, ...] = ()
    """Why a person is asked to approve the call, in the language of the run."""

    reason_codes: tuple[str, ...] = ()
    """A stable code for each of the reasons."""

    since: float | None = None
    """Since when it waits, in seconds since the epoch."""

    expires_at: float | None = None
    """When it counts as refused, in seconds since the epoch; None: never."""

    url: str = ""
    """Where to answer."""

    def body(self) -> bytes:
        """The message as JSON in ASCII: `type`, `timestamp` and `data`, as the Standard Webhooks specification has it.

        It is the same bytes for each attempt.
        """
        data = {
            "id": self.id,
            "kind": self.kind,
            "run_id": self.run_id,
            "call_id": self.call_id,
            "agent": self.agent,
            "task": self.task,
            "tools": self.tools,
            "tier": self.tier,
            "reasons": self.reasons,
            "reason_codes": self.reason_codes,
            "expires_at": _iso(self.expires_at),
            "url": self.url or None,
        }
        message = {"type": TYPES[self.kind], "timestamp": _iso(self.since), "data": data}
        return json.dumps(message, separators=(",", ":")).encode()


def notice_of(item: InboxItem, link_to: LinkTo | None = None) -> Notice:
    """The notice of an item of the inbox.

    Of the texts about it only the reasons of an approval are in it: they name arguments, and no values. What a tool,
    its probe or the model said may contain some.
    """
    request = item.calls[0].request if item.calls else None
    reasons = () if request is None or item.kind != "approval" else request.reasons
    return Notice(
        id=notice_id(item),
        kind=item.kind,
        run_id=item.run_id,
        call_id=item.call_id,
        task=_shortened(item.task),
        agent=_shortened(item.agent),
        tools=tuple(map(_shortened, item.tools)),
        tier=None if request is None or request.card is None else request.card.tier,
        reasons=tuple(map(_shortened, reasons)),
        reason_codes=request.reason_codes if request is not None and reasons else (),
        since=item.since,
        expires_at=item.expires_at,
        url="" if link_to is None else link_to(item.run_id, item.call_id),
    )


def notice_id(item: InboxItem) -> str:
    """The id of an item's notice: another one for another call, for a new attempt in doubt, and for a new ending."""
    call = item.call
    asked = "" if call is None else f"{call.request.digest} {call.attempts if item.kind == 'doubt' else 0}"
    ended = item.since if item.kind in ("blocked", "undo") else None
    parts = (item.kind, item.run_id, item.call_id, asked, ended)
    return f"msg_{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"


def inbox_link(base: str) -> LinkTo:
    """The addresses in the inbox of a panel at the address `base`; without one there are none."""
    if not base:
        return lambda _run_id, _call_id: ""
    return lambda run_id, call_id: f"{base.rstrip('/')}/inbox/{quote(run_id, safe='')}/{quote(call_id, safe='')}"


def _shortened(text: str) -> str:
    text = " ".join(blank_unprintable(text).split())
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


def _iso(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
