"""The `history` that a caller gives: messages of ours or of OpenAI's chat API, checked before anything is stored.

An OpenAI message is a dict: `{"role": "user", "content": "…"}`. The content is a text, or a list of parts of which
texts (`text`, `input_text`, `output_text`, `refusal`) and, from the user, images (`image_url`) and files (`file`) as
data URIs are read. So are `tool_calls` of the assistant and messages of the role `tool`. A `Message` has these fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as short_repr
from typing import Any

from taoloop.core.attachments.files import Attachment, File, FileInfo
from taoloop.core.images import Image, ImageInfo
from taoloop.core.message import Message, ToolCallText
from taoloop.core.text import replace_surrogates
from taoloop.errors import ConfigError, FileError, ImageError
from taoloop.runtime.conversations.message_history import EarlierCall, MessageHistory

_INSTRUCTIONS = ("system", "developer")
_RESULTS = ("tool", "function")
_TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
_IMAGE_PARTS, _FILE_PARTS = ("image_url", "input_image"), ("file", "input_file")
_DATA_URI = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedHistory:
    """A history that a run can take."""

    messages: tuple[Message, ...] = ()
    """The earlier turns."""

    attachments: tuple[Attachment, ...] = ()
    """The images and files that came with them as data."""


def read_history(history: object) -> ImportedHistory:
    """The history of a run from messages of either form; images and files of a `Message` come with its run (`after`).

    Raises:
        ConfigError: it is no list of messages, or one of them is broken; names its index and what is wrong.
        ImageError, FileError: an image or a file cannot be read; names the index of its message.
    """
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Sequence):
        raise ConfigError(
            f"The history is {short_repr(history)}, which is no list of messages.",
            hint='Write a list of `Message`, or of dicts such as {"role": "user", "content": "Hello."}.',
        )
    read = MessageHistory()
    attachments: list[Attachment] = []
    for index, entry in enumerate(history):
        reader = _MessageReader(f"history[{index}]", entry)
        reader.add_to(read)
        attachments += (*reader.images, *reader.files)
    return ImportedHistory(messages=tuple(read.messages), attachments=tuple(attachments))


class _MessageReader:
    """Reads one message; `place` names it in errors."""

    def __init__(self, place: str, entry: object) -> None:
        self.place, self.images, self.files = place, list[Image](), list[File]()
        self._is_own = isinstance(entry, Message)
        if isinstance(entry, Message):
            self._fields: Mapping[str, Any] = {name: getattr(entry, name) for name in Message.__dataclass_fields__}
        elif isinstance(entry, Mapping):
            self._fields = entry
        else:
            raise self._error(f"is {short_repr(entry)}, which is no message")

    def add_to(self, history: MessageHistory) -> None:
        """Add the message to a history."""
        role = self._fields.get("role")
        if role in _INSTRUCTIONS:
            raise ConfigError(
                f"The message {self.place} is a {role} message.",
                hint="Leave it out, and write its text as `instructions` of the agent.",
            )
        if role == "user":
            images, files = self._image_infos(), self._file_infos()
            text = self._text()
            if not text.strip() and not images and not files:
                raise self._error("has no text")
            history.add_user(text, images, files)
        elif role == "assistant":
            history.add_assistant(self._text(), self._calls())
        elif role in _RESULTS:
            self._add_result(history)
        else:
            raise self._error(f"has the role {short_repr(role)}, which is none of user, assistant and tool")

    def _add_result(self, history: MessageHistory) -> None:
        call_id, name = self._fields.get("tool_call_id"), self._fields.get("name")
        is_older_form = self._fields.get("role") == "function" or (self._is_own and call_id is None)
        if not is_older_form and not isinstance(call_id, str):
            raise self._error(f"has the tool_call_id {short_repr(call_id)}, which is no text")
        if not is_older_form and not history.has_called(call_id):
            raise self._error(f"answers the call {short_repr(call_id)}, which no message before it makes")
        history.add_result(self._text(), None if is_older_form else call_id, name)

    def _text(self) -> str:
        """The text of the message, its parts joined."""
        content = self._fields.get("content")
        if content is None:
            content = self._fields.get("refusal")
        if content is None and self._may_be_empty():
            return ""
        if isinstance(content, str):
            return replace_surrogates(content)
        if isinstance(content, list | tuple):
            return "\n".join(filter(None, (self._part(number, part) for number, part in enumerate(content))))
        raise self._error(f"has the content {short_repr(content)}, which is no text")

    def _may_be_empty(self) -> bool:
        makes_calls = self._fields.get("tool_calls") or self._fields.get("function_call")
        return bool(makes_calls) and self._fields.get("role") == "assistant"

    def _part(self, number: int, part: object) -> str:
        """The text of a part of the content; an image or a file goes to `images` or `files`, and has none."""
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part, Mapping) and kind in _TEXT_PARTS:
            text = part.get("refusal" if kind == "refusal" else "text")
            if isinstance(text, str):
                return replace_surrogates(text)
            raise self._error(f"has a part content[{number}] whose text is {short_repr(text)}")
        if isinstance(part, Mapping) and kind in (*_IMAGE_PARTS, *_FILE_PARTS) and self._fields.get("role") == "user":
            return ""
        raise self._error(f"has a part content[{number}] that is neither a text nor an image or a file of the user")

    def _image_infos(self) -> tuple[ImageInfo, ...]:
        """The images of the message; those that it has as data are also in `images`."""
        infos = self._fields.get("images") or ()
        if not isinstance(infos, list | tuple) or not all(isinstance(info, ImageInfo) for info in infos):
            raise self._error(f"has the images {short_repr(infos)}, which are none of a run")
        content = self._fields.get("content")
        for number, part in enumerate(content if isinstance(content, list | tuple) else ()):
            if isinstance(part, Mapping) and part.get("type") in _IMAGE_PARTS:
                self.images.append(self._image(number, part.get("image_url")))
        return (*infos, *(image.info for image in self.images))

    def _file_infos(self) -> tuple[FileInfo, ...]:
        """The files of the message; those that it has as data are also in `files`."""
        infos = self._fields.get("files") or ()
        if not isinstance(infos, list | tuple) or not all(isinstance(info, FileInfo) for info in infos):
            raise self._error(f"has the files {short_repr(infos)}, which are none of a run")
        content = self._fields.get("content")
        for number, part in enumerate(content if isinstance(content, list | tuple) else ()):
            if isinstance(part, Mapping) and part.get("type") in _FILE_PARTS:
                source = part.get("file", part)
                self.files.append(self._file(number, source if isinstance(source, Mapping) else {}))
        return (*infos, *(file.info for file in self.files))

    def _file(self, number: int, source: Mapping[str, Any]) -> File:
        name = source.get("filename")
        try:
            return File.from_data_uri(source.get("file_data", ""), name=name if isinstance(name, str) else "")
        except FileError as error:
            raise FileError(f"{self.place}.content[{number}]: {error.message}", hint=error.hint) from None

    def _image(self, number: int, source: object) -> Image:
        url = source.get("url") if isinstance(source, Mapping) else source
        match = _DATA_URI.match(url) if isinstance(url, str) else None
        if match is None or not isinstance(url, str):
            raise ImageError(
                f"The image {self.place}.content[{number}] is no data URI.",
                hint="Write its bytes as base64: data:image/png;base64,….",
            )
        try:
            return Image.from_base64(url[match.end() :])
        except ImageError as error:
            raise ImageError(f"{self.place}.content[{number}]: {error.message}", hint=error.hint) from None

    def _calls(self) -> Iterator[EarlierCall]:
        """The tool calls of the assistant."""
        calls = self._fields.get("tool_calls") or ()
        if not isinstance(calls, list | tuple):
            raise self._error(f"has the tool_calls {short_repr(calls)}, which are no list")
        for number, call in enumerate(calls):
            yield self._call(f"tool_calls[{number}]", call)
        if (older_form := self._fields.get("function_call")) is not None:
            yield self._call("function_call", older_form)._replace(id=None)

    def _call(self, field: str, call: object) -> EarlierCall:
        if isinstance(call, ToolCallText):
            return EarlierCall(call.id, call.name, self._arguments(field, call.arguments))
        fields = call if isinstance(call, Mapping) else {}
        call_id, called = fields.get("id"), fields.get("function", fields)
        name = called.get("name") if isinstance(called, Mapping) else None
        if not isinstance(called, Mapping) or not isinstance(name, str) or not name:
            raise self._error(f"has the call {field} without the name of a function")
        if call_id is not None and not isinstance(call_id, str):
            raise self._error(f"has the call {field} whose id is {short_repr(call_id)}, which is no text")
        return EarlierCall(call_id, name, self._arguments(field, called.get("arguments")))

    def _arguments(self, field: str, arguments: object) -> str:
        """The arguments of a call as JSON text; other programs keep them as values."""
        if arguments is None or isinstance(arguments, str):
            return replace_surrogates(arguments or "")
        try:
            return replace_surrogates(json.dumps(arguments, ensure_ascii=False, default=str))
        except (TypeError, ValueError, RecursionError):
            raise self._error(f"has the call {field} whose arguments cannot be written as JSON") from None

    def _error(self, what: str) -> ConfigError:
        return ConfigError(
            f"The message {self.place} {what}.",
            hint='Write a `Message`, or a dict such as {"role": "user", "content": "Hello."}.',
        )
