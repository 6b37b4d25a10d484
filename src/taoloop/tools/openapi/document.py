"""An OpenAPI document: fetched from a file, a URL or a text, and parsed into plain values with its version.

Reading is lenient: real documents break their specification, and most of their operations are usable nevertheless.
`document_findings` reports violations by the official meta schemas, which are in the folder `meta_schemas`, unchanged
(https://spec.openapis.org, Apache License 2.0, OpenAPI Initiative).
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from taoloop.errors import TaoError, ToolSourceError
from taoloop.tools.egress import EgressClient, EgressRules
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.settings_check import expand_home
from taoloop.tools.toolbox import LoadProblem
from taoloop.tools.yaml12 import YamlError, parse_yaml

_LONGEST_READ = 20_000
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,500}\)")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[=-]{3,}\s*$|```.*$)", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.{1,300}?)(?<=\S)\1")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`'\"(])|(?<=[。!?！？])")

MAX_PROBLEMS = 200
CORRECT = "Correct this part of the document."
"""The hint for most problems."""


def plain_text(value: Any) -> str:
    """A description as one line without Markdown and HTML; empty if it is not a string."""
    if not isinstance(value, str):
        return ""
    text = _COMMENT.sub(" ", value[:_LONGEST_READ])
    text = html.unescape(_TAG.sub(" ", text)) if "<" in text or "&" in text else text
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    return " ".join(_STRONG.sub(r"\2", _HEADING.sub("", text)).split())


def shorten(value: Any, max_chars: int) -> str:
    """A description as one line of at most `max_chars` characters, cut after a sentence or a word."""
    text = plain_text(value)
    if len(text) <= max_chars:
        return text
    head = text[:max_chars]
    ends = [match.start() for match in _SENTENCE.finditer(head)]
    if ends and ends[-1] >= max_chars // 2:
        return head[: ends[-1]].rstrip()
    return head[: max(head.rfind(" "), max_chars // 2)].rstrip(" ,;:") + " …"


def sentences(text: str) -> list[str]:
    """The sentences of a plain text."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


class UnusablePartError(ValueError):
    """A part of a document cannot be used: the message says why, as a sentence, and `hint` what to do."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


class ProblemLog:
    """The problems of one document, each reported once. `path` is where in the document its reader is."""

    def __init__(self, source: str) -> None:
        self._source, self.path = source, ""
        self._problems: dict[tuple[str, str], LoadProblem] = {}

    def add(self, document_path: str, message: str, hint: str = "") -> None:
        """Report a problem at a path in the document such as `paths./pets.get`."""
        if len(self._problems) < MAX_PROBLEMS:
            problem = LoadProblem(source=self._source, place=document_path, message=message, hint=hint)
            self._problems.setdefault((document_path, message), problem)

    def report(self, message: str, hint: str = CORRECT) -> None:
        """Report a problem where the reader is."""
        self.add(self.path, message, hint)

    @property
    def problems(self) -> tuple[LoadProblem, ...]:
        """All problems, in the order of reporting."""
        return tuple(self._problems.values())


def as_mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> Sequence[Any]:
    """`value` if it is a list, else an empty sequence."""
    return value if isinstance(value, list) else ()


def as_texts(value: Any) -> tuple[str, ...]:
    """The strings of a list; a single string counts as a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in as_list(value) if isinstance(item, str))


def as_text(value: Any) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


MAX_BYTES = 32 * 1024 * 1024
_HINT = "Give an OpenAPI 3 or Swagger 2.0 document as a file, an http(s) URL, or its text, in YAML or JSON."
_FETCH_TIMEOUT_S = 30.0
_MAX_FINDINGS = 20
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON. Half of a surrogate pair alone is not a character, and no provider accepts it."""

Version = Literal["2.0", "3.0", "3.1", "3.2"]

_LOOKALIKES: tuple[tuple[str, str], ...] = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBytes:
    """The bytes of a document and their origin."""

    data: bytes
    """The unparsed content."""
    uri: str
    """The base of relative references."""
    label: str
    """What error messages call the document."""
    folder: Path | None = None
    """The folder of other files that references may name; None: there is none."""
    address: str = ""
    """The URL from which it was fetched; empty for files and texts."""


@dataclass(frozen=True, kw_only=True)
class OpenapiDocument:
    """A parsed document and its origin."""

    root: Mapping[str, Any]
    """The whole document as plain values."""
    version: Version
    """The version of the specification that it declares."""
    origin: SourceBytes
    """Where it is from."""


def fetch_document(source: OpenapiSource) -> SourceBytes:
    """The document of a source, unparsed.

    Raises:
        ToolSourceError: it cannot be read or fetched, or is too large.
    """
    document = source.document
    if "\n" in document or document.lstrip().startswith(("{", "[")):
        data = document.encode("utf-8", "surrogatepass")
        return SourceBytes(data=data, uri="file:///document", label="the text of the document")
    if document.lower().startswith(("http://", "https://")):
        label = without_secrets(document)
        data = fetch(document, label, source.egress)
        return SourceBytes(data=data, uri=document.partition("#")[0], label=label, address=document)
    path = expand_home(document.removeprefix("file://"))
    data = _read_file(path, document)
    return SourceBytes(data=data, uri=f"file:///{quote(path.name)}", label=document, folder=path.absolute().parent)


def _read_file(path: Path, label: str) -> bytes:
    try:
        if path.is_dir():
            raise ToolSourceError("It is a folder.", source=label, hint="Give the path of the document in it.")
        if path.exists() and not path.is_file():
            raise ToolSourceError("It is not a regular file.", source=label)
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unusable(f"It cannot be read: {error.strerror or error}.", label) from None
    except ValueError as error:  # a NUL in the path
        raise _unusable(f"It is not a path: {error}.", label[:100]) from None


def fetch(
    address: str,
    label: str,
    egress: EgressRules | None,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> bytes:
    """The bytes at a URL, which may be one too many. The operator named it, so its host is allowed, and no other.

    Raises:
        ToolSourceError: it cannot be fetched.
    """
    import asyncio  # noqa: PLC0415  # only for a document from the network
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # likewise

    headers = {"Accept": "application/json, application/yaml, */*;q=0.5", **(headers or {})}
    try:
        rules = egress if egress is not None else EgressRules(only_allowed=True).allowing(address)
        client = EgressClient(rules, timeout_s=_FETCH_TIMEOUT_S, max_bytes=MAX_BYTES + 1)
        with ThreadPoolExecutor(1) as thread:  # the thread of the caller may already run an event loop
            request = client.send(method, address, headers=headers, body=body, follow=method == "GET")
            response = thread.submit(copy_context().run, asyncio.run, request).result()
    except TaoError as error:
        raise ToolSourceError(f"It cannot be fetched: {error.message}", source=label, hint=error.hint) from error
    if response.status != 200:
        raise _unusable(f"Its server answered with status {response.status}.", label)
    return response.body


def _unusable(problem: str, label: str, place: str = "") -> ToolSourceError:
    return ToolSourceError(problem, source=label, place=place, hint=_HINT)


def without_secrets(address: str) -> str:
    """A URL for messages, without user, password and query."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" + ("?…" if parts.query else "")


