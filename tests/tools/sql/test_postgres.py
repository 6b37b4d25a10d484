"""A real server of PostgreSQL: what holds a statement there, and what its errors become."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tools.sql.arrival import codes_and_growth
from tests.tools.sql.conftest import Tools, as_nobody

from taoloop.core.cards.card_lint import lint
from taoloop.errors import ToolError, ToolTimeout
from taoloop.tools.sql import Database, sql_tools
from taoloop.tools.tool import ToolContext

psycopg = pytest.importorskip("psycopg")

PASSWORD = "pass%40word"
AT_WORK = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND usename = 'reader' AND wait_event = 'PgSleep'"
SETUP = """
    CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL UNIQUE);
    COMMENT ON TABLE users IS 'people
    who buy';
    COMMENT ON COLUMN users.name IS 'as they write it';
    CREATE TABLE orders (
        id int PRIMARY KEY, user_id bigint REFERENCES users (id), total numeric(20, 4), at timestamptz, facts jsonb
    );
    CREATE TABLE secrets (word text);
    CREATE TABLE log (user_id bigint);
    CREATE SEQUENCE numbers;
    CREATE FUNCTION writes() RETURNS int AS $$ INSERT INTO log VALUES (1); SELECT 1 $$ LANGUAGE sql;
    CREATE FUNCTION also_logs() RETURNS trigger AS $$
        BEGIN INSERT INTO log SELECT generate_series(1, 20); RETURN NEW; END $$ LANGUAGE plpgsql;
    CREATE TRIGGER t AFTER UPDATE ON users FOR EACH ROW EXECUTE FUNCTION also_logs();
    INSERT INTO users SELECT n, 'user ' || n FROM generate_series(1, 1000) n;
    INSERT INTO orders VALUES (1, 1, 12345678901234.5678, '2026-01-02 03:04:05.678+00',
        '{"a": 1.10, "b": 12345678901234567890.1}');
    INSERT INTO secrets VALUES ('sesame');
    CREATE ROLE reader LOGIN PASSWORD 'pass@word';
    GRANT SELECT ON users, orders, log TO reader;
    CREATE ROLE writer LOGIN PASSWORD 'pass@word';
    GRANT ALL ON ALL TABLES IN SCHEMA public TO writer;
    GRANT ALL ON SEQUENCE numbers TO writer;
    GRANT CREATE ON SCHEMA public TO writer;
    CREATE ROLE climber LOGIN NOINHERIT PASSWORD 'pass@word' IN ROLE boss;
    CREATE ROLE copier LOGIN REPLICATION PASSWORD 'pass@word';
    CREATE ROLE ender LOGIN PASSWORD 'pass@word' IN ROLE pg_signal_backend;
