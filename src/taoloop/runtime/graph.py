"""Graph workflows as a user writes them: functions, tools, agents and people as nodes, and an agent that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pydantic_core

from taoloop.core.agent_spec import Limits
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, GraphError, ToolError
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.subagent import agent_tool
from taoloop.runtime.texts import TEXTS
from taoloop.runtime.tool_call_run import NoModel
from taoloop.strategies.graph import END, EXIT, START, Branch, GraphNode, GraphStrategy, Workflow
from taoloop.strategies.graph.checks import graph_problems
from taoloop.strategies.graph.mermaid import draw_mermaid
from taoloop.strategies.graph.progress import NO_ANSWER, graph_progress
from taoloop.strategies.graph.workflow import MergeRule, NodeKind
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.function import function_tool
from taoloop.tools.json_schema import compile_schema, findings, listed
from taoloop.tools.tool import Tool

RESULT_CHARS = 200_000
"""The longest result that a node may write to the state, in characters: the state is in the trace, as a whole."""

ELSE = "else"
"""The last branch of several: what follows where no condition holds."""

Target = str | Sequence[str]
"""What comes next: a node, END, EXIT, or several nodes in parallel."""

LIMITS = Limits(max_steps=None, repeat_tell=None, repeat_stop=None)
"""The limits of a graph's runs unless others are given: its loops have limits of their own."""


@dataclass(frozen=True)
class Node:
    """A node that needs more than its function, tool or agent."""

    run: Callable[..., Any] | Tool | AgentSettings | str
    """A typed function, a tool, an agent, or the name of a built-in tool or of one in `Graph.tools`."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments beside the fields of the same name: values, or texts with fields of the state, such as
    `{"task": "Judge this complaint: {complaint}"}`. A text that is only `{field}` passes the value with its type."""
    writes: str | Mapping[str, str] | None = None
    """The field that gets the result; or fields with the paths of their values in it, `{}` for none. By default the
    parts of the result that are called like fields."""
    max_visits: int | None = None
    """How often the node may be entered in a run. Each loop needs a node with a limit."""
    at_limit: str | None = None
    """The node (or END, EXIT) that is entered in its place then. By default the run ends as `max_steps_exceeded`."""
    on_error: str | None = None
    """What follows if the node fails; it may read `error.node`, `error.code` and `error.message`. By default the run
    ends as `too_many_errors`, and a resume tries the node again."""
    retries: int = 0
    """How often a call that failed with a retryable error is made again, at once."""


@dataclass(frozen=True)
class Person:
    """A node that asks a person. The run waits without a process until somebody answers, like any approval."""

    question: str
    """The question, with fields of the state in braces."""
    fields: Any = None
    """What the person fills in: a pydantic model or a JSON Schema of an object; the answer is an approval with these as
    its arguments. None: approving is yes, refusing is no."""
    writes: str | Mapping[str, str] | None = None
    """As for `Node`. Without `fields` it is a boolean field, which is required."""
    max_visits: int | None = None
    """As for `Node`."""
    at_limit: str | None = None
    """As for `Node`."""
    on_error: str | None = None
    """What follows if the person refuses to fill in the `fields`, or nobody can be asked."""


