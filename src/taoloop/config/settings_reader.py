"""Settings classes from the plain data of a file, by pydantic: every mistake with its file, line and field.

A settings class is a dataclass or a TypedDict. Its annotations alone define what a field accepts, so a new field of a
settings class can be written in a file at once, and is in the published schema. `_file_type` turns an annotation into
the type that pydantic reads from a file: texts and numbers strictly, paths beside the file, code by `module:attribute`,
and `${NAME}` filled in from the environment. A location in pydantic's errors is a key of the document's lines.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    create_model,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from taoloop.config.document import ConfigDocument, describe_value, kind_name, locate_error, translate
from taoloop.config.import_attribute import load_attribute
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import AgentFileError, ConfigError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.settings_check import expand_home
from taoloop.tools.yaml12 import FieldPath, key_text
from taoloop.translation import mark

T = TypeVar("T")

Mode = Literal["written", "filled", "lenient"]
"""written: `${` has no meaning. filled: `${NAME}` comes from the environment. lenient: as filled, and null, an empty
text, and 0 where there is a default count as absent; the keys are the names of the fields in camel case, and an unknown
key is a warning."""

_ErrorType = Literal["invalid", "refused", "plugin"]
"""invalid: a single value. refused: a mapping, because of the field that the message names. plugin: code that cannot be
loaded."""

LITERAL = "literal"
"""In an `Annotated` text: `${` has no meaning."""

SECRET = "secret"  # noqa: S105  # a mark, no secret
"""In an `Annotated` text: a value from the environment is a secret, even if the class has no other secrets."""

_LISTS = (list, tuple, set, frozenset, Sequence, Collection, Iterable)
_MAPPINGS = (dict, Mapping)
_ANNOTATED: Any = Annotated  # with arguments that are only known at run time
_UNION: Any = typing.Union
_TUPLE: Any = tuple
_DICT: Any = dict
_FIELDS = re.compile(r"(?P<name>\w+)(?=(?P<part>\.(?P<key>\w+)|\[(?P<index>\d+)\])?)", re.ASCII)
_QUOTED = re.compile(r"'[^']*'")
_SQLITE = re.compile(r"(?P<scheme>sqlite(?:\+\w+)?:///)(?P<path>(?![/:]|[A-Za-z]:)[^?]+.*)", re.DOTALL)
_REFERENCE = Annotated[str, Field(pattern=r"\$\{")]
_CODE = Annotated[str, Field(pattern=r"^[^:]+:[^:]+$|\$\{")]
_EXPECTED = mark(
    {
        "string_type": "a text",
        "int_type": "a whole number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "bool_type": "true or false",
        "tuple_type": "a list",
        "dict_type": "a mapping",
        "greater_than": "a number above {gt}",
        "greater_than_equal": "a number of {ge} or more",
        "less_than_equal": "a number of at most {le}",
        "string_pattern_mismatch": "a text that matches {pattern}",
        "too_short": "a longer text",
        "too_long": "a shorter text",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """In an `Annotated` whole number: its bounds."""

    least: int
    """The smallest value."""

    most: int | None = None
    """The largest value; None: any."""

    def check(self, value: int) -> int:
        """The value, if it is between the bounds."""
        if value < self.least or (self.most is not None and value > self.most):
            if self.most is None:
                raise expected(translate("a whole number of {least} or more", least=self.least))
            raise expected(translate("a whole number from {least} to {most}", least=self.least, most=self.most))
        return value


def expected(what: str, hint: str = "") -> PydanticCustomError:
    """For a validator: the error that `what` is expected in its place; both texts are for people."""
    return PydanticCustomError("expected", "{what} is expected", {"what": what, "hint": hint})


def invalid(error: ConfigError) -> PydanticCustomError:
    """For a validator: the error that a value has, which gets its place."""
    return PydanticCustomError("invalid", "invalid", {"error": error})


def checked(function: Callable[[Any, SettingsReader], Any], *, names_field: bool = False) -> AfterValidator:
    """A validator that returns what `function` makes of a value; its ConfigError gets the place of the value.

    `names_field`: the message names a field of the value, which is the place then.
    """
    error_type: _ErrorType = "refused" if names_field else "invalid"

    def validate(value: Any, info: ValidationInfo) -> Any:
        return None if value is None else _apply(partial(function, value, _reader(info)), error_type)

    return AfterValidator(validate)


class SettingsReader:
    """Reads settings in one document, with values from the environment; collects secrets and warnings.

    `egress` are the rules for every source in the file: they hold for settings that have none of their own. `plain` are
    classes whose fields hold no secrets. `paths` are fields annotated as texts that may be paths beside the file.
    """

    def __init__(
        self,
        document: ConfigDocument,
        env: Mapping[str, str],
        *,
        egress: EgressRules | None = None,
        plain: Sequence[type] = (),
        paths: Sequence[str] = (),
    ) -> None:
        self.document, self.env = document, EnvValues(env)
        self.plain, self._paths, self._egress = (EgressRules, *plain), paths, egress
        self._secrets: dict[str, str] = {}
        self.warnings: list[str] = []
        self.broken: tuple[FieldPath, ConfigError] | None = None
        """Where code could not be loaded, and why."""

    @property
    def secrets(self) -> dict[str, str]:
        """Every secret so far: those that are written in the file by their place, the others by their variable."""
        return {**self._secrets, **self.env.secrets}

    def keep_secret(self, path: FieldPath, value: str) -> None:
        """Treat a value of the file as a secret."""
        if value and value not in self.env.secrets.values():
            self._secrets[self.document.name_of(path)] = value

    def warn(self, path: FieldPath, message: str) -> None:
        """Report something about a place that does not make the file unusable."""
        location = self.document.location(path)
        self.warnings.append(f"{self.document.path.name}:{location.line}: {location.field}: {message}")

    def read(self, hint: type[T], path: FieldPath, value: Any, *, mode: Mode = "filled") -> T:
        """The `value` at `path`, as an instance of a settings class or as another type.

        Raises:
            AgentFileError: a field is unknown, missing, or of the wrong kind, or its class refuses it.
        """
        try:
            result: T = _adapter(typing.cast("Any", hint), mode).validate_python(value, context=self)
        except ValidationError as error:
            unknown = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
            if not unknown:
                raise self._located(error, path, value, mode) from None
            value = deepcopy(value)
            for location in unknown:
                inner, mapping = _follow(location[:-1], value)
                self.warn((*path, *inner, location[-1]), translate("nothing reads this field."))
                del mapping[next(key for key in mapping if key_text(key) == location[-1])]
            return self.read(hint, path, value, mode=mode)
        return result

    def resolve_path(self, path: str) -> Path:
        """A path of the file; a relative one is relative to the folder of the file."""
        return self.document.path.parent / expand_home(path)

    def build(self, kind: type[T], values: dict[str, Any]) -> T:
        """The settings class with these values, and with the rules for every source where it has none.

        Raises:
            ConfigError: the class refuses them.
        """
        for name in self._paths:
            value = values.get(name)
            if isinstance(value, str):
                values[name] = self._path_in(value)
            elif isinstance(value, tuple):
                values[name] = tuple(map(self._path_in, value))
        fields, rules = fields_of(kind), self._egress
        if rules is None:
            return kind(**values)
        if not fields_of(EgressRules).keys() <= fields.keys():
            missing = (name for name in fields if name not in values)
            return kind(**{name: rules for name in missing if EgressRules in typing.get_args(fields[name])}, **values)
        own: Any = kind(**values)  # rules, or settings that have their fields; lists of what is denied add up
        changes = {name: getattr(rules, name) for name in fields_of(EgressRules) if name not in values}
        if "deny" in values:
            changes["deny"] = tuple(dict.fromkeys((*rules.deny, *own.deny)))
        result: T = dataclasses.replace(own, **changes)
        return result

    def _path_in(self, text: str) -> str:
        """A path beside the file, also in the address of an SQLite file; other addresses, and documents, stay."""
        if match := _SQLITE.fullmatch(text):
            return match["scheme"] + (self.document.path.parent / Path(match["path"])).absolute().as_posix()
        if not text.strip() or "://" in text or "\n" in text or text.lstrip().startswith(("{", "[")):
            return text
        return str(self.resolve_path(text))

    def _located(self, error: ValidationError, base: FieldPath, data: Any, mode: Mode) -> AgentFileError:
        """The first of pydantic's errors in the file, as one with its line and field."""
        by_path: dict[FieldPath, list[Any]] = {}
        for item in error.errors():
            location = item["loc"][:-1] if item["type"] == "missing" else item["loc"]
            by_path.setdefault(_follow(location, data)[0], []).append(item)
        first = min(
            by_path,
            key=lambda path: (by_path[path][0]["type"] == "missing", self.document.location((*base, *path)).line),
        )
        # Of the arms of a union, the one that took the value.
        inner = max((path for path in by_path if path[: len(first)] == first), key=len)
        details = sorted(by_path[inner], key=lambda item: "error" not in item.get("ctx", {}))
        path, value = (*base, *inner), _follow(inner, data)[1]
        kind, context = details[0]["type"], details[0].get("ctx", {})
        if kind == "refused":
            return self._refused(path, value, context["error"])
        if kind in ("invalid", "plugin"):
            self.broken = (path, context["error"]) if kind == "plugin" else None
            return locate_error(self.document, path, context["error"])
        if kind == "unknown":
            return self.document.unknown((*path, context["name"]), context["known"])
        if kind == "missing":
            name = str(details[0]["loc"][-1])
            if mode == "lenient":
                return self.document.problem((*path, name), "it is missing, or empty.")
            return self.document.problem(path, "the field `{name}` is missing.", "Add `{name}: …`.", name=name)
        arms = dict.fromkeys(
            context.get("what") or translate(_EXPECTED.get(item["type"], mark("another value")), **context)
            for item in details
            for context in [item.get("ctx", {})]
        )
        is_secret = mode == "lenient" and not isinstance(value, str)  # it may be a key that is no text
        actual = kind_name(value) if is_secret else describe_value(value)  # as the file has it, with nothing filled in
        what, hint = translate(" or ").join(arms), context.get("hint", "")
        if what.startswith(translate("a text")) and isinstance(value, int | float | bool):
            hint = mark("Put it in quotes.")
        elif what.endswith(translate("a list")) and isinstance(value, str):
            hint = mark("Put it in brackets.")
        elif what == translate("a number") and isinstance(value, int) and not isinstance(value, bool):
            what = translate("a smaller number")  # it is one, but beyond what a float can be
        message = translate("{what} is expected, not {actual}.", what=what, actual=actual)
        return self.document.error(path, message, hint=translate(hint))

    def _refused(self, path: FieldPath, value: Any, error: ConfigError) -> AgentFileError:
        """An error of a settings class, at the field that its message names."""
        if isinstance(error, AgentFileError):
            return locate_error(self.document, path, error)
        clean = Redactor(self.env.secrets, patterns=False).text
        message, hint = clean(error.message), clean(error.hint)
        matches = _FIELDS.finditer(_QUOTED.sub("", error.message))
        match = next((match for match in matches if isinstance(value, dict) and match["name"] in value), None)
        if match is None:
            return self.document.error(path, message, hint=hint)
        inner = value[match["name"]]
        path = (*path, match["name"])
        if match["index"]:
            path = (*path, int(match["index"]))
        elif isinstance(inner, dict) and match["key"] in inner:
            path = (*path, match["key"])
        return self.document.error(path, message.removeprefix(f"{match['name']}{match['part'] or ''}: "), hint=hint)


