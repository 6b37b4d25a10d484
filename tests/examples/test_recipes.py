"""The recipes do what they are there to show, with their scripted models. That of pytest is a test itself."""

from __future__ import annotations

import ast
import asyncio
import csv
import inspect
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.conftest import Running, gateway

from taoloop import ApprovalAnswer, Result, Trace, answer_approval, pending_approvals
from taoloop.models import FunctionModel
from taoloop.serve import load_config
from taoloop.testing import assert_called, observations

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "recipes"


def recipe(name: str) -> Any:
    return import_module(name)


# support_desk


def test_a_refund_is_paid_once_when_a_person_allows_it_in_the_page(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the recipe needs fastapi: scripts/setup dev installs it")
    from fastapi.testclient import TestClient  # noqa: PLC0415  # as above

    support = recipe("support_agent")
    shop = support.Shop()
    app = recipe("support_desk").make_app(support.support_agent(shop, journal=tmp_path / "runs.db"))
    with TestClient(app) as client:
        assert "<title>Support desk</title>" in client.get("/").text
        ticket = client.post("/tickets", json={"customer": "ann", "text": "The lamp of my order A-17 came broken."})
        assert (ticket.json()["status"], shop.refunds) == ("waiting", {})
        [question] = client.get("/questions").json()
        assert (question["tool"], question["args"]) == ("refund", {"order_id": "A-17", "amount": 59.0})
        address = f"/questions/{question['run_id']}/{question['call_id']}"
        answer = {"approved": True, "by": "boss"}
        unseen = client.post(address, json={**answer, "digest": "0" * 64})
        assert (unseen.status_code, shop.refunds) == (409, {})
        assert client.post(address.replace(question["run_id"], "nothing"), json={**answer, "digest": ""}).is_error
        done = client.post(address, json={**answer, "digest": question["digest"]})
        assert (done.json()["status"], shop.refunds) == ("completed", {"A-17": 59.0})
        shop.refunds.clear()
        again = client.post(address, json={**answer, "digest": question["digest"]})
        assert (again.status_code, shop.refunds, client.get("/questions").json()) == (409, {}, [])


def test_a_refund_that_was_allowed_just_before_a_crash_is_paid_at_the_next_start(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the recipe needs fastapi: scripts/setup dev installs it")
    from fastapi.testclient import TestClient  # noqa: PLC0415  # as above

    support = recipe("support_agent")
    shop = support.Shop()
    agent = support.support_agent(shop, journal=tmp_path / "runs.db")

    async def allow_and_crash() -> None:
        await agent.run("Where is my order?", user="bob")
        waiting = await agent.run("The lamp of my order A-17 came broken.", user="ann")
        async with agent.open_journal() as journal:
            [question] = await pending_approvals(journal, run_id=waiting.run_id)
            answer = ApprovalAnswer(approved=True, by="boss")
            await answer_approval(journal, waiting.run_id, question.request.call_id, answer)

    asyncio.run(allow_and_crash())
    with TestClient(recipe("support_desk").make_app(agent)) as client:
        assert [question["task"] for question in client.get("/questions").json()] == ["Where is my order?"]
    assert shop.refunds == {"A-17": 59.0}


# research


def test_a_report_quotes_passages_and_says_where_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    research = recipe("research")
    result = research.researcher().run_sync(research.QUESTION)
    research.print_report(result)
    assert [finding.quote for finding in result.output.findings][1] == "In 2026 a battery of 10 kWh costs 4,800 EUR"
    assert "prices.md:1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("quote", "cite"), [("costs 48 EUR", None), ("keeps 80 % of its capacity", "[doc:aaaaaaaaaaaa]")]
)
def test_a_report_with_an_invented_quote_or_source_goes_back(quote: str, cite: str | None) -> None:
    research = recipe("research")

    def invent(task: str, trace: Trace) -> Any:
        honest = research.play(task, trace)
        if not isinstance(honest, str) or trace.last_rejected:
            return honest
        report = json.loads(honest)
        report["findings"][0] |= {"quote": quote, **({"cite": cite} if cite else {})}
        return json.dumps(report)

    agent = research.researcher(model=FunctionModel(invent, dialect="native"))
    result = agent.run_sync(research.QUESTION)
    [rejected] = [event.fact for event in result.trace.events if event.kind == "reply_rejected"]
    assert "quote it word for word" in rejected.message or "cite what you have read" in rejected.message
    assert result.output.findings[0].quote == "keeps 80 % of its capacity after 6,000 full cycles"


# planner


def test_what_the_agents_of_a_planner_use_counts_for_its_budget() -> None:
    planner = recipe("planner")
    result: Result = planner.planner().run_sync(planner.TASK)
    assert (result.status, result.usage.total_tokens) == ("completed", 6 * 350)
    assert len([name for name, _, _ in observations(result) if name == "run_step"]) == 2


def test_a_small_budget_ends_the_plan_wherever_it_is_used_up() -> None:
    planner = recipe("planner")
    result: Result = planner.planner(max_tokens=700).run_sync(planner.TASK)
    assert result.status == "budget_exceeded"
    assert [name for name, ok, _ in observations(result) if name == "run_step" and ok] == []


# nightly_batch


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_batch_that_was_killed_and_is_called_again_has_every_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = recipe("nightly_batch")
    asked: list[str] = []
    running: list[asyncio.Future[Path]] = []

    def sort_until_killed(task: str, trace: Trace) -> Any:
        asked.append(task)
        if len(asked) == 12:
            running[0].cancel()
        return sort_by_words(task, trace)

    async def ended_night() -> None:
        running.append(asyncio.ensure_future(batch.run_night("night", 30, tmp_path)))
        await running[0]

    sort_by_words = batch.sort_by_words
    monkeypatch.setattr(batch, "sort_by_words", sort_until_killed)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ended_night())
    assert not (tmp_path / "night.csv").exists()
    written = rows(asyncio.run(batch.run_night("night", 30, tmp_path)))
    assert [row["ticket"] for row in written] == [str(number) for number in range(1, 31)]
    assert {row["problem"] for row in written} == {""}
    counted = len(asked)
    assert rows(asyncio.run(batch.run_night("night", 30, tmp_path))) == written
    assert len(asked) == counted, "a third call asks no model"