NodeLike = Node | Person | Callable[..., Any] | Tool | AgentSettings | str


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A business flow as a graph over a typed state; `agent()` makes the agent whose runs follow it.

    A node gets the fields of the state that are called like its parameters, and what it returns updates the fields of
    the same names. A node that several paths lead to waits for those of them that are on their way.

    `edges` say what follows `START` and each node: a node, several in parallel as a list, or branches as a dict, tried
    in order, such as `{"amount > 100": "manager", "else": "pay"}`. `END` ends a path, and the run when no path is left;
    `EXIT` ends the run at once.
    """

    state: Any
    """A pydantic model, or a JSON Schema of an object. Defaults are what fields have at the beginning."""
    nodes: Mapping[str, NodeLike]
    """The nodes by name."""
    edges: Mapping[str, Target | Mapping[str, Target]]
    """What follows what."""
    input: str | None = None
    """The field that gets the task. None: the task is a JSON object of fields, such as `{"order_id": "A-17"}`."""
    answer: str | None = None
    """The answer of a run, with fields in braces. None: the whole state as JSON."""
    merge: Mapping[str, MergeRule] = field(default_factory=dict)
    """How values join in a field: `append` to its list, `add` to its number, or `last`. Needed where parallel nodes
    write the same field; loops use it too."""
    tools: Sequence[Any] = ()
    """Tools and sources of tools that nodes name by a text; built-in tools need not be here."""

    @cached_property
    def workflow(self) -> Workflow:
        """The graph as data.

        Raises:
            ConfigError: a node is none, or a tool cannot be made of it.
        """
        nodes, _ = self._built
        schema = _state_schema(self.state)
        cards = {card.name: card for card in self._toolbox_cards()}
        fields = schema.get("properties", {})
        edges = {name: _branches(targets) for name, targets in self.edges.items()}
        return Workflow(
            state=schema,
            nodes={node.name: _completed(node, cards.get(node.tool), fields) for node in nodes},
            edges=edges,
            input=self.input,
            answer=self.answer,
            merge=dict(self.merge),
        )

    def check(self) -> None:
        """Check the graph as a whole; nothing is run.

        Raises:
            GraphError: unreachable nodes, missing edges, no way to the end, loops without a limit, unknown tools or
                fields, types that do not fit, parallel nodes that write the same field: each with node and way out.
        """
        problems = graph_problems(self.workflow, {card.name: card for card in self._toolbox_cards()})
        if problems:
            texts = [str(problem) for problem in problems[:20]]
            rest = [f"And {len(problems) - len(texts)} more."] if len(problems) > len(texts) else []
            raise GraphError("\n".join(("The graph cannot run.", *texts, *rest)))

    def agent(self, **settings: Any) -> Agent:
        """The agent that runs the graph: `settings` are those of `Agent`, but for model, tools and strategy.

        Its limits are `LIMITS` unless they are given.

        Raises:
            GraphError: the graph cannot run (`check`).
        """
        for name in ("model", "tools", "strategy"):
            if name in settings:
                raise ConfigError(
                    f"The agent of a graph takes no {name}.", hint="Give it to a node, or to the agent of a node."
                )
        self.check()
        settings.setdefault("name", "graph")
        settings.setdefault("limits", LIMITS)
        return Agent(
            model=NoModel("graph"), tools=self._tools, strategy=GraphStrategy(self.workflow.to_plain()), **settings
        )

    def mermaid(self, trace: Trace | None = None) -> str:
        """The graph as a Mermaid flowchart; with the trace of a run, its path is marked (and its own graph drawn)."""
        return draw_mermaid(self.workflow, trace)

    def state_of(self, trace: Trace) -> dict[str, Any]:
        """The state of a run of a graph, as its trace has it so far.

        Raises:
            IllegalEvent: it is no run of a graph.
        """
        return dict(graph_progress(trace).state)

    @property
    def _tools(self) -> tuple[Any, ...]:
        return (*self._built[1], *self.tools)

    @cached_property
    def _built(self) -> tuple[list[GraphNode], tuple[Any, ...]]:
        """The nodes, and the tools that they call; a function or tool that several nodes have is one tool."""
        nodes: list[GraphNode] = []
        tools: dict[str, tuple[Any, Any]] = {}
        for name, node_like in self.nodes.items():
            node = node_like if isinstance(node_like, Node | Person) else Node(node_like)
            origin = node if isinstance(node, Person) else node.run
            tool, kind = _tool_of(name, node)
            tool_name = tool if isinstance(tool, str) else tool.name
            if not isinstance(tool, str) or not _has_tool(self.tools, tool):
                if tool_name in tools and tools[tool_name][0] is not origin:
                    raise GraphError(
                        f"{name!r}: there are two tools called {tool_name!r}.",
                        hint="Rename one of them: @tool(name=…), or the name of the agent.",
                    )
                tools.setdefault(tool_name, (origin, tool))
            nodes.append(_graph_node(name, node, tool_name, kind))
        return nodes, tuple(tool for _, tool in tools.values())

    @cached_property
    def _cards(self) -> tuple[ToolCard, ...]:
        return tuple(bind(AgentSettings(model=NoModel("graph"), tools=self._tools)).toolbox.cards)

    def _toolbox_cards(self) -> Iterable[ToolCard]:
        return self._cards


def _has_tool(tools: Sequence[Any], name: str) -> bool:
    """Whether a tool of this name is among those that were given; those of a source are known only once it is read."""
    return any(getattr(tool, "name", None) == name or not isinstance(tool, Tool | str) for tool in tools)


def _tool_of(name: str, node: Node | Person) -> tuple[Tool | str, NodeKind]:
    """What a node calls, with room for its result, and its kind."""
    if isinstance(node, Person):
        return _question_tool(name, node), "person"
    run = node.run
    if isinstance(run, str):
        return run, "tool"
    kind: NodeKind = "function"
    if isinstance(run, AgentSettings):
        own = name if run.name == AgentSettings.name else run.name
        tool, kind = agent_tool(run, purpose=f"The node {name} of a graph.", name=own), "agent"
    elif isinstance(run, Tool):
        tool = run
    elif callable(run):
        tool = function_tool(run)
    else:
        raise GraphError(
            f"{name!r} is {run!r}, which cannot be a node.",
            hint="Give a typed function, a tool, an agent, the name of a tool, or Person(…).",
        )
    chars = max(tool.card.max_preview_chars, RESULT_CHARS)  # no model reads it
    return replace(tool, card=replace(tool.card, max_preview_chars=chars)), kind


def _question_tool(name: str, node: Person) -> Tool:
    """The question as a tool whose every call needs a person: the arguments of the approval are the answer."""
    form = None if node.fields is None else _state_schema(node.fields)
    properties = {} if form is None else dict(form.get("properties", {}))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"question": {"type": "string"}, **properties},
        "additionalProperties": False,
    }
    if form is not None and "$defs" in form:
        schema["$defs"] = form["$defs"]
    validator = None if form is None else compile_schema(form, f"The fields of {name!r}", GraphError)

    def answer(**answered: Any) -> Any:
        values = {field: value for field, value in answered.items() if field != "question"}
        if validator is None:
            return True
        if problems := findings(validator, values):
            raise ToolError(TEXTS.run_text("graph_no_answer", problems=listed(problems)), code=NO_ANSWER)
        return values

    card = ToolCard(
        name=name,
        purpose=f"Ask a person: {node.question}",
        input_schema=schema,
        output_schema={"type": "boolean"} if form is None else dict(form),
        tier="read",
        approval="required",
        parallel=False,
        max_preview_chars=RESULT_CHARS,
    )
    return tool_from_card(card, answer)


def _graph_node(name: str, node: Node | Person, tool: str, kind: NodeKind) -> GraphNode:
    is_person = isinstance(node, Person)
    if isinstance(node, Person) and node.fields is None and not isinstance(node.writes, str):
        raise GraphError(
            f"{name!r} asks for yes or no, and has no field for it.",
            hint="Say which boolean field gets the answer: writes='approved'.",
        )
    return GraphNode(
        name=name,
        tool=tool,
        kind=kind,
        args={"question": node.question} if isinstance(node, Person) else dict(node.args),
        writes=node.writes if node.writes is None or isinstance(node.writes, str) else dict(node.writes),
        max_visits=node.max_visits,
        at_limit=node.at_limit,
        on_error=node.on_error,
        retries=0 if is_person else node.retries,  # type: ignore[union-attr]  # a Node
    )


def _completed(node: GraphNode, card: ToolCard | None, fields: Mapping[str, Any]) -> GraphNode:
    """The node with the arguments and results that are called like fields of the state."""
    if card is None:
        return node
    args = dict(node.args)
    if node.kind != "person":
        args |= {arg: f"{{{arg}}}" for arg in card.parameters if arg not in args and arg in fields}
    output = card.output_schema or {}
    if "$ref" in output:
        output = output.get("$defs", {}).get(output["$ref"].rpartition("/")[2], {})
    properties = output.get("properties", {})
    by_name = tuple(name for name in fields if name in properties) if node.writes is None else ()
    return replace(node, args=args, by_name=by_name)


def _state_schema(state: Any) -> dict[str, Any]:
    """The JSON Schema of a state or a form, with the defaults of its fields as values."""
    if isinstance(state, Mapping):
        return dict(state)
    if not hasattr(state, "model_json_schema"):
        raise GraphError(f"{state!r} is no type of a state.", hint="Give a pydantic model, or a JSON Schema as a dict.")
    schema: dict[str, Any] = state.model_json_schema()
    properties = {name: dict(rule) for name, rule in schema.get("properties", {}).items()}
    for name, info in state.model_fields.items():
        alias = info.alias or name
        if not info.is_required() and alias in properties:
            default = info.get_default(call_default_factory=True, validated_data={})
            properties[alias]["default"] = pydantic_core.to_jsonable_python(default)
    return {**schema, "properties": properties}


def _branches(targets: Target | Mapping[str, Target]) -> tuple[Branch, ...]:
    if not isinstance(targets, Mapping):
        return (Branch(to=_targets(targets)),)
    conditions = [condition for condition in targets if condition != ELSE]
    branches = [Branch(when=condition, to=_targets(targets[condition])) for condition in conditions]
    return (*branches, *((Branch(to=_targets(targets[ELSE])),) if ELSE in targets else ()))


def _targets(targets: Target) -> tuple[str, ...]:
    return (targets,) if isinstance(targets, str) else tuple(targets)


__all__ = ["ELSE", "END", "EXIT", "LIMITS", "START", "Graph", "Node", "Person"]
