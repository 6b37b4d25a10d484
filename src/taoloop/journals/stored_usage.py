"""Adding usage up from stored events, and the sums of a day as a journal stores them."""

from __future__ import annotations

import json
from typing import Any

from taoloop.core.message import STEP_PURPOSES
from taoloop.journals.usage import COUNTS, NO_PERSON, RunOrigin, UsageLedger, UsageRow

UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError)
"""What `add_stored_event` raises where somebody edited the body."""


def add_stored_event(ledger: UsageLedger, origin: RunOrigin, seq: int, at: float, kind: str, body: str) -> None:
    """Count one stored event of a run.

    Raises:
        TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError: the body was edited.
    """
    if kind == "run_started":
        ledger.add_start(origin, at)
    elif seq >= origin.own_from:
        _add_fields(ledger, origin, at, kind, json.loads(body))


def add_counts(added: UsageRow, stored: str | None) -> str:
    """The counts of a row as text: those that are `stored` already, and those that were added."""
    counts = {name: getattr(added, name) for name in COUNTS}
    if stored is not None:
        known = json.loads(stored)
        counts = {name: counts[name] + known.get(name, 0) for name in COUNTS}
    return json.dumps({name: count for name, count in counts.items() if count})


def _add_fields(ledger: UsageLedger, origin: RunOrigin, at: float, kind: str, fields: dict[str, Any]) -> None:
    """Count an event by its stored fields: to read all of it as a fact would take several times as long."""
    match kind:
        case "model_replied":
            usage, cost = fields["usage"], fields["cost_usd"]
            tokens = (int(usage["input_tokens"]), int(usage["cached_tokens"]), int(usage["output_tokens"]))
            cost_usd = None if cost is None else float(cost)
            ledger.add_reply(
                origin, at, str(fields["model"]), tokens, cost_usd, is_step=fields["purpose"] in STEP_PURPOSES
            )
        case "observed":
            ledger.add_outcome(origin, at, ok=bool(fields["ok"]))
        case "finished":
            ledger.add_end(origin, at, fields["status"])
        case _ if fields["by"] not in NO_PERSON:
            ledger.add_intervention(origin, at)


def usage_row(day: str, key: str, agent: str, model: str, counts: str) -> UsageRow:
    """The row whose counts `add_counts` wrote."""
    known = {name: count for name, count in json.loads(counts).items() if name in COUNTS}
    return UsageRow(day=day, key=key, agent=agent, model=model, **known)
