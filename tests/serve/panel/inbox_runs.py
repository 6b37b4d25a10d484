"""Runs for the pages of the inbox: what asks there, and hostile texts."""

from __future__ import annotations

from tests.runtime.approvals.waiting_runs import asking
from tests.scripting import call, calls

from taoloop.journals.base import Journal

HOSTILE = "</pre><script>alert(1)</script>\u202egnp.exe\u2066<img src=x onerror=alert(1)>\x1b[31m\u200b"
"""Markup, a script, marks that reorder or hide text, and a control sequence."""


async def ask_about_an_invoice(journal: Journal) -> None:
    """A payment whose account comes from a mail."""
    iban = "DE89370400440532013000"
    await asking(journal, call("read_mail"), call("pay", to=iban, amount=1700)).run(
        "Pay the invoice.", run_id="invoice"
    )


async def ask_about_a_table(journal: Journal) -> None:
    """A call that cannot be undone, and whose target nobody named."""
    await asking(journal, call("drop", table="customers")).run("Clean up the database.", run_id="table")


async def ask_with_hostile_texts(journal: Journal) -> None:
    """Hostile texts in the task and in arguments, and a very long argument."""
    payments = calls(("pay", {"to": HOSTILE, "amount": 5}), ("pay", {"to": "x" * 9_000, "amount": 6}))
    await asking(journal, payments).run(HOSTILE, run_id="hostile")
