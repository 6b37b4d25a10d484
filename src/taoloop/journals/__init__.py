"""Where traces are kept: in memory or in a SQLite file."""
