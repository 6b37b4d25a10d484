"""What is wrong with a graph, before it runs: each problem names the node and the way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from taoloop.core.cards.coercion import resolve_reference, schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.strategies.graph.expressions import (
    Expression,
    ExpressionError,
    Path,
    read_condition,
    read_path,
    read_template,
)
from taoloop.strategies.graph.parallel_writes import parallel_writes
from taoloop.strategies.graph.progress import ERROR, written_fields
from taoloop.strategies.graph.state_types import misfit, parts_at
from taoloop.strategies.graph.workflow import END, EXIT, MERGE_RULES, START, Branch, GraphNode, Workflow, reachable_sets

_NAME = lazy_pattern(r"[^\W\d][\w-]*")
_RESERVED = (START, END, EXIT)


class GraphProblem(NamedTuple):
    """One thing that is wrong with a graph."""

    message: str
    """What, and at which node."""
    hint: str
    """What to do about it."""

    def __str__(self) -> str:
        """Both in one text."""
        return f"{self.message} {self.hint}"


def graph_problems(workflow: Workflow, cards: Mapping[str, ToolCard]) -> list[GraphProblem]:
    """Everything that is wrong with a graph whose nodes call the tools of `cards`; empty if it may run.

    A graph without problems ends: each of its loops has a node with a limit, and nothing waits for what cannot come.
    Fields, tools and types are checked first; paths only in a graph whose edges lead to nodes that exist.
    """
    problems = [*_edge_problems(workflow), *_state_problems(workflow)]
    for node in workflow.nodes.values():
        problems += _node_problems(workflow, node, cards)
    if not problems:
        problems += _path_problems(workflow)
    if not problems:
        problems += [*_unset_fields(workflow), *_parallel_problems(workflow)]
    return problems


def _edge_problems(workflow: Workflow) -> Iterator[GraphProblem]:
    nodes = workflow.nodes
    for name in nodes:
        if name in _RESERVED or not _NAME.fullmatch(name):
            yield GraphProblem(
                f"A node cannot be called {name!r}.",
                "Use letters, digits, _ and -, beginning with a letter, and none of start, end and exit.",
            )
    for source in (START, *nodes):
        if not workflow.edges.get(source):
            yield GraphProblem(f"Nothing follows {source!r}.", f"Add an edge: edges[{source!r}] = a node, or END.")
    for source, branches in workflow.edges.items():
        yield from _branch_problems(workflow, source, branches)
    for node in nodes.values():
        for word, next_node in (("on_error", node.on_error), ("at_limit", node.at_limit)):
            if next_node is not None and next_node not in nodes and next_node not in (END, EXIT):
                yield GraphProblem(f"{word} of {node.name!r} is {next_node!r}, which is no node.", _known(nodes))


def _branch_problems(workflow: Workflow, source: str, branches: Sequence[Branch]) -> Iterator[GraphProblem]:
    nodes = workflow.nodes
    if source != START and source not in nodes:
        yield GraphProblem(f"An edge begins at {source!r}, which is no node.", _known(nodes))
    for branch in branches:
        if branch.when:
            yield from _expression_problems(workflow, source, "the condition", branch.when, read_condition)
        for target in branch.to:
            if target not in nodes and target not in (END, EXIT):
                yield GraphProblem(f"An edge of {source!r} leads to {target!r}, which is no node.", _known(nodes))
        if not branch.to:
            yield GraphProblem(f"An edge of {source!r} leads nowhere.", "Name a node, or END.")
    if branches and branches[-1].when:
        yield GraphProblem(
            f"No edge leads on from {source!r} where none of its conditions holds.",
            'Add "else" as its last branch, with a node or END.',
        )


def _known(nodes: Mapping[str, GraphNode]) -> str:
    names = [*nodes][:20]
    return f"Known nodes: {', '.join([*names, *(['…'] if len(nodes) > len(names) else [])])}; or END, EXIT."


def _state_problems(workflow: Workflow) -> Iterator[GraphProblem]:
    fields = workflow.fields
    known = f"Known fields: {', '.join(fields)}."
    if workflow.state.get("type") != "object" or not fields:
        yield GraphProblem(
            "The state has no fields.", "Give a pydantic model with fields, or a JSON Schema of an object."
        )
    if workflow.input is not None and workflow.input not in fields:
        yield GraphProblem(f"The input is {workflow.input!r}, which is no field of the state.", known)
    if workflow.answer is not None:
        yield from _expression_problems(workflow, "the graph", "the answer", workflow.answer, read_template)
    for field, rule in workflow.merge.items():
        types = schema_types(fields[field], workflow.state) if field in fields else frozenset()
        if field not in fields:
            yield GraphProblem(f"There is a merge rule for {field!r}, which is no field of the state.", known)
        elif rule not in MERGE_RULES:
            yield GraphProblem(f"The merge rule of {field!r} is {rule!r}.", f"Use {', '.join(MERGE_RULES)}.")
        elif (rule == "append" and types and "array" not in types) or (
            rule == "add" and types and types.isdisjoint({"integer", "number"})
        ):
            need = "a list" if rule == "append" else "a number"
            yield GraphProblem(
                f"The merge rule {rule!r} of {field!r} needs {need}, and the field is {_type_names(types)}.",
                "Change the type of the field, or use 'last'.",
            )


def _expression_problems(workflow: Workflow, owner: str, what: str, text: Any, read: Any) -> Iterator[GraphProblem]:
    """What is wrong with a condition, or a text with fields, at a node."""
    try:
        expression: Expression = read(text)
    except ExpressionError as error:
        yield GraphProblem(
            f"{owner!r}: {what} {text!r} cannot be read: {error}.",
            "Use fields, constants, comparisons, and, or, not, in and len()."
            if read is read_condition
            else "Write fields as {name}, and braces as {{ and }}.",
        )
        return
    for field in sorted(expression.fields):
        if field not in workflow.fields and field != ERROR:
            yield GraphProblem(
                f"{owner!r}: {what} {text!r} reads {field!r}, which is no field of the state.",
                f"Known fields: {', '.join(workflow.fields)}.",
            )
            return
    yield from _type_problems_of_expression(workflow, f"{owner!r}: {what} {text!r}", expression)


def _type_problems_of_expression(workflow: Workflow, what: str, expression: Expression) -> Iterator[GraphProblem]:
    """What an expression reads and compares that no state can have."""
    for path in sorted(expression.paths, key=str):
        if path[0] != ERROR and not _schemas_at(workflow, path):
            yield GraphProblem(
                f"{what} reads {_written(path)!r}, and there is no such part in the field {path[0]!r}.",
                "Read another part, or change the type of the field.",
            )
    for sides in expression.orderings:
        left, right = (_types_of(workflow, side) for side in sides)
        if _never_fits(left, right):
            shown = _written(sides[0]) if isinstance(sides[0], tuple) else sides[0]
            yield GraphProblem(
                f"{what} compares {shown!r}, which is {_type_names(left)}, with {_type_names(right)}.",
                "Compare numbers with numbers, and texts with texts.",
            )


def _schemas_at(workflow: Workflow, path: Path) -> list[Any]:
    return parts_at(workflow.fields[str(path[0])], path[1:], workflow.state)


def _types_of(workflow: Workflow, side: Path | str | float) -> frozenset[str]:
    """The types that one side of a comparison may have; empty if that is any."""
    if not isinstance(side, tuple):
        return frozenset({"string" if isinstance(side, str) else "number"})
    if side[0] == ERROR:
        return frozenset()
    types = [schema_types(rule, workflow.state) for rule in _schemas_at(workflow, side) if isinstance(rule, Mapping)]
    return frozenset().union(*types) if types and all(types) else frozenset()


def _written(path: Path) -> str:
    """A path as it is written."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _node_problems(workflow: Workflow, node: GraphNode, cards: Mapping[str, ToolCard]) -> Iterator[GraphProblem]:
    name = node.name
    for word, value, least in (("max_visits", node.max_visits, 1), ("retries", node.retries, 0)):
        if value is not None and (type(value) is not int or value < least):
            yield GraphProblem(f"{word} of {name!r} is {value!r}.", f"Give a whole number of at least {least}.")
    if node.at_limit is not None and node.max_visits is None:
        yield GraphProblem(f"{name!r} has at_limit and no limit.", "Give it max_visits too.")
    card = cards.get(node.tool)
    if card is None:
        yield GraphProblem(
            f"{name!r} calls {node.tool!r}, and there is no such tool.",
            "Give the function or tool itself, the name of a built-in tool, or its source in `tools`.",
        )
        return
    for arg in card.required:
        if arg not in node.args:
            yield GraphProblem(
                f"{name!r}: its argument {arg!r} has no value: the state has no field of that name.",
                f'Say where it comes from: args={{"{arg}": "{{field}}"}}.',
            )
    for arg, value in node.args.items():
        rule = card.parameters.get(arg)
        if rule is None and card.input_schema.get("additionalProperties") is not True:
            known = ", ".join(card.parameters)
            yield GraphProblem(f"{name!r}: {node.tool!r} takes no argument {arg!r}.", f"It takes: {known}.")
        problems = [*_expression_problems(workflow, name, f"the argument {arg!r}", value, read_template)]
        yield from problems
        if rule is not None and not problems:
            yield from _argument_problems(workflow, node, arg, value, rule, card)
    yield from _write_problems(workflow, node, card)


