"""The address of a PostgreSQL database: which texts are one, and how it is shown, always without the password."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from taoloop.errors import ConfigError
from taoloop.journals.base import translate
from taoloop.translation import mark

_SCHEMES = ("postgres://", "postgresql://")
_SECRETS = frozenset({"password", "passfile", "sslpassword"})
_OWN = frozenset({"schema", "pool_size", "pooler", "lease_s"})


def is_postgres(db: object) -> bool:
    """Whether what names a database is the address of a PostgreSQL server, rather than a path."""
    return isinstance(db, str) and db.lower().startswith(_SCHEMES)


class PostgresAddress:
    """`postgresql://USER:PASSWORD@HOST:PORT/DATABASE?…`, with what a journal takes from its query.

    The query may have `schema=`, `pool_size=`, `pooler=1` and `lease_s=` beside the parameters of the driver.

    Raises:
        ConfigError: it is no such address; the message does not contain it.
    """

    __slots__ = ("dsn", "location", "options")

    def __init__(self, dsn: str) -> None:
        try:
            if not is_postgres(dsn):
                raise ValueError("scheme")
            parts = urlsplit(dsn)
            _ = parts.port
        except ValueError:
            text = mark("This is no address of a PostgreSQL database.")
            hint = mark("Write postgresql://USER@HOST:PORT/DATABASE, and the password in PGPASSWORD or a passfile.")
            raise ConfigError(translate(text), hint=translate(hint)) from None
        query = parse_qsl(parts.query, keep_blank_values=True)
        self.options = {name: value for name, value in query if name in _OWN}
        self.dsn = urlunsplit(parts._replace(query=urlencode([pair for pair in query if pair[0] not in _OWN])))
        user, has_user, host = parts.netloc.rpartition("@")
        netloc = f"{quote(user.partition(':')[0], safe='%')}@{host}" if has_user else host
        shown = [(name, value) for name, value in query if name not in _SECRETS]
        # `safe`: a socket's folder stays readable
        self.location = urlunsplit(parts._replace(netloc=netloc, query=urlencode(shown, safe="/"), fragment=""))

    def __repr__(self) -> str:
        """Without the password."""
        return f"PostgresAddress({self.location!r})"

    def __str__(self) -> str:
        """For messages and commands: without the password."""
        return self.location

    def __eq__(self, other: object) -> bool:
        """Whether both are the same text."""
        return isinstance(other, PostgresAddress) and (self.dsn, self.options) == (other.dsn, other.options)

    def __hash__(self) -> int:
        """As `==`."""
        return hash(self.dsn)


DatabaseAddress = Path | PostgresAddress
"""Where a journal is: the path of an SQLite file, or the address of a PostgreSQL database."""
