"""The settings of the tool `fetch`."""

from __future__ import annotations

from dataclasses import dataclass

from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.tool import require_name


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """The settings of one `fetch` tool."""

    name: str = "fetch"
    """The name of the tool."""
    allow: tuple[str, ...] = ()
    """Targets that may be reached besides public ones, as for `EgressRules.allow`."""
    deny: tuple[str, ...] = ()
    """Targets that are always refused."""
    only_allowed: bool = False
    """Whether only the targets in `allow` may be reached."""
    schemes: tuple[str, ...] = ("http", "https")
    """The allowed schemes."""
    ports: tuple[int, ...] = (80, 443)
    """The ports that are allowed for every host."""
    timeout_s: float = 20.0
    """Time limit of one request in seconds, including redirects and the body."""
    max_bytes: int = 5_000_000
    """How much of a response is read, after decompression."""
    max_redirects: int = 5
    """How many redirects are followed."""
    types: tuple[str, ...] = ()
    """The accepted media types (`text/*`, `application/json`); empty: all."""
    links: bool = True
    """Whether the text of a page contains the URLs of its links."""
    user_agent: str = "taoloop"
    """The header `User-Agent` of the requests."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigError: a field is not valid; the error names it.
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
        max_redirects: object = self.max_redirects
        if isinstance(max_redirects, bool) or not isinstance(max_redirects, int) or not 0 <= max_redirects <= 20:
            raise ConfigError(f"max_redirects: {repr(max_redirects)[:80]} is not a number from 0 to 20.")
        types: object = self.types
        if not isinstance(types, tuple) or not all(isinstance(item, str) and item.count("/") == 1 for item in types):
            raise ConfigError(f"types: {repr(types)[:80]} is not a list of media types such as text/*.")
        user_agent: object = self.user_agent
        if (
            not isinstance(user_agent, str)
            or not user_agent.isascii()
            or not user_agent.isprintable()
            or not user_agent.strip()
        ):
            raise ConfigError(f"user_agent: {repr(user_agent)[:80]} is not one line of ASCII.")

    @property
    def rules(self) -> EgressRules:
        """The egress rules of the requests.

        Raises:
            ConfigError: an entry of a list is not valid.
        """
        return EgressRules(
            allow=self.allow, deny=self.deny, only_allowed=self.only_allowed, schemes=self.schemes, ports=self.ports
        )
