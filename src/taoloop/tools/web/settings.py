"""What an operator can set about the tool `fetch`."""

from __future__ import annotations

from dataclasses import dataclass

from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.tool import require_name


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """The settings of one `fetch` tool.

    Attributes:
        name: What the model calls it.
        allow: Places that may be reached beside the public ones, as for `EgressRules.allow`.
        deny: Places that are refused whatever else is said.
        only_allowed: Whether nothing but `allow` may be reached.
        schemes: The schemes that may be used.
        ports: The ports that may be used with every host.
        timeout_s: What one call may take, redirects and reading included, in seconds.
        max_bytes: How much of one answer is read, counted after decompression.
        max_redirects: How many redirects are followed.
        types: Media types that are taken (`text/*`, `application/json`); all of them where this is empty.
        links: Whether the addresses of links stand in the text of a page.
        user_agent: What the requests say they come from.
    """

    name: str = "fetch"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    only_allowed: bool = False
    schemes: tuple[str, ...] = ("http", "https")
    ports: tuple[int, ...] = (80, 443)
    timeout_s: float = 20.0
    max_bytes: int = 5_000_000
    max_redirects: int = 5
    types: tuple[str, ...] = ()
    links: bool = True
    user_agent: str = "taoloop"

    def __post_init__(self) -> None:
        """Refuse settings that cannot be kept.

        Raises:
            ConfigError: names the field.
        """
        try:
            require_name(self.name)
        except (ToolDefinitionError, AttributeError, TypeError) as error:
            raise ConfigError(f"name: {repr(self.name)[:80]} cannot be the name of a tool.") from error
        _ = self.rules
        for name in ("timeout_s", "max_bytes"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
                raise ConfigError(f"{name}: {repr(value)[:80]} is not a number above 0.")
        if not isinstance(self.max_bytes, int):
            raise ConfigError(f"max_bytes: {self.max_bytes!r} is not a whole number.")
        redirects: object = self.max_redirects
        if isinstance(redirects, bool) or not isinstance(redirects, int) or not 0 <= redirects <= 20:
            raise ConfigError(f"max_redirects: {repr(redirects)[:80]} is not a number from 0 to 20.")
        types: object = self.types
        if not isinstance(types, tuple) or not all(isinstance(one, str) and one.count("/") == 1 for one in types):
            raise ConfigError(f"types: {repr(types)[:80]} is not a list of media types such as text/*.")
        agent: object = self.user_agent
        if not isinstance(agent, str) or not agent.isascii() or not agent.isprintable() or not agent.strip():
            raise ConfigError(f"user_agent: {repr(agent)[:80]} is not one line of ASCII.")

    @property
    def rules(self) -> EgressRules:
        """Where the requests may go.

        Raises:
            ConfigError: an entry of a list is none.
        """
        return EgressRules(
            allow=self.allow, deny=self.deny, only_allowed=self.only_allowed, schemes=self.schemes, ports=self.ports
        )
