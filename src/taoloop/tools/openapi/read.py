"""An OpenAPI document as plain values, with its version."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from taoloop.errors import ToolSourceError
from taoloop.tools.openapi.take import HINT, MOST_BYTES, Given
from taoloop.tools.openapi.yaml_json import YamlError, read_yaml

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON; half of a pair alone means no character, and no provider takes it."""

Version = Literal["2.0", "3.0", "3.1", "3.2"]

_ELSE: tuple[tuple[str, str], ...] = (
    ("swaggerVersion", "a document of Swagger 1, which must be converted first"),
    ("mcpServers", "a configuration of MCP servers"),
    ("asyncapi", "an AsyncAPI document"),
    ("arazzo", "an Arazzo document"),
    ("overlay", "an OpenAPI overlay"),
    ("raml", "a RAML document"),
    ("$schema", "a JSON Schema"),
    ("item", "a Postman collection"),
    ("resources", "a Google discovery document"),
    ("__schema", "a GraphQL schema"),
)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document and where it came from: `uri` is the base of its references, `folder` where other files may lie.

    `said` is what errors call it, `address` where it was fetched (empty for files and texts).
    """

    root: Mapping[str, Any]
    version: Version
    uri: str
    said: str
    folder: Path | None = None
    address: str = ""


def document_of(given: Given) -> Document:
    """The document that bytes are.

    Raises:
        ToolSourceError: they are too large, neither YAML nor JSON, or not a document of this kind.
    """
    root = values_of(given.data, given.said)
    return Document(
        root=root,
        version=_version(root, given.said),
        uri=given.uri,
        said=given.said,
        folder=given.folder,
        address=given.address,
    )


def values_of(data: bytes, said: str) -> Any:
    """The values that bytes in YAML or JSON stand for.

    Raises:
        ToolSourceError: they are neither; names the line.
    """
    if len(data) > MOST_BYTES:
        raise ToolSourceError(f"It is larger than {MOST_BYTES:,} bytes.", source=said)
    text = _text(data, said)
    start = text.lstrip()[:1]
    if not start:
        raise ToolSourceError("It is empty.", source=said, hint=HINT)
    if start == "<":
        raise ToolSourceError("It is HTML or XML.", source=said, hint=HINT)
    as_json: ToolSourceError | None = None
    if start in "{[":
        try:
            return _json(text)
        except RecursionError:
            raise ToolSourceError("It is nested too deeply.", source=said) from None
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}"
            as_json = ToolSourceError(f"It is no JSON: {error.msg}.", source=said, place=where, hint=HINT)
        except ValueError as error:
            raise ToolSourceError(f"It is no JSON: {str(error)[:120]}.", source=said, hint=HINT) from None
    try:
        return read_yaml(text)
    except YamlError as error:
        if as_json is not None:
            raise as_json from None
        place = f"line {error.line}" if error.line else ""
        raise ToolSourceError(
            f"It cannot be read as YAML: {error.what}.", source=said, place=place, hint=HINT
        ) from None


def _text(data: bytes, said: str) -> str:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ToolSourceError(
            f"It is no {encoding.upper().removesuffix('-SIG')} text (byte {error.start}).", source=said, hint=HINT
        ) from None


def _json(text: str) -> Any:
    if _SURROGATE.search(text):
        text = _ESCAPE.sub(lambda found: r"\ufffd" if found["half"] else found[0], text)
    return json.loads(text, parse_float=_number, parse_constant=str)


def _number(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _version(root: Any, said: str) -> Version:
    """Which version of the specification a document says it follows.

    Raises:
        ToolSourceError: none that is known; says what the document looks like.
    """
    if not isinstance(root, Mapping):
        kind = "a list" if isinstance(root, list) else "a plain text" if isinstance(root, str) else "no mapping"
        raise ToolSourceError(f"It is {kind}, not an OpenAPI document.", source=said, hint=HINT)
    told = root.get("openapi", root.get("swagger"))
    if told is None:
        looks = next((f"; it looks like {what}" for key, what in _ELSE if key in root), "")
        raise ToolSourceError(
            f"It is not an OpenAPI document: it has neither 'openapi' nor 'swagger'{looks}.", source=said, hint=HINT
        )
    text = str(told).strip()
    if text.startswith("2"):
        return "2.0"
    if text.startswith("3"):
        return "3.0" if text.startswith("3.0") or text == "3" else "3.1" if text.startswith("3.1") else "3.2"
    raise ToolSourceError(
        f"It says version {text[:20]!r}, which is not known here.",
        source=said,
        hint="Versions 2.0 and 3.0 to 3.2 are read; convert the document to one of them.",
    )
