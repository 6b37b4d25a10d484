"""The model of REST operations, from which cards and requests are built, and the plan of a document.

Every version of OpenAPI is converted to this form. Its schemas are JSON Schema 2020-12, with the targets of references
in the schema's own `$defs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.tools.toolbox import LoadProblem

ParameterLocation = Literal["path", "query", "header", "cookie"]
Style = Literal["simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"]
BodyKind = Literal["json", "form", "multipart", "text", "binary"]
SchemeKind = Literal["api_key", "basic", "bearer", "oauth2_client", "unsupported", "undefined"]
DeepLists = Literal["indices", "brackets", "repeat"]
"""How lists are sent under `deepObject`: `a[0]=x&a[1]=y`, `a[]=x&a[]=y`, or `a=x&a=y` (with indices for objects)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter outside the body."""

    arg: str
    """Its name among the arguments of the tool."""
    name: str
    """Its name on the wire."""
    location: ParameterLocation
    """The part of the request that carries it."""
    schema: Mapping[str, Any]
    """The schema of its value."""
    required: bool = False
    """Whether every call must have it."""
    description: str = ""
    """The description in the document, as plain text."""
    style: Style = "simple"
    """How lists and objects are serialised."""
    explode: bool = False
    """Whether each item or member is serialised separately."""
    allow_reserved: bool = False
    """Whether reserved characters stay unencoded."""
    content: str = ""
    """The media type, if the document has `content` instead of `schema`: the value is sent as encoded JSON text."""
    deprecated: bool = False
    """Whether the document marks it as deprecated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How one property of a form or multipart body is encoded."""

    content_type: str = ""
    """The media type of the property; empty: it follows from the value."""
    style: Style = "form"
    """How lists and objects are serialised."""
    explode: bool = True
    """Whether each item or member is serialised separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of a request."""

    media_type: str
    """The media type to send, such as `application/json`."""
    kind: BodyKind
    """How it is encoded."""
    schema: Mapping[str, Any]
    """The schema of the whole body."""
    required: bool = False
    """Whether every call must have it."""
    args: Mapping[str, str] = field(default_factory=dict)
    """Property names by argument name, if the body is a plain object; otherwise empty."""
    whole_arg: str = ""
    """The argument that is the whole body; empty if `args` has its properties."""
    encodings: Mapping[str, Encoding] = field(default_factory=dict)
    """The encodings of properties in forms and multipart bodies."""
    description: str = ""
    """The description in the document, as plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One security scheme."""

    name: str
    """Its name in the document."""
    kind: SchemeKind
    """How requests are authenticated."""
    location: ParameterLocation = "header"
    """The part of the request that carries the credential."""
    key: str = "Authorization"
    """The header, query parameter or cookie that carries the credential."""
    prefix: str = ""
    """The word before the credential (`Bearer`, `Token`), separated by a blank."""
    token_url: str = ""
    """Where OAuth2 access tokens are requested."""
    authorization_url: str = ""
    """Where the browser of a person is sent for an authorization code."""
    user_token_url: str = ""
    """Where that code is exchanged for a token."""
    scopes: tuple[str, ...] = ()
    """The OAuth2 scopes that the document defines."""
    description: str = ""
    """What the document calls it, for the message about an unsupported scheme."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedResponse:
    """One response in the document."""

    status: str
    """`200`, `4XX` or `default`."""
    description: str = ""
    """The description in the document, as plain text."""
    schema: Mapping[str, Any] | None = None
    """The schema of its JSON body, for successful responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: everything that its card and its requests need."""

    name: str
    """The name of its tool: accepted by every provider, unique in the document, and stable."""
    operation_id: str
    """The `operationId` in the document; may be empty."""
    method: str
    """The HTTP method in upper case."""
    path: str
    """The path template, such as `/pets/{petId}`."""
    document_path: str
    """Where it is in the document, such as `paths./pets.get`."""
    servers: tuple[str, ...] = ()
    """Base URLs with their variables filled in; the first one is used. Empty: the document names none."""
    summary: str = ""
    """The summary in the document, as plain text."""
    description: str = ""
    """The description in the document, as plain text."""
    tags: tuple[str, ...] = ()
    """The tags in the document."""
    deprecated: bool = False
    """Whether the document marks it as deprecated."""
    parameters: tuple[Parameter, ...] = ()
    """The parameters outside the body."""
    body: Body | None = None
    """The request body; None: it has none."""
    responses: tuple[DocumentedResponse, ...] = ()
    """The documented responses."""
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """The alternatives, each with the required scopes by scheme name.

    An empty mapping among them means that anonymous calls are allowed; an empty tuple, that nothing is required.
    """
    schemes: Mapping[str, Scheme] = field(default_factory=dict)
    """The security schemes that `security` names."""
    extensions: Mapping[str, Any] = field(default_factory=dict)
    """Its `x-…` fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTool:
    """One operation with its card."""

    operation: Operation
    """The operation that the tool calls."""
    card: ToolCard
    """The card that the model sees."""
    whole_schema: Mapping[str, Any] | None = None
    """The schema that checks the arguments, if the card only shows a part of it."""
    original_names: Mapping[str, str] = field(default_factory=dict)
    """The names in the document of nested properties that were renamed, by their new names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The tools of a document."""

    tools: tuple[PlannedTool, ...]
    """The tools in the order of the document."""
    problems: tuple[LoadProblem, ...] = ()
    """What in the document could not be used."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Digests of the other files that were read for it, by their paths relative to the document, or their URLs."""