@pytest.mark.nightly
def test_a_batch_of_500_whose_process_is_killed_has_500_rows(tmp_path: Path) -> None:
    command = [sys.executable, str(RECIPES / "nightly_batch.py"), "--folder", str(tmp_path), "--night", "night"]
    with subprocess.Popen(command) as process:
        database = tmp_path / "batch.db"
        while process.poll() is None and not (database.exists() and count_runs(database) > 50):
            time.sleep(0.01)  # another process is what the time is for
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "night.csv").exists()
    subprocess.run(command, check=True)
    assert [int(row["ticket"]) for row in rows(tmp_path / "night.csv")] == list(range(1, 501))
    assert count_runs(tmp_path / "batch.db") == 500


def count_runs(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        try:
            return int(connection.execute("SELECT count(DISTINCT run_id) FROM event").fetchone()[0])
        except sqlite3.OperationalError:  # its tables are still to be made
            return 0


# coding_helper


def test_a_repair_passes_its_tests_and_an_undo_restores_the_file(tmp_path: Path) -> None:
    helper = recipe("coding_helper")
    folder = helper.make_broken_project(tmp_path / "project")
    result = helper.coding_helper(folder).run_sync(helper.TASK)
    assert [ok for name, ok, _ in observations(result) if name == "run_tests"] == [False, True]
    assert "(100 + percent)" in (folder / "prices.py").read_text(encoding="utf-8")
    undone = asyncio.run(helper.undo(folder, result.run_id, by="ann"))
    assert (len(undone.undone), undone.complete) == (1, True)
    assert (folder / "prices.py").read_text(encoding="utf-8") == helper.BROKEN


# chinese_chat


def test_the_chat_bot_remembers_the_conversation_and_across_conversations(tmp_path: Path) -> None:
    bot = recipe("chinese_chat").chat_bot(tmp_path)
    today = bot.chat(session="今天", user="小明")
    today.run_sync("我叫小明。")
    assert today.run_sync("我刚才说了什么？").answer == "刚才您说的是：我叫小明。"
    assert_called(today.run_sync("请记住：我对花生过敏。"), "remember")
    tomorrow = bot.chat(session="明天", user="小明")
    result = tomorrow.run_sync("你还记得我对什么过敏吗？")
    assert "我对花生过敏" in (result.answer or "")
    assert (result.trace.agent.language, result.trace.started and result.trace.started.history) == ("zh", ())


# notebook


def test_the_cells_of_the_notebook_run_in_their_order_in_a_running_loop() -> None:
    notebook = json.loads((RECIPES / "notebook.ipynb").read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown: list[Any] = []

    async def run() -> None:
        for number, cell in enumerate(notebook["cells"], 1):
            if cell["cell_type"] == "code":
                shown.append(await run_cell("".join(cell["source"]), f"cell {number}", namespace))

    asyncio.run(run())
    assert shown[1] == 11.5
    assert namespace["streamed"].answer == "One euro buys 7.8 yuan."
    html = shown[2]._repr_html_()
    assert "exchange_rate" in html
    assert "2875 Norwegian kroner" in html
    assert all(cell["cell_type"] != "code" or not cell["outputs"] for cell in notebook["cells"])


async def run_cell(source: str, name: str, namespace: dict[str, Any]) -> Any:
    """Run a cell as a notebook does: `await` is allowed, and the value of a last expression is shown."""
    module = ast.parse(source, name)
    last = module.body.pop() if isinstance(module.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    await finish(eval(compile(module, name, "exec", flags), namespace))  # noqa: S307  # that is the test
    if not isinstance(last, ast.Expr):
        return None
    return await finish(eval(compile(ast.Expression(last.value), name, "eval", flags), namespace))  # noqa: S307  # too


async def finish(value: Any) -> Any:
    return await value if inspect.iscoroutine(value) else value


# sql_analyst


def test_a_query_that_would_delete_is_refused_by_the_connection(tmp_path: Path) -> None:
    analyst = recipe("sql_analyst")
    before = (tmp_path / "shop.db", analyst.make_shop(tmp_path / "shop.db"))
    content = before[0].read_bytes()
    result = analyst.analyst(before[1]).run_sync(analyst.QUESTION)
    assert [ok for _, ok, _ in observations(result)] == [True, False]
    assert "not authorized" in observations(result)[1][2]
    assert (result.output.rows, result.evidence) == ([["CN", 300], ["NO", 250]], ())
    assert before[0].read_bytes() == content


# gateway_chat


def test_the_chat_window_gets_an_answer_and_approves_an_order() -> None:
    page = (RECIPES / "gateway_chat.html").read_text(encoding="utf-8")
    shop = recipe("gateway_chat")
    shop.ORDERS.clear()
    with gateway(load_config(RECIPES / "gateway_chat.yaml", env={})) as server:
        assert 'server = "http://127.0.0.1:8080/v1"' in page
        assert 'model: "shopkeeper"' in page
        text, status = chat(server, 'What is the stock of "tea"?')
        assert ("12" in text, status) == (True, "completed")
        question = 'Order 5 pieces of "tea".'
        text, status = chat(server, question)
        assert (status, shop.ORDERS) == ("waiting", [])
        _, status = chat(server, question, text, "yes")
        assert (status, shop.ORDERS) == ("completed", [("tea", 5)])


def chat(server: Running, *texts: str) -> tuple[str, str]:
    """What the page does: send the conversation, and read the text and the status of the stream."""
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    body = json.dumps({"model": "shopkeeper", "stream": True, "messages": messages}).encode()
    address = f"{server.url}/v1/chat/completions"
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310  # of this test
    with urllib.request.urlopen(request) as response:  # noqa: S310  # as above
        lines = response.read().decode().splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    return text, next(chunk["agent"]["status"] for chunk in chunks if "agent" in chunk)
