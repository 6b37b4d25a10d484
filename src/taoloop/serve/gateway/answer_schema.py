"""The JSON Schema that final answers are turned into: a mapping, or a text that holds one."""

from __future__ import annotations

from typing import Any

from taoloop.errors import ToolSourceError
from taoloop.runtime.answers import Answers
from taoloop.runtime.placing import placed
from taoloop.serve.gateway.blocks import Block
from taoloop.tools.openapi.read import values_of


def schema_in(block: Block, name: str) -> dict[str, Any] | None:
    """The schema under `name`; None where there is none.

    Raises:
        AgentFileError: it is no mapping, no text that holds one in JSON or YAML, or no valid JSON Schema.
    """
    given = block.data.get(name)
    if given is None or (isinstance(given, str) and not given.strip()):
        return None
    if isinstance(given, str):
        try:
            given = values_of(given.encode(), "the text")
        except ToolSourceError as error:
            raise block.error(name, error.message) from None
    if not isinstance(given, dict):
        raise block.error(name, "a JSON Schema is expected: a mapping, or a text that holds one in JSON or YAML.")
    with placed(block.document, (*block.place, name)):
        return Answers(given).schema
