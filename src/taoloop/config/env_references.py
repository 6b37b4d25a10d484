"""`${NAME}` and `${NAME:-default}` in a file: values from the environment, and which of them are secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from taoloop.config.document import translate
from taoloop.errors import ConfigError
from taoloop.translation import mark

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inner>[^}]*)(?P<end>\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.\[\]:-]+(?:/[a-z0-9._-]{0,15})*")


class EnvValues:
    """Fills in references to variables, and records which secrets were used.

    `$${` stands for `${` itself. A variable that is empty counts as missing, unless a default is given.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.secrets: dict[str, str] = {}

    def text(self, value: str, *, is_plain: bool = False) -> str:
        """`value` with its references filled in. `is_plain`: no value here is a secret; it is a path, for example.

        Everything else that comes from a variable counts as one, but for the path of something that is there, and an
        address without credentials.

        Raises:
            ConfigError: a variable is missing, or a reference is malformed; names it.
        """

        def replacement(match: re.Match[str]) -> str:
            if match["inner"] is None:
                return "${"
            name, has_default, default = match["inner"].partition(":-")
            if not match["end"] or not _NAME.fullmatch(name):
                text = mark("{reference!r} is not of the form ${{NAME}} or ${{NAME:-default}}.")
                raise ConfigError(
                    translate(text, reference=match[0][:60]), hint=translate("Write $${ for the two signs themselves.")
                )
            known = self._env.get(name, "")
            if known:
                if not is_plain and not _is_plain(known):
                    self.secrets[name] = known
                return known
            if has_default:
                return default
            text = mark("the environment variable {name} is not set.")
            if name in self._env:
                text = mark("the environment variable {name} is empty.")
            hint = mark("Set it (for `tao` also in a file .env), or write ${{{name}:-default}}.")
            raise ConfigError(translate(text, name=name), hint=translate(hint, name=name))

        return _REFERENCE.sub(replacement, value)


def _is_plain(value: str) -> bool:
    """Whether a value is no secret, whatever its field."""
    if _PLAIN_ADDRESS.fullmatch(value):
        return True
    try:
        return value.startswith(("/", "~", "./", "../")) and Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long for a path, or the home of nobody
        return False


def has_reference(text: str) -> bool:
    """Whether something in a text is to be filled in."""
    return "${" in text
