"""`tao login`: give taoloop access to MCP servers that want a person to log in."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Mapping, Sequence
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
from taoloop.runtime.tool_source import sources_in
from taoloop.tools.settings_check import expand_home
from taoloop.translation import error_texts, mark

if TYPE_CHECKING:
    from taoloop.tools.mcp import McpServer


@click.command("login")
@click.argument("file")
@click.argument("names", metavar="[SERVER]...", nargs=-1)
@click.option("--no-browser", is_flag=True, help="Only print the address; open it in a browser on this machine.")
@click.option("--forget", is_flag=True, help="Forget the tokens instead.")
def login_command(file: str, names: tuple[str, ...], *, no_browser: bool, forget: bool) -> int:
    """Log in to MCP servers whose settings have `oauth`, in a browser.

    FILE is a tool file or an agent file; without a SERVER: all its servers with a login. The tokens are kept in the
    keyring of the operating system, or in the file that `oauth.tokens` names, and refreshed by themselves.

      tao login tools.yaml
      tao login agent.yaml tickets
      tao login tools.yaml tickets --forget
    """
    if find_spec("mcp") is None:
        raise missing_package("tao login", "mcp", extra="mcp")
    servers = _servers(file, names, load_environment())
    return max(asyncio.run(_use(server, opens=not no_browser, forget=forget)) for server in servers)


def _servers(file: str, names: Sequence[str], env: Mapping[str, str]) -> list[McpServer]:
    """The servers with a login of a person.

    Raises:
        ConfigError: there is none, or none of a name.
    """
    from taoloop.tools.mcp import McpServer  # noqa: PLC0415  # only where somebody asks for it

    if not is_config_file(file):
        raise ConfigError(translate("{file!r} is no YAML or JSON file.", file=file))
    is_tools = not set(read_document(expand_home(file).absolute(), "a tool file").data) - set(TOOL_FILE_FIELDS)
    entries = tools_named(file, env=env) if is_tools else load_agent(file, env=env).tools
    settings = [source.settings for source in sources_in(entries)]
    servers = [server for server in settings if isinstance(server, McpServer) and server.oauth is not None]
    known = [server.name for server in servers if server.oauth and server.oauth.grant == "authorization_code"]
    if not known:
        hint = translate("Add `oauth: {}` to the settings of a server with a `url`.")
        raise ConfigError(translate("There is no MCP server with a login here."), hint=hint)
    if unknown := [name for name in names if name not in known]:
        hint = translate("There are: {names}.", names=", ".join(known))
        raise ConfigError(translate("There is no MCP server called {name!r}.", name=unknown[0]), hint=hint)
    return [server for server in servers if server.name in (names or known)]


async def _use(server: McpServer, *, opens: bool, forget: bool) -> int:
    """Log in to one server, or forget its tokens; gives the exit code."""
    from taoloop.tools.mcp import log_in, log_out  # noqa: PLC0415  # as above

    try:
        if forget:
            await log_out(server)
            text = mark("{server}: the tokens are forgotten.")
        elif await log_in(server, partial(_show_url, server.name, opens=opens)):
            text = mark("{server}: logged in.")
        else:
            text = mark("{server}: it asked for no login.")
    except TimeoutError:
        print_stderr(translate("{server}: nobody logged in in time.", server=server.name))
        return exits.FOUND
    except TaoError as error:
        print_stderr(one_line(join_on_one_line(f"{server.name}:", *error_texts(error))))
        return exits.FOUND
    print_stderr(translate(text, server=server.name))
    return exits.OK


async def _show_url(name: str, url: str, *, opens: bool) -> None:
    print_stderr(translate("{server}: log in at {url}", server=name, url=one_line(url)))
    if opens:
        await asyncio.to_thread(webbrowser.open, url)
