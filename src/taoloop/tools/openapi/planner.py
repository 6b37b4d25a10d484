"""From a document to the plan of its tools: operations and their cards, each judged before it is believed."""

from __future__ import annotations

from dataclasses import replace

from taoloop.errors import ToolDefinitionError
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.load_result import Problem
from taoloop.tools.openapi.cards import card_of
from taoloop.tools.openapi.document.document import Given, document_of
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.document.operation_reader import Reading
from taoloop.tools.openapi.plan import Plan, PlannedTool
from taoloop.tools.openapi.schema.property_renames import with_taken_names
from taoloop.tools.openapi.schema.truncation import shown_schema
from taoloop.tools.openapi.settings import OpenapiSource

_CORRECT = "Correct the schemas of its parameters and body in the document."


def plan_of(source: OpenapiSource, given: Given) -> Plan:
    """The plan of a source whose document was read as bytes.

    Raises:
        ToolSourceError: it is no OpenAPI document.
    """
    reading = Reading(document_of(given), source)
    operations = tuple(reading.operations())
    listed = len(operations) <= source.search_above
    tools: list[PlannedTool] = []
    broken: list[Problem] = []
    for operation in operations:
        try:
            tools.append(_planned(operation, source, listed=listed))
        except ToolDefinitionError as error:
            told = f"It is left out. {error.message}"
            broken.append(Problem(source=given.said, place=operation.place, message=told, hint=_CORRECT))
    return Plan(tools=tuple(tools), problems=(*reading.notes.problems, *broken), files=reading.references.files)


def _planned(operation: Operation, source: OpenapiSource, *, listed: bool) -> PlannedTool:
    card = card_of(operation, source)
    whole, renamed = with_taken_names(card.input_schema)
    compile_schema(whole, f"The input schema of {operation.name!r}", ToolDefinitionError)
    shown = shown_schema(whole, source.max_card_bytes)
    return PlannedTool(
        operation=replace(operation, replies=tuple(replace(one, schema=None) for one in operation.replies)),
        card=replace(card, input_schema=shown, listed=listed),
        whole=whole if shown is not whole else None,
        renamed=renamed,
    )
