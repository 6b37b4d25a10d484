"""What a file is, by its bytes, and whether its name says the same."""

from __future__ import annotations

from taoloop.core.images import media_type_of_image
from taoloop.errors import FileError

TEXT, PDF, ZIP, BINARY = "text/plain", "application/pdf", "application/zip", "application/octet-stream"

_OFFICE = "application/vnd.openxmlformats-officedocument."
_OF_EXTENSION = {
    **dict.fromkeys(("jpg", "jpeg", "jpe"), "image/jpeg"),
    **{name: f"image/{name}" for name in ("png", "gif", "webp")},
    "pdf": PDF,
    **dict.fromkeys(("txt", "log", "text"), TEXT),
    **dict.fromkeys(("md", "markdown"), "text/markdown"),
    **{name: f"text/{name}" for name in ("csv", "html", "xml", "css")},
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
    **{name: f"application/{name}" for name in ("json", "toml")},
    "zip": ZIP,
    "docx": f"{_OFFICE}wordprocessingml.document",
    "xlsx": f"{_OFFICE}spreadsheetml.sheet",
    "pptx": f"{_OFFICE}presentationml.presentation",
}
_TEXT_TYPES = frozenset({"application/json", "application/toml", "application/yaml"})
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")


def is_text(media_type: str) -> bool:
    """Whether a file of this type is read as text."""
    return media_type.startswith("text/") or media_type in _TEXT_TYPES


def media_type_of(data: bytes, name: str = "") -> str:
    """The media type of a file by its bytes; of a text and of a ZIP archive the kind is taken from the name.

    Raises:
        FileError: the name has the ending of another kind of file; a JPEG named `.png` is an image either way.
    """
    detected = media_type_of_image(data) or _other_type(data)
    named = _OF_EXTENSION.get(name.rpartition(".")[2].lower()) if "." in name else None
    if named is None:
        return detected
    if _family(named) != _family(detected):
        raise FileError(
            f"The file {name[:100]} is named as {named}, and its bytes are {detected}.",
            hint="Give the file that is meant, or name it after what it is.",
        )
    return detected if _family(detected) == "image" else named


def _family(media_type: str) -> str:
    if is_text(media_type):
        return TEXT
    if media_type.startswith(_OFFICE):
        return ZIP
    return "image" if media_type.startswith("image/") else media_type


def _other_type(data: bytes) -> str:
    if data.startswith(b"%PDF-"):
        return PDF
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ZIP
    try:
        data.decode("utf-8-sig")
    except ValueError:
        return BINARY
    return TEXT if _CONTROLS.isdisjoint(data) else BINARY
