"""The journal in a PostgreSQL database, for runs that several machines work on."""
