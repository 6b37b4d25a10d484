"""The command line: `tao`. Thin over the library; every command is one module."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the process was started with, and leave with its exit code."""
    try:
        from taoloop.cli.app import execute  # noqa: PLC0415  # importing taoloop.cli loads nothing

        code = execute(sys.argv[1:])
    except KeyboardInterrupt:  # while it was being loaded; `execute` reports later ones
        code = 130
    sys.exit(code)
