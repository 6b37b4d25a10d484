"""The tables of a PostgreSQL journal, how they come to be, and how older ones become current.

All of them are in one PostgreSQL schema of their own. `about` says how many migrations it has had. A migration that was
released is never changed; a new one is added at the end. In all statements of this package `@.` stands for the schema.

`event` and `artifact` are partitioned by the month in which their run was created: a run is in one partition however
long it waits, and a month without runs is dropped in one step, which gives its space back at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from taoloop.errors import ConfigError, JournalError, JournalTooNew
from taoloop.journals.base import translate
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.driver import PostgresConnection
OLDEST_SERVER: Final = 130_000
"""PostgreSQL 13: the first with `xid8`, by which `tail` knows what is new."""

MONTHS_AHEAD: Final = 3
"""For how many months partitions are made in advance, so that a role without the right to make them can write."""

_V1: Final = """
CREATE TABLE @.about (key text PRIMARY KEY, value text NOT NULL);

CREATE SEQUENCE @.run_number;

-- `number`: the order of creation. `link`: of the last event; empty: the origin of the chain. An append changes this
-- row, and none of its indexes unless the status changes: the pages have room for that (fillfactor).
-- `wake_at`: the end of the lease of a run that is running, for those who ask who is at work on it.
-- `queue`: NULL, where no engine drives the run. The columns from it on are the engine's (`runtime/fleet`): `due_at` is
-- when the run is due (NULL: not by itself), or, while it is `claimed`, the end of the claim; `attempts` its number.
CREATE TABLE @.run (
  number bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  born date NOT NULL,
  status text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  events integer NOT NULL DEFAULT 0,
  link bytea NOT NULL DEFAULT '',
  sealed_later integer NOT NULL DEFAULT 0,
  started_at double precision NOT NULL,
  updated_at double precision NOT NULL,
  holder text NOT NULL DEFAULT '',
  task bytea NOT NULL DEFAULT '',
  agent text COLLATE "C" NOT NULL DEFAULT '',
  parent text COLLATE "C",
  key text COLLATE "C" NOT NULL DEFAULT '',
  model text COLLATE "C" NOT NULL DEFAULT '',
  description bytea,
  wake_at timestamptz NOT NULL DEFAULT 'infinity',
  queue text COLLATE "C",
  tenant text COLLATE "C" NOT NULL DEFAULT '',
  priority smallint NOT NULL DEFAULT 3,
  attempts integer NOT NULL DEFAULT 0,
  wakes integer NOT NULL DEFAULT 0,
  claimed boolean NOT NULL DEFAULT false,
  due_at timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX run_by_status ON @.run (status, number);
CREATE INDEX run_by_agent ON @.run (agent, number);
CREATE INDEX run_by_model ON @.run (model, number);
CREATE INDEX run_by_key ON @.run (key, number);
CREATE INDEX run_due ON @.run (queue, priority, due_at) WHERE queue IS NOT NULL AND due_at IS NOT NULL;

-- Narrow columns first and without gaps: what a row takes beside its body is the price of an event.
-- `xid`: the transaction that stored it, see `positions`. Many events share one, which its index stores once.
CREATE TABLE @.event (
  number bigint NOT NULL,
  at double precision NOT NULL,
  xid xid8 NOT NULL,
  seq integer NOT NULL,
  born date NOT NULL,
  fence integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  link bytea NOT NULL,
  body text COLLATE "C" NOT NULL,
  PRIMARY KEY (number, seq, born)
) PARTITION BY LIST (born);
CREATE INDEX event_by_xid ON @.event (xid);

CREATE TABLE @.artifact (
  number bigint NOT NULL,
  born date NOT NULL,
  ref text COLLATE "C" NOT NULL,
  form text COLLATE "C" NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (number, ref, born)
) PARTITION BY LIST (born);

CREATE TABLE @.description (digest bytea PRIMARY KEY, body bytea NOT NULL);

CREATE TABLE @.run_log (
  number bigint PRIMARY KEY,
  run_id text COLLATE "C" NOT NULL,
  first bytea NOT NULL,
  sealed_later boolean NOT NULL,
  link bytea NOT NULL,
  pruned text
);
CREATE INDEX run_pruned ON @.run_log (run_id) WHERE pruned IS NOT NULL;

CREATE TABLE @.spending (
  day text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  counts text NOT NULL,
  PRIMARY KEY (day, key, agent, model)
);

-- Without stop words, which the built-in one leaves out: every word is found.
CREATE TEXT SEARCH DICTIONARY @.stem (TEMPLATE = pg_catalog.snowball, Language = english);
CREATE TABLE @.run_words (number bigint PRIMARY KEY, run_id text COLLATE "C" NOT NULL UNIQUE, words tsvector NOT NULL);
CREATE INDEX run_words_found ON @.run_words USING gin (words);
"""

MIGRATIONS: Final[tuple[str, ...]] = (_V1,)

_TABLES = "SELECT to_regclass($1) IS NOT NULL"
_REACHED = "SELECT value FROM @.about WHERE key = 'schema'"
_NOTE = "INSERT INTO @.about VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_MONTHS = """
SELECT to_char(month, 'YYYY_MM'), to_char(month, 'YYYY-MM-DD') FROM generate_series(
  date_trunc('month', now() AT TIME ZONE 'UTC'),
  date_trunc('month', now() AT TIME ZONE 'UTC') + $1 * interval '1 month', interval '1 month'
) AS month
WHERE to_regclass($2 || '.event_' || to_char(month, 'YYYY_MM')) IS NULL
OR to_regclass($2 || '.artifact_' || to_char(month, 'YYYY_MM')) IS NULL
"""
_PARTITION = "CREATE TABLE IF NOT EXISTS @.{table}_{name} PARTITION OF @.{table} FOR VALUES IN ('{value}')"


def quoted(name: str) -> str:
    """The name of a PostgreSQL schema as it is written in statements.

    Raises:
        ConfigError: it is none.
    """
    if not name or "\x00" in name or len(name.encode()) > 63:
        text = mark("{name!r} is no name of a PostgreSQL schema.")
        raise ConfigError(translate(text, name=name), hint=translate("Give one of 1 to 63 bytes."))
    return '"' + name.replace('"', '""') + '"'


def in_schema(statement: str, schema: str) -> str:
    """A statement for this schema."""
    return statement.replace("@.", f"{quoted(schema)}.")


async def check_server(connection: PostgresConnection, location: str, *, read_only: bool) -> None:
    """Refuse a server that cannot hold a journal.

    Raises:
        JournalError: it is too old, its encoding is not UTF-8, or it is a standby and the journal is to be written.
    """
    row = await connection.fetchrow(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
        " current_setting('server_encoding'), pg_is_in_recovery()"
    )
    number, name, encoding, is_standby = row
    if number < OLDEST_SERVER:
        text = mark("{path}: PostgreSQL {version} is too old; a journal needs 13 or newer.")
        raise JournalError(translate(text, path=location, version=name), hint=translate("Upgrade the server."))
    if encoding != "UTF8":
        text = mark("{path}: the encoding of the database is {encoding}; a journal needs UTF8.")
        hint = translate("Create a database with `createdb --encoding UTF8 --template template0`.")
        raise JournalError(translate(text, path=location, encoding=encoding), hint=hint)
    if is_standby and not read_only:
        raise standby(location)


def standby(location: str) -> JournalError:
    """The server is there, but cannot be written."""
    text = mark("{path}: the server is a read-only standby; nothing was written.")
    return JournalError(translate(text, path=location), hint=translate("Name the primary server."))


async def version(connection: PostgresConnection, schema: str) -> int:
    """How many migrations the schema has had; 0: there is no journal."""
    if not await connection.fetchval(_TABLES, f"{quoted(schema)}.about"):
        return 0
    reached = await connection.fetchval(in_schema(_REACHED, schema))
    return 0 if reached is None else int(reached)


def refuse_version(location: str, reached: int, *, known: int) -> None:
    """Refuse a journal of another version than this one's.

    Raises:
        JournalTooNew, JournalError: says which; nothing was touched.
    """
    if reached > known:
        text = mark(
            "{path}: written by a newer taoloop (schema {reached}; this one knows {known}). Nothing was touched."
        )
        message = translate(text, path=location, reached=reached, known=known)
        raise JournalTooNew(message, hint=translate("Upgrade taoloop, or name another database."))
    if reached < known:
        text = mark("{path}: the journal has the older schema {reached} (current: {current}).")
        message = translate(text, path=location, reached=reached, current=known)
        raise JournalError(message, hint=translate("`tao db migrate --db URL` brings it up to date."))


async def upgrade(connection: PostgresConnection, schema: str, migrations: Sequence[str] = MIGRATIONS) -> list[int]:
    """Apply the migrations that the schema has not had, each in its own transaction; returns their numbers.

    Makes the schema and the partitions of the next months. Harmless when two processes do it at once. A step that
    fails leaves the schema at the version before it.
    """
    applied: list[int] = []
    while True:
        async with connection.transaction():
            await lock(connection, schema, "schema")
            reached = await version(connection, schema)
            if reached >= len(migrations):
                break
            if not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", quoted(schema)):
                await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
            await connection.execute(in_schema(migrations[reached], schema))
            await note(connection, schema, "schema", str(reached + 1))
            applied.append(reached + 1)
    await make_partitions(connection, schema)
    return applied


async def make_partitions(connection: PostgresConnection, schema: str, months: int = MONTHS_AHEAD) -> None:
    """Make the partitions of this month and the next ones that are missing. Harmless when two processes do it at once.

    Raises:
        asyncpg.InsufficientPrivilegeError: some are missing, and this role cannot make them.
    """
    async with connection.transaction():  # a pooler gives each statement without one another connection
        if not await connection.fetch(_MONTHS, months, quoted(schema)):
            return
    async with connection.transaction():
        await lock(connection, schema, "schema")
        for name, value in await connection.fetch(_MONTHS, months, quoted(schema)):
            await make_month(connection, schema, name, value)


async def make_month(connection: PostgresConnection, schema: str, name: str, value: str) -> None:
    """Make the partitions of one month, such as `2026_01` and `2026-01-01`."""
    for table in ("event", "artifact"):
        await connection.execute(in_schema(_PARTITION.format(table=table, name=name, value=value), schema))


async def note(connection: PostgresConnection, schema: str, key: str, value: str) -> None:
    """Note something about the journal."""
    await connection.execute(in_schema(_NOTE, schema), key, value)


async def lock(connection: PostgresConnection, schema: str, work: str) -> None:
    """Wait for whoever does the same work in this schema, until the transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1), hashtext($2))", f"taoloop {schema}", work)
