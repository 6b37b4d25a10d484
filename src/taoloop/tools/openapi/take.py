"""The bytes of an OpenAPI document: of a file, an address or a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from taoloop.errors import TaoError, ToolSourceError
from taoloop.tools.openapi.source import OpenapiSource

MOST_BYTES = 32 * 1024 * 1024
HINT = "Give an OpenAPI 3 or Swagger 2.0 document as a file, an http(s) address, or its text, in YAML or JSON."
_FETCH_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The bytes of a document and where they came from.

    `uri` is the base of its references, `folder` where other files may lie. `said` is what errors call it, `address`
    where it was fetched (empty for files and texts).
    """

    data: bytes
    uri: str
    said: str
    folder: Path | None = None
    address: str = ""


def taken(source: OpenapiSource) -> Given:
    """The document of a source, not looked into yet.

    Raises:
        ToolSourceError: it cannot be read or fetched, or is too large.
    """
    given = source.document
    if _is_text(given):
        data = given.encode("utf-8", "surrogatepass")
        return Given(data=data, uri="file:///document", said="the text of the document")
    if given.lower().startswith(("http://", "https://")):
        said = _without_secrets(given)
        return Given(data=_fetched(given, source), uri=given.partition("#")[0], said=said, address=given)
    path = Path(given.removeprefix("file://")).expanduser()
    data = file_bytes(path, given)
    return Given(data=data, uri=f"file:///{quote(path.name)}", said=given, folder=path.absolute().parent)


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
