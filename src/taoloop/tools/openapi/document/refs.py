"""References: within a document, and to other files beneath its folder. Nothing is ever fetched for one."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from taoloop.core.search import PointerError, resolve_json_pointer
from taoloop.errors import TaoError
from taoloop.tools.openapi.document.document import MOST_BYTES, Document, values_of

MOST_FILES = 500
_LONGEST_CHAIN = 30  # references that lead to references


CORRECT = "Correct the reference in the document."
"""What to do about a broken one."""


class BrokenReferenceError(LookupError):
    """A reference leads nowhere; the message says why, as a sentence."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a reference leads to; `uri` is the file it stands in, `pointer` the place there."""

    value: Any
    uri: str
    pointer: str


class References:
    """Looks up the references of one document. Files are read once; `files` are those, with digests of their bytes."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._files: dict[str, Any] = {document.uri: document.root}
        self._anchors: dict[str, dict[str, Any]] = {}
        self._found: dict[tuple[str, str], Found] = {}
        self._broken: dict[tuple[str, str], str] = {}
        self._left = MOST_BYTES
        self.files: dict[str, str] = {}

    def find(self, reference: str, base: str) -> Found:
        """What `reference` in the file `base` leads to; perhaps a reference again.

        Raises:
            BrokenReferenceError: nothing, or a place that is not read.
        """
        key = (base, reference)
        if (known := self._found.get(key)) is not None:
            return known
        if (why := self._broken.get(key)) is not None:
            raise BrokenReferenceError(why)
        try:
            found = self._look(reference, base)
        except BrokenReferenceError as error:
            self._broken[key] = str(error)
            raise
        self._found[key] = found
        return found

    def follow(self, node: Any, base: str) -> Found:
        """`node` itself, or what stands at the end of its references. What stands beside a reference is left out.

        Raises:
            BrokenReferenceError: nothing, a place that is not read, or only each other.
        """
        found = Found(node, base, "")
        for _ in range(_LONGEST_CHAIN):
            reference = found.value.get("$ref") if isinstance(found.value, Mapping) else None
            if not isinstance(reference, str):
                return found
            found = self.find(reference, found.uri)
        raise BrokenReferenceError("The references lead only to each other.")

    def _look(self, reference: str, base: str) -> Found:
        if reference.startswith("#"):
            uri, fragment = base, reference[1:]
        else:
            try:
                uri, fragment = urldefrag(urljoin(base, reference))
            except ValueError as error:
                raise BrokenReferenceError(f"The reference {reference[:120]!r} is no address: {error}.") from error
        if not reference.startswith(("#", "/", ".")) and "/" not in reference and "#" not in reference:
            uri, fragment = self._bare(reference, uri, fragment)
        values = self._values(uri, reference, base)
        pointer = unquote(fragment)
        if not fragment:
            return Found(values, uri, "")
        for place in dict.fromkeys((pointer, fragment)):
            try:
                return Found(resolve_json_pointer(values, place), uri, place)
            except PointerError as error:
                lost = error
        if not pointer.startswith("/"):
            if uri not in self._anchors:
                self._anchors[uri] = dict(_anchors(values))
            if pointer in self._anchors[uri]:
                return Found(self._anchors[uri][pointer], uri, pointer)
        meant = "" if pointer == "/" else f"/{pointer}"  # `other.yaml#/` for all of it, `#definitions/Pet`
        with suppress(PointerError):
            return Found(resolve_json_pointer(values, meant), uri, meant)
        raise BrokenReferenceError(f"The reference {reference[:120]!r} leads nowhere: {lost}")

    def _bare(self, reference: str, uri: str, fragment: str) -> tuple[str, str]:
        """`Pet` alone means a file by the specification; Swagger documents mean a definition by it."""
        for place in ("definitions", "components/schemas"):
            try:
                resolve_json_pointer(self._document.root, f"/{place}/{reference}")
            except PointerError:
                continue
            return self._document.uri, f"/{place}/{reference}"
        return uri, fragment

    def _values(self, uri: str, reference: str, base: str) -> Any:
        if uri not in self._files:
            self._files[uri] = self._read(uri, reference, base)
        return self._files[uri]

    def _read(self, uri: str, reference: str, base: str) -> Any:
        folder = self._document.folder
        if urlsplit(uri).scheme != "file" or urlsplit(uri).netloc:
            raise BrokenReferenceError(
                f"The reference {reference[:120]!r} leads to another address, which is not fetched."
                " Put everything into one document, or the files into one folder."
            )
        if folder is None:
            raise BrokenReferenceError(f"The reference {reference[:120]!r} leads to a file, but the document is none.")
        if len(self._files) > MOST_FILES:
            raise BrokenReferenceError(f"The references lead to more than {MOST_FILES} files.")
        from taoloop.tools.workspace.confined_dir import ConfinedDirectory, split_path  # noqa: PLC0415  # only for documents of several files

        if _leaves(reference, base):
            raise BrokenReferenceError(f"The reference {reference[:120]!r} leads out of the document's folder.")
        path = unquote(urlsplit(uri).path).lstrip("/")
        try:
            parts = split_path(path)
            beneath = ConfinedDirectory(folder)
            try:
                with beneath.regular_file(parts) as (descriptor, _):
                    data = _bytes(descriptor, self._left)
            finally:
                beneath.close()
            self._left -= len(data)
            self.files["/".join(parts)] = hashlib.sha256(data).hexdigest()
            return values_of(data, path)
        except TaoError as error:
            raise BrokenReferenceError(f"The reference {reference[:120]!r} cannot be read: {error.message}") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise BrokenReferenceError(f"The reference {reference[:120]!r} cannot be read: {reason}.") from error


def _leaves(reference: str, base: str) -> bool:
    """Whether a relative path goes up further than the file that it stands in is deep."""
    folder = posixpath.dirname(urlsplit(base).path).strip("/")
    path = unquote(urldefrag(reference).url.removeprefix("file://"))
    return posixpath.normpath(posixpath.join(folder, path.lstrip("/") if folder == "" else path)).startswith("..")


def _anchors(values: Any) -> Iterator[tuple[str, Any]]:
    """The schemas of a document that have a name of their own."""
    waiting = [values]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            for key in ("$dynamicAnchor", "$anchor"):
                if isinstance(name := node.get(key), str):
                    yield name, node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _bytes(descriptor: int, most: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise BrokenReferenceError(f"The files of the document are together larger than {MOST_BYTES:,} bytes.")
    return data
