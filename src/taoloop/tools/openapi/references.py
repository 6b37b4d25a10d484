"""References of a document: into itself, to files below its folder, and to URLs on hosts that the settings name."""

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
from taoloop.tools.openapi.document import (
    MAX_BYTES,
    OpenapiDocument,
    UnusablePartError,
    fetch,
    parse_values,
    without_secrets,
)
from taoloop.tools.openapi.settings import OpenapiSource

MAX_FILES = 500
_MAX_CHAIN = 30  # references to references


class BrokenReferenceError(UnusablePartError):
    """A reference cannot be resolved."""

    def __init__(self, problem: str, reference: str = "") -> None:
        text = f"The reference {reference[:120]!r} {problem}" if reference else problem
        super().__init__(text, "Correct the reference in the document.")


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """The target of a reference."""

    value: Any
    """The plain data there."""
    uri: str
    """The file that contains it."""
    pointer: str
    """The JSON pointer to it in that file."""


@dataclass(frozen=True, slots=True)
class MergedNode:
    """A mapping that may be a reference, such as a path item or an operation, with the keys beside the reference."""

    layers: tuple[ResolvedNode, ...]
    """The mapping itself and the targets of its references; the keys of an earlier one replace those of a later one."""

    @property
    def value(self) -> dict[str, Any]:
        """All keys with their values."""
        return {key: value for layer in reversed(self.layers) for key, value in layer.value.items() if key != "$ref"}

    def parts(self, key: str) -> Iterator[ResolvedNode]:
        """The values of a key in all layers, each with its file, the last layer first."""
        for layer in reversed(self.layers):
            if key in layer.value:
                yield ResolvedNode(layer.value[key], layer.uri, layer.pointer)

    def part(self, key: str) -> ResolvedNode:
        """The value of a key that counts, with its file; None if there is none."""
        return [ResolvedNode(None, self.layers[0].uri, ""), *self.parts(key)][-1]


