"""A SQL analyst: questions become queries of a database that it can read and not change, and the answer is data.

Run:  python examples/recipes/sql_analyst.py ["QUESTION"] [--db sqlite:///shop.db] [--model openai:gpt-4o-mini]
Needs: pip install 'taoloop[sql]'
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from pydantic import BaseModel

from taoloop import Agent
from taoloop.models import Reply
from taoloop.tools import Database, sql_tools

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total INTEGER NOT NULL);
INSERT INTO customers VALUES (1, 'Ada', 'NO'), (2, 'Li', 'CN'), (3, 'Grace', 'NO');
INSERT INTO orders VALUES (1, 1, 120), (2, 2, 300), (3, 3, 90), (4, 1, 40);
"""
QUESTION = "Which country has spent the most, and how much? Then clean up the orders below 50."
BY_COUNTRY = (
    "SELECT country, SUM(total) AS spent FROM orders JOIN customers ON customers.id = customer_id "
    "GROUP BY country ORDER BY spent DESC"
)
SCRIPT: list[Reply] = [
    {"tool_calls": [{"name": "shop.query", "args": {"statement": BY_COUNTRY}}]},
    {"tool_calls": [{"name": "shop.query", "args": {"statement": "DELETE FROM orders WHERE total < 50"}}]},
    '{"text": "China has spent the most, 300. Orders cannot be deleted here.", "rows": [["CN", 300], ["NO", 250]]}',
]


class Answer(BaseModel):
    """An answer with the rows that it rests on."""

    text: str
    rows: list[list[str | int | float | None]]


def make_shop(path: Path) -> str:
    """A small database for the demonstration; gives its address."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SHOP)
    return f"sqlite:///{path}"


def analyst(url: str, *, model: str | None = None) -> Agent[None, Answer]:
    """The agent for one database. What a statement may do is enforced by the connection, not by its text."""
    database = sql_tools(Database(name="shop", url=url, description="customers and their orders"))
    return Agent(
        name="analyst",
        model=model or SCRIPT,
        tools=[*database.tools],
        instructions="Answer with the figures of the database. Name what you could not do.",
        output_type=Answer,
        evidence="warn",
    )


def main() -> None:
    """Answer the question of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--db", help="the database, such as sqlite:///shop.db; default: a new one with four orders")
    parser.add_argument("--model", help="a real model, such as openai:gpt-4o-mini; default: a script")
    options = parser.parse_args()
    url = options.db or make_shop(Path(tempfile.mkdtemp(prefix="taoloop-")) / "shop.db")
    result = analyst(url, model=options.model).run_sync(options.question, verbose=True)
    if result.output is not None:
        for row in result.output.rows:
            print(*row, sep="\t")


if __name__ == "__main__":
    main()
