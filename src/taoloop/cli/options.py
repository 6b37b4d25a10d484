"""Options that several commands share."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

from taoloop.cli.translation import interface_language, translate
from taoloop.core.cards.tool_card import TIERS
from taoloop.core.policy import PROFILES
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import ConfigError
from taoloop.translation import mark

F = TypeVar("F", bound=Callable[..., Any])


NO_TIER = mark("no tier: counts as destructive")
"""What is shown in place of a tier that a tool does not declare."""


db_option = click.option(
    "--db",
    metavar="PATH",
    type=click.Path(dir_okay=False),
    help="The database of runs: a path, or postgresql://…. Default: TAOLOOP_DB, else runs.db in your data folder.",
)


def db_argument(db: str | None) -> str:
    """The option `--db` as a part of a command that is shown; empty where it was not given."""
    return "" if db is None else f" --db {shlex.quote(db)}"


def json_option(text: str) -> Callable[[F], F]:
    """`--json`, with what it prints."""
    return click.option("--json", "as_json", is_flag=True, help=text)


agent_option = click.option(
    "--agent", metavar="AGENT", help="The agent: FILE.yaml (or .json), or module:attribute of a Python module here."
)
workspace_option = click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The folder that the file tools can access; they cannot leave it.",
)
skills_option = click.option(
    "--skills",
    metavar="[NAME=]DIR",
    multiple=True,
    help="A folder of skills (SKILL.md), beside the other tools; NAME is a prefix for its tools; repeatable.",
)
memory_option = click.option(
    "--memory",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The file of notes that `remember` and `recall` share between runs.",
)
fallback_option = click.option(
    "--fallback", metavar="SPEC", multiple=True, help="A model to use when --model fails; repeatable."
)
strategy_option = click.option(
    "--strategy",
    metavar="NAME",
    help="react, reflect, act_only, reason_only, standard, plan_execute, cot_sc, react_then_cot_sc or "
    "cot_sc_then_react; with settings as cot_sc:n=9.",
)
evidence_option = click.option(
    "--evidence",
    type=click.Choice(["off", "warn", "require"]),
    help="Whether the answer must cite observations that contain what it says.",
)

vision_option = click.option(
    "--vision/--no-vision", default=None, help="Whether the model sees images (default: by its name)."
)
attach_option = click.option(
    "--attach",
    "--image",
    "attach",
    metavar="PATH",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="A file that belongs to the task (PNG, JPEG, GIF, WebP, PDF, text); repeatable.",
)
approve_option = click.option("--approve", type=click.Choice(TIERS), help="Approve calls up to this tier in advance.")
profile_option = click.option(
    "--profile", type=click.Choice(PROFILES), help="What the agent may do without asking (default: supervised)."
)
policy_option = click.option(
    "--policy", metavar="FILE", type=click.Path(dir_okay=False), help="Your own rules, as YAML or JSON."
)
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show the raw output of the model.")
take_over_option = click.option(
    "--take-over", is_flag=True, help="Take over the run from a process that cannot be ended from here."
)
kill_holder_option = click.option(
    "--kill-holder", is_flag=True, help="End the process working on the run, then take over the run."
)
by_option = click.option("--by", metavar="NAME", help="Who answers. Default: your user name.")
"""`current_user` completes it."""


def tools_option(text: str) -> Callable[[F], F]:
    """`--tools NAME,…`, repeatable; `split_repeated` splits its value."""
    return click.option("--tools", metavar="NAME,…", multiple=True, help=text)


_COUNT, _AMOUNT = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)
_LIMITS = {
    "max_steps": (
        "--max-steps",
        _COUNT,
        "N",
        "Limit on decisions of the model; by default 6, or 20 with more than five tools.",
    ),
    "max_tool_calls": ("--max-tool-calls", _COUNT, "N", "Limit on tool calls."),
    "max_tokens": ("--max-tokens", _COUNT, "N", "Limit on the tokens of all model calls."),
    "max_cost_usd": ("--max-cost", _AMOUNT, "USD", "Limit on the cost of model calls."),
    "max_wall_s": ("--max-time", _AMOUNT, "SECONDS", "Limit on wall-clock time."),
}
LIMIT_OPTIONS = {name: option for name, (option, *_) in _LIMITS.items()}
"""Which option of `tao run` sets which limit."""


def limit_options(command: F) -> F:
    """The options that bound a run, under the names of its limits."""
    for name, (option, kind, metavar, text) in reversed(_LIMITS.items()):
        command = click.option(option, name, type=kind, metavar=metavar, help=text)(command)
    return command


def split_repeated(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names of an option that may be repeated, each time with several; None if it was not given."""
    return tuple(name.strip() for name in ",".join(values).split(",") if name.strip()) if values else None


def current_user(by: str | None) -> str:
    """Who speaks: the name that was given, else that of the user of the system."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name
        return "user"


def authentication_of(name: str) -> str:
    """`os_user` where this is the name of the user who runs the process; else the name is only claimed: empty."""
    try:
        import pwd  # noqa: PLC0415  # not on every system

        return "os_user" if pwd.getpwuid(os.getuid()).pw_name == name else ""
    except (ImportError, KeyError):
        return ""


def starter() -> str:
    """Who starts a run, as its label says it (`Agent.run`): the user of the system; empty where nobody knows."""
    name = current_user(None)
    channel = authentication_of(name)
    return f"{channel}:{name}" if channel else ""


def json_object(text: str) -> dict[str, Any]:
    """The value of `--args`.

    Raises:
        ConfigError: it is not JSON, or not an object.
    """
    try:
        parsed = loads(text)
    except NotJsonError as error:
        reason = error.text.render(interface_language())
        hint = translate("Write an object in quotes: --args {example}.", example="""'{"name": "value"}'""")
        raise ConfigError(translate("--args is not JSON: {error}.", error=reason), hint=hint) from error
    if not isinstance(parsed, dict):
        hint = translate("Give a JSON object: all arguments of the call.")
        raise ConfigError(translate("--args is {value!r}.", value=text[:80]), hint=hint)
    return parsed
