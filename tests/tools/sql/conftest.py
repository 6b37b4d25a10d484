from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taoloop.errors import TaoError
from taoloop.tools.sql import Database, sql_tools
from taoloop.tools.tool import ToolContext
from taoloop.tools.toolbox import LoadResult

SHOP = """
    CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id), total NUMERIC(10, 2), at TEXT, raw BLOB
    );
    CREATE VIEW big_orders AS SELECT id, total FROM orders WHERE total > 10;
    CREATE TABLE secrets (word TEXT);
    CREATE TABLE log (user_id INTEGER);
    CREATE VIRTUAL TABLE notes USING fts5 (text);
    INSERT INTO secrets VALUES ('sesame');
    INSERT INTO orders VALUES (1, 1, 12.5, '2026-01-01', x'0011'), (2, 2, 3, '2026-02-01', NULL);
    INSERT INTO notes VALUES ('hello world');
"""


class Tools:
    """The tools of a database, called as a run calls them: arguments judged, the result as JSON."""

    def __init__(self, loaded: LoadResult, name: str = "shop") -> None:
        self.loaded, self.name = loaded, name
        self.by_name = {tool.name: tool for tool in loaded.tools}

    def __call__(self, tool: str, *, key: str = "by-hand", **args: Any) -> Any:
        one = self.by_name[f"{self.name}.{tool}"]
        values = one.prepare(args).values
        result = asyncio.run(one.invoke(values, ToolContext(idempotency_key=key)))
        return json.loads(one.render(result).text)

    def query(self, statement: str, **args: Any) -> Any:
        return self("query", statement=statement, **args)

    def execute(self, statement: str, **args: Any) -> Any:
        return self("execute", statement=statement, **args)

    def rows_of_all_pages(self, statement: str, limit: int) -> list[Any]:
        """The rows of a statement, page by page."""
        found: list[Any] = []
        offset: int | None = 0
        while offset is not None:
            page = self.query(statement, limit=limit, offset=offset)
            found += page["rows"]
            offset = page["next_offset"]
        return found

    def cancel_at_work(self, statement: str, is_at_work: Callable[[], object]) -> None:
        """Cancel the call of a statement as soon as the server is at work on it."""
        tool = self.by_name[f"{self.name}.query"]

        async def cancelled() -> None:
            call = asyncio.ensure_future(tool.invoke({"statement": statement}, None))
            while not is_at_work() and not call.done():  # noqa: ASYNC110  # the server is asked
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        asyncio.run(cancelled())

    def code(self, tool: str, **args: Any) -> str:
        """The code of the error that a call ends with."""
        with pytest.raises(TaoError) as caught:
            self(tool, **args)
        return caught.value.code


def as_nobody() -> dict[str, Any]:
    """For `subprocess`: servers of databases do not run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


Open = Callable[..., Tools]


def make_shop(path: Path, users: int = 100) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.executescript(SHOP)
        made.executemany(
            "INSERT INTO users VALUES (?, ?)", [(number, f"user {number}") for number in range(1, users + 1)]
        )
        made.commit()
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small database whose name has what means something in a URI."""
    return make_shop(tmp_path / "shop #1.db")


@pytest.fixture
def opened(shop: Path) -> Open:
    """The tools of the shop, with the settings that are given."""

    def open_with(**settings: Any) -> Tools:
        return Tools(sql_tools(Database(**{"name": "shop", "url": f"sqlite:///{shop}", **settings})))

    return open_with


@pytest.fixture
def tools(opened: Open) -> Tools:
    return opened()
