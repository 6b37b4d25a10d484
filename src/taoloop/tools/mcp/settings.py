"""What the operator says about one MCP server: how to reach it, which tools to offer, and what they may do."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, Strict

from taoloop.core.cards.tool_card import Tier
from taoloop.core.redaction.redactor import secrets_of
from taoloop.errors import ConfigError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.settings_check import Count, Seconds, check_fields

Protocol = Literal["auto", "2025-11-25", "2026-07-28"]
"""Which era to speak: `auto` asks the server, `2025-11-25` begins with a handshake, `2026-07-28` is stateless."""

_Texts = Annotated[tuple[str, ...], Strict(strict=False)]  # a list is one, too
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_HEADERS = ("AUTHORIZATION", "PROXY_AUTHORIZATION", "COOKIE")
_VARIABLE = re.compile(r"[^=\0]+")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class McpSandbox:
    """The sandbox that a server's program runs in: bubblewrap, as for commands (Linux only)."""

    workspace: Path | None = None
    """The folder that it may change, mounted as `/workspace`; None: an empty one that is deleted afterwards."""

    readable: tuple[Path, ...] = ()
    """Further folders that it may read, each at its own path (such as the one with its program)."""

    network: bool = False
    """Whether it has the network of the machine; by default it has none."""


@dataclass(frozen=True, kw_only=True)
class McpOAuth:
    """Access to a server that wants OAuth 2.1: a person logs in once (`tao login`), or a machine has a secret.

    Tokens are refreshed by themselves, and never part of a trace, a log or what a model reads.
    """

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """`authorization_code`: a person logs in, in a browser. `client_credentials`: nobody does."""

    client_id: str = ""
    """The client as the authorization server knows it; empty: it is registered at the login (RFC 7591)."""

    client_secret: str = field(default="", repr=False)
    """The secret of the client, if it has one."""

    scopes: _Texts = ()
    """What to ask for; empty: what the server says that it needs."""

    issuer: str = ""
    """The authorization server, which `client_credentials` needs: the secret goes there and nowhere else."""

    tokens: Path | None = None
    """A file for the tokens, with the permissions 0600; None: the operating system's keyring."""

    redirect_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """The port on 127.0.0.1 that the browser comes back to, for a client whose redirect is registered; 0: any."""

    def __post_init__(self) -> None:
        """Refuse settings that give no access.

        Raises:
            ConfigError: names the field.
        """
        check_fields(self, "The OAuth of an MCP server")
        if self.grant == "client_credentials":
            for name in ("client_id", "client_secret", "issuer"):
                if not getattr(self, name):
                    raise ConfigError(
                        f"oauth: the grant client_credentials needs `{name}`.",
                        hint="The authorization server gives a client_id and a client_secret; `issuer` is its URL.",
                    )


