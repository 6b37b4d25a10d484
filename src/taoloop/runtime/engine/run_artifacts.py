"""What a run keeps beside its events: whole outputs of which the model saw a preview, images and files.

Images and files are taken in here: from a caller (`attachment_sources`), or from a tool. A known secret in their bytes
keeps them out, because bytes cannot be redacted. Where the model sees no images, the agent's `describe_image` puts them
into words.
"""

from __future__ import annotations

import inspect
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from taoloop.core.attachments.files import Attachment, AttachmentInfo, File, attached, infos_of, is_remote
from taoloop.core.attachments.media_types import is_text
from taoloop.core.events import Observed, RunStarted
from taoloop.core.images import MAX_REQUEST_BYTES, MAX_REQUEST_IMAGES, Image, ImageInfo
from taoloop.core.message import Message
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.texts import TEXTS
from taoloop.core.trace import Trace, attachments_of
from taoloop.core.views.transcript import Result, observation_text
from taoloop.errors import FileError, ImageError, JournalTampered, ToolTimeout
from taoloop.journals.base import Artifact, Journal
from taoloop.models.base import Model, reads_pdf, sees_images
from taoloop.runtime.engine.clock import within
from taoloop.runtime.engine.tool_execution import Outcome, fault_of, is_own_cancellation
from taoloop.runtime.threads import POOL

Describer = Callable[[Image], str | Awaitable[str]]
"""Says in words what an image shows; a plain function is called in a thread."""

DESCRIBE_S = 120.0
"""How long a description may take, in seconds."""


def attachment_artifact(attachment: Attachment) -> Artifact:
    """An image or a file as a journal keeps it."""
    return Artifact(ref=attachment.info.ref, body=attachment.base64, form=attachment.media_type)


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


async def describe_images(
    attachments: Sequence[Attachment], model: Model, describer: Describer | None
) -> tuple[Attachment, ...]:
    """The images and files of a task; an image with a description behind its words where only a describer sees it."""
    if describer is None or sees_images(model):
        return tuple(attachments)
    return tuple([await _described(describer, item) if isinstance(item, Image) else item for item in attachments])


async def _described(describer: Describer, image: Image) -> Image:
    alt = ": ".join(filter(None, (image.info.alt, await describe(describer, image))))
    return Image.from_url(image.info.url, alt=alt) if image.info.url else Image(image.data, alt=alt)


def with_attachments(result: Result, attachments: Sequence[Attachment]) -> Result:
    """The result with what the tools of its run returned beside texts."""
    images = tuple(item for item in attachments if isinstance(item, Image))
    return replace(result, images=images, files=tuple(item for item in attachments if isinstance(item, File)))


