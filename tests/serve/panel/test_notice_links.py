"""The address in each notice leads to the page where it is answered."""

from __future__ import annotations

import asyncio

from tests.runtime.approvals.waiting_runs import (
    leave_approval,
    leave_blocked,
    leave_dead,
    leave_failed_undo,
    leave_question,
)
from tests.serve.panel.panels import browser_of

from taoloop import MemoryJournal
from taoloop.runtime.approvals.inbox_items import INBOX_KINDS, Inbox
from taoloop.runtime.notifications.notice import inbox_link, notice_of


def test_each_kind_of_notice_leads_to_its_page() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        await leave_approval(journal)
        await leave_question(journal)
        await leave_blocked(journal)
        await leave_failed_undo(journal)
        await leave_dead(journal)
        notices = [notice_of(item, inbox_link("https://tao.example/")) for item in (await Inbox(journal).load()).items]
        assert {notice.kind for notice in notices} == set(INBOX_KINDS)
        async with browser_of(journal, "ann") as browser:
            for notice in notices:
                page = await browser.get(notice.url.removeprefix("https://tao.example"))
                assert notice.run_id in page

    asyncio.run(main())
