"""The operations of a GraphQL source: those of its documents, or one for each field of the schema's root types.

What is sent is fixed when the tools are loaded; the arguments of a call are variables, and never part of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import Literal

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLArgument,
    GraphQLError,
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    Visitor,
    get_named_type,
    is_input_type,
    print_ast,
    type_from_ast,
    validate,
    visit,
)
from graphql.type import GraphQLDefaultInput

from taoloop.errors import ToolSourceError
from taoloop.tools.graphql.input_types import takes_upload
from taoloop.tools.graphql.schema import parse_text, read_text
from taoloop.tools.graphql.selection import default_selection
from taoloop.tools.graphql.settings import GraphqlSource
from taoloop.tools.settings_check import expand_home
from taoloop.tools.toolbox import LoadProblem

OperationKind = Literal["query", "mutation"]
_UPLOAD = "It takes a file, which cannot be sent as JSON."


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphqlOperation:
    """One operation: what is sent, and which variables it takes."""

    name: str
    """The name of the field, or of the operation in its document."""
    kind: OperationKind
    """Whether it is a query or a mutation."""
    text: str
    """The document that is sent: this operation, and the fragments that it uses."""
    variables: Mapping[str, GraphQLArgument]
    """Its variables, with the types of the schema."""
    description: str = ""
    """What it does, as its author describes it."""
    returns: str = ""
    """The type of its result."""
    deprecated: str = ""
    """Why it is deprecated; empty: it is not."""
    fields: tuple[str, ...] = ()
    """The names of the root fields that it asks for, for the search."""


@dataclass(slots=True)
class OperationList:
    """The operations of a source, and what could not be used."""

    operations: list[GraphqlOperation] = field(default_factory=list)
    """The operations, in their order."""
    problems: list[LoadProblem] = field(default_factory=list)
    """What was left out, and why."""

    def leave_out(self, source: str, place: str, message: str, hint: str = "") -> None:
        """Note something that is left out."""
        self.problems.append(LoadProblem(source=source, place=place, message=message, hint=hint))


def read_operations(source: GraphqlSource, schema: GraphQLSchema) -> OperationList:
    """The operations that the settings select.

    Raises:
        ToolSourceError: a document cannot be read or parsed.
    """
    result = OperationList()
    found = _of_documents(source, schema, result) if source.documents else _of_fields(source, schema, result)
    for operation in found:
        if len(result.operations) >= source.max_operations:
            text = f"Only the first {source.max_operations:,} operations are tools."
            result.leave_out(source.endpoint, operation.name, text, "Name those that are needed under `operations`.")
            break
        result.operations.append(operation)
    return result


def matches(source: GraphqlSource, name: str, entry: str) -> bool:
    """Whether an entry of the settings names the operation, by its own name or that of its tool."""
    tool_name = f"{source.name}_{name}" if source.name else name
    return fnmatchcase(name, entry) or fnmatchcase(tool_name, entry)


def _is_selected(source: GraphqlSource, name: str, *, deprecated: bool) -> bool:
    if not source.operations:
        return not deprecated
    return any(matches(source, name, entry) for entry in source.operations)


# One tool for each field of the root types


def _of_fields(source: GraphqlSource, schema: GraphQLSchema, result: OperationList) -> Iterator[GraphqlOperation]:
    roots: tuple[tuple[OperationKind, GraphQLObjectType | None], ...] = (
        ("query", schema.query_type),
        ("mutation", schema.mutation_type),
    )
    for kind, root in roots:
        for name, item in root.fields.items() if root is not None else ():
            if not _is_selected(source, name, deprecated=item.deprecation_reason is not None):
                continue
            if any(takes_upload(argument.type) for argument in item.args.values()):
                result.leave_out(source.endpoint, f"{kind} {name}", _UPLOAD)
                continue
            operation = _of_field(source, schema, kind, name, item)
            if name in source.select and (problem := _first_error(schema, operation.text)):
                result.leave_out(source.endpoint, f"select.{name}", problem, "It must fit the type of the field.")
                continue
            yield operation


def _of_field(
    source: GraphqlSource, schema: GraphQLSchema, kind: OperationKind, name: str, item: GraphQLField
) -> GraphqlOperation:
    selection = _selection(source, schema, name, item)
    declared = ", ".join(f"${argument}: {rule.type}{_default_text(rule)}" for argument, rule in item.args.items())
    passed = ", ".join(f"{argument}: ${argument}" for argument in item.args)
    head = f"{kind} {name}({declared})" if declared else f"{kind} {name}"
    call = f"{name}({passed})" if passed else name
    return GraphqlOperation(
        name=name,
        kind=kind,
        text=f"{head} {{ {call}{' ' if selection else ''}{selection} }}",
        variables=item.args,
        description=item.description or "",
        returns=str(item.type),
        deprecated=item.deprecation_reason or "",
        fields=(name,),
    )


def _selection(source: GraphqlSource, schema: GraphQLSchema, name: str, item: GraphQLField) -> str:
    for entry, written in source.select.items():
        if matches(source, name, entry):
            text = written.strip()
            return text if text.startswith("{") else f"{{ {text} }}"
    return default_selection(schema, item.type, depth=source.depth, max_fields=source.max_fields)


def _default_text(rule: GraphQLArgument) -> str:
    """The default of an argument for its variable, without which a required one could not be left out."""
    default = rule.default
    return f" = {print_ast(default.literal)}" if default is not None and default.literal is not None else ""


# One tool for each named operation of the operator's documents


def _of_documents(source: GraphqlSource, schema: GraphQLSchema, result: OperationList) -> Iterator[GraphqlOperation]:
    seen: dict[str, str] = {}
    for given in chain.from_iterable(map(_files_in, source.documents)):
        text, label = read_text(given)
        document = parse_text(text, label)
        fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
        for node in document.definitions:
            if not isinstance(node, OperationDefinitionNode):
                continue
            name = node.name.value if node.name is not None else ""
            operation = name or (f"line {node.loc.start_token.line}" if node.loc is not None else "")
            if problem := _unusable(node, name, seen):
                result.leave_out(label, operation, *problem)
                continue
            seen[name] = label
            if not _is_selected(source, name, deprecated=False):
                continue
            sent = DocumentNode(definitions=(node, *_used_fragments(node, fragments)))
            if problem_text := _document_error(schema, sent):
                result.leave_out(label, operation, problem_text, "Correct the document, or update the schema.")
                continue
            yield _of_node(schema, node, sent, _comment_above(node))


def _files_in(given: str) -> list[str]:
    """The documents in a folder, if it is one; else what was given."""
    if "{" in given or "\n" in given or not (folder := expand_home(given)).is_dir():
        return [given]
    return [str(path) for path in sorted(folder.iterdir()) if path.suffix in (".graphql", ".gql")]


def _unusable(node: OperationDefinitionNode, name: str, seen: Mapping[str, str]) -> tuple[str, str] | None:
    if not name:
        return "An operation has no name.", "Write one behind `query` or `mutation`: it is that of the tool."
    if node.operation is OperationType.SUBSCRIPTION:
        return "It is a subscription; only queries and mutations are tools.", ""
    if name in seen:
        return f"There is an operation of this name in {seen[name]} already.", "Give it another name."
    return None


def _of_node(
    schema: GraphQLSchema, node: OperationDefinitionNode, sent: DocumentNode, comment: str
) -> GraphqlOperation:
    root = schema.mutation_type if node.operation is OperationType.MUTATION else schema.query_type
    asked = [part.name.value for part in node.selection_set.selections if isinstance(part, FieldNode)]
    items = [root.fields[name] for name in asked if root is not None and name in root.fields]
    variables = {}
    for definition in node.variable_definitions or ():
        kind = type_from_ast(schema, definition.type)
        assert kind is not None  # noqa: S101  # the document is valid
        assert is_input_type(kind)  # noqa: S101  # the same
        value = definition.default_value
        default = None if value is None else GraphQLDefaultInput(literal=value)
        variables[definition.variable.name.value] = GraphQLArgument(kind, default=default)
    described = comment or (items[0].description or "" if len(items) == 1 else "")
    return GraphqlOperation(
        name=node.name.value if node.name is not None else "",
        kind="mutation" if node.operation is OperationType.MUTATION else "query",
        text=print_ast(sent),
        variables=variables,
        description=described,
        returns=" ".join(str(get_named_type(item.type)) for item in items),
        fields=tuple(asked),
    )


def _comment_above(node: OperationDefinitionNode) -> str:
    """What describes an operation: its description, else the comment lines directly above it."""
    if node.description is not None:
        return node.description.value
    lines: list[str] = []
    if node.loc is None:
        return ""
    token, line = node.loc.start_token.prev, node.loc.start_token.line
    while token is not None and token.kind.value == "Comment" and token.line == line - 1:
        lines.insert(0, (token.value or "").strip())
        line, token = token.line, token.prev
    return " ".join(lines)


class _Spreads(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def enter_fragment_spread(self, node: FragmentSpreadNode, *_: object) -> None:
        self.names.append(node.name.value)


def _used_fragments(
    node: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> list[FragmentDefinitionNode]:
    used: dict[str, FragmentDefinitionNode] = {}
    waiting: list[OperationDefinitionNode | FragmentDefinitionNode] = [node]
    while waiting:
        spreads = _Spreads()
        visit(waiting.pop(), spreads)
        for name in spreads.names:
            if name in fragments and name not in used:
                used[name] = fragments[name]
                waiting.append(fragments[name])
    return list(used.values())


def _first_error(schema: GraphQLSchema, text: str) -> str:
    try:
        return _document_error(schema, parse_text(text, "it"))
    except ToolSourceError as error:
        return error.message


def _document_error(schema: GraphQLSchema, document: DocumentNode) -> str:
    """The first thing that is wrong with a document; empty: nothing."""
    try:
        errors = validate(schema, document, max_errors=1)
    except (GraphQLError, RecursionError) as error:
        return str(error)[:300]
    return errors[0].message[:300] if errors else ""
