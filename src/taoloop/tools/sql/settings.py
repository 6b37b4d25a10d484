"""What an operator says of a database that becomes tools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from taoloop.core.cards.tool_card import Tier
from taoloop.errors import ConfigError
from taoloop.tools.settings_check import Count, Seconds, Texts, check_fields


@dataclass(frozen=True, kw_only=True)
class Database:
    """One database: how to reach it, what of it is shown, and what may be done with it."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,48}$")]
    """The prefix of the names of its tools: `NAME.query`, `NAME.describe_table` and `NAME.execute`."""

    url: str = field(repr=False)
    """The address as SQLAlchemy takes it, such as `sqlite:///shop.db` or `postgresql://reader:…@host/shop`. It is never
    shown."""

    description: str = ""
    """What the database holds, in a line for the model."""

    tables: Texts = ()
    """Only these tables and views, as names or patterns such as `order*`; none: all of them."""

    hidden: Texts = ()
    """The tables and views that are not shown. On SQLite they cannot be read; elsewhere the grants of the role decide
    what can be read."""

    schemas: Texts = ()
    """The schemas whose tables are shown; none: the default one."""

    read_only_role: bool = False
    """You guarantee that the role of the URL cannot change anything. Required for a database or a role that a read-only
    transaction does not restrict."""

    write: bool = False
    """Whether there is also `NAME.execute`, which changes rows."""

    structure: bool = False
    """Whether `NAME.execute` may also create, alter and drop tables."""

    read_tier: Tier = "read"
    """The tier of the tools that read."""

    write_tier: Literal["", "write", "destructive"] = ""
    """The tier of `NAME.execute`; empty: `write` where the database is restricted to rows (SQLite and PostgreSQL
    without `structure`), else `destructive`."""

    max_rows_changed: Count = 100
    """How many rows one call may change; a call that would change more is rolled back."""

    calls_table: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,62})?$")] = ""
    """A table of this database for the keys of calls, created at the first use; with it a call that is repeated after a
    crash changes nothing a second time (SQLite and PostgreSQL)."""

    samples: bool = False
    """Whether `NAME.describe_table` may show three values of each column where a call asks for them; it then has
    `read_tier`, because these are rows."""

    timeout_s: Seconds = 10.0
    """How long one statement may take, in seconds."""

    max_rows: Count = 500
    """How many rows one call may return."""

    page_rows: Count = 50
    """How many rows a call returns where it does not say how many."""

    max_result_chars: Count = 100_000
    """How many characters all rows of a call may have."""

    max_value_chars: Count = 4_000
    """How many characters one value may have."""

    max_card_chars: Count = 6_000
    """How many characters the tables and columns may have that the card lists."""

    def __post_init__(self) -> None:
        """Refuse what cannot be kept.

        Raises:
            ConfigError: names the field and what it must be.
        """
        owner = f"The database {str(self.name)[:60]!r}"
        check_fields(self, owner)
        if "://" not in self.url:  # what it is may be a password: not shown
            raise ConfigError(f"{owner} has a url that is none.", hint="Write one such as sqlite:///shop.db.")
        wrong = ""
        if self.page_rows > self.max_rows:
            wrong, expected = "page_rows", f"at most max_rows, {self.max_rows}"
        elif not self.write and (self.structure or self.calls_table):
            wrong, expected = "structure" if self.structure else "calls_table", "left away without write: true"
        if wrong:
            raise ConfigError(f"{owner} has {wrong} = {getattr(self, wrong)!r}.", hint=f"It must be {expected}.")

    def shows(self, table: str) -> bool:
        """Whether a table or view is shown: by name or pattern, in any case; a name may have its schema before it."""
        names = {table.lower(), table.lower().rpartition(".")[2]}
        if _matches(names, self.hidden) or (self.calls_table and self.calls_table.lower() in names):
            return False
        return not self.tables or _matches(names, self.tables)


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.lower()) for name in names for pattern in patterns)