class RunArtifacts:
    """The artifacts of one run: those that wait for the next commit, and the images and files that its model gets.

    Attributes:
        pending: Artifacts to be stored with the next events, which name them.
        model_sees: Whether the model gets the bytes of images.
        model_reads_pdf: Whether it gets the bytes of PDFs.
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
        self.model_sees, self.model_reads_pdf = sees_images(model), reads_pdf(model)
        self._trace, self._journal = trace, journal
        self._redactor, self._describer = redactor, describer
        self._data: dict[str, str] = {}  # of what was in the last prompt, as base64 by the names

    async def accept(self, outcome: Outcome, *, describes: bool = True) -> Outcome:
        """Take in the images and files of a call: the observation names them, its text describes images.

        The outcome itself is changed, and returned.
        """
        observed, redactor = outcome.observed, self._redactor
        if not outcome.images and not outcome.files:
            return outcome
        accepted: list[Attachment] = []
        lines: list[str] = []
        returned: tuple[Attachment, ...] = (*outcome.images, *outcome.files)
        for item in returned:
            if redactor is not None and redactor.holds_known(item.data):
                lines.append(TEXTS.run_text("image_withheld" if isinstance(item, Image) else "file_withheld"))
                continue
            accepted.append(item)
            if isinstance(item, Image) and describes and self._describer is not None and not self.model_sees:
                text = await describe(self._describer, item, redactor.text if redactor is not None else None)
                lines.append(TEXTS.run_text("image_described", ref=item.info.ref, text=text))
        output = "\n".join([observed.output, *lines])
        is_cut = observed.artifact is not None  # then size and form are those of the whole
        outcome.observed = replace(
            observed,
            output=output,
            form="text" if lines and not is_cut else observed.form,
            size_chars=observed.size_chars if is_cut else len(output),
            **infos_of(accepted),
        )
        stored = [attachment_artifact(item) for item in accepted]
        outcome.artifacts = (*outcome.artifacts, *stored)
        self._data = self._data | {item.info.ref: item.base64 for item in accepted if self._gets(item.info)}
        return outcome

    def _gets(self, info: AttachmentInfo) -> bool:
        """Whether a request has the bytes of an image or a file."""
        if isinstance(info, ImageInfo):
            return self.model_sees and not info.url
        return info.is_text or (info.is_pdf and self.model_reads_pdf)

    async def data_for(self, messages: Sequence[Message]) -> dict[str, str]:
        """The bytes of images and files in a prompt, as base64 by their names: the newest that one request may have.

        Raises:
            JournalTampered: the journal does not have one that the trace names.
        """
        room, data = MAX_REQUEST_BYTES, dict[str, str]()
        for info in (info for message in reversed(messages) for info in reversed(attached(message))):
            is_over = info.size_bytes > room or len(data) == MAX_REQUEST_IMAGES
            if info.ref in data or is_over or not self._gets(info):
                continue
            body = self._data.get(info.ref) or await self._body(info.ref)
            if body is None:
                raise missing_artifact(self._trace.run_id, info.ref)
            data[info.ref] = body
            room -= info.size_bytes
        self._data = data
        return data

    async def read(self, ref: str) -> str | None:
        """The whole of an earlier output of the run, or a file that is a text, by its name; None for any other name."""
        artifact = await self._journal.artifact(self._trace.run_id, ref)
        if artifact is not None and artifact.is_binary:
            return b64decode(artifact.body).decode("utf-8-sig") if is_text(artifact.form) else None
        if artifact is not None:
            return artifact.body
        call = self._trace.calls.get(ref.removeprefix("obs_"))  # short enough to be in the trace
        return None if call is None or call.observed is None else observation_text(call.observed)

    async def read_image(self, ref: str) -> Image | None:
        """An image of the run by its name; None for any other name."""
        infos = (info for event in self._trace.events for info in attachments_of(event.fact))
        info = next((info for info in infos if isinstance(info, ImageInfo) and info.ref == ref and not info.url), None)
        attachment = None if info is None else await self._attachment(info)
        return attachment if isinstance(attachment, Image) else None

    async def results(self) -> tuple[Attachment, ...]:
        """The images and files that tools returned, each once, in their order."""
        infos = {
            info.ref: info
            for event in self._trace.events
            if isinstance(event.fact, Observed)
            for info in attachments_of(event.fact)
        }
        attachments = [await self._attachment(info) for info in infos.values()]
        return tuple(attachment for attachment in attachments if attachment is not None)

    async def _attachment(self, info: AttachmentInfo) -> Attachment | None:
        body = await self._body(info.ref)
        if body is None:
            return None
        return Image.stored(body, info) if isinstance(info, ImageInfo) else File.stored(body, info)

    async def _body(self, ref: str) -> str | None:
        pending = next((artifact.body for artifact in self.pending if artifact.ref == ref), None)
        if pending is not None:
            return pending
        artifact = await self._journal.artifact(self._trace.run_id, ref)
        return artifact.body if artifact is not None and artifact.is_binary else None


def missing_artifact(run_id: str, ref: str) -> JournalTampered:
    """The error for an image or a file that a trace names and the journal does not have."""
    return JournalTampered(
        f"The run {run_id} names {ref}, and the journal does not have it any more.",
        hint="Bring back the journal from a backup, or start a new run.",
    )


async def first_artifacts(journal: Journal, started: RunStarted, attachments: Sequence[Attachment]) -> list[Artifact]:
    """What the first event of a run names: the images and files of its task, and of the conversation that it continues.

    In a run that takes another one over, both come from there.

    Raises:
        ImageError, FileError: the history has one that neither `attachments` nor the run before has.
    """
    artifacts = {item.info.ref: attachment_artifact(item) for item in attachments if not is_remote(item.info)}
    for info in attachments_of(started):
        if info.ref in artifacts or is_remote(info):
            continue
        source = started.parent if started.handed_over_by else started.after
        earlier = None if source is None else await journal.artifact(source, info.ref)
        if earlier is None:
            error_type = ImageError if isinstance(info, ImageInfo) else FileError
            raise error_type(
                f"The history has {info.ref} without its bytes.", hint="Continue with `after`, or leave it out."
            )
        artifacts[info.ref] = earlier
    return list(artifacts.values())
