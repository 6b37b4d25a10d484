"""No secret reaches the disk, the log, a listener or a prompt, wherever in a run it turns up."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import random
import sqlite3
import string
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from taoloop import Agent, ApprovalAnswer, tool
from taoloop.core.agent_spec import Limits
from taoloop.core.events import ActionStarted, Event, Observed
from taoloop.core.message import Delta
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import InvalidArguments, JournalError, ToolError
from taoloop.journals.base import Artifact, Lease
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.models.scripted import ScriptedModel
from taoloop.runtime.approvals.inbox import add_note, answer_approval
from taoloop.runtime.engine.redacted_stream import RedactedDeltas, RedactedStream
from taoloop.runtime.engine.redaction import LogRedaction

_RANDOM = random.Random(20_261_121)  # noqa: S311  # planted, not used
_ALNUM = string.ascii_letters + string.digits


def _text(length: int, signs: str = _ALNUM) -> str:
    """A random text that has a letter and a digit."""
    return "a1" + "".join(_RANDOM.choice(signs) for _ in range(length - 2))


def _planted() -> tuple[list[tuple[str, str]], dict[str, str]]:
    """200 secrets, each with the text it stands in; and those of them that are known by value."""
    found: list[tuple[str, str]] = []
    known: dict[str, str] = {}
    prefixes = ("sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "npm_", "pypi-", "hf_", "sk_live_", "rk_live_")
    for number in range(44):
        prefix = prefixes[number % len(prefixes)]
        secret = _text(30)
        found.append((secret, f"it is {prefix}{secret} and no other"))
    for number in range(12):
        secret = _text(16, string.ascii_uppercase + string.digits).upper()
        found.append((secret, f"id {('AKIA', 'ASIA')[number % 2]}{secret}"))
    for number in range(60):
        secret = _text(12 + number % 20)
        name = ("password", "api_key", "client_secret", "access_token", "DB_PASSWORD", "secret_key")[number % 6]
        form = ("{n}={s}", '"{n}": "{s}"', "{n}: {s}", "x={{'{n}': '{s}'}}", "?a=1&{n}={s}&b=2")[number % 5]
        found.append((secret, form.format(n=name, s=secret)))
    for number in range(30):
        secret = _text(24)
        headers = ("Authorization: Bearer {s}", "X-Api-Key: {s}", "Cookie: session={s}", "Set-Cookie: sid={s}; Path=/")
        found.append((secret, headers[number % 4].format(s=secret)))
    for _ in range(10):
        secret = _text(14)
        found.append((secret, f"postgres://admin:{secret}@db.example.org/app"))
    for _ in range(4):
        body = base64.b64encode(_text(90).encode()).decode()
        found.append((body[:40], f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"))
    for number in range(40):
        secret = _text(18, _ALNUM + '/+"é ')
        known[f"SERVICE_{number}_API_KEY"] = secret
        forms = (
            secret,
            quote(secret, safe=""),
            base64.b64encode(("user:"[: number % 4] + secret).encode()).decode(),
            secret.encode().hex(),
            json.dumps(secret)[1:-1],
        )
        found.append((secret, f"nothing announces it {forms[number % 5]} here"))
    assert len(found) == 200
    return found, known


PLANTED, KNOWN = _planted()
FORMS = [(secret, {secret, json.dumps(secret)[1:-1]}) for secret, _ in PLANTED]
REDACTOR = Redactor(KNOWN)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the logger of taoloop writes."""
    stream, guard = io.StringIO(), LogRedaction()
    guard.add(REDACTOR)
    handler, logger = logging.StreamHandler(stream), logging.getLogger("taoloop")
    logger.addHandler(handler)
    logger.addFilter(guard)
    yield stream
    logger.removeHandler(handler)
    logger.removeFilter(guard)


def leaks(text: str) -> list[str]:
    """The planted secrets that stand in `text`, as they are or as JSON writes them."""
    return [secret for secret, forms in FORMS if any(form in text for form in forms)]


