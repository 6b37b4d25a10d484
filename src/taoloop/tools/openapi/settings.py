"""The settings of one REST API: its document, its servers, its secrets, and the operations that they select."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from taoloop.core.cards.tool_card import TIERS, Tier
from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.openapi.operation import Operation

_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,24}")
_HTTP_URL = re.compile(r"https?://[^\s/]", re.IGNORECASE)

DEFAULT_SEARCH_ABOVE = 40
"""With more operations than this, tools are found by search instead of being listed in the prompt."""


@dataclass(frozen=True, kw_only=True)
class OpenapiSource:
    """One REST API with an OpenAPI document.

    Settings that name operations accept the names of their tools and their operation ids; `tiers`, `approval`,
    `operations` and `idempotency` also accept patterns of them (`list_*`).
    """

    document: str
    """The document: a path, an `https://` URL, or its text."""
    name: str = ""
    """Prefix of every tool name (`pets` gives `pets_list`), so that two APIs do not collide; may be empty."""
    base_url: str = ""
    """Where the API is, instead of the servers of the document. Its host may be private."""
    server_variables: Mapping[str, str] = field(default_factory=dict)
    """Values for the variables in the server URLs of the document."""
    tags: tuple[str, ...] = ()
    """Only operations with one of these tags."""
    operations: tuple[str, ...] = ()
    """Only these operations."""
    pattern: str = ""
    """Only operations whose name, id, method or path this regular expression matches somewhere."""
    methods: tuple[str, ...] = ()
    """Only operations with one of these HTTP methods."""
    include_deprecated: bool = False
    """Whether operations that the document marks as deprecated are included."""
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    """The tier of operations, instead of the one that follows from the method."""
    approval: tuple[str, ...] = ()
    """Operations of which each call needs approval, whatever its tier and the policy profile."""
    auth: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict, repr=False)
    """The secret of each security scheme of the document.

    It is a text; for HTTP basic `{username, password}`; for OAuth2 client credentials `{client_id, client_secret}`.
    The environment is not read here.
    """
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of parameters by their names on the wire (`token`), added to each call; the model never sees them."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every call. One that a security scheme requires replaces its secret."""
    timeout_s: float = 30.0
    """Time limit of one call in seconds."""
    retries: int = 2
    """How often a failed call is retried that only reads, or has an idempotency key."""
    idempotency: tuple[str, ...] = ()
    """Operations that accept the header `Idempotency-Key`."""
    fill_defaults: bool = False
    """Whether the defaults of the schema are sent for missing arguments."""
    egress: EgressRules | None = None
    """Where calls may go; None: only to the API itself."""
    search_above: int = DEFAULT_SEARCH_ABOVE
    """With more operations than this, the prompt only contains the tool that searches them."""
    max_card_bytes: int = 8_000
    """The maximum size of a schema in the prompt; deeper levels are truncated there, but still checked."""
    cache: bool = True
    """Whether the plan of a large document is cached."""
    cache_folder: str = ""
    """The folder of the cache; empty: the user's cache folder."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigError: a field is invalid; the error names it and what it must be.
        """
        for name in ("document", "name", "base_url", "pattern", "cache_folder"):
            self._require(name, isinstance(getattr(self, name), str), "a text")
        self._require("document", bool(self.document.strip()), "a path, a URL, or the text of a document")
        self._require("name", not self.name or bool(_PREFIX.fullmatch(self.name)), "up to 24 letters, digits, _ or -")
        self._require("base_url", not self.base_url or _is_http_url(self.base_url), "an http(s) URL")
        for name in ("tags", "operations", "methods", "approval", "idempotency"):
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
            is_list_of_texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
            self._require(name, is_list_of_texts, "a list of texts")
        for name in ("server_variables", "tiers", "auth", "secrets", "headers"):
            self._require(name, isinstance(getattr(self, name), Mapping), "a mapping")
        self._require("tiers", set(self.tiers.values()) <= set(TIERS), f"of {', '.join(TIERS)}")
        self._require("timeout_s", _is_number(self.timeout_s) and self.timeout_s > 0, "a number of seconds above 0")
        for name, least in (("retries", 0), ("search_above", 0), ("max_card_bytes", 500)):
            value = getattr(self, name)
            self._require(name, isinstance(value, int) and _is_number(value) and value >= least, f"{least} or more")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ConfigError(f"The pattern of an OpenAPI source is not a regular expression: {error}.") from None

    def _require(self, name: str, condition: bool, expected: str) -> None:
        if not condition:
            value_text = "" if name in ("auth", "secrets", "headers") else f" = {repr(getattr(self, name))[:80]}"
            raise ConfigError(f"An OpenAPI source has {name}{value_text}.", hint=f"It must be {expected}.")