def fields_of(kind: type) -> dict[str, Any]:
    """The fields of a settings class that a file may have, with their types: all but those marked `in_files` False."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if typing.is_typeddict(kind):
        return hints
    fields = (field for field in dataclasses.fields(kind) if field.init and field.metadata.get("in_files", True))
    return {field.name: hints[field.name] for field in fields}


def required_fields(kind: type) -> tuple[str, ...]:
    """The fields of a settings class that have no default."""
    if typing.is_typeddict(kind):
        is_total = kind.__total__  # type: ignore[attr-defined]  # a TypedDict
        return tuple(n for n, hint in fields_of(kind).items() if is_total or typing.get_origin(hint) is typing.Required)
    missing = dataclasses.MISSING
    fields = {field.name: field for field in dataclasses.fields(kind)}
    return tuple(n for n in fields_of(kind) if fields[n].default is missing and fields[n].default_factory is missing)


def json_schema(hint: Any, mode: Mode = "filled", **options: Any) -> dict[str, Any]:
    """The JSON Schema of what `SettingsReader.read` takes; `options` are those of `TypeAdapter.json_schema`."""
    return _adapter(hint, mode).json_schema(**options)


@cache
def _adapter(hint: Any, mode: Mode) -> TypeAdapter[Any]:
    return TypeAdapter(_file_type(hint, hint, mode))


def _file_type(hint: Any, owner: type, mode: Mode, marks: Sequence[Any] = ()) -> Any:
    """The type by which pydantic reads a field of the class `owner` from a file."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Required, typing.NotRequired):
        return _file_type(args[0], owner, mode)
    if origin is Annotated:
        own = [mark for mark in args[1:] if mark in (LITERAL, SECRET) or isinstance(mark, Span)]
        rest = [mark for mark in args[1:] if mark not in own]
        inner = _file_type(args[0], owner, mode, own)
        return _ANNOTATED[(inner, *rest)] if rest else inner
    if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
        return _class_type(hint, mode)
    if origin in (typing.Union, types.UnionType) and not (str in args and Path in args):
        return _UNION[tuple(_file_type(arm, owner, mode, marks) for arm in args)]
    if origin in _LISTS:
        return _TUPLE[_file_type(args[0], owner, mode), ...]
    if origin in _MAPPINGS:
        key = Any if mode == "written" or args[0] is Any else Annotated[str, BeforeValidator(key_text)]
        return _DICT[key, _file_type(args[1], owner, mode)]
    if hint in (Any, object, type(None)):
        return hint
    written, schema = _written_type(hint, marks)
    if mode == "written" or LITERAL in marks:
        return _ANNOTATED[written, WrapValidator(_as_written)] if hint is float else written
    is_plain = (mode == "lenient" or Path in (hint, *args)) and SECRET not in marks
    schema = _UNION[schema, _REFERENCE] if hint in (int, float, bool) else schema
    return _ANNOTATED[
        written, BeforeValidator(partial(_fill, hint, is_plain=is_plain, owner=owner), json_schema_input_type=schema)
    ]


