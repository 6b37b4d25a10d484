"""`tao panel`: runs in the browser."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from taoloop.cli import options
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, missing_package
from taoloop.cli.database import database, load_environment, make_private
from taoloop.cli.notification_options import notification_options, notification_settings
from taoloop.cli.signals import signal_callbacks
from taoloop.cli.translation import interface_language, translate
from taoloop.cli.ui.stdio import print_stderr
from taoloop.core.agent_spec import AgentSpec
from taoloop.journals.addresses import DatabaseAddress
from taoloop.runtime.agent import Agent
from taoloop.runtime.journal_access import JOURNALS
from taoloop.tools.openapi.settings import is_http_url

if TYPE_CHECKING:
    from taoloop.runtime.notifications.hooks import NotificationSettings
    from taoloop.serve.panel.access import TokenAccess
    from taoloop.serve.panel.background_runs import AgentSource

DEFAULT_PORT = 8600

_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104  # compared, not listened on


@click.command("panel")
@options.db_option
@click.option("--host", metavar="HOST", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port; 0 picks a free one.",
)
@click.option(
    "--user",
    metavar="NAME=ROLE",
    multiple=True,
    help="A person with a link of their own, as viewer, approver or admin; repeatable. Default: you, as admin.",
)
@click.option(
    "--allow-host", metavar="NAME", multiple=True, help="A host name under which browsers reach the panel; repeatable."
)
@click.option(
    "--public-url",
    metavar="URL",
    help="The address of the panel for other people, as notices have it; by default that on which it listens.",
)
@notification_options
@options.agent_option
@options.workspace_option
@options.memory_option
def panel_command(db: str | None, host: str, port: int, user: tuple[str, ...], **arguments: Any) -> int:
    """Watch, replay and compare runs in the browser, and answer what waits for a person.

    Prints a link that logs in; it is secret, and changes with each start. Runs appear while they happen, whichever
    process runs them. A run that is resumed or forked in the panel is run by this process, with the tools that the
    run was made with, or with those of --agent.

      tao panel                                   http://127.0.0.1:8600
      tao panel --user ann=approver --user bob=viewer
      tao panel --host 0.0.0.0 --allow-host runs.example
      tao panel --notify-command "notify-send tao"

    It listens on this machine only, unless --host says otherwise. There is no TLS: put a proxy before it if others
    reach it over a network that you do not trust. Everything is stored in the database of runs: the same pages are at
    /panel of `tao serve`.
    """
    for package in ("aiohttp", "jinja2"):
        if find_spec(package) is None:
            raise missing_package("tao panel", package, extra="panel")
    from taoloop.serve.panel.access import Identity, TokenAccess, parse_identity  # noqa: PLC0415  # the extra is there now

    env = load_environment()
    settings = notification_settings(arguments["notify_url"], arguments["notify_command"], env)
    path = database(db, env)
    identities = [parse_identity(text) for text in user]
    access = TokenAccess(identities or [Identity(name=options.current_user(None), role="admin")])
    chosen = AgentOptions.from_arguments({name: arguments[name] for name in ("agent", "workspace", "memory")})

    def agent_for(spec: AgentSpec) -> Agent:
        return replace(agent_of_run(spec, chosen, env), journal=path)

    make_private(path, expected=db is None)
    public_url = arguments["public_url"] or ""
    if public_url and not is_http_url(public_url):
        raise click.UsageError(translate("--public-url {url!r} is not an address.", url=public_url[:80]))
    notices = Notices(settings, public_url)
    return asyncio.run(_serve(path, access, agent_for, host, port, arguments["allow_host"], notices))


class Notices(NamedTuple):
    """Who is told what waits for a person, and where it is answered."""

    settings: NotificationSettings | None
    """The hooks; None: nobody is told."""
    public_url: str
    """The address of the panel for other people; empty: that on which it listens."""


async def _serve(
    path: DatabaseAddress,
    access: TokenAccess,
    agent_for: AgentSource,
    host: str,
    port: int,
    allow_hosts: tuple[str, ...],
    notices: Notices,
) -> int:
    from taoloop.runtime.notifications.notice import inbox_link  # noqa: PLC0415  # as above
    from taoloop.runtime.notifications.notifier import NotificationTask  # noqa: PLC0415  # as above
    from taoloop.serve.hosts import AllowedHosts, host_name, is_loopback  # noqa: PLC0415  # as above
    from taoloop.serve.panel.app import Panel  # noqa: PLC0415  # as above
    from taoloop.serve.panel.server import PanelServer  # noqa: PLC0415  # as above
    from taoloop.serve.panel.state import PanelState  # noqa: PLC0415  # as above

    names = [host_name(name) for name in allow_hosts]
    if not is_loopback(host) and host not in _WILDCARDS:
        names.append(host_name(host))
    language = interface_language()
    async with JOURNALS.use(path) as journal:
        panel = Panel(PanelState(journal=journal, access=access, agents=agent_for, hosts=AllowedHosts(names)))
        server = PanelServer(panel, host, port)
        notifying: list[asyncio.Task[None]] = []

        def ready(url: str) -> None:
            link_to = inbox_link(notices.public_url or ("" if host in _WILDCARDS else url))
            task = NotificationTask(journal, lambda: notices.settings, link_to=link_to)
            notifying.append(asyncio.create_task(task.repeat()))
            for name, token in access.tokens.items():
                click.echo(translate("{name}: {url}", language, name=name, url=f"{url}/login?token={token}"))
            print_stderr(translate("The panel shows {path}. Ctrl-C ends it.", language, path=path))

        signals = {signal.SIGINT: server.stop.set, signal.SIGTERM: server.stop.set}
        try:
            with signal_callbacks(signals):
                await server.serve(ready)
        finally:
            for each in notifying:
                each.cancel()
            await asyncio.gather(*notifying, return_exceptions=True)
    return 0