def test_200_secrets_are_planted_and_none_is_found(tmp_path: Path, log: io.StringIO) -> None:
    texts = [text for _, text in PLANTED]

    @tool(tier="read")
    def fetch(part: int, note: str = "") -> str:
        """Fetch a part of the log, with what it was asked with."""
        print(texts[part])  # noqa: T201  # what a tool prints is kept too
        if part % 3 == 0:
            raise ToolError(f"refused: {texts[part]}", code="http_401", hint=f"sent {texts[part]}")
        if part % 3 == 1:
            return "\n".join([f"HTTP/1.1 200 OK\n{texts[part]}", *["a line of filler"] * (part * 8), texts[part]])
        return json.dumps({"headers": texts[part], "note": note})

    def listener(event: Event) -> None:
        if event.seq == 1:
            holding.execute("BEGIN")  # so that the write-ahead log stays beside the file
            holding.execute("SELECT count(*) FROM event").fetchone()
        heard.append(repr(event))
        if event.seq % 50 == 0:
            raise ValueError(texts[event.seq % 200])

    heard: list[str] = []
    path = tmp_path / "runs.db"
    holding = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    model = ScriptedModel(
        [
            {"text": f"I try {text}", "tool_calls": [{"name": "fetch", "args": {"part": number, "note": text}}]}
            for number, text in enumerate(texts)
        ]
        + [f"Found {' '.join(texts)}"]
    )
    agent = Agent(model=model, tools=[fetch], journal=path, limits=Limits(max_steps=300), secrets=KNOWN)
    result = agent.run_sync(f"Use these: {' ; '.join(texts)}", on_event=listener)
    assert result.status == "completed", result
    assert (tmp_path / "runs.db-wal").stat().st_size > 0
    for name, text in {
        "the listener": "\n".join(heard),
        "the log": log.getvalue(),
        **{file.name: file.read_bytes().decode("utf-8", "replace") for file in tmp_path.iterdir()},
    }.items():
        assert leaks(text) == [], name
    holding.close()
    assert "a listener of run" in log.getvalue()


def test_the_tool_gets_what_the_model_wrote(tmp_path: Path) -> None:
    got: list[str] = []

    @tool(tier="read")
    def login(user: str, password: str) -> str:
        """Log in."""
        got.append(password)
        return f"logged in {user}"

    model = ScriptedModel(
        [{"text": "", "tool_calls": [{"name": "login", "args": {"user": "bob", "password": "Tr0ub4dor&3"}}]}, "done"]
    )
    result = Agent(model=model, tools=[login], journal=tmp_path / "runs.db").run_sync("log in")
    assert result.status == "completed"
    assert got == ["Tr0ub4dor&3"]
    assert b"Tr0ub4dor" not in (tmp_path / "runs.db").read_bytes()


def test_a_redacted_run_is_whole(tmp_path: Path) -> None:
    @tool(tier="read")
    def long() -> str:
        """A long output with a secret in its middle."""
        return f"{'filler ' * 4000}{PLANTED[0][1]}{' filler' * 4000}"

    agent = Agent(
        model=ScriptedModel([{"text": "", "tool_calls": [{"name": "long", "args": {}}]}, "done"]),
        tools=[long],
        journal=tmp_path / "runs.db",
    )
    result = agent.run_sync("go")

    async def look() -> tuple[bool, Artifact | None]:
        async with SqliteJournal(tmp_path / "runs.db", read_only=True) as journal:
            return (await journal.verify(result.run_id)).whole, await journal.artifact(result.run_id, "obs_call_1")

    whole, artifact = asyncio.run(look())
    assert whole
    assert artifact is not None
    assert "[redacted:api_key]" in artifact.body


def test_a_log_record_is_redacted_with_its_arguments_and_traceback(log: io.StringIO) -> None:
    logger = logging.getLogger("taoloop")
    try:
        raise ValueError(PLANTED[0][1])
    except ValueError:
        logger.exception("failed with %s and %r", PLANTED[1][1], {"password": "Tr0ub4dor&3"})
    logger.warning("%d does not fit %s", PLANTED[2][1], "x")
    assert leaks(log.getvalue()) == []
    assert "Tr0ub4dor" not in log.getvalue()
    assert "ValueError" in log.getvalue()


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.nightly), 3, 7, 1000])
def test_a_reply_that_comes_in_pieces_never_shows_a_secret(size: int) -> None:
    text = "\n".join(f"First some words. {text} Then more words." for _, text in PLANTED)
    stream, shown = RedactedStream(REDACTOR), ""
    for start in range(0, len(text), size):
        if piece := stream.feed(text[start : start + size]):
            shown += piece
            assert leaks(shown[-400 - len(piece) :]) == []
    shown += stream.end()
    assert leaks(shown) == []
    assert shown.count("First some words.") == len(PLANTED)


def test_what_is_harmless_is_shown_word_by_word() -> None:
    stream = RedactedStream(Redactor())
    assert stream.feed("The answer ") == "The answer "
    assert stream.feed("is 4") == "is "
    assert stream.feed("2.\nAnd") == "42.\nAnd"  # no secret begins like that
    assert stream.feed("rew s") == "rew "  # but one does like this
    assert stream.end() == "s"


def test_the_pieces_of_calls_are_kept_apart_and_end_whole() -> None:
    heard: list[Delta] = []
    deltas = RedactedDeltas(Redactor(), heard.append)
    for piece in ('{"password": "Tr0u', 'b4dor&3"}'):
        deltas(Delta(kind="call", text=piece, name="login"))
        deltas(Delta(kind="text", text="I log in"))
    deltas(Delta(kind="call", done=True, name="login"))
    deltas.end()
    told = "".join(delta.text for delta in heard if delta.kind == "call")
    assert told == '{"password": "[redacted:password]"}'
    assert "".join(delta.text for delta in heard if delta.kind == "text") == "I log inI log in"
    assert [delta.done for delta in heard if delta.kind == "call"][-1]