def _argument_problems(
    workflow: Workflow, node: GraphNode, arg: str, value: Any, rule: Any, card: ToolCard
) -> Iterator[GraphProblem]:
    expression = read_template(value)
    if not expression.fields:
        if problem := misfit(expression.evaluate({}), rule, card.input_schema, arg):
            yield GraphProblem(f"{node.name!r}: {problem}.", f"See what {node.tool!r} takes.")
        return
    if not expression.field or expression.field == ERROR:
        return
    wanted = schema_types(rule, card.input_schema)
    field_types = schema_types(workflow.fields[expression.field], workflow.state)
    if _never_fits(field_types, wanted):
        yield GraphProblem(
            f"{node.name!r}: the argument {arg!r} is {_type_names(wanted)}, and the field {expression.field!r} is "
            f"{_type_names(field_types)}.",
            "Pass another field, or change the type of one of them.",
        )


def _write_problems(workflow: Workflow, node: GraphNode, card: ToolCard) -> Iterator[GraphProblem]:
    fields, output = workflow.fields, card.output_schema
    for field in written_fields(node):
        if field not in fields:
            yield GraphProblem(
                f"{node.name!r} writes {field!r}, which is no field of the state.",
                f"Known fields: {', '.join(fields)}.",
            )
            return
    if node.kind == "person" and isinstance(node.writes, str):
        if _never_fits(frozenset({"boolean"}), schema_types(fields[node.writes], workflow.state)):
            yield GraphProblem(
                f"{node.name!r} writes yes or no to {node.writes!r}, which is no boolean.",
                "Write to a boolean field, or give the question `fields`.",
            )
        return
    if isinstance(node.writes, str):
        yield from _type_problems(workflow, node, node.writes, output, output)
        return
    if node.writes is not None:
        for field, path in node.writes.items():
            try:
                read_path(path)
            except ExpressionError as error:
                yield GraphProblem(f"{node.name!r}: {error}.", "Give the path of the value in the result.")
                continue
            part = _part_of(output, path) if "." not in path and "[" not in path else None
            yield from _type_problems(workflow, node, field, part, output)
        return
    properties = _properties(output)
    names = [field for field in fields if field in properties]
    if not names:
        yield GraphProblem(
            f"{node.name!r}: the result of {node.tool!r} has no field of the state by its name.",
            "Say where it goes: writes='field', or writes={'field': 'path in the result'}; writes={} if nowhere.",
        )
    for field in names:
        yield from _type_problems(workflow, node, field, properties[field], output)


