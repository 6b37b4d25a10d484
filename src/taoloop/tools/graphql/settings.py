"""The settings of one GraphQL API: its endpoint, its schema, its secrets, and what of it becomes tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from taoloop.core.cards.tool_card import Tier
from taoloop.errors import ConfigError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.oauth.store import LoginStore
from taoloop.tools.openapi.settings import DEFAULT_SEARCH_ABOVE, is_http_url
from taoloop.tools.settings_check import Count, Seconds, Texts, check_fields

MAX_DEPTH = 6


@dataclass(frozen=True, kw_only=True)
class GraphqlSource:
    """One GraphQL API.

    With `documents`, each named operation in them is a tool, and nothing else. Without, each field of the schema's
    query and mutation types is one. Settings that name operations accept the names of their tools, those in the schema
    or document, and patterns of both (`list*`).
    """

    endpoint: Annotated[str, Field(pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://")]
    """Where requests are sent, an http(s) URL. Its host may be private."""
    schema_file: str = ""
    """The schema: a file in SDL or with the JSON of an introspection, or its text; empty: the endpoint is asked."""
    documents: Texts = ()
    """GraphQL documents with named operations: files, folders of them (`.graphql`, `.gql`), or texts."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,24}$")] = ""
    """Prefix of every tool name (`shop` gives `shop_orders`), so that two APIs do not collide; may be empty."""
    operations: Texts = ()
    """Only these operations; empty: all but deprecated ones."""
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    """The tier of operations, instead of `read` for queries and `write` for mutations."""
    approval: Texts = ()
    """Operations of which each call needs approval, whatever its tier and the policy profile."""
    select: Mapping[str, str] = field(default_factory=dict)
    """What operations return (`{viewer: "id name"}`), instead of the default selection."""
    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 2
    """How many levels of objects the default selection has."""
    max_fields: Annotated[int, Field(ge=1, le=1_000)] = 60
    """How many fields the default selection has at most; those of the upper levels go first."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request, such as `Authorization`; the model never sees them."""
    login: Mapping[str, str] = field(default_factory=dict, repr=False)
    """A login of each person by OAuth2: `authorization_url`, `token_url`, `client_id`, and where they are needed
    `client_secret`, `scope` and `issuer`. Empty: calls carry only the `headers`."""
    token_file: str = ""
    """The SQLite file with the tokens of people; empty: `logins.db` in the user's data folder."""
    token_store: LoginStore | None = field(default=None, repr=False)
    """A store of your own for the tokens of people (`module:attribute` in a file), in place of `token_file`."""
    timeout_s: Seconds = 30.0
    """Time limit of one call in seconds."""
    retries: Annotated[int, Field(ge=0)] = 2
    """How often a failed query is sent again; a mutation never is."""
    egress: EgressRules | None = None
    """Where calls may go; None: only to the endpoint."""
    hide_server: bool = False
    """Whether what a model reads of a failed call leaves out the address of the API."""
    search_above: Annotated[int, Field(ge=0)] = DEFAULT_SEARCH_ABOVE
    """With more operations than this, the prompt only contains the tool that searches them."""
    max_card_bytes: Annotated[int, Field(ge=500)] = 8_000
    """The maximum size of a schema in the prompt; deeper levels are truncated there, but still checked."""
    max_operations: Count = 5_000
    """Operations beyond this number are left out, which is told."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigError: a field is invalid; the error names it and what it must be.
        """
        check_fields(self, "A GraphQL source")
        if not is_http_url(self.endpoint):
            raise ConfigError(f"A GraphQL source has endpoint = {self.endpoint[:80]!r}.", hint="Give an http(s) URL.")
        if self.documents and self.select:
            hint = "Write in the document what an operation returns."
            raise ConfigError("A GraphQL source has `select`, and `documents` as well.", hint=hint)

    @property
    def has_user_login(self) -> bool:
        """Whether calls need a login of the person for whom a run is."""
        return bool(self.login)