class References:
    """Resolves the references of one document. Each file is read once; `files` has the digests of their bytes.

    `source`: its settings, which may name hosts from which further files are fetched.
    """

    def __init__(self, document: OpenapiDocument, source: OpenapiSource | None = None) -> None:
        self._document, self._source = document, source
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
        if (result := self._results.get(key)) is None:
            try:
                result = self._resolve(reference, base)
            except BrokenReferenceError as error:
                result = str(error)
            self._results[key] = result
        if isinstance(result, str):
            raise BrokenReferenceError(result)
        return result

    def follow(self, node: Any, base: str) -> ResolvedNode:
        """`node` itself, or the end of its chain of references. Keys beside a reference are ignored.

        Raises:
            BrokenReferenceError: the chain leads nowhere, to a location that is not read, or in a circle.
        """
        return self._chain(node, base)[-1]

    def merge(self, node: Any, base: str) -> MergedNode | None:
        """`node` with the targets of its references; None if it is no mapping.

        Raises:
            BrokenReferenceError: as `follow`.
        """
        layers = self._chain(node, base)
        return MergedNode(tuple(layers)) if isinstance(layers[-1].value, Mapping) else None

    def _chain(self, node: Any, base: str) -> list[ResolvedNode]:
        chain = [ResolvedNode(node, base, "")]
        while len(chain) <= _MAX_CHAIN:
            value = chain[-1].value
            reference = value.get("$ref") if isinstance(value, Mapping) else None
            if not isinstance(reference, str):
                return chain
            chain.append(self.find(reference, chain[-1].uri))
        raise BrokenReferenceError("The references form a circle.")

    def _resolve(self, reference: str, base: str) -> ResolvedNode:
        if reference.startswith("#"):
            uri, fragment = base, reference[1:]
        else:
            try:
                uri, fragment = urldefrag(urljoin(base, reference))
            except ValueError as error:
                raise BrokenReferenceError(f"is not a URI: {error}.", reference) from error
        if not reference.startswith(("#", "/", ".")) and "/" not in reference and "#" not in reference:
            uri, fragment = self._resolve_bare_name(reference, uri, fragment)
        if uri not in self._files:
            self._files[uri] = self._read_file(uri, reference, base)
        values = self._files[uri]
        pointer = unquote(fragment)
        if not fragment:
            return ResolvedNode(values, uri, "")
        if not pointer.startswith("/"):
            if uri not in self._anchors:
                self._anchors[uri] = dict(_anchors(values))
            if pointer in self._anchors[uri]:
                return ResolvedNode(self._anchors[uri][pointer], uri, pointer)
        errors: list[PointerError] = []
        full_pointer = "" if pointer == "/" else f"/{pointer}"  # `other.yaml#/` for all of it, `#definitions/Pet`
        for pointer_form in dict.fromkeys((pointer, fragment, full_pointer)):
            try:
                return ResolvedNode(resolve_json_pointer(values, pointer_form), uri, pointer_form)
            except PointerError as error:
                errors.append(error)
        raise BrokenReferenceError(f"leads nowhere: {errors[0]}", reference)

    def _resolve_bare_name(self, reference: str, uri: str, fragment: str) -> tuple[str, str]:
        """`Pet` alone is a file by the specification, but Swagger documents mean a definition."""
        for section in ("definitions", "components/schemas"):
            with suppress(PointerError):
                resolve_json_pointer(self._document.root, f"/{section}/{reference}")
                return self._document.origin.uri, f"/{section}/{reference}"
        return uri, fragment

    def _read_file(self, uri: str, reference: str, base: str) -> Any:
        if len(self._files) > MAX_FILES:
            raise BrokenReferenceError(f"The references point to more than {MAX_FILES} files.")
        if urlsplit(uri).scheme != "file" or urlsplit(uri).netloc:
            return self._fetch_file(uri, reference)
        folder = self._document.origin.folder
        if folder is None:
            raise BrokenReferenceError("points to a file, but the document itself is not a file.", reference)
        from taoloop.tools.workspace.confined_dir import ConfinedDirectory, split_path  # noqa: PLC0415  # only for documents of several files

        if _leaves_folder(reference, base):
            raise BrokenReferenceError("leaves the folder of the document.", reference)
        path = unquote(urlsplit(uri).path).lstrip("/")
        try:
            parts = split_path(path)
            with (
                closing(ConfinedDirectory(folder)) as directory,
                directory.regular_file(parts) as (descriptor, _),
                os.fdopen(os.dup(descriptor), "rb") as file,
            ):
                data = file.read(self._remaining_bytes + 1)
            return self._parse_file("/".join(parts), data)
        except TaoError as error:
            raise BrokenReferenceError(f"cannot be read: {error.message}", reference) from error
        except OSError as error:
            raise BrokenReferenceError(f"cannot be read: {error.strerror or error}.", reference) from error

    def _fetch_file(self, uri: str, reference: str) -> Any:
        parts = urlsplit(uri)
        if (
            self._source is None
            or parts.scheme not in ("http", "https")
            or parts.netloc not in self._source.reference_hosts
        ):
            advice = f"Add {parts.netloc[:80]!r} to `reference_hosts`, or put everything into one document or folder."
            raise BrokenReferenceError(f"points to another address, which is not fetched. {advice}", reference)
        try:
            return self._parse_file(uri, fetch(uri, without_secrets(uri), self._source.egress))
        except TaoError as error:
            raise BrokenReferenceError(f"cannot be read: {error.message}", reference) from error

    def _parse_file(self, name: str, data: bytes) -> Any:
        if len(data) > self._remaining_bytes:
            raise BrokenReferenceError(f"The files of the document are together larger than {MAX_BYTES:,} bytes.")
        self._remaining_bytes -= len(data)
        self.files[name] = hashlib.sha256(data).hexdigest()
        return parse_values(data, without_secrets(name) if "://" in name else name)


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
