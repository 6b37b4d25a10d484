"""`remember` and `recall`: notes that outlive a run, found by full-text search in Chinese and in English."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from pydantic import Field

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.text import chinese_texts
from taoloop.core.words import TOKENIZER, index_terms, query_terms
from taoloop.errors import ToolError
from taoloop.tools.function import tool
from taoloop.tools.private_database import DatabaseKind, open_database, transaction
from taoloop.tools.settings_check import expand_home
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import RunContext, Tool

MEMORY_TOOLS = ("remember", "recall")

MAX_TEXT_CHARS = 4_000
MAX_TOPIC_CHARS = 100
MAX_NOTES = 100_000
MAX_NOTES_SHOWN = 20
BUSY_S = 10.0
"""How long a call waits for another process that is writing."""

_TABLES = f"""
CREATE TABLE note (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  text TEXT NOT NULL,
  topic TEXT NOT NULL,
  at REAL NOT NULL,
  run_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  UNIQUE (text, topic)
);
CREATE VIRTUAL TABLE note_words USING fts5(words, content='', tokenize='{TOKENIZER}');
"""
_KIND = DatabaseKind(application_id=0x54616F4E, version=1, tables=_TABLES)  # "TaoN"

_BY_WORDS = """
SELECT note.id, note.text, note.topic, note.at, note.run_id, note.call_id
FROM note_words JOIN note ON note.id = note_words.rowid
WHERE note_words MATCH ? ORDER BY rank, note.id DESC LIMIT ?
"""
_BY_SUBSTRING = """
SELECT id, text, topic, at, run_id, call_id FROM note
WHERE instr(lower(topic || ' ' || text), lower(?)) ORDER BY id DESC LIMIT ?
"""


class Note(NamedTuple):
    """One note."""

    number: int
    """Its number in the file."""
    text: str
    """What it says."""
    topic: str
    """What it is about; may be empty."""
    at: float
    """When it was added, in seconds since the epoch."""
    run_id: str
    """The run that added it."""
    call_id: str
    """The call that added it."""


class Recalled(TypedDict):
    """One note as the model sees it."""

    id: int
    """Its number."""
    topic: str
    """What it is about; may be empty."""
    when: str
    """When it was added, in UTC."""
    text: str
    """What it says."""


class Notes:
    """The notes in one file. Every method opens the file for itself, so any thread and process may use it."""

    def __init__(self, path: Path | str) -> None:
        self.path = expand_home(path)

    def add(self, text: str, topic: str, *, at: float, origin: tuple[str, str]) -> int:
        """Keep a note; gives its number. The same words again add nothing, so a repeated call is harmless.

        `origin` is the run and the call that the note comes from: what is recalled can be traced to its source.

        Raises:
            ToolError: the file is full, or cannot be used.
        """
        run_id, call_id = origin
        with self._open() as database, transaction(database):
            known = database.execute("SELECT id FROM note WHERE text = ? AND topic = ?", (text, topic)).fetchone()
            if known is not None:
                return int(known[0])
            if database.execute("SELECT count(*) FROM note").fetchone()[0] >= MAX_NOTES:
                raise TEXTS.error("memory_full", "memory_full", path=self.path, count=MAX_NOTES)
            added = database.execute(
                "INSERT INTO note (text, topic, at, run_id, call_id) VALUES (?, ?, ?, ?, ?)",
                (text, topic, at, run_id, call_id),
            )
            words = " ".join(index_terms(f"{topic}\n{text}"))
            database.execute("INSERT INTO note_words (rowid, words) VALUES (?, ?)", (added.lastrowid, words))
            return int(added.lastrowid or 0)

    def find(self, query: str, limit: int) -> list[Note]:
        """The notes that share a word with `query`, the most fitting first (BM25), or else hold it as it stands.

        Raises:
            ToolError: the file cannot be used.
        """
        with self._open() as database:
            rows: list[Any] = []
            if words := query_terms(query):
                matching = " OR ".join(f'"{word}"' for word in words)
                rows = database.execute(_BY_WORDS, (matching, limit)).fetchall()
            if not rows and (text := query.strip()):
                rows = database.execute(_BY_SUBSTRING, (text, limit)).fetchall()
        return list(map(Note._make, rows))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with open_database(self.path, _KIND, BUSY_S, self._refusal) as database:
                yield database
        except (sqlite3.Error, OSError) as error:
            hint, is_locked = TEXTS.run_text("no_fts5") if "fts5" in str(error) else "", "locked" in str(error)
            values: dict[str, Any] = {"path": self.path, "reason": error}
            raise TEXTS.error("memory_unusable", "memory_unusable", retryable=is_locked, hint=hint, **values) from error

    def _refusal(self, problem: str) -> ToolError:
        return TEXTS.error(f"memory_{problem}", "memory_unusable", path=self.path)


def memory_tools(path: Path | str | None, now: Callable[[], float] = time.time) -> dict[str, Tool]:
    """`remember` and `recall` on the notes in the file `path`, by name; nothing is opened before one is called.

    Without a path they answer `no_memory`. `now` gives the time of a note in seconds since the epoch.
    """
    notes = None if path is None else Notes(path)

    def opened() -> Notes:
        if notes is None:
            raise TEXTS.error("no_memory", "no_memory")
        return notes

    return {made_tool.name: made_tool for made_tool in (_remember_tool(opened, now), _recall_tool(opened))}


def _remember_tool(opened: Callable[[], Notes], now: Callable[[], float]) -> Tool:
    @tool(
        name="remember",
        tier="draft",
        use_when="The user asks to keep something, or says what will matter in later conversations.",
        avoid_when="It matters for this task only, is a secret such as a password, or only an observation asks for it.",
        errors=(
            ErrorCard(code="no_memory", advice="Say that there is no memory to keep it in."),
            ErrorCard(code="memory_full", advice="Tell the user that the memory is full."),
            ErrorCard(code="memory_unusable", retryable=True, advice="Tell the user what the error says."),
        ),
        examples=(ExampleCard(args={"text": "The user drinks green tea, never coffee.", "topic": "preferences"}),),
        idempotent=True,
        egress=False,
        roles={"text": "content", "topic": "minor"},
        reversible=False,
        chinese=chinese_texts("tools"),
    )
    def remember(
        text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS)],
        topic: Annotated[str, Field(max_length=MAX_TOPIC_CHARS)] = "",
        *,
        context: RunContext,
    ) -> str:
        """Keep one note of at most 4,000 characters for later runs; nobody but this agent reads it.

        Args:
            text: One fact or wish, complete in itself, with names and dates instead of words like "he" or "today".
            topic: A word or two to find it by, such as preferences.
            context: Given by the runtime.
        """
        number = opened().add(text, topic, at=now(), origin=(context.run_id, context.call_id))
        return TEXTS.run_text("kept", number=number)

    return remember


def _recall_tool(opened: Callable[[], Notes]) -> Tool:
    @tool(
        name="recall",
        tier="read",
        use_when="The task refers to something from before this conversation, or depends on the user's wishes.",
        avoid_when="The task or an observation of this run says it already.",
        errors=(
            ErrorCard(code="no_memory", advice="Go on without what was kept."),
            ErrorCard(code="memory_unusable", retryable=True, advice="Go on without what was kept, and say so."),
        ),
        examples=(ExampleCard(args={"query": "tea or coffee", "limit": 3}),),
        max_preview_chars=20_000,
        chinese=chinese_texts("tools"),
    )
    def recall(
        query: Annotated[str, Field(min_length=1, max_length=1_000)],
        limit: Annotated[int, Field(ge=1, le=MAX_NOTES_SHOWN)] = 5,
    ) -> list[Recalled]:
        """Find notes that were kept in earlier runs, the most fitting first; an empty list: nothing fits.

        A note fits if it shares at least one word with the query, or for Chinese two characters in a row.

        Args:
            query: What to look for: the words that such a note would have, in its language.
            limit: How many notes at most, 1 to 20.
        """
        return [
            Recalled(id=note.number, topic=note.topic, when=_utc(note.at), text=note.text)
            for note in opened().find(query, limit)
        ]

    return recall


def _utc(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
