"""Resolving references within a document and to other files in its folder. Nothing is ever fetched."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from taoloop.core.search import PointerError, resolve_json_pointer
from taoloop.errors import TaoError
from taoloop.tools.openapi.document import MAX_BYTES, OpenapiDocument, UnusablePartError, parse_values

MAX_FILES = 500
_MAX_CHAIN = 30  # references to references


class BrokenReferenceError(UnusablePartError):
    """A reference cannot be resolved."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "Correct the reference in the document.")


def _broken(reference: str, problem: str) -> BrokenReferenceError:
    return BrokenReferenceError(f"The reference {reference[:120]!r} {problem}")


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """The target of a reference."""

    value: Any
    """The plain data there."""
    uri: str
    """The file that contains it."""
    pointer: str
    """The JSON pointer to it in that file."""


class References:
    """Resolves the references of one document. Each file is read once; `files` has the digests of their bytes."""

    def __init__(self, document: OpenapiDocument) -> None:
        self._document = document
        self._files: dict[str, Any] = {document.origin.uri: document.root}
        self._anchors: dict[str, dict[str, Any]] = {}
        self._results: dict[tuple[str, str], ResolvedNode | str] = {}
        self._remaining_bytes = MAX_BYTES
        self.files: dict[str, str] = {}

    def find(self, reference: str, base: str) -> ResolvedNode:
        """The target of `reference` in the file `base`; it may be a reference itself.

        Raises:
            BrokenReferenceError: it leads nowhere, or to a location that is not read.
        """
        key = (base, reference)
        if key not in self._results:
            try:
                self._results[key] = self._resolve(reference, base)
            except BrokenReferenceError as error:
                self._results[key] = str(error)
        result = self._results[key]
        if isinstance(result, str):
            raise BrokenReferenceError(result)
        return result

    def follow(self, node: Any, base: str) -> ResolvedNode:
        """`node` itself, or the end of its chain of references. Keys beside a reference are ignored.

        Raises:
            BrokenReferenceError: the chain leads nowhere, to a location that is not read, or in a circle.
        """
        resolved = ResolvedNode(node, base, "")
        for _ in range(_MAX_CHAIN):
            reference = resolved.value.get("$ref") if isinstance(resolved.value, Mapping) else None
            if not isinstance(reference, str):
                return resolved
            resolved = self.find(reference, resolved.uri)
        raise BrokenReferenceError("The references form a circle.")

    def _resolve(self, reference: str, base: str) -> ResolvedNode:
        if reference.startswith("#"):
            uri, fragment = base, reference[1:]
        else:
            try:
                uri, fragment = urldefrag(urljoin(base, reference))
            except ValueError as error:
                raise _broken(reference, f"is not a URI: {error}.") from error
        if not reference.startswith(("#", "/", ".")) and "/" not in reference and "#" not in reference:
            uri, fragment = self._resolve_bare_name(reference, uri, fragment)
        if uri not in self._files:
            self._files[uri] = self._read_file(uri, reference, base)
        values = self._files[uri]
        pointer = unquote(fragment)
        if not fragment:
            return ResolvedNode(values, uri, "")
        for pointer_form in dict.fromkeys((pointer, fragment)):
            try:
                return ResolvedNode(resolve_json_pointer(values, pointer_form), uri, pointer_form)
            except PointerError as error:
                pointer_error = error
        if not pointer.startswith("/"):
            if uri not in self._anchors:
                self._anchors[uri] = dict(_anchors(values))
            if pointer in self._anchors[uri]:
                return ResolvedNode(self._anchors[uri][pointer], uri, pointer)
        full_pointer = "" if pointer == "/" else f"/{pointer}"  # `other.yaml#/` for all of it, `#definitions/Pet`
        with suppress(PointerError):
            return ResolvedNode(resolve_json_pointer(values, full_pointer), uri, full_pointer)
        raise _broken(reference, f"leads nowhere: {pointer_error}")

    def _resolve_bare_name(self, reference: str, uri: str, fragment: str) -> tuple[str, str]:
        """`Pet` alone is a file by the specification, but Swagger documents mean a definition."""
        for section in ("definitions", "components/schemas"):
            try:
                resolve_json_pointer(self._document.root, f"/{section}/{reference}")
            except PointerError:
                continue
            return self._document.origin.uri, f"/{section}/{reference}"
        return uri, fragment

    def _read_file(self, uri: str, reference: str, base: str) -> Any:
        folder = self._document.origin.folder
        if urlsplit(uri).scheme != "file" or urlsplit(uri).netloc:
            advice = "Put everything into one document, or the files into one folder."
            raise _broken(reference, f"points to another address, which is not fetched. {advice}")
        if folder is None:
            raise _broken(reference, "points to a file, but the document itself is not a file.")
        if len(self._files) > MAX_FILES:
            raise BrokenReferenceError(f"The references point to more than {MAX_FILES} files.")
        from taoloop.tools.workspace.confined_dir import ConfinedDirectory, split_path  # noqa: PLC0415  # only for documents of several files

        if _leaves_folder(reference, base):
            raise _broken(reference, "leaves the folder of the document.")
        path = unquote(urlsplit(uri).path).lstrip("/")
        try:
            parts = split_path(path)
            with (
                closing(ConfinedDirectory(folder)) as directory,
                directory.regular_file(parts) as (descriptor, _),
                os.fdopen(os.dup(descriptor), "rb") as file,
            ):
                data = file.read(self._remaining_bytes + 1)
            if len(data) > self._remaining_bytes:
                raise BrokenReferenceError(f"The files of the document are together larger than {MAX_BYTES:,} bytes.")
            self._remaining_bytes -= len(data)
            self.files["/".join(parts)] = hashlib.sha256(data).hexdigest()
            return parse_values(data, path)
        except TaoError as error:
            raise _broken(reference, f"cannot be read: {error.message}") from error
        except OSError as error:
            raise _broken(reference, f"cannot be read: {error.strerror or error}.") from error


def _leaves_folder(reference: str, base: str) -> bool:
    """Whether a relative path leaves the folder of the document."""
    folder = posixpath.dirname(urlsplit(base).path).strip("/")
    path = unquote(urldefrag(reference).url.removeprefix("file://"))
    return posixpath.normpath(posixpath.join(folder, path.lstrip("/") if folder == "" else path)).startswith("..")


def _anchors(values: Any) -> Iterator[tuple[str, Any]]:
    """The schemas of a document that have an anchor."""
    pending = [values]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            for key in ("$dynamicAnchor", "$anchor"):
                if isinstance(name := node.get(key), str):
                    yield name, node
            pending += node.values()
        elif isinstance(node, list):
            pending += node
