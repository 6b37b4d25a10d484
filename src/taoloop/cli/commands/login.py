"""`tao login`: give taoloop access to MCP servers and APIs that want a person to log in."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli.agent_loading import missing_package
from taoloop.cli.database import load_environment
from taoloop.cli.translation import join_on_one_line, translate
from taoloop.cli.ui.stdio import one_line, print_stderr
from taoloop.config.agent_file import load_agent
from taoloop.config.document import is_config_file, read_document
from taoloop.config.tool_entries import TOOL_FILE_FIELDS
from taoloop.config.tool_file import tools_named
from taoloop.errors import ConfigError, TaoError
from taoloop.runtime.tool_source import ToolSource, sources_in
from taoloop.tools.settings_check import expand_home
from taoloop.translation import error_texts, mark

if TYPE_CHECKING:
    from taoloop.tools.mcp import McpServer
    from taoloop.tools.oauth import UserLogin

_FORGOTTEN = mark("{server}: the tokens are forgotten.")
_REMOVED = mark("{server}: the file with the tokens could not be read, and was removed.")


@click.command("login")
@click.argument("file")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--user", default="", metavar="USER", help="Whose login at an API it is (default: this machine's runs).")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65_535), help="The port to which the browser of an API returns."
)
@click.option("--no-browser", is_flag=True, help="Only print the address; open it in a browser on this machine.")
@click.option("--forget", is_flag=True, help="Forget the tokens instead.")
def login_command(file: str, names: tuple[str, ...], *, user: str, port: int, no_browser: bool, forget: bool) -> int:
    """Log in to MCP servers whose settings have `oauth`, and to APIs with the grant `authorization_code`, in a browser.

    FILE is a tool file or an agent file; without a NAME: all its servers and APIs with a login. The tokens of a server
    are kept in the keyring of the operating system, or in the file that `oauth.tokens` names; those of an API in the
    file that `token_file` names. They are refreshed by themselves.

      tao login tools.yaml
      tao login agent.yaml tickets
      tao login tools.yaml tickets --forget
    """
    steps: dict[str, Callable[[], Awaitable[str]]] = {}
    sources = _sources(file, load_environment())
    for server in _servers(sources):
        steps[server.name] = partial(_use_server, server, opens=not no_browser, forget=forget)
    for login in _logins(sources):
        steps[login.client.api] = partial(_use_api, login, user, port, opens=not no_browser, forget=forget)
    if not steps:
        hint = translate(
            "It takes `oauth: {}` of an MCP server with a `url`, or `grant: authorization_code` of an API."
        )
        raise ConfigError(translate("Nothing here has a login of a person."), hint=hint)
    if unknown := [name for name in names if name not in steps]:
        hint = translate("There are: {names}.", names=", ".join(steps))
        raise ConfigError(translate("Nothing with a login is called {name!r}.", name=unknown[0]), hint=hint)
    return max(asyncio.run(_report(name, steps[name])) for name in (names or steps))


def _sources(file: str, env: Mapping[str, str]) -> Sequence[ToolSource]:
    if not is_config_file(file):
        raise ConfigError(translate("{file!r} is no YAML or JSON file.", file=file))
    is_tools = not set(read_document(expand_home(file).absolute(), "a tool file").data) - set(TOOL_FILE_FIELDS)
    return sources_in(tools_named(file, env=env) if is_tools else load_agent(file, env=env).tools)


def _servers(sources: Sequence[ToolSource]) -> list[McpServer]:
    """The MCP servers with a login of a person."""
    from taoloop.tools.mcp import McpServer  # noqa: PLC0415  # only where somebody asks for it

    servers = [source.settings for source in sources if isinstance(source.settings, McpServer)]
    servers = [server for server in servers if server.oauth and server.oauth.grant == "authorization_code"]
    if servers and find_spec("mcp") is None:
        raise missing_package("tao login", "mcp", extra="mcp")
    return servers


def _logins(sources: Sequence[ToolSource]) -> list[UserLogin]:
    """The logins that calls of APIs need."""
    from taoloop.tools.oauth import logins_of  # noqa: PLC0415  # as above

    logins: list[UserLogin] = []
    for source in sources:
        if getattr(source.settings, "has_user_login", False):
            logins += logins_of(source.loaded().tools)
            for problem in source.take_problems():
                print_stderr(one_line(str(problem)))
    return logins


async def _report(name: str, step: Callable[[], Awaitable[str]]) -> int:
    """Take a step, and say what came of it; gives the exit code."""
    try:
        text = await step()
    except TimeoutError:
        print_stderr(translate("{server}: nobody logged in in time.", server=name))
        return exits.FOUND
    except OSError as error:
        print_stderr(translate("{server}: the browser cannot come back: {reason}.", server=name, reason=error))
        return exits.FOUND
    except TaoError as error:
        print_stderr(one_line(join_on_one_line(f"{name}:", *error_texts(error))))
        return exits.FOUND
    print_stderr(translate(text, server=name))
    return exits.OK


async def _use_server(server: McpServer, *, opens: bool, forget: bool) -> str:
    """Log in to a server, or forget its tokens; gives the text of the outcome."""
    from taoloop.tools.mcp import log_in, log_out  # noqa: PLC0415  # as above

    if forget:
        return _REMOVED if await log_out(server) else _FORGOTTEN
    if await log_in(server, partial(_show_url, server.name, opens=opens)):
        return mark("{server}: logged in.")
    return mark("{server}: it asked for no login.")


async def _use_api(login: UserLogin, user: str, port: int, *, opens: bool, forget: bool) -> str:
    """Log in to an API, or forget the tokens of a person; gives the text of the outcome."""
    from taoloop.tools.oauth.loopback import log_in  # noqa: PLC0415  # as above
    from taoloop.tools.oauth.store import SqliteLoginStore  # noqa: PLC0415  # as above

    if forget:
        if isinstance(login.store, SqliteLoginStore) and await login.store.remove_unreadable():
            return _REMOVED
        return _FORGOTTEN if await login.forget(user) else mark("{server}: there were no tokens.")
    await log_in(login, user, partial(_show_url, login.client.api, opens=opens), port=port)
    return mark("{server}: logged in.")


async def _show_url(name: str, url: str, *, opens: bool) -> None:
    print_stderr(translate("{server}: log in at {url}", server=name, url=one_line(url)))
    if opens:
        await asyncio.to_thread(webbrowser.open, url)
