"""From a document to the plan of its tools: operations and their cards, each judged before it is believed."""

from __future__ import annotations

from dataclasses import replace

from taoloop.errors import ToolDefinitionError
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.load_result import LoadProblem
from taoloop.tools.openapi.cards import card_of
from taoloop.tools.openapi.document.document import SourceBytes, document_of
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.document.operation_reader import OperationReader
from taoloop.tools.openapi.plan import Plan, PlannedTool
from taoloop.tools.openapi.schema.property_renames import rename_properties
from taoloop.tools.openapi.schema.truncation import truncate_schema
from taoloop.tools.openapi.settings import OpenapiSource

_CORRECT = "Correct the schemas of its parameters and body in the document."


def build_plan(source: OpenapiSource, given: SourceBytes) -> Plan:
    """The plan of a source whose document was read as bytes.

    Raises:
        ToolSourceError: it is no OpenAPI document.
    """
    reading = OperationReader(document_of(given), source)
    operations = tuple(reading.operations())
    listed = len(operations) <= source.search_above
    tools: list[PlannedTool] = []
    broken: list[LoadProblem] = []
    for operation in operations:
        try:
            tools.append(_planned(operation, source, listed=listed))
        except ToolDefinitionError as error:
            told = f"It is left out. {error.message}"
            broken.append(LoadProblem(source=given.said, place=operation.place, message=told, hint=_CORRECT))
    return Plan(tools=tuple(tools), problems=(*reading.notes.problems, *broken), files=reading.references.files)


def _planned(operation: Operation, source: OpenapiSource, *, listed: bool) -> PlannedTool:
    card = card_of(operation, source)
    whole, renamed = rename_properties(card.input_schema)
    compile_schema(whole, f"The input schema of {operation.name!r}", ToolDefinitionError)
    shown = truncate_schema(whole, source.max_card_bytes)
    return PlannedTool(
        operation=replace(operation, replies=tuple(replace(one, schema=None) for one in operation.replies)),
        card=replace(card, input_schema=shown, listed=listed),
        whole=whole if shown is not whole else None,
        renamed=renamed,
    )
