"""What the owner of a PostgreSQL journal does with its tables: make them, bring them up to date, measure them."""

from __future__ import annotations

from typing import Final

from taoloop.journals.postgres import schema
from taoloop.journals.postgres.address import PostgresAddress
from taoloop.journals.postgres.errors import explain
from taoloop.journals.postgres.journal import PostgresJournal

YEAR: Final = 12
"""For how many months `migrate` makes partitions in advance."""

_SIZES = """
SELECT relname, coalesce((SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(c.oid) WHERE isleaf),
  pg_total_relation_size(c.oid))::bigint
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
WHERE nspname = $1 AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 2 DESC
"""


async def migrate(address: PostgresAddress) -> int:
    """Make the tables of a journal, or bring them up to date; returns the version that they have now.

    Raises:
        JournalError: the server cannot hold a journal, or the role may not make tables.
    """
    journal = PostgresJournal(address)
    name = journal.database.settings.schema
    try:
        connection = await journal.database.connect()
        try:
            async with connection.transaction():
                await schema.check_server(connection, journal.location, read_only=False)
                reached = await schema.version(connection, name)
            if reached > len(schema.MIGRATIONS):
                schema.refuse_version(journal.location, reached, known=len(schema.MIGRATIONS))
            await schema.upgrade(connection, name)
            await schema.make_partitions(connection, name, YEAR)
            return max(reached, len(schema.MIGRATIONS))
        finally:
            await connection.close()
    except Exception as error:
        if (explained := explain(error, journal.location)) is error:
            raise
        raise explained from error


async def table_sizes(address: PostgresAddress) -> dict[str, int]:
    """The bytes of each table with its partitions and indexes, the largest first."""
    async with PostgresJournal(address, read_only=True) as journal:
        name = journal.database.settings.schema
        return {row[0]: int(row[1]) for row in await journal.database.run(lambda c: c.fetch(_SIZES, name))}
