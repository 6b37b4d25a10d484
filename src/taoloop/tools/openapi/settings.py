"""What the operator says about one REST API: its document, where it lives, its secrets, and what to offer of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from taoloop.core.cards.tool_card import TIERS, Tier
from taoloop.errors import ConfigError
from taoloop.tools.egress.rules import EgressRules

_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,24}")
_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)

SEARCH_ABOVE = 40
"""From how many operations on only a part of the tools stands in the prompt, and a search finds the others."""


@dataclass(frozen=True, kw_only=True)
class OpenapiSource:
    """One REST API with an OpenAPI document. Errors and lists name operations by the names of their tools or by id.

    `document`: a path, an `https://` address, or the text of the document itself.
    `name`: goes before the name of every tool (`pets` gives `pets_list`), so that two APIs do not collide; may be
    empty.
    `base_url`: where the API lives, instead of the servers of the document. Its host may be private.
    `server_variables`: values for the variables in the document's server addresses.
    `tags`, `operations`, `pattern`, `methods`: which operations to offer; each one that is given narrows the choice.
    `operations` are names or operation ids, or patterns of them (`list_*`); `pattern` is a regular expression that is
    searched in name, id and path.
    `include_deprecated`: offer operations, too, that the document calls deprecated.
    `tiers`: the tier of an operation (name, id, or pattern `delete_*`), instead of the one its method gives.
    `approval`: operations (names, ids or patterns) of which a person must allow each call, whatever tier and profile.
    `auth`: for each security scheme of the document its secret: a text, or for HTTP basic `{username, password}`, for
    OAuth2 client credentials `{client_id, client_secret}`. No environment is read here.
    `secrets`: values for parameters by their name on the wire (`token`): they are filled in at each call, and the model
    neither sees nor sets them.
    `headers`: headers that go with every call. One that a security scheme asks for stands for its secret.
    `timeout_s`: time limit of one call in seconds. `retries`: how often a failed call that only reads, or has an
    idempotency key, is tried again.
    `idempotency`: operations (names, ids or patterns) that take the header `Idempotency-Key`.
    `fill_defaults`: send the defaults of the schema for arguments that are not given.
    `egress`: where the calls may go; None: only to the API itself.
    `search_above`: with more operations than this, only the tool that searches them stands in the prompt.
    `max_card_bytes`: how large the schema of one card may be for the model; deeper levels are cut, and still judged.
    `cache`: keep what a large document gave in the user's cache folder, or in `cache_folder`.
    """

    document: str
    name: str = ""
    base_url: str = ""
    server_variables: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    pattern: str = ""
    methods: tuple[str, ...] = ()
    include_deprecated: bool = False
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    approval: tuple[str, ...] = ()
    auth: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    retries: int = 2
    idempotency: tuple[str, ...] = ()
    fill_defaults: bool = False
    egress: EgressRules | None = None
    search_above: int = SEARCH_ABOVE
    max_card_bytes: int = 8_000
    cache: bool = True
    cache_folder: str = ""

    def __post_init__(self) -> None:
        """Refuse settings that cannot be kept.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name in ("document", "name", "base_url", "pattern", "cache_folder"):
            self._require(name, isinstance(getattr(self, name), str), "a text")
        self._require("document", bool(self.document.strip()), "a path, an address, or the text of a document")
        self._require("name", not self.name or bool(_PREFIX.fullmatch(self.name)), "up to 24 letters, digits, _ or -")
        self._require("base_url", not self.base_url or _is_address(self.base_url), "an http(s) address")
        for name in ("tags", "operations", "methods", "approval", "idempotency"):
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
            listed = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
            self._require(name, listed, "a list of texts")
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
            raise ConfigError(f"The pattern of an OpenAPI source cannot be read: {error}.") from None

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            told = "" if name in ("auth", "secrets", "headers") else f" = {repr(getattr(self, name))[:80]}"
            raise ConfigError(f"An OpenAPI source has {name}{told}.", hint=f"It must be {expected}.")


def _is_address(text: str) -> bool:
    try:
        return bool(_ADDRESS.match(text)) and urlsplit(text).port != 0
    except ValueError:  # brackets that do not close, or a port that is none
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
