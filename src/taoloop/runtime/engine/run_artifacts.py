"""What a run keeps beside its events: whole outputs of which the model saw a preview, and images.

Images are taken in here: from a caller, or from a tool. A known secret in their bytes keeps them out, because bytes
cannot be redacted. Where the model sees no images, the agent's `describe_image` puts them into words.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from taoloop.core.events import Observed, RunStarted
from taoloop.core.images import MAX_IMAGE_BYTES, MAX_REQUEST_BYTES, MAX_REQUEST_IMAGES, Image, ImageInfo
from taoloop.core.message import Message
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.texts import TEXTS
from taoloop.core.trace import Trace, images_of
from taoloop.core.views.transcript import observation_text
from taoloop.errors import ImageError, ToolTimeout
from taoloop.journals.base import Artifact, Journal
from taoloop.models.base import Model, sees_images
from taoloop.runtime.engine.clock import within
from taoloop.runtime.engine.tool_execution import Outcome, fault_of, is_own_cancellation
from taoloop.runtime.threads import POOL

ImageSource = Image | bytes | str | Path
"""An image as a caller gives it: itself, the bytes of its file, or the path of the file."""

Describer = Callable[[Image], str | Awaitable[str]]
"""Says in words what an image shows; a plain function is called in a thread."""

_URL_SCHEMES = ("data", "file", "ftp", "http", "https")

DESCRIBE_S = 120.0
"""How long a description may take, in seconds."""


def read_images(sources: Sequence[ImageSource], redactor: Redactor | None = None) -> tuple[Image, ...]:
    """The images that a caller gives, at most as much as one request to a model may have.

    Raises:
        ImageError: one cannot be read, is no image or contains a known secret; or they are too many or too large.
    """
    if isinstance(sources, str | bytes | Path | Image) or not isinstance(sources, Collection):
        raise ImageError(f"The images are {type(sources).__name__}.", hint="Give a list of images.")
    images = tuple(source if isinstance(source, Image) else _read_image(source) for source in sources)
    for number, image in enumerate(images, 1):
        if redactor is not None and redactor.holds_known(image.data):
            raise ImageError(f"Image {number} contains a known secret.", hint="Remove it from the file.")
    total = sum(image.info.size_bytes for image in images)
    if len(images) > MAX_REQUEST_IMAGES or total > MAX_REQUEST_BYTES:
        raise ImageError(
            f"{len(images)} images with {total:,} bytes were given.",
            hint=f"A task takes at most {MAX_REQUEST_IMAGES} images with {MAX_REQUEST_BYTES:,} bytes together.",
        )
    return images


def _read_image(source: bytes | str | Path) -> Image:
    if not isinstance(source, str | Path):
        return Image(source)
    scheme = str(source).partition(":")[0].lower()
    if isinstance(source, str) and scheme in _URL_SCHEMES:
        raise ImageError(f"An image is a URL of the scheme {scheme}.", hint="Give its bytes, or the path of its file.")
    path = Path(source)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_IMAGE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ImageError(f"The image {path} cannot be read: {reason}.", hint="Give the path of a file.") from error
    try:
        return Image(data)
    except ImageError as error:
        raise ImageError(f"{path}: {error.message}", hint=error.hint) from None


def image_artifact(image: Image) -> Artifact:
    """An image as a journal keeps it."""
    return Artifact(ref=image.info.ref, body=image.base64, form=image.media_type)


async def describe(describer: Describer, image: Image, clean: Callable[[str], str] | None = None) -> str:
    """What the describer says of an image, without secrets; why it could say nothing where it failed."""
    try:
        text = await within(DESCRIBE_S, _call(describer, image), _late)
        if not isinstance(text, str):
            raise TypeError(f"describe_image returned {type(text).__name__}, not a text")
    except BaseException as error:  # whatever a describer does, the run goes on without a description
        if is_own_cancellation(error):
            raise
        text = TEXTS.run_text("image_undescribed", reason=fault_of(error).message)
    text = " ".join(text.split())
    return text if clean is None else clean(text)


def _late(limit_s: float | None) -> ToolTimeout:
    return ToolTimeout(f"No description came within {limit_s:g} s.")


async def _call(describer: Describer, image: Image) -> str:
    is_async = inspect.iscoroutinefunction(describer)
    result = describer(image) if is_async else await POOL.run(partial(describer, image))
    return await result if inspect.isawaitable(result) else result


async def take_images(
    sources: Sequence[ImageSource], redactor: Redactor | None, model: Model, describer: Describer | None
) -> tuple[Image, ...]:
    """The images of a task; with a description behind their words where the model sees none and there is a describer.

    Raises:
        ImageError: as `read_images`.
    """
    images = read_images(sources, redactor)
    if describer is None or sees_images(model):
        return images
    texts = [await describe(describer, image) for image in images]
    pairs = zip(images, texts, strict=True)
    return tuple(Image(image.data, alt=": ".join(filter(None, (image.info.alt, text)))) for image, text in pairs)


class RunArtifacts:
    """The artifacts of one run: those that wait for the next commit, and the images that its model is to see.

    Attributes:
        pending: Artifacts to be stored with the next events, which name them.
        model_sees: Whether the model gets the bytes of images.
    """

    def __init__(
        self,
        trace: Trace,
        journal: Journal,
        redactor: Redactor | None = None,
        model: Model | None = None,
        describer: Describer | None = None,
        first: Iterable[Artifact] = (),
    ) -> None:
        self.pending = list(first)
        self.model_sees = sees_images(model)
        self._trace, self._journal = trace, journal
        self._redactor, self._describer = redactor, describer
        self._data: dict[str, str] = {}  # of the images in the last prompt, as base64 by their names

    async def accept(self, outcome: Outcome, *, describes: bool = True) -> Outcome:
        """Take in the images of a call: the observation names them, its text describes them, artifacts hold them.

        The outcome itself is changed, and returned.
        """
        observed, redactor = outcome.observed, self._redactor
        if not outcome.images:
            return outcome
        accepted: list[Image] = []
        lines: list[str] = []
        for image in outcome.images:
            if redactor is not None and redactor.holds_known(image.data):
                lines.append(TEXTS.run_text("image_withheld"))
                continue
            accepted.append(image)
            if describes and self._describer is not None and not self.model_sees:
                text = await describe(self._describer, image, redactor.text if redactor is not None else None)
                lines.append(TEXTS.run_text("image_described", ref=image.info.ref, text=text))
        output = "\n".join([observed.output, *lines])
        is_cut = observed.artifact is not None  # then size and form are those of the whole
        outcome.observed = replace(
            observed,
            output=output,
            form="text" if lines and not is_cut else observed.form,
            size_chars=observed.size_chars if is_cut else len(output),
            images=tuple(image.info for image in accepted),
        )
        stored = [image_artifact(image) for image in accepted]
        outcome.artifacts = (*outcome.artifacts, *stored)
        if self.model_sees:
            self._data = self._data | {artifact.ref: artifact.body for artifact in stored}
        return outcome

    async def data_for(self, messages: Sequence[Message]) -> dict[str, str]:
        """The bytes of the images in a prompt, as base64 by their names: the newest that one request may have."""
        room, data = MAX_REQUEST_BYTES, dict[str, str]()
        for image in (image for message in reversed(messages) for image in reversed(message.images)):
            if image.ref in data or image.size_bytes > room or len(data) == MAX_REQUEST_IMAGES:
                continue
            if (body := self._data.get(image.ref) or await self._body(image.ref)) is not None:
                data[image.ref] = body
                room -= image.size_bytes
        self._data = data
        return data

    async def read(self, ref: str) -> str | None:
        """The whole of an earlier output of the run, by its name; None for any other name, or that of an image."""
        artifact = await self._journal.artifact(self._trace.run_id, ref)
        if artifact is not None:
            return None if artifact.is_image else artifact.body
        call = self._trace.calls.get(ref.removeprefix("obs_"))  # short enough to be in the trace
        return None if call is None or call.observed is None else observation_text(call.observed)

    async def read_image(self, ref: str) -> Image | None:
        """An image of the run by its name; None for any other name."""
        infos = (image for event in self._trace.events for image in images_of(event.fact))
        info = next((image for image in infos if image.ref == ref), None)
        return None if info is None else await self._image(info)

    async def result_images(self) -> tuple[Image, ...]:
        """The images that tools returned, each once, in their order."""
        infos = {
            image.ref: image
            for event in self._trace.events
            if isinstance(event.fact, Observed)
            for image in event.fact.images
        }
        images = [await self._image(info) for info in infos.values()]
        return tuple(image for image in images if image is not None)

    async def _image(self, info: ImageInfo) -> Image | None:
        body = await self._body(info.ref)
        return None if body is None else Image.stored(body, info)

    async def _body(self, ref: str) -> str | None:
        pending = next((artifact.body for artifact in self.pending if artifact.ref == ref), None)
        if pending is not None:
            return pending
        artifact = await self._journal.artifact(self._trace.run_id, ref)
        return artifact.body if artifact is not None and artifact.is_image else None


async def first_artifacts(journal: Journal, started: RunStarted, images: Sequence[Image]) -> list[Artifact]:
    """What the first event of a run names: the images of its task, and those of the conversation that it continues.

    In a run that takes another one over, both come from there.

    Raises:
        ImageError: the history has an image that neither `images` nor the run before has.
    """
    artifacts = {image.info.ref: image_artifact(image) for image in images}
    for info in images_of(started):
        if info.ref in artifacts:
            continue
        source = started.parent if started.handed_over_by else started.after
        earlier = None if source is None else await journal.artifact(source, info.ref)
        if earlier is None:
            raise ImageError(
                f"The history has the image {info.ref} without its bytes.",
                hint="Continue with `after`, or leave it out.",
            )
        artifacts[info.ref] = earlier
    return list(artifacts.values())