def _is_http_url(text: str) -> bool:
    try:
        return bool(_HTTP_URL.match(text)) and urlsplit(text).port != 0
    except ValueError:  # unclosed brackets, or an invalid port
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_MAX_LISTED = 8
_NO_METHOD, _NO_VALUE = "No operation has the method", "No operation has a parameter or field"
_OPERATION_SETTINGS = ("operations", "approval", "idempotency", "tiers")


@dataclass(slots=True)
class SeenNames:
    """Everything in a document that settings can name, collected while all operations are read, selected or not."""

    operations: list[tuple[str, str]] = field(default_factory=list)
    """The name and the id of each operation."""
    tags: dict[str, None] = field(default_factory=dict)
    """The tags of operations, in their order."""
    methods: set[str] = field(default_factory=set)
    """The HTTP methods in upper case."""
    values: set[str] = field(default_factory=set)
    """The parameters and body fields by their names on the wire."""


def unused_settings(
    source: OpenapiSource, document_names: SeenNames, schemes: Iterable[str]
) -> Iterator[tuple[str, str, str]]:
    """Each entry of the settings that matches nothing in the document: the setting, the problem, and a hint."""
    names = tuple(dict.fromkeys(name for pair in document_names.operations for name in pair if name))
    for setting in _OPERATION_SETTINGS:
        for entry in getattr(source, setting):
            if not any(matches_name(name, operation_id, (entry,)) for name, operation_id in document_names.operations):
                yield setting, f"No operation matches {entry[:80]!r}.", _suggestion(entry, names)
    tags, schemes = {tag.casefold() for tag in document_names.tags}, tuple(schemes)
    methods, values = sorted(document_names.methods), sorted(document_names.values)
    other_tags = [entry for entry in source.tags if entry.casefold() not in tags]
    checks: tuple[tuple[str, list[str], str, Sequence[str]], ...] = (
        ("tags", other_tags, "No operation has the tag", tuple(document_names.tags)),
        ("methods", [name for name in source.methods if name.upper() not in methods], _NO_METHOD, methods),
        ("auth", [name for name in source.auth if name not in schemes], "There is no security scheme", schemes),
        ("secrets", [name for name in source.secrets if name not in values], _NO_VALUE, values),
    )
    for setting, entries, problem, known in checks:
        for entry in entries:
            yield setting, f"{problem} {entry[:80]!r}.", _suggestion(entry, known)


def _suggestion(entry: str, known: Sequence[str]) -> str:
    near = suggest_names(entry, known, at_most=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    more = " …" if len(known) > _MAX_LISTED else ""
    return f"Known: {', '.join(known[:_MAX_LISTED])}{more}." if known else "The document has none."


def matches(operation: Operation, names: Iterable[str]) -> bool:
    """Whether one of these names, operation ids or patterns (`list_*`) matches the operation."""
    return matches_name(operation.name, operation.operation_id, names)


def matches_name(name: str, operation_id: str, names: Iterable[str]) -> bool:
    """`matches` for the name and the id (which may be empty) of an operation."""
    return any(
        fnmatchcase(name, pattern) or (operation_id != "" and fnmatchcase(operation_id, pattern)) for pattern in names
    )


def is_selected(operation: Operation, source: OpenapiSource) -> bool:
    """Whether the settings select the operation: it must match every filter that is set.

    A deprecated operation must be selected explicitly, by `include_deprecated` or by its name.
    """
    if source.tags and not _has_tag(operation.tags, source.tags):
        return False
    if source.methods and operation.method not in {method.upper() for method in source.methods}:
        return False
    if source.operations and not matches(operation, source.operations):
        return False
    if source.pattern:
        searched_text = f"{operation.name} {operation.operation_id} {operation.method} {operation.path}"
        if not re.search(source.pattern, searched_text):
            return False
    return not operation.deprecated or source.include_deprecated or _is_named(operation, source.operations)


def best_match(operation: Operation, table: Collection[str]) -> str | None:
    """The most specific entry of a table that matches the operation: its name or id, else the longest pattern."""
    for name in (operation.name, operation.operation_id):
        if name and name in table:
            return name
    fitting = [entry for entry in table if matches(operation, (entry,))]
    return max(fitting, key=len) if fitting else None


def _has_tag(tags: Iterable[str], selected: Iterable[str]) -> bool:
    return not {tag.casefold() for tag in tags}.isdisjoint(tag.casefold() for tag in selected)


def _is_named(operation: Operation, names: Iterable[str]) -> bool:
    return operation.name in names or operation.operation_id in names