"""


def program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a new server, with `SETUP` in its database `postgres`."""
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("PostgreSQL is not on this machine")
    home = Path("/tmp") / f"taoloop-pg-{os.getpid()}"  # noqa: S108  # nobody cannot enter the folders of pytest
    home.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(home, "nobody")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    data = str(home / "data")
    done = subprocess.run(
        [initdb, "-D", data, "-U", "boss", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"],
        capture_output=True, check=False, cwd="/", **as_nobody(),
    )  # fmt: skip
    if done.returncode:
        shutil.rmtree(home)
        pytest.skip(f"initdb does not work here: {done.stderr.decode()[:200]}")
    (home / "data" / "pg_hba.conf").write_text(
        "host all boss 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
    )
    running = subprocess.Popen(
        [postgres, "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", str(home), "-F"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", **as_nobody(),
    )  # fmt: skip
    try:
        assert running.stderr is not None
        for line in running.stderr:
            if b"ready to accept" in line:
                break
        with psycopg.connect(f"host=127.0.0.1 port={port} user=boss dbname=postgres", autocommit=True) as boss:
            boss.execute(SETUP)
        yield port
    finally:
        running.terminate()
        running.communicate(timeout=20)
        shutil.rmtree(home)


def opened(port: int, user: str = "reader", password: str = PASSWORD, **settings: Any) -> Tools:
    url = f"postgresql://{user}:{password}@127.0.0.1:{port}/postgres"
    return Tools(sql_tools(Database(**{"name": "shop", "url": url, **settings})))


@pytest.fixture
def tools(server: int) -> Tools:
    return opened(server)


@pytest.fixture
def writer(server: int) -> Tools:
    return opened(server, "writer", write=True)


def asked(port: int, query: str) -> Any:
    with psycopg.connect(f"host=127.0.0.1 port={port} user=boss dbname=postgres", autocommit=True) as boss:
        return boss.execute(query).fetchall()


def test_the_card_has_tables_columns_keys_and_comments(tools: Tools) -> None:
    assert not tools.loaded.problems
    card = tools.by_name["shop.query"].card
    assert not lint(card)
    text = card.input_schema["properties"]["statement"]["description"]
    assert "users(id BIGINT PRIMARY KEY, name TEXT) -- people who buy" in text
    assert "user_id BIGINT -> users.id" in text
    described = tools("describe_table", table="users")
    assert described["columns"][1] == {"name": "name", "type": "TEXT", "nullable": False, "comment": "as they write it"}
    assert described["unique"] == [["name"]]


def test_values_keep_all_their_digits(tools: Tools) -> None:
    found = tools.query(
        "SELECT total, facts, at, 9007199254740993::bigint, 'NaN'::numeric, '1 day 2.5 s'::interval, '\\x00ff'::bytea,"
        " ARRAY[1.10, 2], gen_random_uuid() IS NOT NULL, NULL, 1e400::numeric > 0, 0.1::float8 FROM orders"
    )["rows"][0]
    assert found == [
        "12345678901234.5678", '{"a": 1.10, "b": 12345678901234567890.1}', "2026-01-02T03:04:05.678000+00:00",
        9007199254740993, "NaN", "P1DT2.5S", {"bytes": 2, "base64": "AP8="}, ["1.10", "2"], True, None, True, 0.1,
    ]  # fmt: skip


def test_what_python_has_no_value_for_is_the_text_of_the_server(tools: Tools) -> None:
    found = tools.query(
        "SELECT 'infinity'::timestamptz, '0044-03-15 BC'::date, '24:00'::time, '1 mon 2 days'::interval,"
        " ARRAY['infinity'::date], 'NaN'::float8"
    )["rows"][0]
    assert found == ["infinity", "0044-03-15 BC", "24:00:00", "P1M2D", ["infinity"], "NaN"]


def test_large_rows_are_fetched_one_by_one_and_stopped_in_time(server: int) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    statement = "SELECT repeat('x', 20000000) FROM generate_series(1, 400)"
    assert opened(server, timeout_s=0.5).code("query", statement=statement) == "statement_timeout"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 1_000_000  # 50 of them took 2 GB


def test_a_result_is_bounded_while_it_arrives(server: int) -> None:
    url = f"postgresql://reader:{PASSWORD}@127.0.0.1:{server}/postgres"
    codes, growth_mb = codes_and_growth(
        url,
        "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 60)",
        f"SELECT {', '.join(['repeat(chr(120), 8000000)'] * 6)}",
        "SELECT repeat('x', CASE WHEN n < 30 THEN 9 ELSE 8000000 END) FROM generate_series(1, 36) n",
    )
    assert codes == ["value_too_large"] * 3
    assert growth_mb < 100  # the first alone would take 170 MB


def test_rows_that_a_change_gives_back_are_bounded_and_nothing_is_changed(server: int, writer: Tools) -> None:
    statement = "UPDATE users SET name = 'gone' WHERE id = 9 RETURNING repeat(name, 12000000)"
    assert writer.code("execute", statement=statement) == "value_too_large"
    assert writer.query("SELECT name FROM users WHERE id = 9")["rows"] == [["user 9"]]


def test_a_value_below_the_bound_is_given_in_part(tools: Tools) -> None:
    assert tools.query("SELECT repeat('x', 15000000)")["rows"][0][0]["chars"] == 15_000_000


def test_names_in_quotes_enumerations_and_samples(server: int) -> None:
    with psycopg.connect(f"host=127.0.0.1 port={server} user=boss dbname=postgres", autocommit=True) as boss:
        boss.execute("""
            CREATE SCHEMA odd;
            CREATE TYPE odd.mood AS ENUM ('sad', 'glad');
            CREATE TABLE odd."Moods" ("userId" int, "user" odd.mood);
            INSERT INTO odd."Moods" VALUES (7, 'glad'), (8, 'glad');
            GRANT USAGE ON SCHEMA odd TO reader;
            GRANT SELECT ON odd."Moods" TO reader;
        """)
    tools = opened(server, schemas=("odd",), samples=True)
    text = tools.by_name["shop.query"].card.input_schema["properties"]["statement"]["description"]
    assert 'odd."Moods"("userId" INTEGER, "user" ' in text
    first, second = tools("describe_table", table='odd."Moods"', samples=True)["columns"]
    assert (first["name"], first["samples"]) == ('"userId"', [7, 8])
    assert (second["name"], second["values"], second["samples"]) == ('"user"', ["sad", "glad"], ["glad"])
    assert tools.query('SELECT "userId" FROM odd."Moods"')["rows"] == [[7], [8]]


def test_pages_are_the_whole(tools: Tools) -> None:
    rows = tools.rows_of_all_pages("SELECT id FROM users WHERE name LIKE 'user%' ORDER BY id", limit=300)
    assert rows == [[number] for number in range(1, 1001)]


def test_values_are_bound(tools: Tools) -> None:
    statement = "SELECT name, ':id' || '%', id::text FROM users WHERE id = :id AND name LIKE 'user%' AND id = ANY(:ids)"
    found = tools.query(statement, params={"id": 5, "ids": [4, 5]})["rows"]
    assert found == [["user 5", ":id%", "5"]]


NASTY = [
    "INSERT INTO log VALUES (1)",
    "SELECT writes()",
    "SELECT nextval('numbers')",
    "SELECT * FROM users FOR UPDATE",
    "WITH x AS (INSERT INTO log VALUES (1) RETURNING 1) SELECT * FROM x",
    "COMMIT; BEGIN READ WRITE; INSERT INTO log VALUES (1); COMMIT",
    "SELECT 1; COMMIT; INSERT INTO log VALUES (1)",
    "COMMIT",
    "SET TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "SELECT set_config('transaction_read_only', 'off', true), writes()",
    "DO $$ BEGIN INSERT INTO log VALUES (1); END $$",
    "EXPLAIN ANALYZE INSERT INTO log VALUES (1)",
    "COPY log FROM PROGRAM 'echo 1'",
    "COPY users TO '/tmp/users'",
    "CREATE TEMP TABLE t (a int)",
    "SELECT 1 INTO t",
    "DROP TABLE log",
    "TRUNCATE log",
    "CALL nothing()",
    "PREPARE x AS INSERT INTO log VALUES (1)",
    "DECLARE c CURSOR FOR SELECT 1",
    "LOCK TABLE users",
    "VACUUM",
    "LISTEN x",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT word FROM secrets",
]


@pytest.mark.parametrize("statement", NASTY)
@pytest.mark.parametrize("user", ["reader", "writer"])
def test_a_statement_changes_nothing_through_the_query_tool(server: int, user: str, statement: str) -> None:
    if user == "writer" and "secrets" in statement:
        pytest.skip("it may read that")
    tools = opened(server, user)
    before = asked(server, "SELECT count(*), (SELECT last_value FROM numbers) FROM log")
    assert tools.code("query", statement=statement) in ("not_allowed", "statement_failed", "several_statements")
    assert asked(server, "SELECT count(*), (SELECT last_value FROM numbers) FROM log") == before


def test_what_a_statement_sets_is_gone_with_its_call(tools: Tools) -> None:
    tools.query("SELECT set_config('statement_timeout', '0', false)")
    assert tools.query("SELECT current_setting('statement_timeout')")["rows"] == [["10s"]]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT pg_sleep(30)",
        "SELECT count(*) FROM generate_series(1, 100000000000)",
        "SELECT pg_sleep(0.05) FROM users",
    ],
)
def test_a_statement_that_takes_too_long_is_stopped(server: int, statement: str) -> None:
    assert opened(server, timeout_s=0.4).code("query", statement=statement, offset=10_000) == "statement_timeout"


