"""What `server.notify` of a gateway file says: who is told what waits for a person."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from pydantic import BeforeValidator

from taoloop.config.settings_reader import has_reference, invalid
from taoloop.errors import ConfigError
from taoloop.runtime.notifications.hooks import NotificationSettings


def _only_reference(value: Any) -> Any:
    if isinstance(value, str) and not has_reference(value):
        hint = "Write `secret: ${NAME}` for one from the environment."
        raise invalid(ConfigError("a secret must not be written in a file.", hint=hint))
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyEntry(NotificationSettings):
    """`server.notify`."""

    secret: Annotated[str, BeforeValidator(_only_reference, json_schema_input_type=str)] = field(default="", repr=False)
    """With what the webhook's messages are signed, only as a value of the environment (`${NAME}`): `whsec_` and 24 to
    64 bytes in base64; several, with spaces between them, sign each message so often."""

    def __post_init__(self) -> None:
        """Refuse what could not be sent.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        self.settings()

    def settings(self) -> NotificationSettings:
        """The settings as such."""
        return NotificationSettings(**{entry.name: getattr(self, entry.name) for entry in fields(NotificationSettings)})
