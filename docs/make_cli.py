"""Write docs/cli.md: the help page of every command, as `tao COMMAND --help` prints it.

Run: python docs/make_cli.py
"""

from __future__ import annotations

from pathlib import Path

import click

from taoloop.cli.app import cli
from taoloop.cli.exit_codes import OF_STATUS, TABLE

WIDTH = 100
TARGET = Path(__file__).with_name("cli.md")

HEAD = """\
# The command line

<!-- Written by docs/make_cli.py; edit that, or the help texts, not this page. -->

`tao` is installed with the package. In a checkout, `scripts/try` sets up on first use and then is `tao`.
Standard output holds what a command was asked for; remarks and errors go to standard error, each on one line.
A `.env` file in the current folder is read; variables of the environment win over it.

| variable | what it does |
|---|---|
| `TAOLOOP_DB` | the database of runs, in place of `runs.db` in the user's data folder |
| `TAOLOOP_MODEL` | the model when neither `--model` nor the agent names one, such as `deepseek:deepseek-chat` |
| `AI_MOCK` | `1`: the offline model in place of every provider, but for one that `--model` names |
| `TAOLOOP_NO_REAL_CALLS` | `1`: no model of a provider is called; a run that tries ends as `model_failed` |
| `TAOLOOP_DEBUG` | `1`: show the traceback of an error |
| `NO_COLOR` | set to anything: no colours |

Keys and addresses of providers are in [models of providers](providers.md#providers).

## Exit codes

| code | meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    root = _context(cli, "tao", None)
    parts = [HEAD + "".join(f"| {code} | {_meaning(code)} |\n" for code in TABLE)]
    parts.append(_section("tao", cli, root))
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        if command is not None:
            parts.append(_section(f"tao {name}", command, _context(command, name, root)))
    return "\n".join(parts)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, info_name=name, parent=parent, **settings)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return f"## {title}\n\n```text\n" + "\n".join(lines) + "\n```\n"


def _meaning(code: int) -> str:
    return f"`{TABLE[code]}`" if code in OF_STATUS.values() else TABLE[code]


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
