"""Options that say who is told what waits for a person."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from taoloop.cli.translation import translate
from taoloop.errors import ConfigError
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.runtime.notifications.hooks import NotificationSettings

F = TypeVar("F", bound=Callable[..., object])

URL_VARIABLE = "TAOLOOP_NOTIFY_URL"
SECRET_VARIABLE = "TAOLOOP_NOTIFY_SECRET"  # noqa: S105  # the name of a variable
COMMAND_VARIABLE = "TAOLOOP_NOTIFY_COMMAND"


def notification_options(command: F) -> F:
    """Add the options to a command: `notify_url` and `notify_command`."""
    url = click.option(
        "--notify-url",
        metavar="URL",
        help="Post what waits for a person to this address, signed with the secret in TAOLOOP_NOTIFY_SECRET. "
        "Default: TAOLOOP_NOTIFY_URL.",
    )
    program = click.option(
        "--notify-command",
        metavar="COMMAND",
        help="Run this program, without a shell, for whatever waits for a person; it reads the notice as JSON from its "
        "standard input. Default: TAOLOOP_NOTIFY_COMMAND.",
    )
    return url(program(command))


def notification_settings(
    notify_url: str | None, notify_command: str | None, env: Mapping[str, str]
) -> NotificationSettings | None:
    """What the options and the environment say; None: nobody is told. The secret is only in the environment.

    Raises:
        ConfigError: they name nothing that can be told.
        MissingExtra: a webhook needs an HTTP client that is not installed.
    """
    from taoloop.runtime.notifications.hooks import NotificationSettings, hooks_of  # noqa: PLC0415  # only if it is used

    url = env.get(URL_VARIABLE, "") if notify_url is None else notify_url
    text = env.get(COMMAND_VARIABLE, "") if notify_command is None else notify_command
    secret = env.get(SECRET_VARIABLE, "")
    if url and not secret:
        message = mark("The webhook of the notifications has no secret: set {variable}.")
        hint = mark("Make one: echo whsec_$(openssl rand -base64 32)")
        raise ConfigError(translate(message, variable=SECRET_VARIABLE), hint=translate(hint))
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        message = mark("The command of the notifications cannot be split into words: {why}.")
        raise ConfigError(translate(message, why=error), hint=translate("Check its quotation marks.")) from None
    settings = NotificationSettings(url=url, secret=secret if url else "", command=words)
    return settings if hooks_of(settings) else None
