"""The journal in one SQLite file."""

from taoloop.journals.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
