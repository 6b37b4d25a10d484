"""Images and files as a caller gives them: read from their paths, and refused before a run begins.

A file is opened only after its kind and size are known, so that a pipe or 200 MB cost nothing. No address is fetched
here: an image by its URL (`Image.from_url`) is passed on to the model's provider.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import cast

from taoloop.core.attachments.files import MAX_FILE_BYTES, Attachment, File, check_size
from taoloop.core.attachments.media_types import media_type_of
from taoloop.core.images import MAX_IMAGE_BYTES, MAX_REQUEST_BYTES, MAX_REQUEST_IMAGES, Image, is_image
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import ConfigError, FileError, ImageError
from taoloop.models.base import Model, reads_pdf, reads_prompts, sees_images

ImageSource = Image | bytes | str | Path
"""An image as a caller gives it: itself, the bytes of its file, or the path of the file."""

AttachmentSource = ImageSource | File
"""An image or a file as a run takes it; bytes, and paths as texts, are those of an image."""

TaskPart = str | Path | Image | File
"""A part of a task: a text, an image, a file, or the path of one as a `Path`."""

Task = str | Sequence[TaskPart]
"""A task as a caller gives it: a text, or a list of texts, images and files."""

_URL_SCHEMES = ("data", "file", "ftp", "http", "https")


def split_task(task: Task) -> tuple[str, tuple[Attachment, ...]]:
    """The text of a task, and its images and files, which follow the text whatever their place in the list.

    Raises:
        ConfigError: a part is none of a task; names its index.
        ImageError, FileError: as `load_attachment`.
    """
    if isinstance(task, str) or not isinstance(task, list | tuple):
        return cast("str", task), ()
    texts: list[str] = []
    attachments: list[Attachment] = []
    for number, part in enumerate(task):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Path):
            attachments.append(load_attachment(part))
        elif isinstance(part, Image | File):
            attachments.append(part)
        else:
            raise ConfigError(
                f"Part {number} of the task is {type(part).__name__}.",
                hint="Give texts, Image(bytes), File(bytes, name=…) or Path(…) of a file.",
            )
    return "\n".join(texts), tuple(attachments)


def load_attachment(path: str | Path) -> Attachment:
    """The image or the file at a path, by its bytes; its name must have no ending of another kind of file.

    At most 20 MB are taken; what is larger is not read.

    Raises:
        FileError: it cannot be read, is empty, too large, or not what its name says.
        ImageError: it is a broken image.
    """
    path = Path(path)
    data = _read(path, MAX_FILE_BYTES, "file", FileError)
    check_size(len(data), path.name)
    media_type_of(data, path.name)
    return _named_image(path, data) if is_image(data) else File(data, name=path.name)


def read_attachments(sources: Sequence[AttachmentSource], redactor: Redactor | None = None) -> tuple[Attachment, ...]:
    """The images and files that a caller gives, at most as much as one request to a model may have.

    Raises:
        ImageError, FileError: one cannot be read, is no image or file that a task takes, or contains a known secret; or
            they are too many or too large.
    """
    if isinstance(sources, str | bytes | Path | Image | File) or not isinstance(sources, Collection):
        raise ImageError(f"The images are {type(sources).__name__}.", hint="Give a list of images.")
    attachments = tuple(item if isinstance(item, Image | File) else _read_image(item) for item in sources)
    for number, item in enumerate(attachments, 1):
        if redactor is not None and _holds_secret(redactor, item):
            if isinstance(item, File):
                raise FileError(f"The file {item.info.file_name} contains a known secret.", hint="Remove it.")
            raise ImageError(f"Image {number} contains a known secret.", hint="Remove it from the file.")
    total = sum(item.info.size_bytes for item in attachments)
    if len(attachments) > MAX_REQUEST_IMAGES or total > MAX_REQUEST_BYTES:
        raise ImageError(
            f"{len(attachments)} images and files with {total:,} bytes were given.",
            hint=f"A task takes at most {MAX_REQUEST_IMAGES} of them with {MAX_REQUEST_BYTES:,} bytes together.",
        )
    return attachments


def require_readable(attachments: Sequence[Attachment], model: Model, *, is_described: bool) -> None:
    """Refuse what the model of a run can make nothing of. A script or a function takes everything: it reads no prompt.

    Raises:
        ImageError: the model sees no images, the image has no words, and nothing describes it.
        FileError: a file is neither a PDF nor a text, or a PDF for a model that reads none.
    """
    for item in attachments:
        if isinstance(item, Image):
            if reads_prompts(model) and not sees_images(model) and not is_described and not item.info.alt:
                raise ImageError(
                    f"The model {model.spec} is not known to see images.",
                    hint="Take one that does. If this one does, say so: vision=True, --vision, or the attribute"
                    " sees_images of a model of your own. Or give words: describe_image=…, Image(…, alt=…).",
                )
        elif not item.info.is_text and not item.info.is_pdf:
            raise FileError(
                f"The file {item.info.file_name} is {item.media_type}; a task takes images, PDF and texts in UTF-8.",
                hint="Convert it, or let a tool read it.",
            )
        elif item.info.is_pdf and reads_prompts(model) and not reads_pdf(model):
            raise FileError(
                f"The model {model.spec} is not known to read PDF.",
                hint="Take one of OpenAI or Anthropic that sees images, give the text of the document, or let a tool"
                " read it (tools of documents). A model of your own says so by its attribute reads_pdf.",
            )


def _holds_secret(redactor: Redactor, item: Attachment) -> bool:
    if isinstance(item, Image) and item.info.url:  # which could not be read again from a redacted trace
        return redactor.text(item.info.url) != item.info.url
    return redactor.holds_known(item.data)


def _read_image(source: bytes | str | Path) -> Image:
    if not isinstance(source, str | Path):
        return Image(source)
    scheme = str(source).partition(":")[0].lower()
    if isinstance(source, str) and scheme in _URL_SCHEMES:
        raise ImageError(
            f"An image is a URL of the scheme {scheme}.",
            hint="Give its bytes, the path of its file, or Image.from_url(…).",
        )
    path = Path(source)
    return _named_image(path, _read(path, MAX_IMAGE_BYTES, "image", ImageError))


def _named_image(path: Path, data: bytes) -> Image:
    try:
        return Image(data)
    except ImageError as error:
        raise ImageError(f"{path}: {error.message}", hint=error.hint) from None


def _read(path: Path, most: int, what: str, error_type: type[ImageError | FileError]) -> bytes:
    """The bytes of a regular file that is not too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no regular file")
        if status.st_size <= most:
            with path.open("rb") as file:
                return file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise error_type(f"The {what} {path} cannot be read: {reason}.", hint="Give the path of a file.") from error
    raise error_type(
        f"The {what} {path} has {status.st_size:,} bytes, and at most {most:,} are taken.",
        hint="Make it smaller first.",
    )
