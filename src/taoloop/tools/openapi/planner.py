"""Building the plan of a document: its operations and their cards, each with a valid schema."""

from __future__ import annotations

from dataclasses import replace

from taoloop.errors import ToolDefinitionError
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.openapi.cards import card_of
from taoloop.tools.openapi.document.document import SourceBytes, parse_document
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.document.operation_reader import OperationReader
from taoloop.tools.openapi.plan import Plan, PlannedTool
from taoloop.tools.openapi.schema.property_renames import rename_properties
from taoloop.tools.openapi.schema.truncation import truncate_schema
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.toolbox import LoadProblem

_CORRECT = "Correct the schemas of its parameters and body in the document."


def build_plan(source: OpenapiSource, document: SourceBytes) -> Plan:
    """The plan of a source for the bytes of its document.

    Raises:
        ToolSourceError: it is not an OpenAPI document.
    """
    reader = OperationReader(parse_document(document), source)
    operations = tuple(reader.operations())
    listed = len(operations) <= source.search_above
    tools: list[PlannedTool] = []
    broken: list[LoadProblem] = []
    for operation in operations:
        try:
            tools.append(_plan_tool(operation, source, listed=listed))
        except ToolDefinitionError as error:
            problem = f"It is omitted. {error.message}"
            broken.append(
                LoadProblem(source=document.label, place=operation.document_path, message=problem, hint=_CORRECT)
            )
    return Plan(tools=tuple(tools), problems=(*reader.problem_log.problems, *broken), files=reader.references.files)


def _plan_tool(operation: Operation, source: OpenapiSource, *, listed: bool) -> PlannedTool:
    card = card_of(operation, source)
    whole_schema, original_names = rename_properties(card.input_schema)
    compile_schema(whole_schema, f"The input schema of {operation.name!r}", ToolDefinitionError)
    shown_schema = truncate_schema(whole_schema, source.max_card_bytes)
    without_schemas = tuple(replace(response, schema=None) for response in operation.responses)
    return PlannedTool(
        operation=replace(operation, responses=without_schemas),
        card=replace(card, input_schema=shown_schema, listed=listed),
        whole_schema=whole_schema if shown_schema is not whole_schema else None,
        original_names=original_names,
    )
