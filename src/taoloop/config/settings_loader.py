"""Settings dataclasses from plain data: every field by its name and its type, every mistake with its place.

What a field may hold is told by its annotation alone, so a new field of a settings class can be written in a file at
once, and stands in the published schema. Where that is a Protocol, a file names code, as `module:attribute`.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from taoloop.config.checks import describe_value, error_location
from taoloop.config.document import ConfigDocument
from taoloop.config.env_references import EnvValues, has_reference
from taoloop.config.import_attribute import load_attribute
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import AgentFileError, ConfigError
from taoloop.tools.yaml12 import FieldPath

T = TypeVar("T")

_LISTS = (list, tuple, set, frozenset, Sequence, Collection, Iterable)
_WORD = re.compile(r"\w+")
_SQLITE = re.compile(r"(?P<scheme>sqlite(?:\+\w+)?:///)(?P<path>(?![/:]|[A-Za-z]:)[^?]+.*)", re.DOTALL)
_SCALARS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}


class SettingsLoader:
    """Reads the settings in one document, with values from the environment.

    `plain` are classes whose fields hold no secrets; `presets` stand for the fields of their class that are not given.
    `broken` says where code could not be loaded, and why.
    """

    broken: tuple[FieldPath, ConfigError] | None = None

    def __init__(
        self, document: ConfigDocument, env: EnvValues, *, plain: Sequence[type] = (), presets: Sequence[Any] = ()
    ) -> None:
        self.document, self.env = document, env
        self._plain, self._presets = tuple(plain), {type(preset): preset for preset in presets}

    def filled(self, kind: type[T], field_path: FieldPath, mapping: Any, *, paths: Sequence[str] = ()) -> T:
        """An instance of a settings class. `paths` are fields annotated as texts that may be paths beside the file.

        Raises:
            AgentFileError: a field is unknown, missing, or of the wrong kind, or the class refuses it.
        """
        if not isinstance(mapping, dict):
            raise self._wrong(field_path, "a mapping", mapping)
        hints = fields_of(kind)
        values: dict[str, Any] = {}
        is_plain = kind in self._plain
        for name, value in mapping.items():
            if name not in hints:
                raise self.document.unknown((*field_path, str(name)), tuple(hints))
            inner = (*field_path, name)
            values[name] = self._value(hints[name], inner, value, is_plain=is_plain)
            if name in paths and isinstance(values[name], str):
                values[name] = self._path_in(values[name])
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]  # a settings class is a dataclass
            if field.name in hints and field.name not in values:
                self._preset(values, field, hints[field.name], field_path)
        try:
            return kind(**values)
        except AgentFileError:
            raise
        except ConfigError as error:
            field_name = next((word for word in _WORD.findall(error.message) if word in hints), None)
            where = (*field_path, field_name) if field_name is not None and field_name in mapping else field_path
            clean = Redactor(self.env.secrets, patterns=False).text
            message = clean(error.message).removeprefix(f"{where[-1]}: ")  # the place says it already
            raise self.document.error(where, message, hint=clean(error.hint)) from None

    def _preset(self, values: dict[str, Any], field: dataclasses.Field[Any], hint: Any, field_path: FieldPath) -> None:
        """A field that is not given: what the file says for all of its kind, else the default of the class."""
        arms = _arms(hint)
        for kind, preset in self._presets.items():
            if kind in arms:
                values[field.name] = preset
                return
        if is_needed(field):
            raise self.document.error(field_path, f"the field `{field.name}` is missing.")

    def _path_in(self, text: str) -> str:
        """A path beside the file, also in the address of an SQLite file; other addresses, and documents, stay."""
        if match := _SQLITE.fullmatch(text):
            return match["scheme"] + (self.document.path.parent / Path(match["path"])).absolute().as_posix()
        if not text.strip() or "://" in text or "\n" in text or text.lstrip().startswith(("{", "[")):
            return text
        return str(self.document.path.parent / Path(text).expanduser())

    def _value(self, hint: Any, field_path: FieldPath, value: Any, *, is_plain: bool) -> Any:
        arms, raw_value = _arms(hint), value
        if isinstance(value, str) and has_reference(value):
            text = self.env.text(field_path, value, is_plain=is_plain or Path in arms)
            value = text if str in arms or Path in arms or _literals(arms) else _scalar(text, arms)
        if value is None and type(None) in arms:
            return None
        if Path in arms and isinstance(value, str):
            arms = (str,) if str in arms and "://" in value else (Path,)
        fitting = next((arm for arm in arms if _accepts(arm, value)), None)
        if fitting is None:
            raise self._wrong(
                field_path, describe_type(hint), raw_value
            )  # as the file has it: the value may be a secret
        return self._as(fitting, field_path, value, is_plain=is_plain)

    def _as(self, hint: Any, field_path: FieldPath, value: Any, *, is_plain: bool) -> Any:
        """A value of the right kind as this one type."""
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if is_plugin_type(hint):
            try:
                return load_attribute(value, self.document.path.parent)
            except ConfigError as error:
                self.broken = (field_path, error)
                with error_location(self.document, field_path):
                    raise
        if hint is Path:
            return self.document.path.parent / Path(value).expanduser()
        if hint is float:
            return float(value)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            preset = self._presets.get(hint)
            return self.filled(hint, field_path, value) if preset is None else self._over(preset, field_path, value)
        if origin in _LISTS or hint in _LISTS:
            inner = args[0] if args else Any
            items = [self._value(inner, (*field_path, n), item, is_plain=is_plain) for n, item in enumerate(value)]
            return origin(items) if origin in (list, set, frozenset) else tuple(items)
        if isinstance(value, dict):
            key_kind, inner = args or (str, Any)
            return {
                self._key(key_kind, (*field_path, str(key)), key): self._value(
                    inner, (*field_path, str(key)), item, is_plain=is_plain
                )
                for key, item in value.items()
            }
        if isinstance(value, list):  # of a field that takes anything
            return [self._value(Any, (*field_path, n), item, is_plain=is_plain) for n, item in enumerate(value)]
        return value

    def _over(self, preset: Any, field_path: FieldPath, value: Any) -> Any:
        """What stands here in place of the settings for all; lists of what is denied add up."""
        return apply_defaults(preset, self.filled(type(preset), field_path, value), value)

    def _key(self, kind: Any, field_path: FieldPath, key: Any) -> str:
        if kind not in (str, Any):
            self._value(kind, field_path, key, is_plain=True)
        return str(key)

    def _wrong(self, field_path: FieldPath, what: str, value: Any) -> AgentFileError:
        hint = ""
        if what.startswith("a text") and isinstance(value, int | float | bool):
            hint = "Put it in quotes."
        elif what.endswith("a list") and isinstance(value, str):
            hint = "Put it in brackets."
        return self.document.error(field_path, f"{what} is expected, not {describe_value(value)}.", hint=hint)


def apply_defaults(preset: Any, own: T, names: Collection[str]) -> T:
    """`own` settings, of which `given` names the fields that stand in a file, with what holds for all in the others."""
    known = {field.name for field in dataclasses.fields(own)}  # type: ignore[arg-type]  # a settings class
    common = {field.name: getattr(preset, field.name) for field in dataclasses.fields(preset) if field.name in known}
    changes = {name: value for name, value in common.items() if name not in names}
    if "deny" in names and "deny" in common:
        changes["deny"] = tuple(dict.fromkeys((*common["deny"], *getattr(own, "deny"))))  # noqa: B009  # T is any class
    return dataclasses.replace(own, **changes)  # type: ignore[type-var]  # a settings class


def fields_of(kind: type) -> dict[str, Any]:
    """The fields of a settings class that a file can give, with their types; functions and the like are none."""
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return {field.name: hints[field.name] for field in fields if field.init and _is_data(hints[field.name])}


def is_needed(field: dataclasses.Field[Any]) -> bool:
    """Whether a field has no default."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def is_plugin_type(hint: Any) -> bool:
    """Whether a field holds an object of the operator's own code, which a file names as `module:attribute`."""
    return bool(getattr(hint, "_is_protocol", False)) and hint not in _LISTS