def _type_problems(
    workflow: Workflow, node: GraphNode, field: str, rule: Any, root: Mapping[str, Any] | None
) -> Iterator[GraphProblem]:
    """The types of a result and of the field that it goes to must have something in common."""
    result = schema_types(rule, root) if isinstance(rule, Mapping) else frozenset()
    field_types = schema_types(workflow.fields[field], workflow.state)
    if workflow.merge.get(field) == "append":
        items = workflow.fields[field].get("items")
        item_types = schema_types(items, workflow.state) if isinstance(items, Mapping) else frozenset()
        field_types = field_types | item_types if item_types else frozenset()
    if _never_fits(result, field_types):
        yield GraphProblem(
            f"{node.name!r} writes {_type_names(result)} to {field!r}, which is {_type_names(field_types)}.",
            "Write to another field, or change the type of one of them.",
        )


def _never_fits(values: frozenset[str], types: frozenset[str]) -> bool:
    """Whether no value of these types is of those; an empty set is any type."""
    if not values or not types:
        return False
    wider = types | ({"integer"} if "number" in types else set()) | ({"number"} if "integer" in types else set())
    return values.isdisjoint(wider)


def _type_names(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The parts of an object that a schema describes."""
    if schema is None:
        return {}
    rule: Any = resolve_reference(schema["$ref"], schema) if "$ref" in schema else schema
    properties: Any = rule.get("properties", {}) if isinstance(rule, Mapping) else {}
    return properties if isinstance(properties, Mapping) else {}


def _part_of(schema: Mapping[str, Any] | None, name: str) -> Any:
    return _properties(schema).get(name)


def _path_problems(workflow: Workflow) -> Iterator[GraphProblem]:
    reachable, bits = workflow.reachable, workflow.bits
    for name in workflow.nodes:
        if not reachable[START] & bits[name]:
            yield GraphProblem(f"No path leads to {name!r}.", "Add an edge to it, or remove it.")
        if not reachable[name] & (bits[END] | bits[EXIT]):
            yield GraphProblem(
                f"No path leads from {name!r} to the end, so the graph cannot end.", "Add a branch to END or EXIT."
            )
    unlimited = {
        name: [*workflow.targets(name)] if node.max_visits is None else [node.at_limit] if node.at_limit else []
        for name, node in workflow.nodes.items()
    }
    closed = reachable_sets(unlimited, bits)
    looping = [name for name in workflow.nodes if closed[name] & bits[name]]
    while looping:
        loop = [name for name in looping if closed[looping[0]] & bits[name] and closed[name] & bits[looping[0]]]
        shown = " → ".join([*loop[:8], *(["…"] if len(loop) > 8 else [])])
        yield GraphProblem(
            f"The loop of {shown} has no limit.", f"Give a node in it one: {loop[0]!r} max_visits=10, for example."
        )
        looping = [name for name in looping if name not in loop]


def _unset_fields(workflow: Workflow) -> Iterator[GraphProblem]:
    """Fields that are read and that nothing gives a value."""
    if workflow.input is None:
        return  # the task may give any
    fields = workflow.fields
    written = {name for node in workflow.nodes.values() for name in written_fields(node)} | {workflow.input, ERROR}
    for node in workflow.nodes.values():
        for value in node.args.values():
            for field in sorted(read_template(value).fields - written):
                if "default" not in fields[field]:
                    yield GraphProblem(
                        f"{node.name!r} reads {field!r}, which nothing gives a value.",
                        "Give the field a default, or let a node before it write it.",
                    )


def _parallel_problems(workflow: Workflow) -> Iterator[GraphProblem]:
    for field, first, second in parallel_writes(workflow):
        yield GraphProblem(
            f"{first!r} and {second!r} may run in parallel, and both write {field!r}.",
            f"Say how their values join: merge={{{field!r}: 'append'}} (or 'add', 'last'), or write to two fields.",
        )
