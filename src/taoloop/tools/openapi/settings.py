"""The settings of one REST API: its document, its servers, its secrets, and the operations that they select."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, Strict

from taoloop.core.cards.tool_card import Tier
from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.embedding import Embedder, check_embedder
from taoloop.tools.oauth.store import LoginStore
from taoloop.tools.openapi.operation import DeepLists, Operation
from taoloop.tools.settings_check import Seconds, check_fields

_Texts = Annotated[tuple[str, ...], Strict(strict=False)]  # a list is one, too
_HTTP_URL = re.compile(r"https?://[^\s/]", re.IGNORECASE)

DEFAULT_SEARCH_ABOVE = 40
"""With more operations than this, tools are found by search instead of being listed in the prompt."""


@dataclass(frozen=True, kw_only=True)
class OpenapiSource:
    """One REST API with an OpenAPI document.

    Settings that name operations accept the names of their tools and their operation ids; `tiers`, `approval`,
    `operations` and `idempotency` also accept patterns of them (`list_*`).
    """

    document: Annotated[str, Field(pattern=r"\S")]
    """The document: a path, an `https://` URL, or its text."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,24}$")] = ""
    """Prefix of every tool name (`pets` gives `pets_list`), so that two APIs do not collide; may be empty."""
    base_url: str = ""
    """Where the API is, instead of the servers of the document. Its host may be private.

    Without a path, not even `/`, it completes a server of the document that is only a path (`/v2`, `basePath`).
    """
    server_variables: Mapping[str, str] = field(default_factory=dict)
    """Values for the variables in the server URLs of the document."""
    reference_hosts: _Texts = ()
    """Hosts (`specs.example.com`, `localhost:8000`) from which other documents are fetched that references name."""
    tags: _Texts = ()
    """Only operations with one of these tags."""
    operations: _Texts = ()
    """Only these operations."""
    pattern: str = ""
    """Only operations whose name, id, method or path this regular expression matches somewhere."""
    methods: _Texts = ()
    """Only operations with one of these HTTP methods."""
    include_deprecated: bool = False
    """Whether operations that the document marks as deprecated are included."""
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    """The tier of operations, instead of the one that follows from the method."""
    approval: _Texts = ()
    """Operations of which each call needs approval, whatever its tier and the policy profile."""
    auth: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict, repr=False)
    """The secret of each security scheme of the document.

    It is a text; for HTTP basic `{username, password}`; for OAuth2 client credentials `{client_id, client_secret}`; for
    a login of each person by OAuth2 `{grant: authorization_code, client_id, client_secret}`, perhaps with `scope`,
    `issuer`, `authorization_url` and `token_url`. For a scheme that the document does not define, or of an unknown
    kind, it says where the secret goes: `{header: NAME, value: SECRET}`, or `query` or `cookie` instead of `header`.
    The environment is not read here.
    """
    token_file: str = ""
    """The SQLite file with the tokens of people; empty: `logins.db` in the user's data folder."""
    token_store: LoginStore | None = field(default=None, repr=False)
    """A store of your own for the tokens of people (`module:attribute` in a file), in place of `token_file`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of parameters by their names on the wire (`token`), added to each call; the model never sees them."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every call. One that a security scheme requires replaces its secret."""
    timeout_s: Seconds = 30.0
    """Time limit of one call in seconds."""
    retries: Annotated[int, Field(ge=0)] = 2
    """How often a failed call is retried that only reads, or has an idempotency key."""
    idempotency: _Texts = ()
    """Operations that accept the header `Idempotency-Key`."""
    deep_lists: DeepLists = "indices"
    """How lists are sent in the style `deepObject`: `indices` (`a[0]=x`), `brackets` (`a[]=x`), or `repeat` (`a=x`)."""
    fill_defaults: bool = False
    """Whether the defaults of the schema are sent for missing arguments."""
    egress: EgressRules | None = None
    """Where calls may go; None: only to the API itself."""
    hide_server: bool = False
    """Whether what a model reads of a failed call, and of a redirect, leaves out the address of the API: method and
    path remain, and the log (`taoloop.openapi`) has the whole of it."""
    search_above: Annotated[int, Field(ge=0)] = DEFAULT_SEARCH_ABOVE
    """With more operations than this, the prompt only contains the tool that searches them."""
    embedder: Embedder | None = None
    """An embedding model for search by meaning with `find_tool` (`module:attribute` in a file); None: by words only."""
    max_card_bytes: Annotated[int, Field(ge=500)] = 8_000
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
        check_embedder("OpenapiSource", self.embedder)
        check_fields(self, "An OpenAPI source")
        if self.base_url and not is_http_url(self.base_url):
            raise ConfigError(f"An OpenAPI source has base_url = {self.base_url[:80]!r}.", hint="Give an http(s) URL.")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ConfigError(f"The pattern of an OpenAPI source is not a regular expression: {error}.") from None

    @property
    def has_user_login(self) -> bool:
        """Whether calls need a login of the person for whom a run is."""
        return any(map(is_user_login, self.auth.values()))