def test_a_cancelled_call_interrupts_its_statement_in_the_server(server: int, tools: Tools) -> None:
    tools.cancel_at_work("SELECT pg_sleep(30)", lambda: asked(server, AT_WORK))
    assert not asked(server, AT_WORK)


def test_a_superuser_is_refused_unless_somebody_answers_for_it(server: int) -> None:
    refused = opened(server, "boss", "x")
    assert not refused.by_name
    assert "superuser" in str(refused.loaded.problems[0])
    assert "superuser" in str(opened(server, "boss", "x", write=True).loaded.problems[0])
    assert opened(server, "boss", "x", read_only_role=True).query("SELECT 1")["rows"] == [[1]]


@pytest.mark.parametrize("user", ["climber", "copier", "ender"])
def test_a_role_that_could_reach_beyond_its_transaction_is_refused(server: int, user: str) -> None:
    """Such as by `SELECT set_config('role', 'boss', false), query_to_xml('SELECT pg_read_file(…)', …)`."""
    refused = opened(server, user)
    assert not refused.by_name
    assert refused.loaded.problems[0].message.startswith(f"The role '{user}' is a superuser, or")


def test_a_wrong_password_is_a_problem_that_does_not_show_it(server: int) -> None:
    tools = opened(server, password="hush%40hush")
    assert not tools.by_name
    text = str(tools.loaded.problems[0])
    assert "password authentication failed" in text
    assert "hush" not in text


