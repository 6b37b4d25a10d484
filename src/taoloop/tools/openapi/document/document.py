"""An OpenAPI document as plain values, with its version."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from taoloop.errors import TaoError, ToolSourceError
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.yaml12 import YamlError, parse_yaml

MOST_BYTES = 32 * 1024 * 1024
HINT = "Give an OpenAPI 3 or Swagger 2.0 document as a file, an http(s) address, or its text, in YAML or JSON."
_FETCH_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBytes:
    """The bytes of a document and where they came from.

    `uri` is the base of its references, `folder` where other files may lie. `said` is what errors call it, `address`
    where it was fetched (empty for files and texts).
    """

    data: bytes
    uri: str
    said: str
    folder: Path | None = None
    address: str = ""


def fetch_document(source: OpenapiSource) -> SourceBytes:
    """The document of a source, not looked into yet.

    Raises:
        ToolSourceError: it cannot be read or fetched, or is too large.
    """
    given = source.document
    if _is_text(given):
        data = given.encode("utf-8", "surrogatepass")
        return SourceBytes(data=data, uri="file:///document", said="the text of the document")
    if given.lower().startswith(("http://", "https://")):
        said = _without_secrets(given)
        return SourceBytes(data=_fetched(given, source), uri=given.partition("#")[0], said=said, address=given)
    path = Path(given.removeprefix("file://")).expanduser()
    data = file_bytes(path, given)
    return SourceBytes(data=data, uri=f"file:///{quote(path.name)}", said=given, folder=path.absolute().parent)


def file_bytes(path: Path, said: str) -> bytes:
    """The bytes of a file.

    Raises:
        ToolSourceError: it cannot be read, is no regular file, or is too large.
    """
    try:
        if path.is_dir():
            raise ToolSourceError("It is a folder.", source=said, hint="Give the file of the document in it.")
        if path.exists() and not path.is_file():
            raise ToolSourceError("It is no regular file.", source=said)
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ToolSourceError(f"It cannot be read: {reason}.", source=said, hint=HINT) from None
    except ValueError as error:  # a NUL in the path
        raise ToolSourceError(f"It is no path: {error}.", source=said[:100], hint=HINT) from None


def _is_text(given: str) -> bool:
    return "\n" in given or given.lstrip().startswith(("{", "["))


def _fetched(address: str, source: OpenapiSource) -> bytes:
    """The bytes at an address. The operator wrote it, so its own host is allowed, and no other.

    Raises:
        ToolSourceError: nothing usable is there.
    """
    import asyncio  # noqa: PLC0415  # only for a document from the network
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # likewise

    from taoloop.tools.egress import EgressClient  # noqa: PLC0415  # loads the HTTP client

    said = _without_secrets(address)

    async def fetch() -> tuple[int, bytes, bool]:
        client = EgressClient(_rules_for(address, source), timeout_s=_FETCH_TIMEOUT_S, max_bytes=MOST_BYTES)
        try:
            reply = await client.send(
                "GET",
                address,
                headers={"Accept": "application/json, application/yaml, */*;q=0.5"},
                body=None,
                follow=True,
            )
            return reply.status, reply.body, reply.is_cut
        finally:
            await client.close()

    try:
        with ThreadPoolExecutor(1) as thread:  # the caller's own thread may already run a loop
            status, body, is_cut = thread.submit(asyncio.run, fetch()).result()
    except TaoError as error:
        raise ToolSourceError(f"It cannot be fetched: {error.message}", source=said, hint=error.hint) from error
    if status != 200:
        raise ToolSourceError(f"Its server answered with status {status}.", source=said, hint=HINT)
    if is_cut:
        raise ToolSourceError(f"It is larger than {MOST_BYTES:,} bytes.", source=said)
    return body


def _rules_for(address: str, source: OpenapiSource) -> Any:
    from taoloop.tools.egress import EgressRules  # noqa: PLC0415  # loads the HTTP client

    if source.egress is not None:
        return source.egress
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme.lower() == "https" else 80)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return EgressRules(allow=(f"{host}:{port}",), only_allowed=True)


def _without_secrets(address: str) -> str:
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" + ("?…" if parts.query else "")


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


def document_of(given: SourceBytes) -> Document:
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
        return parse_yaml(text)
    except YamlError as error:
        if as_json is not None:
            raise as_json from None
        place = f"line {error.line}" if error.line else ""
        raise ToolSourceError(
            f"It cannot be read as YAML: {error.problem}.", source=said, place=place, hint=HINT
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