def _written_type(hint: Any, marks: Sequence[Any]) -> tuple[Any, Any]:
    """The type of a single value without references to the environment, and the one that its JSON Schema shows."""
    span = next((mark for mark in marks if isinstance(mark, Span)), None)
    if span is not None:
        return _ANNOTATED[int, Strict(), AfterValidator(span.check)], _ANNOTATED[int, Field(ge=span.least)]
    if hint in (str, bool, int, float):
        return _ANNOTATED[hint, Strict(), AllowInfNan(False)] if hint is float else _ANNOTATED[hint, Strict()], hint
    args = typing.get_args(hint)
    if hint is Path or Path in args:
        path = _ANNOTATED[Any, BeforeValidator(partial(_path, allows_url=str in args), json_schema_input_type=str)]
        return (path | None, str | None) if type(None) in args else (path, str)
    if args:
        return _ANNOTATED[Any, BeforeValidator(partial(_one_of, args), json_schema_input_type=hint)], hint
    return _ANNOTATED[Any, BeforeValidator(_load_object, json_schema_input_type=_CODE)], _CODE  # a Protocol


@cache
def _class_type(kind: type, mode: Mode) -> Any:
    """A settings class as a model of pydantic, from which an instance is built."""
    fields: dict[str, Any] = {}
    needed, declared = required_fields(kind), getattr(kind, "__dataclass_fields__", {})
    for name, hint in fields_of(kind).items():
        options: dict[str, Any] = {"alias": _key_of(name)} if mode == "lenient" else {}
        if name not in needed:
            default = declared[name].default if name in declared else None
            is_shown = isinstance(default, str | int | float | bool) and default != ""
            options |= {"default": default} if is_shown else {"default_factory": lambda: None}
        fields[name] = (_file_type(hint, kind, mode), Field(**options))
    config = ConfigDict(extra="forbid", protected_namespaces=())
    model = create_model(kind.__name__, __config__=config, __module__=kind.__module__, **fields)
    return _ANNOTATED[model, BeforeValidator(partial(_known_fields, kind, mode)), AfterValidator(partial(_build, kind))]