def test_a_server_that_is_away_is_a_problem_and_its_tools_are_there(server: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    tools = opened(port, password="hush%40hush", write=True)
    assert len(tools.by_name) == 3
    assert "hush" not in str(tools.loaded.problems[0])
    with pytest.raises(ToolError) as caught:
        tools.query("SELECT 1")
    assert (caught.value.code, caught.value.retryable) == ("database_unavailable", True)
    assert "hush" not in str(caught.value)


def test_a_choice_of_tables_is_said_to_be_no_protection(server: int) -> None:
    tools = opened(server, tables=("users",))
    assert tools("describe_table") == {"tables": ["users"]}
    assert "only chooses what is shown" in str(tools.loaded.problems[0])


def test_changes_are_kept_and_counted_with_those_of_triggers(server: int, writer: Tools) -> None:
    done = writer.execute("UPDATE users SET name = :name WHERE id = 7 RETURNING name", params={"name": "Li 100%"})
    assert done == {"rows_changed": 1, "rows_changed_in_all": 21, "columns": ["name"], "rows": [["Li 100%"]]}
    assert asked(server, "SELECT name FROM users WHERE id = 7") == [("Li 100%",)]
    assert writer.execute("INSERT INTO secrets VALUES ('100%')") == {"rows_changed": 1}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE users SET name = name || '!' WHERE id < 60", "too_many_rows"),
        ("WITH x AS (DELETE FROM users WHERE id > 10 RETURNING 1) SELECT 1", "too_many_rows"),
        ("DELETE FROM users WHERE id > 10 RETURNING id", "too_many_rows"),
        ("DO $$ BEGIN DELETE FROM users WHERE id > 10; END $$", "structure_change"),
        ("TRUNCATE log", "structure_change"),
        ("CREATE TABLE t (a int)", "structure_change"),
        ("COMMIT", "not_allowed"),
        ("ROLLBACK", "not_allowed"),
        ("DELETE FROM log; COMMIT", "several_statements"),
        ("INSERT INTO orders VALUES (9, 99999)", "statement_failed"),
        ("DROP TABLE users", "not_allowed"),
    ],
)
def test_what_goes_too_far_is_rolled_back(server: int, writer: Tools, statement: str, code: str) -> None:
    before = asked(server, "SELECT count(*), (SELECT count(*) FROM log), max(name) FROM users")
    assert writer.code("execute", statement=statement) == code
    assert asked(server, "SELECT count(*), (SELECT count(*) FROM log), max(name) FROM users") == before
    assert asked(server, "SELECT 1 FROM pg_tables WHERE tablename = 't'") == []


def test_a_repeated_call_changes_nothing_a_second_time(server: int) -> None:
    tools = opened(server, "writer", write=True, calls_table="tao_calls")
    first = tools.execute("INSERT INTO secrets VALUES ('once') RETURNING word", key="run.1")
    assert tools.execute("INSERT INTO secrets VALUES ('once') RETURNING word", key="run.1") == first
    assert asked(server, "SELECT count(*) FROM secrets WHERE word = 'once'") == [(1,)]
    assert first == {"rows_changed": 1, "columns": ["word"], "rows": [["once"]]}


def test_the_same_call_at_the_same_time_happens_once(server: int) -> None:
    tools = opened(server, "writer", write=True, calls_table="tao_calls")
    tool = tools.by_name["shop.execute"]
    statement = "INSERT INTO secrets SELECT 'twice' || pg_sleep(0.2)"

    async def both() -> list[Any]:
        calls = [tool.invoke({"statement": statement}, ToolContext(idempotency_key="run.2")) for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(both())
    assert {"rows_changed": 1} in results
    assert [one.code for one in results if isinstance(one, ToolError)] == ["database_busy"]
    assert tools.execute(statement, key="run.2") == {"rows_changed": 1}
    assert asked(server, "SELECT count(*) FROM secrets WHERE word LIKE 'twice%'") == [(1,)]


def test_a_connection_that_breaks_at_the_commit_leaves_the_call_in_doubt(server: int, writer: Tools) -> None:
    """The trigger ends its own connection when the transaction is to be committed."""
    with psycopg.connect(f"host=127.0.0.1 port={server} user=boss dbname=postgres", autocommit=True) as boss:
        boss.execute(
            "CREATE TABLE fragile (a int); GRANT ALL ON fragile TO writer;"
            "CREATE FUNCTION dies() RETURNS trigger SECURITY DEFINER AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$ LANGUAGE plpgsql;"
            "CREATE CONSTRAINT TRIGGER d AFTER INSERT ON fragile DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION dies()"
        )
    with pytest.raises(ToolTimeout, match="may or may not have happened"):
        asyncio.run(
            writer.by_name["shop.execute"].invoke({"statement": "INSERT INTO fragile VALUES (1)"}, ToolContext())
        )
