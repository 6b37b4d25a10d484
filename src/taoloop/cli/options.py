"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def db_option(command: F) -> F:
    """`--db PATH`."""
    return click.option(
        "--db",
        metavar="PATH",
        type=click.Path(dir_okay=False),
        help="The database of runs. Default: TAOLOOP_DB, else runs.db in your data folder.",
    )(command)


def json_option(text: str) -> Callable[[F], F]:
    """`--json`, with what it prints."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def agent_option(command: F) -> F:
    """`--agent FILE.yaml | module:attribute`."""
    return click.option(
        "--agent",
        metavar="AGENT",
        help="The agent: FILE.yaml (or .json), or module:attribute of a Python module here.",
    )(command)


def workspace_option(command: F) -> F:
    """`--workspace DIR`."""
    return click.option(
        "--workspace",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="The folder that the file tools see; they cannot leave it.",
    )(command)


def memory_option(command: F) -> F:
    """`--memory FILE`."""
    return click.option(
        "--memory",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="The file of notes that `remember` and `recall` keep from run to run.",
    )(command)


def tools_option(text: str) -> Callable[[F], F]:
    """`--tools NAME,…`, repeatable; what it gives is read by `several`."""
    return click.option("--tools", metavar="NAME,…", multiple=True, help=text)


def split_repeated(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names of an option that may stand several times, each time with several; None where it was not given."""
    return names(",".join(values)) if values else None


def names(text: str | None) -> tuple[str, ...] | None:
    """`a,b` as names; None where the option was not given."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
