"""Mappings of a configuration field by field: each value checked, with its place in every complaint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from taoloop.config.checks import COUNT, MAPPING, SWITCH, TEXT, expect_type
from taoloop.config.document import ConfigDocument
from taoloop.config.env_references import EnvValues, has_reference
from taoloop.errors import AgentFileError
from taoloop.tools.yaml12 import FieldPath

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]")
_DIGITS = re.compile(r"-?[0-9]{1,15}")


class ConfigReport:
    """What is collected while a configuration is read: values of the environment, secrets, and warnings."""

    def __init__(self, document: ConfigDocument, env: Mapping[str, str]) -> None:
        self.env = EnvValues(document, env)
        self.warnings: list[str] = []
        self._written: dict[str, str] = {}
        self._document = document

    @property
    def secrets(self) -> dict[str, str]:
        """Every secret so far: those that stand in the file by their place, the others by their variable."""
        return {**self._written, **self.env.secrets}

    def keep_secret(self, path: FieldPath, value: str) -> None:
        """Take a value for a secret."""
        if value and value not in self.env.secrets.values():
            self._written[self._document.name_of(path)] = value

    def warn(self, path: FieldPath, message: str) -> None:
        """Say something about a place that does not stop the server."""
        error = self._document.error(path, message)
        self.warnings.append(f"{self._document.path.name}:{error.line}: {error.field}: {message}")


class ConfigSection:
    """One mapping of a document. A value of null counts as not given, as in Higress."""

    def __init__(
        self, document: ConfigDocument, path: FieldPath, report: ConfigReport, data: Mapping[str, Any] | None = None
    ) -> None:
        self.document, self.path, self._report = document, path, report
        self.data = document.data if data is None else data

    def inner(self, name: str, *, needed: bool = True) -> ConfigSection:
        """The mapping under `name`; an empty one where it is not needed."""
        value = self.data.get(name)
        if value is None and not needed:
            value = {}
        if value is None:
            raise self.missing(name)
        expect_type(self.document, (*self.path, name), value, MAPPING)
        return ConfigSection(self.document, (*self.path, name), self._report, value)

    def text(self, name: str, default: str | None = None, *, is_secret: bool = False, is_prose: bool = False) -> str:
        """The text under `name`; needed where there is no `default`. In prose `${` stands for itself."""
        path, value = (*self.path, name), self.data.get(name)
        if value is None or value == "":
            if default is None:
                raise self.missing(name)
            return default
        if isinstance(value, int | float):
            raise self.error(name, "a text is expected, not a number or a switch.", hint="Put it in quotes.")
        expect_type(self.document, path, value, TEXT)
        filled = str(value)
        if has_reference(filled) and not is_prose:
            filled = self._report.env.text(path, filled, is_plain=not is_secret)
        if not filled.strip():
            if default is None:
                raise self.missing(name)
            return default
        return filled

    def secret(self, name: str, default: str | None = None) -> str:
        """The text under `name`, which no trace and no message shows."""
        value = self.text(name, default, is_secret=True)
        self._report.keep_secret((*self.path, name), value)
        return value

    def host(self, name: str) -> str:
        """The name or address of a host."""
        value = self.text(name)
        if not _HOST.fullmatch(value):
            raise self.error(name, f"a host such as api.example.com is expected, not {value[:60]!r}.")
        return value

    def integer(self, name: str, default: int | None, *, least: int = 1, most: int | None = None) -> int:
        """The whole number under `name`. Where there is a default it holds for 0 too."""
        path, value = (*self.path, name), self.data.get(name)
        if isinstance(value, str) and has_reference(value):
            value = self._report.env.text(path, value, is_plain=True)
            value = int(value) if _DIGITS.fullmatch(value) else value
        if value is None or (value == 0 and default is not None and not isinstance(value, bool)):
            if default is None:
                raise self.missing(name)
            return default
        expect_type(self.document, path, value, COUNT)
        if value < least or (most is not None and value > most):
            span = f"from {least} to {most}" if most is not None else f"of {least} or more"
            raise self.error(name, f"a whole number {span} is expected, not {value}.")
        return int(value)

    def boolean(self, name: str, default: bool) -> bool:
        """The true or false under `name`."""
        value = self.data.get(name)
        if value is None:
            return default
        expect_type(self.document, (*self.path, name), value, SWITCH)
        return bool(value)

    def warn_unknown(self, known: tuple[str, ...]) -> None:
        """Say of every other key that nothing reads it."""
        for name in self.data:
            if name not in known:
                self._report.warn((*self.path, str(name)), "nothing reads this field.")

    def warn(self, name: str, message: str) -> None:
        """Say something about a field."""
        self._report.warn((*self.path, name), message)

    def missing(self, name: str) -> AgentFileError:
        """The error for a field that must be there."""
        return self.document.error((*self.path, name), "it is missing, or empty.")

    def error(self, name: str, message: str, *, hint: str = "") -> AgentFileError:
        """An error about a field."""
        return self.document.error((*self.path, name), message, hint=hint)