@dataclass(frozen=True, kw_only=True)
class McpServer:
    """One MCP server. Exactly one of `command` (a program that is started) and `url` (streamable HTTP) is set."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
    """The prefix of the names of its tools (`files` gives `files.read_file`): 1 to 32 letters, digits, `_` and `-`."""

    command: str = ""
    """The program, which is looked up in PATH."""

    args: _Texts = ()
    """The arguments of the program."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the program. It gets these and PATH, HOME, LANG, LC_ALL, TMPDIR and TZ of this process, and no
    other variable."""

    folder: Path | None = None
    """The folder that the program is started in; that of this process by default."""

    sandbox: McpSandbox | None = None
    """The sandbox that the program runs in; None: it may do whatever this process may."""

    url: str = ""
    """The address of a server that is called by HTTP. Its host may be private."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The headers of every HTTP request."""

    oauth: McpOAuth | None = None
    """How to get access by OAuth, in the place of a token in `headers`; None: the headers alone."""

    egress: EgressRules | None = None
    """Where requests may go; the address itself is always allowed. None: there, and to no other private host."""

    protocol: Protocol = "auto"
    """The era of the protocol; `auto` takes the newest that the server speaks."""

    tools: _Texts = ()
    """The names of the server's tools to offer, or patterns (`read_*`); empty: all."""

    tiers: Mapping[str, Tier] = field(default_factory=dict)
    """The tier of a tool by its name at the server, or by a pattern; an exact name takes precedence over patterns.
    Without one a tool counts as destructive and as sending data out. What the server declares can only raise it."""

    sends_out: Mapping[str, bool] = field(default_factory=dict)
    """Whether a tool sends data out of the operator's reach, by name or pattern."""

    resources: bool = True
    """Whether there are tools that list and read the server's resources."""

    prompts: bool = True
    """Whether there are tools that list and read the server's prompts."""

    timeout_s: Seconds = 60.0
    """How long the server may be silent during a call, in seconds. Progress that it reports starts this time anew."""

    max_timeout_s: Seconds = 900.0
    """The time limit of a whole call, in seconds, whatever progress it reports; at least `timeout_s`. The time in which
    a person answers a question of the server counts."""

    answer_timeout_s: Seconds = 300.0
    """How long a person has to answer a question of the server, in seconds; after it, the question is declined."""

    start_timeout_s: Seconds = 30.0
    """The time limit of a start or a connection, in seconds."""

    max_message_bytes: Count = 4_194_304
    """The longest message that is read from the server, in bytes."""

    pins: Path | None = None
    """The folder where approved definitions of tools are kept; None: `mcp-pins` beside the database (`TAOLOOP_DB`, or
    in the user's data folder)."""

    def __post_init__(self) -> None:
        """Refuse settings that name no server.

        Raises:
            ConfigError: names the field.
        """
        check_fields(self, "An MCP server")
        if bool(self.command) == bool(self.url):
            raise ConfigError(
                f"command: the MCP server {self.name!r} needs either `command` or `url`.",
                hint="Give the program to start, or the address of a running server.",
            )
        self._check_transport()

    def _check_transport(self) -> None:
        if self.url:
            self.rules()
            for name in ("args", "env", "folder", "sandbox"):
                if getattr(self, name):
                    raise ConfigError(f"{name}: a server with a `url` is not started, so this has no meaning.")
        elif self.oauth is not None:
            raise ConfigError("oauth: only a server with a `url` takes tokens.", hint="Give a program `env`.")
        elif self.headers:
            raise ConfigError("headers: only a server with a `url` gets headers.", hint="Give a program `env`.")
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name) or not value.isascii() or not value.isprintable():
                raise ConfigError(f"headers: the header {name[:60]!r} cannot be sent.", hint="Use one line of ASCII.")
        for name, value in self.env.items():
            if not _VARIABLE.fullmatch(name) or "\0" in value:
                raise ConfigError(f"env: {name[:60]!r} is no variable.")
        if any("\0" in argument for argument in (self.command, *self.args)):
            raise ConfigError("args: a NUL character cannot be given to a program.")

    def rules(self) -> EgressRules:
        """Where requests to this server may go."""
        rules = (self.egress if self.egress is not None else EgressRules()).allowing(self.url)
        return rules.allowing(self.oauth.issuer) if self.oauth is not None and self.oauth.issuer else rules

    @property
    def longest_s(self) -> float:
        """The time limit of a whole call, in seconds."""
        return max(self.timeout_s, self.max_timeout_s)

    @property
    def display_name(self) -> str:
        """The server in a message."""
        return TEXTS.run_text("server", name=self.name)

    @property
    def secrets(self) -> dict[str, str]:
        """The values among `env` and `headers` whose names say that they are secret, for a redactor."""
        headers = {name.upper().replace("-", "_"): value for name, value in self.headers.items()}
        secret_headers = {name: headers[name] for name in _SECRET_HEADERS if name in headers}
        words = {f"{name}_value": value.split()[-1] for name, value in secret_headers.items() if " " in value.strip()}
        secret = {} if self.oauth is None else {"oauth_client_secret": self.oauth.client_secret}
        return secrets_of({**self.env, **headers}) | secret_headers | words | secret

    @property
    def identity(self) -> str:
        """Twelve hexadecimal digits for what is reached: the program with its arguments, or the address."""
        return _digest([self.url] if self.url else [self.command, *self.args])[:12]

    @property
    def key(self) -> str:
        """The same for two settings that one connection serves."""
        parts = [
            self.name, self.command, self.args, dict(self.env), self.folder, self.sandbox, self.url, dict(self.headers),
            self.oauth and (self.oauth, self.oauth.client_secret), self.egress, self.protocol, self.start_timeout_s,
            self.max_message_bytes,
        ]  # fmt: skip
        return f"{self.name}-{_digest(parts)}"

    def offers(self, tool: str) -> bool:
        """Whether a tool of the server is to be offered."""
        return not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def tier_of(self, tool: str) -> Tier | None:
        """The tier that the operator gave a tool."""
        return chosen(self.tiers, tool)

    def sends_out_of(self, tool: str) -> bool | None:
        """Whether a tool sends data out, as far as the operator said so."""
        return chosen(self.sends_out, tool)


def chosen(table: Mapping[str, T], name: str) -> T | None:
    """What a table of names and patterns says of a name; the name itself goes before patterns, these by their order."""
    if name in table:
        return table[name]
    return next((value for pattern, value in table.items() if fnmatchcase(name, pattern)), None)


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()