def parse_document(source: SourceBytes) -> OpenapiDocument:
    """Parse the bytes of a document.

    Raises:
        ToolSourceError: they are too large, neither YAML nor JSON, or not an OpenAPI document.
    """
    root = parse_values(source.data, source.label)
    return OpenapiDocument(root=root, version=_read_version(root, source.label), origin=source)


def document_findings(source: OpenapiSource) -> tuple[LoadProblem, ...]:
    """Where a document violates the official meta schema of the version that it declares; at most 20 findings.

    Raises:
        ToolSourceError: it is not an OpenAPI document, or cannot be read.
    """
    from importlib.resources import files  # noqa: PLC0415  # only where a document is checked

    import jsonschema_rs  # noqa: PLC0415  # as above

    document = parse_document(fetch_document(source))
    meta_schema = files("taoloop.tools.openapi").joinpath("meta_schemas", f"v{document.version}.json")
    validator = jsonschema_rs.validator_for(json.loads(meta_schema.read_text(encoding="utf-8")))
    errors = islice(validator.iter_errors(document.root), _MAX_FINDINGS)
    paths = ((error, ".".join(map(str, error.instance_path))) for error in errors)
    label = document.origin.label
    return tuple(LoadProblem(source=label, place=path, message=str(error.message)[:300]) for error, path in paths)


def parse_values(data: bytes, label: str) -> Any:
    """The values of bytes in YAML or JSON. `label` names them in errors.

    Raises:
        ToolSourceError: they are neither; the error names the line.
    """
    if len(data) > MAX_BYTES:
        raise ToolSourceError(f"It is larger than {MAX_BYTES:,} bytes.", source=label)
    text = _decode(data, label)
    start = text.lstrip()[:1]
    if not start:
        raise _unusable("It is empty.", label)
    if start == "<":
        raise _unusable("It is HTML or XML.", label)
    json_error: ToolSourceError | None = None
    if start in "{[":
        try:
            return _parse_json(text)
        except RecursionError:
            raise ToolSourceError("It is nested too deeply.", source=label) from None
        except json.JSONDecodeError as error:
            json_error = _unusable(f"It is not JSON: {error.msg}.", label, f"line {error.lineno}")
        except ValueError as error:
            raise _unusable(f"It is not JSON: {str(error)[:120]}.", label) from None
    try:
        return parse_yaml(text)
    except YamlError as error:
        line = f"line {error.line}" if error.line else ""
        raise json_error or _unusable(f"It cannot be read as YAML: {error.problem}.", label, line) from None


def _decode(data: bytes, label: str) -> str:
    encoding = next((name for bom, name in _BYTE_ORDER_MARKS if data.startswith(bom)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.upper().removesuffix("-SIG")
        raise _unusable(f"It is not {name} text (byte {error.start}).", label) from None


def _parse_json(text: str) -> Any:
    if _SURROGATE.search(text):
        text = _ESCAPE.sub(lambda match: r"\ufffd" if match["half"] else match[0], text)
    return json.loads(text, parse_float=_finite_float, parse_constant=str)


def _finite_float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _read_version(root: Any, label: str) -> Version:
    """The version of the specification that a document declares.

    Raises:
        ToolSourceError: it declares no known version; the error says what the document looks like.
    """
    if not isinstance(root, Mapping):
        kind = "a list" if isinstance(root, list) else "plain text" if isinstance(root, str) else "not a mapping"
        raise _unusable(f"It is {kind}, not an OpenAPI document.", label)
    declared = root.get("openapi", root.get("swagger"))
    if declared is None:
        lookalike = next((f"; it looks like {what}" for key, what in _LOOKALIKES if key in root), "")
        raise _unusable(f"It is not an OpenAPI document: it has neither 'openapi' nor 'swagger'{lookalike}.", label)
    text = str(declared).strip()
    if text.startswith("2"):
        return "2.0"
    if text.startswith("3"):
        return "3.0" if text.startswith("3.0") or text == "3" else "3.1" if text.startswith("3.1") else "3.2"
    raise ToolSourceError(
        f"It declares version {text[:20]!r}, which is not supported.",
        source=label,
        hint="Versions 2.0 and 3.0 to 3.2 are supported; convert the document to one of them.",
    )
