"""Dialects: how a decision is written by a model and read back. Pure; add one with `register_dialect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.dialects.base import Dialect
from taoloop.dialects.native_dialect import NativeDialect
from taoloop.dialects.prompt import describe, output_format_prompt, system_prompt, task_prompt, tool_block
from taoloop.dialects.standalone_reader import Reading, read_and_validate
from taoloop.dialects.text_dialect import FencedDialect, JsonDialect, JsonFinalDialect, TextDialect
from taoloop.errors import UnknownName

__all__ = [
    "DIALECTS",
    "Dialect",
    "FencedDialect",
    "JsonDialect",
    "JsonFinalDialect",
    "NativeDialect",
    "Reading",
    "TextDialect",
    "describe",
    "get_dialect",
    "output_format_prompt",
    "read_reply",
    "register_dialect",
    "system_prompt",
    "task_prompt",
    "tool_block",
]

_REGISTERED: dict[str, Dialect] = {}

DIALECTS: Mapping[str, Dialect] = MappingProxyType(_REGISTERED)
"""Every registered dialect by name; a view."""


def register_dialect(dialect: Dialect) -> None:
    """Make a dialect known under its name; one of the same name is replaced.

    Its prompt texts (`form_NAME`, `form_NAME_answer`, `thought_NAME`) come from a prompt folder.
    """
    _REGISTERED[dialect.name] = dialect


def get_dialect(name: str) -> Dialect:
    """The dialect called `name`.

    Raises:
        UnknownName: there is none; the error lists those that exist.
    """
    try:
        return _REGISTERED[name]
    except KeyError:
        raise UnknownName("dialect", name, tuple(sorted(_REGISTERED))) from None


register_dialect(TextDialect())
register_dialect(JsonDialect())
register_dialect(JsonFinalDialect())
register_dialect(FencedDialect())
register_dialect(NativeDialect())


def read_reply(
    dialect: str,
    tools: Sequence[ToolCard | Mapping[str, Any]],
    output: str,
    finish_reason: str | None = None,
    *,
    seen: str = "",
) -> Reading:
    """The one decision in a reply, judged by the tools' schemas; never raises for anything in `output`.

    `tools` are cards, or mappings with `name`, `description`, `effect` (a tier) and `parameters` (JSON Schema).
    `output` is the raw text; for `native` the JSON text of one choice of the API, which has its own `finish_reason`.
    `seen` is what the model was shown, the task and observations: a value such as `<email>` is a placeholder, and
    refused, unless that has it.

    Raises:
        UnknownName: there is no such dialect.
    """
    return read_and_validate(get_dialect(dialect), tools, output, finish_reason, seen)