def describe_type(hint: Any) -> str:
    """What a field takes, in plain words."""
    literals = _literals(_arms(hint))
    if literals:
        return f"one of {', '.join(map(str, literals))}"
    return " or ".join(dict.fromkeys(_describe_arm(arm) for arm in _arms(hint) if arm is not type(None)))


def _describe_arm(arm: Any) -> str:
    if arm in _SCALARS:
        return _SCALARS[arm]
    if _is_list(arm):
        return "a list"
    if is_plugin_type(arm):
        return "module:attribute"
    return "a value" if arm in (Any, object) else "a mapping"


def _arms(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a type, a bare one alone."""
    if typing.get_origin(hint) is typing.Annotated:
        return _arms(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(arm for inner in typing.get_args(hint) for arm in _arms(inner))
    return (hint,)


def _literals(arms: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value for arm in arms if typing.get_origin(arm) is typing.Literal for value in typing.get_args(arm))


def _is_list(arm: Any) -> bool:
    return typing.get_origin(arm) in _LISTS or arm in _LISTS


def _is_mapping(arm: Any) -> bool:
    return typing.get_origin(arm) in (dict, Mapping) or arm in (dict, Mapping)


def _is_data(hint: Any) -> bool:
    """Whether a file can hold a value of this type."""
    return all(
        arm in (Any, object, type(None))
        or arm in _SCALARS
        or is_plugin_type(arm)
        or typing.get_origin(arm) is typing.Literal
        or (isinstance(arm, type) and dataclasses.is_dataclass(arm))
        or (
            (_is_list(arm) or _is_mapping(arm))
            and all(inner is Ellipsis or _is_data(inner) for inner in typing.get_args(arm))
        )
        for arm in _arms(hint)
    )


def _accepts(arm: Any, value: Any) -> bool:
    """Whether a value of YAML is of this kind; what is inside it is not looked at."""
    if arm in (Any, object):
        return True
    if arm is type(None):
        return value is None
    if arm is bool or isinstance(value, bool):
        return (arm is bool and isinstance(value, bool)) or value in _literals((arm,))
    if typing.get_origin(arm) is typing.Literal:
        return value in typing.get_args(arm)
    if arm is float:
        return isinstance(value, int | float) and math.isfinite(value)
    if arm in (int, str):
        return isinstance(value, arm)
    if is_plugin_type(arm):
        return isinstance(value, str)
    if arm is Path:
        return isinstance(value, str) and bool(value.strip())
    return isinstance(value, list) if _is_list(arm) else isinstance(value, dict)


def _scalar(text: str, arms: tuple[Any, ...]) -> Any:
    """A text of the environment as the number or the switch that is wanted; itself where it is none."""
    if bool in arms and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for arm in (int, float):
        if arm in arms:
            try:
                return arm(text)
            except ValueError:
                pass
    return text
