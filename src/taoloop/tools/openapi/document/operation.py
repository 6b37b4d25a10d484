"""One operation of a REST API, read and ready to be called: what the cards and the requests are made of.

Every version of OpenAPI is brought to this form. Schemas in it are JSON Schema 2020-12, references resolved into the
schema's own `$defs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

In = Literal["path", "query", "header", "cookie"]
Style = Literal["simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"]
BodyKind = Literal["json", "form", "multipart", "text", "binary"]
SchemeKind = Literal["api_key", "basic", "bearer", "oauth2_client", "unsupported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter outside the body. `arg` is its name in the card, `name` on the wire.

    `content` is the media type where the document gives `content` instead of `schema`: the value is then sent as JSON
    text, escaped once.
    """

    arg: str
    name: str
    place: In
    schema: Mapping[str, Any]
    required: bool = False
    description: str = ""
    style: Style = "simple"
    explode: bool = False
    allow_reserved: bool = False
    content: str = ""
    deprecated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How one property of a form or multipart body is sent."""

    content_type: str = ""
    style: Style = "form"
    explode: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of a request.

    `args` maps arguments of the card to properties of the body, where the body is a plain object; empty where the whole
    body is the one argument `whole`.
    """

    media_type: str
    kind: BodyKind
    schema: Mapping[str, Any]
    required: bool = False
    args: Mapping[str, str] = field(default_factory=dict)
    whole: str = ""
    encodings: Mapping[str, Encoding] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One security scheme. `name` is that of the document; `key` the header, query parameter or cookie of an API key.

    `prefix` goes before the value (`Bearer`, `Token`), with a blank between.
    """

    name: str
    kind: SchemeKind
    place: In = "header"
    key: str = "Authorization"
    prefix: str = ""
    token_url: str = ""
    scopes: tuple[str, ...] = ()
    said: str = ""  # what the document says it is, for the message about one that is not supported


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One documented response: a status (`200`, `4XX`, `default`), its text, and the schema of its JSON if any."""

    status: str
    description: str = ""
    media_type: str = ""
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: everything that its card and its requests need.

    `name` is the name of its tool: usable with every provider, unique in the document and stable. `servers` are base
    URLs with their variables filled in, the first one counts; empty where the document names none. `security` lists the
    alternatives, each a mapping from the name of a scheme to the scopes it needs; an empty mapping among them means
    that none is needed; an empty tuple that the document asks for none. `place` is where it stands (`paths./pets.get`).
    `extensions` are its `x-…` fields.
    """

    name: str
    operation_id: str
    method: str  # upper case
    path: str
    place: str
    servers: tuple[str, ...] = ()
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    deprecated: bool = False
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    replies: tuple[Reply, ...] = ()
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    schemes: Mapping[str, Scheme] = field(default_factory=dict)
    extensions: Mapping[str, Any] = field(default_factory=dict)
