"""The inbox of the panel: what waits, and the answers."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tests.runtime.approvals.waiting_runs import (
    asking,
    leave_approval,
    leave_blocked,
    leave_dead,
    leave_failed_undo,
    leave_question,
    read_mail,
    refund_payment,
)
from tests.runtime.paying import drop, pay
from tests.scripting import call
from tests.serve.panel.inbox_runs import HOSTILE, ask_about_a_table, ask_about_an_invoice, ask_with_hostile_texts
from tests.serve.panel.panels import Browser, browse, browser_of

from taoloop import Agent, MemoryJournal, ScriptedModel, SqliteJournal, Trace
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import ApprovalGiven, ApprovalRefused, DoubtSettled, Finished, Noted, Observed
from taoloop.errors import ConfigError
from taoloop.journals.base import Journal
from taoloop.runtime.after.undo import approved_by
from taoloop.runtime.approvals.request import ApprovalRequest, ask
from taoloop.tools.builtin.ask_user import ask_user


def journal_with(*leave: Callable[[Journal], Awaitable[Any]]) -> MemoryJournal:
    journal = MemoryJournal()

    async def fill() -> None:
        for make in leave:
            await make(journal)

    asyncio.run(fill())
    return journal


async def trace_of(browser: Browser, run_id: str) -> Trace:
    return Trace(run_id, await browser.panel.state.journal.load(run_id))


async def last(browser: Browser, run_id: str, kind: type[Any]) -> Any:
    return [event.fact for event in await trace_of(browser, run_id) if isinstance(event.fact, kind)][-1]


def digest_in(page: str) -> str:
    match = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
    assert match is not None
    return match[1]


async def answer(browser: Browser, path: str, action: str, **fields: Any) -> str:
    """Send one of the forms of an item as its page has it."""
    return await browser.post(f"{path}/{action}", digest=digest_in(await browser.get(path)), **fields)


def badge_in(page: str) -> int:
    match = re.search(r'<span class="badge">(\d+)<', page)
    return int(match[1]) if match is not None else 0


def test_everything_that_waits_is_listed_with_counters_and_a_badge() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox")
        for link in ("asks/call_1", "dead/call_1", "orders.undo-1/call_1", "blocked/run", "dead/run"):
            assert f'href="/inbox/{link}"' in page
            await browser.get(f"/inbox/{link}")
        assert re.search(r'href="/inbox\?kind=blocked"[^>]*><b>1</b> Blocked runs', page)
        assert badge_in(page) == badge_in(await browser.get("/runs")) == 5
        blocked = await browser.get("/inbox?kind=blocked")
        assert 'href="/inbox/blocked/run"' in blocked
        assert 'href="/inbox/asks/call_1"' not in blocked
        assert "<html" not in await browser.get("/inbox", is_fragment=True)
        assert badge_in(await browser.get("/inbox/badge", is_fragment=True)) == 5

    browse(journal_with(leave_approval, leave_blocked, leave_failed_undo, leave_dead), scenario)


def test_an_empty_inbox_says_so() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox")
        assert "Nothing waits for a person." in page
        assert badge_in(page) == 0

    browse(MemoryJournal(), scenario)


def test_an_item_shows_the_exact_call_and_where_its_arguments_came_from() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/invoice/call_2")
        assert "DE89370400440532013000" in page
        assert "FOREIGN" in page
        assert "invoice: pay 1700 to DE89370400440532013000, or else" in page
        assert re.search(r'href="/runs/invoice\?seq=\d+#e-\d+">read_mail \(call_1\)', page)
        assert "step 1" in page
        assert "cannot be undone" in page
        assert "Rule that decided" in page
        assert "Pay somebody." in page
        assert "Pay the invoice." in page
        whole = await browser.get("/inbox/invoice/call_2/arguments")
        assert '"amount": 1700' in whole
        assert "no call call_9" in await browser.get("/inbox/invoice/call_9", 404)
        await browser.get("/inbox/nothing/call_1", 404)

    browse(journal_with(ask_about_an_invoice), scenario)


def test_an_approval_is_recorded_with_the_name_and_leads_to_what_happens_next() -> None:
    """S3-48."""

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/asks/call_1")
        page = await browser.post("/inbox/asks/call_1/approve", digest=digest_in(page), note="it is owed")
        given = await last(browser, "asks", ApprovalGiven)
        assert (given.by, given.authenticated, given.note, given.scope) == ("ann", "panel_token", "it is owed", "call")
        assert "ann" in page
        assert "allowed" in page
        assert "tao resume asks" in page, "this panel has no agents"
        assert badge_in(await browser.get("/inbox")) == 0

    browse(journal_with(leave_approval), scenario, "ann")


def test_a_refusal_has_a_reason_that_the_model_reads() -> None:
    async def scenario(browser: Browser) -> None:
        page = await answer(browser, "/inbox/asks/call_1", "refuse", note="not before Friday")
        refused = await last(browser, "asks", ApprovalRefused)
        assert (refused.by, refused.authenticated, refused.note) == ("ann", "panel_token", "not before Friday")
        assert "not before Friday" in page

    browse(journal_with(leave_approval), scenario, "ann")


def test_the_second_person_is_told_who_answered_when_and_how() -> None:
    async def scenario(browser: Browser) -> None:
        digest = digest_in(await browser.get("/inbox/asks/call_1"))
        assert "meanwhile" not in await browser.get(f"/inbox/asks/call_1/state?digest={digest}", is_fragment=True)
        await answer(browser, "/inbox/asks/call_1", "refuse", note="mine")
        assert "Somebody has answered meanwhile" in await browser.get(f"/inbox/asks/call_1/state?digest={digest}")
        await browser.log_in("ada")
        for action in ("approve", "refuse"):
            page = await browser.post(f"/inbox/asks/call_1/{action}", 409, digest=digest)
            assert "somebody was faster" in page
            assert "<strong>ann</strong>" in page
            assert "refused" in page
            assert "<time datetime=" in page
        assert not [event for event in await trace_of(browser, "asks") if isinstance(event.fact, ApprovalGiven)]

    browse(journal_with(leave_approval), scenario, "ann")


def test_edited_arguments_are_checked_and_nothing_typed_is_lost() -> None:
    async def scenario(browser: Browser) -> None:
        path = "/inbox/asks/call_1/approve"
        digest = digest_in(await browser.get("/inbox/asks/call_1"))
        cases = {
            '{"to": "bob", "amount": 5': "This is not JSON",
            "[1]": "Arguments are a JSON object",
            '{"to": "bob", "amount": "all of it"}': "do not fit",
            '{"to": "bob"}': "do not fit",
        }
        for args, problem in cases.items():
            page = await browser.post(path, 422, args=args, digest=digest, note="half of it")
            assert problem in page
            typed = args.replace('"', "&#34;")
            assert typed in page
            assert 'value="half of it"' in page
            assert 'aria-invalid="true"' in page
            assert "<details open>" in page
        assert not (await trace_of(browser, "asks")).calls["call_1"].approval
        page = await browser.post(path, args='{"to": "bob", "amount": 7}', digest=digest)
        given = await last(browser, "asks", ApprovalGiven)
        assert given.args == {"to": "bob", "amount": 7}
        assert "allowed with other arguments" in page

    browse(journal_with(leave_approval), scenario, "ann")


def test_an_approval_is_for_the_call_that_was_looked_at() -> None:
    async def scenario(browser: Browser) -> None:
        for digest in ("0" * 64, ""):
            page = await browser.post("/inbox/asks/call_1/approve", 422, digest=digest)
            assert "is not the one that was shown" in page
        assert not (await trace_of(browser, "asks")).calls["call_1"].approval

    browse(journal_with(leave_approval), scenario, "ann")


def test_a_high_risk_call_needs_the_whole_word() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/table/call_1")
        digest = digest_in(page)
        assert "high-risk" in page
        assert 'value="rule"' not in page, "there is no further such call to be allowed"
        for fields in ({}, {"confirm": "ok"}, {"confirm": "y"}, {"args": '{"table": "u"}', "confirm": "sure"}):
            page = await browser.post("/inbox/table/call_1/approve", 422, digest=digest, note="kept", **fields)
            assert "Type yes in full" in page
            assert "kept" in page
        assert not (await trace_of(browser, "table")).calls["call_1"].approval
        await browser.post("/inbox/table/call_1/approve", digest=digest, confirm=" Yes ")
        assert (await last(browser, "table", ApprovalGiven)).by == "ann"

    browse(journal_with(ask_about_a_table), scenario, "ann")


def test_a_rule_may_be_allowed_for_the_rest_of_the_run() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/asks/call_1")
        assert 'name="scope" value="rule"' in page
        digest = digest_in(page)
        await browser.post("/inbox/asks/call_1/approve", digest=digest, scope="rule")
        assert (await last(browser, "asks", ApprovalGiven)).scope == "rule"

    browse(journal_with(leave_approval), scenario, "ann")


def test_the_other_calls_of_a_question_may_get_the_same_answer() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/asks/call_1")
        assert "2 other calls of this question" in page
        await answer(browser, "/inbox/asks/call_1", "refuse", note="none", batch="1")
        refused = [event.fact for event in await trace_of(browser, "asks") if isinstance(event.fact, ApprovalRefused)]
        assert [fact.call_id for fact in refused] == ["call_1", "call_2", "call_3"]

    browse(journal_with(lambda journal: leave_approval(journal, 5, 6, 7)), scenario, "ann")


def test_ticked_calls_of_one_question_are_answered_together() -> None:
    async def leave(journal: Journal) -> None:
        await leave_approval(journal, 5, 6)
        await leave_approval(journal, 7, run_id="asks2")
        await leave_approval(journal, 8, run_id="yours", task="pay ann")
        await ask_about_a_table(journal)

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox")
        values = re.findall(r'name="item" value="([^"]+)"', page)
        chosen = [value.rpartition("/")[0] for value in values]
        assert chosen == ["asks/call_1", "asks/call_2", "asks2/call_1"], "one question, and no other"
        assert "checked" not in page
        select = re.search(r'href="(/inbox\?select=[^"]+)"', page)
        assert select is not None
        assert (await browser.get(select[1])).count(" checked>") == 3
        items = [values[0], values[2]]
        page = await browser.post("/inbox/batch", item=items, action="approve", note="all owed")
        assert page.count("is allowed.") == 2
        assert page.count("tao resume") == 2
        for run_id in ("asks", "asks2"):
            assert (await last(browser, run_id, ApprovalGiven)).authenticated == "panel_token"
        again = await browser.post("/inbox/batch", item=items[:1], action="refuse")
        assert "somebody was faster" in again
        assert "No call is chosen" in await browser.post("/inbox/batch", 400, action="approve")
        odd = [values[1], f"yours/call_1/{'0' * 64}"]
        assert "not one question" in await browser.post("/inbox/batch", 400, item=odd, action="approve")
        assert badge_in(await browser.get("/inbox")) == 3

    browse(journal_with(leave), scenario, "ann")


def test_a_doubt_is_settled_and_the_probe_is_quoted() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/dead/call_1")
        assert "Did this call happen?" in page
        assert "The tool cannot be asked whether it happened." in page
        assert "may have happened" in page
        page = await browser.post("/inbox/dead/call_1/settle", 422, note="the bank says so")
        assert "Choose one of the three." in page
        assert "the bank says so" in page
        page = await answer(browser, "/inbox/dead/call_1", "settle", how="happened", note="the bank says so")
        settled = await last(browser, "dead", DoubtSettled)
        assert (settled.happened, settled.by, settled.authenticated) == (True, "ann", "panel_token")
        assert "it happened" in page
        late = await browser.post("/inbox/dead/call_1/settle", 409, how="repeat")
        assert "somebody was faster" in late

    browse(journal_with(leave_dead), scenario, "ann")


def test_a_blocked_run_takes_a_note_and_is_closed_by_an_admin_only() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/blocked/run")
        assert "It is refunded." in page
        assert "refund_payment" in page
        assert "tao resume blocked --profile supervised" in page
        assert "Close it for good" not in page
        assert "is empty" in await browser.post("/inbox/blocked/run/note", 422, note=" ")
        await browser.post("/inbox/blocked/run/note", note="Order A1 is not ours.")
        noted = await last(browser, "blocked", Noted)
        assert (noted.by, noted.text, noted.authenticated) == ("ann", "Order A1 is not ours.", "panel_token")
        page = await browser.get("/inbox/blocked/run")
        assert "Noted by ann" in page
        assert "Order A1 is not ours." in page
        assert "tao resume blocked --profile supervised" in page, "it is still blocked"
        await browser.post("/inbox/blocked/run/close", 403, note="seen")
        await browser.log_in("ada")
        page = await browser.post("/inbox/blocked/run/close", note="seen")
        ended = await last(browser, "blocked", Finished)
        assert (ended.abandoned_by, ended.authenticated) == ("ada", "panel_token")
        assert "closed for good" in page
        assert "is over" in page

    browse(journal_with(leave_blocked), scenario, "ann")


def test_a_failed_undo_and_a_run_that_was_given_up_say_what_to_do() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/orders.undo-1/call_1")
        assert "b was shipped." in page
        assert "tao undo orders" in page
        assert "1 more effect was to be undone" in page
        await browser.post("/inbox/orders.undo-1/call_1/close", note="sent back by hand")
        dead = await browser.get("/inbox/dead/run")
        assert "died again and again" in dead
        assert "6 times in a row" in dead
        await browser.post("/inbox/dead/run/close", note="paid by hand")
        assert badge_in(await browser.get("/inbox")) == 0

    browse(journal_with(leave_failed_undo, leave_dead), scenario, "ada")


def test_a_viewer_looks_and_cannot_answer() -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/asks/call_1")
        assert "You may look." in page
        assert "/approve" not in page
        for action in ("approve", "refuse", "settle", "note", "close"):
            await browser.post(f"/inbox/asks/call_1/{action}", 403)
        assert 'type="checkbox"' not in await browser.get("/inbox")
        await browser.post("/inbox/batch", 403)
        await browser.post("/runs/asks/resume", 403)

    browse(journal_with(lambda journal: leave_approval(journal, 5, 6)), scenario, "bob")


def test_the_panel_resumes_the_run_in_the_background() -> None:
    journal = journal_with(leave_approval)

    async def scenario(browser: Browser) -> None:
        digest = digest_in(await browser.get("/inbox/asks/call_1"))
        page = await browser.post("/inbox/asks/call_1/approve", digest=digest)
        assert 'action="/runs/asks/resume"' in page
        assert "or: tao resume asks" in page
        await drive(browser, "/runs/asks/resume", item="asks:call_1")
        assert (await last(browser, "asks", Observed)).output == "paid 5 to ann"
        page = await browser.get("/inbox/asks/call_1")
        assert "is over" in page
        assert (await trace_of(browser, "asks")).status == "completed"
        assert "is completed" in await browser.post("/runs/asks/resume", 409)

    browse(journal, scenario, "ann", agents=lambda _spec: asking(MemoryJournal()))


def test_a_run_that_cannot_be_resumed_says_why() -> None:
    async def scenario(browser: Browser) -> None:
        await answer(browser, "/inbox/asks/call_1", "refuse")
        assert "tao resume asks" in await browser.post("/runs/asks/resume", 400)

    browse(journal_with(leave_approval), scenario, "ann")


def test_hostile_arguments_are_text_and_nothing_in_them_hides() -> None:
    async def scenario(browser: Browser) -> None:
        for path in ("/inbox", "/inbox/hostile/call_1"):
            page = await browser.get(path)
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert not set("\u202e\u2066\u200b\x1b") & set(page)
            assert "&lt;script&gt;alert(1)" in page
        page = await browser.get("/inbox/hostile/call_1")
        area = re.search(r'<textarea id="args".*?>(.*?)</textarea>', page, re.DOTALL)
        assert area is not None
        assert "\\u202e" in area[1]
        whole = await browser.get("/inbox/hostile/call_2")
        assert "4,000 of 9,000 characters" in whole
        assert "x" * 9_000 in await browser.get("/inbox/hostile/call_2/arguments")

    browse(journal_with(ask_with_hostile_texts), scenario, "ann")


def test_the_pages_are_chinese_for_a_chinese_reader() -> None:
    async def scenario(browser: Browser) -> None:
        await browser.post("/preferences", language="zh", next="/inbox")
        assert "所有等待人处理的事项" in await browser.get("/inbox")
        page = await browser.get("/inbox/asks/call_1")
        digest = digest_in(page)
        assert "批准" in page
        await answer(browser, "/inbox/asks/call_1", "refuse")
        late = await browser.post("/inbox/asks/call_1/approve", 409, digest=digest)
        assert "已有人先答复" in late

    browse(journal_with(leave_approval), scenario, "ann")


async def drive(browser: Browser, path: str, **fields: str) -> None:
    """Resume a run, and wait until this panel is no longer at work on it."""
    await browser.post(path, **fields)
    if tasks := list(browser.panel.state.background._tasks.values()):
        await asyncio.wait(tasks)


def test_a_blocked_run_is_resumed_so_that_a_person_is_asked() -> None:
    def clerk(_spec: AgentSpec) -> Agent:
        model = ScriptedModel(["-", "-", "-", call("refund_payment", order="A1"), "Done."])
        return Agent(name="clerk", model=model, tools=[read_mail, refund_payment])

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/inbox/blocked/run")
        assert "Resume the run, and ask people from now on" in page
        assert 'name="ask" value="1"' in page
        await drive(browser, "/runs/blocked/resume", ask="1", item="blocked:run")
        page = await browser.get("/inbox/blocked/run")
        assert 'href="/inbox/blocked/call_3"' in page
        digest = digest_in(await browser.get("/inbox/blocked/call_3"))
        await browser.post("/inbox/blocked/call_3/approve", digest=digest)
        await drive(browser, "/runs/blocked/resume", item="blocked:run")
        assert (await last(browser, "blocked", Observed)).output == "refunded A1"
        assert badge_in(await browser.get("/inbox")) == 0

    browse(journal_with(leave_blocked), scenario, "ann", agents=clerk)


def test_a_run_that_the_panel_cannot_continue_says_why() -> None:
    def nobody(spec: AgentSpec) -> Agent:
        raise ConfigError(f"There is no agent called {spec.name!r} here.")

    def breaks(_spec: AgentSpec) -> Agent:
        model: Any = lambda: "takes no task"  # noqa: E731  # which is found out once the run goes on
        return Agent(name="payer", model=model, tools=[pay, drop, read_mail])

    async def refused(browser: Browser) -> None:
        await answer(browser, "/inbox/asks/call_1", "refuse")
        assert "no agent called" in await browser.post("/runs/asks/resume", 400)

    async def failed(browser: Browser) -> None:
        await answer(browser, "/inbox/asks/call_1", "refuse")
        await drive(browser, "/runs/asks/resume", item="asks:call_1")
        assert "does not take a task and a trace" in await browser.get("/inbox/asks/call_1")

    browse(journal_with(leave_approval), refused, "ann", agents=nobody)
    browse(journal_with(leave_approval), failed, "ann", agents=breaks)


def test_a_run_that_was_edited_is_shown_as_such_and_takes_no_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with SqliteJournal(tmp_path / "runs.db", synchronous="NORMAL") as journal:
            await leave_approval(journal)
            with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
                connection.execute(
                    "UPDATE event SET body = replace(body, 'ann', 'eve') WHERE kind = 'action_requested'"
                )
            async with browser_of(journal, "ann") as browser:
                page = await browser.get("/inbox/asks/call_1")
                assert "This run is not as it was written" in page
                page = await browser.post("/inbox/asks/call_1/approve", 422, digest=digest_in(page))
                assert "is not as it was written" in page
                assert not (await trace_of(browser, "asks")).calls["call_1"].approval

    asyncio.run(main())


def test_notes_and_undos_of_the_other_pages_record_how_it_is_known_whose_they_are() -> None:
    async def scenario(browser: Browser) -> None:
        await browser.post("/runs/blocked/notes", text="Order A1 is not ours.")
        assert (await last(browser, "blocked", Noted)).authenticated == "panel_token"
        page = await browser.get("/inbox/orders.undo-1/call_1")
        assert 'href="/runs/orders/undo"' in page

    browse(journal_with(leave_blocked, leave_failed_undo), scenario, "ada")
    answer = asyncio.run(ask(approved_by("ada", authenticated="panel_token"), _any_request()))
    assert answer is not None
    assert (answer.by, answer.authenticated) == ("ada", "panel_token")


def _any_request() -> ApprovalRequest:
    return ApprovalRequest(run_id="r", call_id="call_1", tool="pay", args={}, reasons=(), card=None)


def test_a_question_of_the_model_is_answered_by_an_approver() -> None:
    async def scenario(browser: Browser) -> None:
        path = "/inbox/asks-user/call_1"
        assert badge_in(await browser.get("/inbox")) == 1
        page = await browser.get(path)
        assert "Which invoice?" in page
        assert page.count('type="radio"') == 2
        assert f'action="{path}/approve"' not in page
        digest = digest_in(page)
        await browser.log_in("bob")
        assert "Somebody with the role approver answers" in await browser.get(path)
        await browser.post(f"{path}/answer", 403, answer="R-17", digest=digest)
        await browser.log_in("ann")
        assert "Choose one" in await browser.post(f"{path}/answer", 422, answer="R-99", digest=digest)
        page = await browser.post(f"{path}/answer", answer="R-71", digest=digest)
        given = await last(browser, "asks-user", ApprovalGiven)
        assert (given.by, given.authenticated, given.args) == ("ann", "panel_token", {"answer": "R-71"})
        assert "answered" in page
        assert "R-71" in page
        assert badge_in(await browser.get("/inbox")) == 0

    browse(journal_with(partial(leave_question, choices=["R-17", "R-71"])), scenario, "ann")


def test_of_two_people_who_answer_a_question_the_first_counts() -> None:
    async def scenario(browser: Browser) -> None:
        path = "/inbox/asks-user/call_1"
        digest = digest_in(await browser.get(path))
        await browser.post(f"{path}/answer", answer="R-17", digest=digest)
        await browser.log_in("ada")
        for action in ("answer", "refuse"):
            page = await browser.post(f"{path}/{action}", 409, answer="R-71", digest=digest)
            assert "somebody was faster" in page
            assert "<strong>ann</strong>" in page
        answers = [
            event.fact for event in await trace_of(browser, "asks-user") if isinstance(event.fact, ApprovalGiven)
        ]
        assert [answer.args for answer in answers] == [{"answer": "R-17"}]

    browse(journal_with(leave_question), scenario, "ann")


def test_an_answer_that_is_empty_too_long_or_stale_is_refused_and_kept_in_the_form() -> None:
    async def scenario(browser: Browser) -> None:
        path = "/inbox/asks-user/call_1"
        digest = digest_in(await browser.get(path))
        for text in ("", "   ", "x" * 20_001):
            page = await browser.post(f"{path}/answer", 422, answer=text, digest=digest)
            assert 'role="alert"' in page
            assert text.strip()[:100] in page
        assert "look at it again" in await browser.post(f"{path}/answer", 422, answer="R-17", digest="0" * 64)
        await browser.post(f"{path}/answer", answer="x" * 20_000, digest=digest)
        assert len((await last(browser, "asks-user", ApprovalGiven)).args["answer"]) == 20_000

    browse(journal_with(leave_question), scenario, "ann")


def test_a_question_is_declined_and_hostile_questions_are_only_text() -> None:
    async def scenario(browser: Browser) -> None:
        path = "/inbox/hostile-question/call_2"
        page = await browser.get(path)
        assert "<script>alert(1)" not in page
        assert "<img src=x" not in page
        assert "had read untrusted text (read_mail (call_1))" in page
        assert "ask for a secret (password)" in page
        page = await browser.post(f"{path}/refuse", note="no passwords here", digest=digest_in(page))
        assert "no passwords here" in page

    async def leave(journal: Journal) -> None:
        asks = call("ask_user", question=f"{HOSTILE} password?", choices=[HOSTILE, "none"])
        script = ScriptedModel([call("read_mail"), asks, "done"], strict=False)
        agent = Agent(model=script, tools=[ask_user, read_mail], journal=journal)
        await agent.run("go", run_id="hostile-question")

    browse(journal_with(leave), scenario, "ann")


def test_refusals_and_settlements_are_for_the_call_that_was_looked_at() -> None:
    async def scenario(browser: Browser) -> None:
        for digest in ("0" * 64, ""):
            assert "is not the one that was shown" in await browser.post(
                "/inbox/asks/call_1/refuse", 422, digest=digest, note="no"
            )
            assert "is not the one that was shown" in await browser.post(
                "/inbox/dead/call_1/settle", 422, digest=digest, how="repeat"
            )
        assert not (await trace_of(browser, "asks")).calls["call_1"].approval
        assert not (await trace_of(browser, "dead")).calls["call_1"].settled

    browse(journal_with(leave_approval, leave_dead), scenario, "ann")


def test_tiers_and_badges_are_chinese_for_a_chinese_reader() -> None:
    async def scenario(browser: Browser) -> None:
        await browser.post("/preferences", language="zh", next="/inbox")
        page = await browser.get("/inbox/asks/call_1")
        assert "写入（write）" in page
        assert re.search(r"<b>(任务给出|来源不明)</b>", page)
        assert not re.search(r"<b>[A-Z ]+</b>", page)

    browse(journal_with(leave_approval), scenario, "ann")