SECRET = "hunter2-Zq81-blau"


def kept(path: Path) -> str:
    """Everything that stands in the file, the list of runs and the artifacts included."""
    with closing(sqlite3.connect(path)) as connection, connection:
        tables = ("SELECT body FROM event", "SELECT body FROM artifact", "SELECT task FROM run")
        return "\n".join(str(row[0]) for table in tables for row in connection.execute(table))


def calling(name: str, **args: object) -> dict[str, object]:
    return {"tool_calls": [{"name": name, "args": args}]}


MADE: list[str] = []


@tool(tier="write")
def log_in(password_of: str, note: str = "") -> str:
    """Log in."""
    MADE.append(note)
    return "in"


def paused(path: Path, **options: Any) -> tuple[Agent, str]:
    script = ScriptedModel([calling("log_in", password_of="ann"), "done"], strict=False)
    agent = Agent(model=script, tools=[log_in], journal=path, secrets=[SECRET], policy="strict", **options)
    return agent, agent.run_sync("go").run_id


def test_what_a_rule_in_python_says_is_redacted_before_the_model_and_the_trace_have_it(tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise ValueError(f"no billing with {SECRET}")

    _, run_id = paused(tmp_path / "r.db", rules=[broken])
    text = kept(tmp_path / "r.db")
    assert "no billing with [redacted" in text, run_id
    assert SECRET not in text


def test_answers_and_notes_from_outside_are_redacted(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    agent, run_id = paused(path, env={})
    token = "ghp_" + "a1B2c3" * 6

    async def say() -> None:
        async with SqliteJournal(path) as journal:
            edited = ApprovalAnswer(approved=True, by="ann", args={"password_of": "ann", "note": token})
            with pytest.raises(InvalidArguments, match="hold a secret"):  # no later process could make such a call
                await answer_approval(journal, run_id, "call_1", edited)
            await add_note(journal, run_id, f"try {SECRET}", redactor=Redactor([SECRET]))
            await answer_approval(
                journal, run_id, "call_1", ApprovalAnswer(approved=True, by="ann", note=f"with {token}")
            )

    asyncio.run(say())
    assert agent.resume_sync(run_id).status == "completed"
    assert token not in kept(path)
    assert SECRET not in kept(path)


def test_the_edits_of_a_fork_are_redacted(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    agent, run_id = paused(path, approve=lambda _: True)
    for edit in (
        {"task": f"use {SECRET}"},
        {"observation": f"found {SECRET} " + "x" * 9_000},
        {"decision": {"tool": "log_in", "args": {"password_of": "ann", "note": SECRET}}},
    ):
        asyncio.run(agent.fork(run_id, at=1, edit=edit))
    assert SECRET not in kept(path)
    assert not any("redacted" in one for one in MADE), "a label is never taken for the secret"


def test_the_secrets_of_an_agent_are_kept_out_of_the_runs_inside_its_own(tmp_path: Path) -> None:
    @tool(tier="read")
    def look(at: str) -> str:
        """Look."""
        return f"{at}: {SECRET}"

    script: list[Any] = [calling("look", at="x"), f"found {SECRET}"]
    inner = Agent(name="inner", model=ScriptedModel(script), tools=[look], redact=False)
    script = [calling("inner", task=f"log in with {SECRET}"), "done"]
    path = tmp_path / "r.db"
    outer = Agent(model=ScriptedModel(script), tools=[inner.as_tool(purpose="Look.")], journal=path, secrets=[SECRET])
    assert outer.run_sync("go").status == "completed"
    assert "found [redacted" in kept(path)
    assert SECRET not in kept(path)


def test_an_edited_secret_is_not_replaced_by_its_label_after_a_crash(tmp_path: Path) -> None:
    MADE.clear()

    class PowerCut(SqliteJournal):
        async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
            if any(isinstance(event.fact, ActionStarted) for event in events):
                raise JournalError("power cut")
            await super().append(lease, events, artifacts)

    def edits(_: object) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, args={"password_of": "ann", "note": SECRET})

    path = tmp_path / "r.db"
    journal = PowerCut(path)
    with pytest.raises(JournalError):
        paused(journal, approve=edits)  # type: ignore[arg-type]  # a journal is as good as its path
    asyncio.run(journal.close())
    agent = Agent(model=ScriptedModel(["done"], strict=False), tools=[log_in], journal=path, secrets=[SECRET])
    with closing(sqlite3.connect(path)) as connection, connection:
        [(run_id,)] = connection.execute("SELECT id FROM run")
    trace = agent.resume_sync(run_id).trace
    assert MADE == []
    [seen] = [event.fact for event in trace.events if isinstance(event.fact, Observed)]
    assert seen.error is not None
    assert "not stored" in seen.error.message
