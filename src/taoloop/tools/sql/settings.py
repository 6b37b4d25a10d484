"""What an operator says of a database that becomes tools."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from taoloop.core.cards.tool_card import TIERS
from taoloop.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}\Z")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")


@dataclass(frozen=True, kw_only=True)
class Database:
    """One database: how to reach it, what of it is shown, and what may be done with it."""

    name: str
    """The prefix of the names of its tools: `NAME.query`, `NAME.describe_table` and `NAME.execute`."""

    url: str = field(repr=False)
    """The address as SQLAlchemy takes it, such as `sqlite:///shop.db` or `postgresql://reader:…@host/shop`. It is never
    shown."""

    description: str = ""
    """What the database holds, in a line for the model."""

    tables: tuple[str, ...] = ()
    """Only these tables and views, as names or patterns such as `order*`; none: all of them."""

    hidden: tuple[str, ...] = ()
    """The tables and views that are not shown. On SQLite they cannot be read; elsewhere the grants of the role decide
    what can be read."""

    schemas: tuple[str, ...] = ()
    """The schemas whose tables are shown; none: the default one."""

    read_only_role: bool = False
    """You guarantee that the role of the URL cannot change anything. Required for a database or a role that a read-only
    transaction does not restrict."""

    write: bool = False
    """Whether there is also `NAME.execute`, which changes rows."""

    structure: bool = False
    """Whether `NAME.execute` may also create, alter and drop tables."""

    read_tier: str = "read"
    """The tier of the tools that read."""

    write_tier: str = ""
    """The tier of `NAME.execute`; empty: `write` where the database is restricted to rows (SQLite and PostgreSQL
    without `structure`), else `destructive`."""

    max_rows_changed: int = 100
    """How many rows one call may change; a call that would change more is rolled back."""

    calls_table: str = ""
    """A table of this database for the keys of calls, created at the first use; with it a call that is repeated after a
    crash changes nothing a second time (SQLite and PostgreSQL)."""

    timeout_s: float = 10.0
    """How long one statement may take, in seconds."""

    max_rows: int = 500
    """How many rows one call may return."""

    page_rows: int = 50
    """How many rows a call returns where it does not say how many."""

    max_result_chars: int = 100_000
    """How many characters all rows of a call may have."""

    max_value_chars: int = 4_000
    """How many characters one value may have."""

    max_card_chars: int = 6_000
    """How many characters the tables and columns may have that the card lists."""

    def __post_init__(self) -> None:
        """Refuse what cannot be kept.

        Raises:
            ConfigError: names the field and what it must be.
        """
        if not _is_text(self.name) or not _NAME.match(self.name):
            raise self._wrong("name", self.name, "1 to 48 ASCII letters, digits, underscores or hyphens")
        if not _is_text(self.url) or "://" not in self.url:  # what stands there may be a password: not shown
            raise ConfigError(
                f"The database {self.name!r} has a url that is none.", hint="Write one such as sqlite:///shop.db."
            )
        for name in ("tables", "hidden", "schemas"):
            object.__setattr__(self, name, self._names(name, getattr(self, name)))
        for name in ("max_rows_changed", "max_rows", "page_rows", "max_result_chars", "max_value_chars"):
            self._above_zero(name, whole=True)
        self._above_zero("max_card_chars", whole=True)
        self._above_zero("timeout_s", whole=False)
        if self.page_rows > self.max_rows:
            raise self._wrong("page_rows", self.page_rows, f"at most max_rows, {self.max_rows}")
        for name, tiers in (("read_tier", TIERS), ("write_tier", ("", "write", "destructive"))):
            if getattr(self, name) not in tiers:
                raise self._wrong(name, getattr(self, name), f"one of {', '.join(filter(None, tiers))}")
        if self.calls_table and not _TABLE.match(self.calls_table):
            raise self._wrong("calls_table", self.calls_table, "a plain name of a table")
        if (self.structure or self.calls_table) and not self.write:
            name = "structure" if self.structure else "calls_table"
            raise self._wrong(name, getattr(self, name), "left away without write: true")

    @property
    def is_partial(self) -> bool:
        """Whether some tables are not shown."""
        return bool(self.tables or self.hidden)

    def shows(self, table: str) -> bool:
        """Whether a table or view is shown: by name or pattern, in any case; a name may have its schema before it."""
        names = {table.lower(), table.lower().rpartition(".")[2]}
        if _matches(names, self.hidden) or (self.calls_table and self.calls_table.lower() in names):
            return False
        return not self.tables or _matches(names, self.tables)

    def _names(self, name: str, names: Any) -> tuple[str, ...]:
        if isinstance(names, str) or not isinstance(names, list | tuple):
            raise self._wrong(name, names, "a list of names")
        if bad := [entry for entry in names if not isinstance(entry, str) or not entry]:
            raise self._wrong(name, bad[0], "a list of names")
        return tuple(names)

    def _above_zero(self, name: str, *, whole: bool) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not value > 0:
            raise self._wrong(name, value, f"a {'whole ' if whole else ''}number above 0")

    def _wrong(self, name: str, value: object, expected: str) -> ConfigError:
        return ConfigError(
            f"The database {str(self.name)[:60]!r} has {name} = {repr(value)[:60]}.", hint=f"It must be {expected}."
        )


def _is_text(value: object) -> bool:
    """The types of the fields are promises: what fills them may be anything of a YAML file."""
    return isinstance(value, str)


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.lower()) for name in names for pattern in patterns)