def _key_of(name: str) -> str:
    """The key of a field in a file that is read leniently."""
    return to_camel(name.rstrip("_"))


# Validators; the context is the reader


def _reader(info: ValidationInfo) -> SettingsReader:
    return typing.cast("SettingsReader", info.context)


def _apply(function: Callable[[], Any], error_type: _ErrorType) -> Any:
    """What a function returns; its ConfigError as one of pydantic, which knows the place."""
    try:
        return function()
    except ConfigError as error:
        raise PydanticCustomError(error_type, "refused", {"error": error}) from error


def _known_fields(kind: type, mode: Mode, value: Any) -> Any:
    """A mapping without unknown fields; leniently, without those that count as absent."""
    if not isinstance(value, dict):
        needed = ", ".join(f"{name}: …" for name in required_fields(kind))
        hint = translate("Write its fields: `{{{fields}}}`.", fields=needed) if needed else ""
        raise expected(translate("a mapping"), hint)
    if mode == "lenient":
        counts = {_key_of(name) for name in fields_of(kind) if name not in required_fields(kind)}
        items = ((key_text(name), item) for name, item in value.items())
        return {name: item for name, item in items if not _is_absent(item, has_default=name in counts)}
    known = _field_names(kind)
    for name in value:
        if name not in known:
            raise PydanticCustomError("unknown", "unknown field", {"name": key_text(name), "known": known})
    return value


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(fields_of(kind))


