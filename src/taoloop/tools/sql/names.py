"""Which tables of a database are there for a model."""

from __future__ import annotations

from fnmatch import fnmatchcase

from taoloop.tools.sql.settings import Database


class TableFilter:
    """The operator's choice of tables, by name or pattern, in any case; a name may have its schema before it."""

    def __init__(self, database: Database) -> None:
        self._tables = tuple(name.lower() for name in database.tables)
        self._hidden = tuple(name.lower() for name in database.hidden)
        self._own = database.calls_table.lower()

    @property
    def is_partial(self) -> bool:
        """Whether some tables are left out."""
        return bool(self._tables or self._hidden)

    def has(self, table: str) -> bool:
        """Whether a table or view of this name is shown."""
        name = table.lower()
        forms = {name, name.rpartition(".")[2]}
        if self._own and self._own in forms:
            return False
        if any(fnmatchcase(form, pattern) for form in forms for pattern in self._hidden):
            return False
        return not self._tables or any(fnmatchcase(form, pattern) for form in forms for pattern in self._tables)
