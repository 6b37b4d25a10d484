"""The gateway while clients leave, its journal fails, its files change and it is told to end."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.serve.gateway.clients import NOTE, SENT, ask, post, send_note
from tests.serve.gateway.conftest import Running, agent, client, config_of, gateway, until, upstream

from taoloop import tool
from taoloop.errors import JournalCorrupt
from taoloop.journals.memory import MemoryJournal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.serve.gateway.config.model import ANY_OBJECT, GatewayConfig, ServedAgent


def running_now(running: Running) -> tuple[float, int]:
    """How many runs are under way, by the metrics and by the places that are taken."""
    connection = HTTPConnection(running.url.removeprefix("http://"), timeout=20)
    with closing(connection):
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    found = re.findall(r"^taoloop_runs_under_way (\S+)$", page, re.MULTILINE)
    assert found, page
    return float(found[0]), running.process.gateway.snapshot.accounts.quotas.active_runs


def sent(running: Running, body: Any, *, whole: bool = True) -> socket.socket:
    """A request on a connection of its own."""
    data = json.dumps(body).encode()
    host, _, port = running.url.removeprefix("http://").partition(":")
    made = socket.create_connection((host, int(port)), timeout=20)
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(data)}\r\n\r\n"
    made.sendall(head.encode() + (data if whole else data[:-5]))
    return made


IN_TOOL = threading.Event()


@tool(tier="read")
async def sleepy() -> str:
    """Sleeps for long."""
    IN_TOOL.set()
    await asyncio.sleep(60)
    return "awake"


PHASES = ["body", "model", "stream", "tool", "resume", "reshape"]


@pytest.mark.parametrize("phase", PHASES)
def hanging_in(phase: str, body: dict[str, Any]) -> Any:
    """What the model says so that the run hangs in this phase."""
    last, late = body["messages"][-1], {"text": "late", "hangs": True}
    match phase:
        case "tool":
            return {"tool_calls": [{"name": "sleepy", "args": {}}]}
        case "resume":
            return late if last["role"] == "tool" else NOTE
        case "reshape":
            return late if "as JSON" in str(last) else "Hello."
        case "stream":
            return {"pieces": ["One ", "two."], "waits": True}
    return late


@pytest.mark.parametrize("phase", PHASES)
def test_a_client_that_leaves_gives_its_place_back_and_stops_its_run(phase: str) -> None:
    SENT.clear()
    IN_TOOL.clear()
    with upstream(lambda body: hanging_in(phase, body)) as server:
        made = agent(server, tools=[sleepy, send_note])
        reshape = ANY_OBJECT if phase == "reshape" else None
        with gateway(config_of(ServedAgent(name="assistant", agent=made, reshape=reshape))) as running:
            body: Any = {"model": "assistant", "messages": ask("Hi."), "stream": phase == "stream"}
            if phase == "resume":
                first = client(running).chat.completions.create(model="assistant", messages=ask("Hi."))
                body["messages"] += [{"role": "assistant", "content": first.choices[0].message.content}, *ask("yes")]
            with sent(running, body, whole=phase != "body") as connection:
                if phase == "stream":
                    assert connection.recv(12) == b"HTTP/1.1 200"
                elif phase != "body":
                    assert (IN_TOOL if phase == "tool" else server.waiting).wait(20)
                assert running_now(running) == ((0, 0) if phase == "body" else (1, 1))
            until(
                lambda: running_now(running) == (0, 0) and not any(one.status == "running" for one in running.traces())
            )
            assert {one.status for one in running.traces()} <= {"stopped", "completed"}
            if phase == "resume":  # and the client may come back
                server.go_on()
                again = client(running).chat.completions.create(**body)
                assert again.choices[0].message.content == "late"
                assert len(SENT) == 1


def locked(path: Path) -> sqlite3.Connection:
    """Somebody else who has the file for himself."""
    made = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    made.execute("BEGIN EXCLUSIVE")
    return made


@pytest.mark.parametrize("streamed", [False, True])
def test_a_journal_that_is_locked_is_an_error_and_the_server_lives_on(tmp_path: Path, streamed: bool) -> None:
    journal = SqliteJournal(tmp_path / "x.db", lock_timeout_s=0.2)
    with upstream("Hello.") as server, gateway(config_of(agent(server)), journal=journal) as running:
        chat = client(running).chat.completions
        chat.create(model="assistant", messages=ask("Hi."))
        with closing(locked(tmp_path / "x.db")), pytest.raises(openai.APIStatusError) as told:
            list(chat.create(model="assistant", messages=ask("Hi."), stream=streamed))
        assert told.value.status_code == 503
        assert told.value.code == "journal_locked"
        assert told.value.response.headers["x-request-id"]
        assert str(tmp_path) not in str(told.value)
        assert chat.create(model="assistant", messages=ask("Hi.")).choices[0].message.content == "Hello."
        assert running_now(running) == (0, 0)
    asyncio.run(journal.close())


def test_a_journal_that_fails_in_the_middle_of_a_stream_ends_it_with_an_error(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "x.db", lock_timeout_s=0.2)
    reply = {"pieces": ["First words, ", "and then ", "more."], "waits": True}
    with upstream(reply) as server, gateway(config_of(agent(server)), journal=journal) as running:
        body = {"model": "assistant", "messages": ask("Hi."), "stream": True}
        with sent(running, body) as connection, connection.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
            with closing(locked(tmp_path / "x.db")):
                server.go_on()
                rest = b""
                while b"0\r\n\r\n" not in rest:
                    piece = answer.readline()
                    assert piece, rest
                    rest += piece
        assert b"HTTP/1.1" not in rest
        assert b'data: {"error":' in rest
        assert b"data: [DONE]" in rest
        assert running_now(running) == (0, 0)
    asyncio.run(journal.close())


class Torn(MemoryJournal):
    """A journal whose disk is gone at times."""

    broken = ""

    async def append(self, *args: Any, **options: Any) -> Any:
        if self.broken == "append":
            raise OSError(5, "Input/output error")
        return await super().append(*args, **options)

    failed = 0

    async def runs(self, *args: Any, **options: Any) -> Any:
        if self.broken == "runs":
            self.failed += 1
            raise OSError(5, "Input/output error")
        return await super().runs(*args, **options)


def test_a_disk_that_is_gone_for_a_while_ends_nothing_for_good() -> None:
    SENT.clear()
    journal = Torn()

    def replies(body: dict[str, Any]) -> Any:
        return "Done." if body["messages"][-1]["role"] == "tool" else NOTE

    with (
        upstream(replies) as server,
        gateway(config_of(agent(server, tools=[send_note])), journal=journal, poll_s=0.02) as running,
    ):
        chat = client(running).chat.completions
        journal.broken = "append"
        for streamed in (False, True):
            with pytest.raises(openai.InternalServerError) as told:
                list(chat.create(model="assistant", messages=ask("Hi."), stream=streamed))
            assert "Input/output" not in str(told.value)
        journal.broken = "runs"
        until(lambda: journal.failed > 1)
        journal.broken = ""
        chat.create(model="assistant", messages=ask("Say hello."))
        trace = next(one for one in running.traces() if one.paused is not None)
        answer = {"decision": "approve", "call_id": next(iter(trace.pending))}
        assert post(running, answer, path=f"/v1/runs/{trace.run_id}/approvals")[0] == 200
        until(lambda: next(one for one in running.traces() if one.run_id == trace.run_id).status == "completed")
        assert len(SENT) == 1
        assert running_now(running) == (0, 0)


def test_one_run_that_cannot_be_read_does_not_keep_the_others_waiting() -> None:
    SENT.clear()
    broken: set[str] = set()

    class Partly(MemoryJournal):
        async def load(self, run_id: str) -> Any:
            if run_id in broken:
                raise JournalCorrupt("it cannot be read")
            return await super().load(run_id)

    def replies(body: dict[str, Any]) -> Any:
        return "Done." if body["messages"][-1]["role"] == "tool" else NOTE

    with (
        upstream(replies) as server,
        gateway(config_of(agent(server, tools=[send_note])), journal=Partly(), poll_s=0.02) as running,
    ):
        chat = client(running).chat.completions
        ids = []
        for _ in range(3):
            chat.create(model="assistant", messages=ask("Say hello."))
            ids.append(max(one.run_id for one in running.traces() if one.run_id not in ids))
        calls = {one.run_id: next(iter(one.pending)) for one in running.traces()}
        for run_id in ids:
            answer = {"decision": "deny", "call_id": calls[run_id]}
            assert post(running, answer, path=f"/v1/runs/{run_id}/approvals")[0] == 200
        broken.add(ids[2])  # the newest, which is looked at first
        for run_id in ids[:2]:
            until(lambda: status_of(running, run_id) == "completed")  # noqa: B023  # called at once


def status_of(running: Running, run_id: str) -> str:
    return str(post(running, b"", path=f"/v1/runs/{run_id}", method="GET")[1]["status"])


def test_a_reload_that_fails_in_an_unforeseen_way_is_told_and_the_next_one_works() -> None:
    with upstream("Hello.") as server:
        config = config_of(agent(server))
        fails: list[Exception] = [RuntimeError("a bug"), RecursionError("deep")]

        def load() -> GatewayConfig:
            if fails:
                raise fails.pop()
            return replace(config, limits=replace(config.limits, heartbeat_s=1.0), port=0)

        with gateway(config, load=load) as running:
            loop = running.process.gateway
            for number in (1, 2, 3):
                running.reload()
                until(lambda: len(running.said) == number)  # noqa: B023  # called at once
            assert "not used" in running.said[0]
            assert "in use" in running.said[2]
            assert loop.snapshot.config.limits.heartbeat_s == 1.0
            assert client(running).chat.completions.create(model="assistant", messages=ask("Hi.")).choices


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_that_began_before_a_reload_ends_with_the_agent_that_it_had(streamed: bool) -> None:
    reply = {"pieces": ["One ", "two ", "three."], "waits": True} if streamed else {"text": "old", "hangs": True}
    with upstream(reply) as old, upstream("new") as new:
        changed = config_of(agent(new))
        with gateway(config_of(agent(old)), load=lambda: replace(changed, port=0)) as running:
            with sent(running, {"model": "assistant", "messages": ask("Hi."), "stream": streamed}) as connection:
                assert old.waiting.wait(10)
                running.reload()
                until(lambda: running.said)
                made = client(running).chat.completions.create(model="assistant", messages=ask("Hi."))
                assert made.choices[0].message.content == "new"
                old.go_on()
                data = b""
                while not (data.endswith((b"0\r\n\r\n", b"}}"))):
                    piece = connection.recv(65_536)
                    assert piece
                    data += piece
            assert (b"three." if streamed else b"old") in data


def test_runs_that_were_answered_get_their_time_when_the_server_ends() -> None:
    SENT.clear()

    def replies(body: dict[str, Any]) -> Any:
        return {"text": "Done.", "hangs": True} if body["messages"][-1]["role"] == "tool" else NOTE

    with upstream(replies) as server:
        config = config_of(agent(server, tools=[send_note]))
        with gateway(config, poll_s=0.02) as running:
            client(running).chat.completions.create(model="assistant", messages=ask("Say hello."))
            [trace] = running.traces()
            answer = {"decision": "approve", "call_id": next(iter(trace.pending))}
            assert post(running, answer, path=f"/v1/runs/{trace.run_id}/approvals")[0] == 200
            assert server.waiting.wait(10)

            def go_on() -> None:
                until(lambda: any("shutting down" in text for text in running.said))
                server.go_on()

            threading.Thread(target=go_on).start()
    assert running.traces()[0].status == "completed"


def test_aborted_requests_leave_nothing_behind() -> None:
    slow = {"text": "late", "hangs": True}
    with upstream(slow) as server, gateway(config_of(agent(server))) as running:
        for number in range(60):
            body = {"model": "assistant", "messages": ask("Hi."), "stream": number % 2 == 0}
            asked = len(server.asked)
            with sent(running, body):
                if number % 3:
                    until(lambda: len(server.asked) > asked)  # noqa: B023  # called at once
        until(lambda: running_now(running) == (0, 0))
        until(lambda: all(one.status == "stopped" for one in running.traces()))
        assert running.process.gateway.snapshot._active <= 1  # no view of it