def _is_absent(value: Any, *, has_default: bool) -> bool:
    is_zero = isinstance(value, int) and not isinstance(value, bool) and value == 0
    return value is None or (isinstance(value, str) and not value.strip()) or (is_zero and has_default)


def _build(kind: type, model: BaseModel, info: ValidationInfo) -> Any:
    values = {name: getattr(model, name) for name in model.model_fields_set}
    return values if typing.is_typeddict(kind) else _apply(partial(_reader(info).build, kind, values), "refused")


def _fill(kind: type, value: Any, info: ValidationInfo, *, is_plain: bool, owner: type) -> Any:
    """A text with its references filled in, converted to the number or the boolean of its field where it is one."""
    if not isinstance(value, str) or not has_reference(value):
        return value
    is_plain = is_plain or owner in _reader(info).plain
    text = _apply(partial(_reader(info).env.text, value, is_plain=is_plain), "invalid")
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def _path(value: Any, info: ValidationInfo, *, allows_url: bool) -> Path | str:
    if not isinstance(value, str) or not value.strip():
        raise expected(translate("a text or a path") if allows_url else translate("a path"))
    if allows_url and "://" in value:
        return value
    path: Path = _apply(partial(_reader(info).resolve_path, value), "invalid")
    return path


def _as_written(value: Any, handler: Callable[[Any], Any]) -> Any:
    """A number as it is written, so that a whole one stays whole."""
    handler(value)
    return value


def _one_of(choices: tuple[Any, ...], value: Any) -> Any:
    if value not in choices:
        raise expected(translate("one of {choices}", choices=", ".join(map(str, choices))))
    return value


def _load_object(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        raise expected("module:attribute")
    return _apply(partial(load_attribute, value, _reader(info).document.path.parent), "plugin")


# Places


def _follow(location: Sequence[str | int], value: Any) -> tuple[FieldPath, Any]:
    """The part of pydantic's location that leads through the data, and what is there.

    The arms of a union are in the location, but not in the data.
    """
    path: list[str | int] = []
    for part in location:
        if isinstance(value, dict):
            keys = [key for key in value if key_text(key) == str(part)]
        else:
            keys = [part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else []
        if keys:
            path.append(key_text(keys[0]) if isinstance(value, dict) else part)
            value = value[keys[0]]
    return tuple(path), value


_VARIABLE = re.compile(r"\$\$\{|\$\{(?P<inner>[^}]*)(?P<end>\}?)")
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

        return _VARIABLE.sub(replacement, value)


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