def is_user_login(secret: str | Mapping[str, str] | None) -> bool:
    """Whether this entry of `auth` wants a login of each person (RFC 6749, 4.1)."""
    return isinstance(secret, Mapping) and secret.get("grant") == "authorization_code"


def is_http_url(text: str) -> bool:
    """Whether it is an http(s) URL with a host, and its port is valid."""
    try:
        return bool(_HTTP_URL.match(text)) and bool(urlsplit(text).hostname) and urlsplit(text).port != 0
    except ValueError:  # unclosed brackets, or an invalid port
        return False


_MAX_LISTED = 8


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
    for setting in ("operations", "approval", "idempotency", "tiers"):
        for entry in getattr(source, setting):
            if not any(matches_name(*pair, (entry,)) for pair in document_names.operations):
                yield setting, f"No operation matches {entry[:80]!r}.", _suggestion(entry, names)
    checks = (
        ("tags", tuple(document_names.tags), "No operation has the tag {}."),
        ("methods", sorted(document_names.methods), "No operation has the method {}."),
        ("auth", tuple(schemes), "There is no security scheme {}."),
        ("secrets", sorted(document_names.values), "No operation has a parameter or field {}."),
    )
    for setting, known, problem in checks:
        normalise_case = str.casefold if setting in ("tags", "methods") else str
        known_names = set(map(normalise_case, known))
        for entry in getattr(source, setting):
            if normalise_case(entry) not in known_names:
                yield setting, problem.format(repr(entry[:80])), _suggestion(entry, known)


def _suggestion(entry: str, known: Sequence[str]) -> str:
    if near := suggest_names(entry, known, at_most=1):
        return f"Did you mean {near[0]!r}?"
    more = " …" if len(known) > _MAX_LISTED else ""
    return f"Known: {', '.join(known[:_MAX_LISTED])}{more}." if known else "The document has none."


def matches(operation: Operation, names: Iterable[str]) -> bool:
    """Whether one of these names, operation ids or patterns (`list_*`) matches the operation."""
    return matches_name(operation.name, operation.operation_id, names)


def matches_name(name: str, operation_id: str, names: Iterable[str]) -> bool:
    """`matches` for the name and the id (which may be empty) of an operation."""
    known = [name, operation_id] if operation_id else [name]
    return any(fnmatchcase(text, pattern) for pattern in names for text in known)


def is_selected(operation: Operation, source: OpenapiSource) -> bool:
    """Whether the settings select the operation: it must match every filter that is set.

    A deprecated operation must be selected explicitly, by `include_deprecated` or by its name.
    """
    tags = {tag.casefold() for tag in operation.tags}
    searched_text = f"{operation.name} {operation.operation_id} {operation.method} {operation.path}"
    return (
        (not source.tags or any(tag.casefold() in tags for tag in source.tags))
        and (not source.methods or operation.method in {method.upper() for method in source.methods})
        and (not source.operations or matches(operation, source.operations))
        and re.search(source.pattern, searched_text) is not None
        and (
            not operation.deprecated
            or source.include_deprecated
            or not {operation.name, operation.operation_id}.isdisjoint(source.operations)
        )
    )


def best_match(operation: Operation, table: Collection[str]) -> str | None:
    """The most specific entry of a table that matches the operation: its name or id, else the longest pattern."""
    for name in (operation.name, operation.operation_id):
        if name and name in table:
            return name
    return max((entry for entry in table if matches(operation, (entry,))), key=len, default=None)
