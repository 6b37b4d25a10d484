"""What a graph workflow is, as data: the trace stores it, so a replay needs none of the code that made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, get_args

START = "start"
"""Where a run enters the graph."""

END = "end"
"""Where one path of the run ends; the run ends when no path is left."""

EXIT = "exit"
"""Where the whole run ends, whatever other paths still had to do."""

NodeKind = Literal["function", "tool", "agent", "person"]

MergeRule = Literal["append", "add", "last"]
"""How a value that a node gives joins the one that the field has: at the end of the list, added to the number, or in
its place, also where parallel nodes give one (then it is that of the node that the graph names last)."""

MERGE_RULES: tuple[MergeRule, ...] = get_args(MergeRule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One way out of a node."""

    to: tuple[str, ...]
    """The nodes that come next, in parallel if there are several."""
    when: str = ""
    """The condition over the state; empty: always, or where no earlier condition held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One node: a call of a tool, with where its arguments come from and where its result goes."""

    name: str
    """Its name in the graph."""
    tool: str
    """The tool that it calls."""
    kind: NodeKind = "tool"
    """What the tool is, for drawings; a `person` who refuses has answered no."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """The arguments: values, or texts with `{field}` in them."""
    writes: str | Mapping[str, str] | None = None
    """The field that gets the whole result; or fields with the path in the result; None: those of `by_name`."""
    by_name: tuple[str, ...] = ()
    """The fields that get what the result has by their name, where it has it."""
    max_visits: int | None = None
    """How often the node may be entered in one run."""
    at_limit: str | None = None
    """The node that is entered in its place then; None: the run ends."""
    on_error: str | None = None
    """The node that comes next if the call fails; None: the run ends."""
    retries: int = 0
    """How often a call that failed with a retryable error is made again."""


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """A graph: its state, nodes and edges."""

    state: Mapping[str, Any]
    """The JSON Schema of the state, an object; `default` is what a field has at the beginning."""
    nodes: Mapping[str, GraphNode]
    """The nodes by name, in the order of the graph."""
    edges: Mapping[str, tuple[Branch, ...]]
    """The ways out of each node and of `start`; the first whose condition holds is taken."""
    input: str | None = None
    """The field that gets the task; None: the task is a JSON object of fields."""
    answer: str | None = None
    """The answer, a text with `{field}` in it; None: the whole state as JSON."""
    merge: Mapping[str, MergeRule] = field(default_factory=dict)
    """How values join, by field; by default a value takes the place of the one before."""

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Workflow:
        """The graph of a stored description."""
        return cls(
            state=plain["state"],
            nodes={
                name: GraphNode(name=name, **{**node, "by_name": tuple(node.get("by_name", ()))})
                for name, node in plain["nodes"].items()
            },
            edges={
                name: tuple(Branch(to=tuple(branch["to"]), when=branch.get("when", "")) for branch in branches)
                for name, branches in plain["edges"].items()
            },
            input=plain.get("input"),
            answer=plain.get("answer"),
            merge=plain.get("merge", {}),
        )

    def to_plain(self) -> dict[str, Any]:
        """The description that the trace stores; what says nothing is left out."""
        plain: dict[str, Any] = {"state": dict(self.state)}
        plain |= {name: value for name in ("input", "answer") if (value := getattr(self, name)) is not None}
        plain["nodes"] = {name: _plain_node(node) for name, node in self.nodes.items()}
        plain["edges"] = {
            name: [{"to": list(branch.to)} | ({"when": branch.when} if branch.when else {}) for branch in branches]
            for name, branches in self.edges.items()
        }
        return plain | ({"merge": dict(self.merge)} if self.merge else {})

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """The schemas of the fields of the state."""
        properties: Mapping[str, Any] = self.state.get("properties", {})
        return properties

    def targets(self, name: str) -> Iterator[str]:
        """Whatever may come after a node or `start`: by an edge, after an error, or in its place at its limit."""
        for branch in self.edges.get(name, ()):
            yield from branch.to
        node = self.nodes.get(name)
        if node is not None:
            yield from (target for target in (node.on_error, node.at_limit) if target is not None)

    @cached_property
    def reachable(self) -> Mapping[str, int]:
        """For each node the ones that may come after it, as a set of bits (`bits`)."""
        return reachable_sets({name: [*self.targets(name)] for name in (START, *self.nodes)}, self.bits)

    @cached_property
    def loops(self) -> Mapping[int, list[str]]:
        """The nodes of each loop, by what all of them lead to."""
        loops: dict[int, list[str]] = {}
        for name in self.nodes:
            if self.reachable[name] & self.bits[name]:
                loops.setdefault(self.reachable[name], []).append(name)
        return loops

    @cached_property
    def bits(self) -> Mapping[str, int]:
        """The bit of each node, of `end` and of `exit` in `reachable`."""
        return {name: 1 << number for number, name in enumerate((*self.nodes, END, EXIT))}


def reachable_sets(
    targets: Mapping[str, list[str]], bits: Mapping[str, int], known: Mapping[str, int] = MappingProxyType({})
) -> dict[str, int]:
    """For each node of `targets` the set of those that some path leads to; names without a bit are left out.

    `known` has these sets for nodes that `targets` lead out to.
    """
    names = _deepest_first(targets)
    reachable = dict.fromkeys(names, 0)
    changed = True
    while changed:  # once for a graph without loops, and then once more to see that nothing changes
        changed = False
        for name in names:
            bitset = reachable[name]
            for target in targets[name]:
                bitset |= bits.get(target, 0) | (reachable[target] if target in reachable else known.get(target, 0))
            if bitset != reachable[name]:
                reachable[name], changed = bitset, True
    return reachable


def _deepest_first(targets: Mapping[str, list[str]]) -> list[str]:
    """The nodes, each as far as possible after those that it leads to."""
    order: list[str] = []
    visited: set[str] = set()
    for root in targets:
        stack = [(root, iter(targets[root]))] if root not in visited else []
        visited.add(root)
        while stack:
            name, rest = stack[-1]
            target = next((target for target in rest if target in targets and target not in visited), None)
            if target is None:
                order.append(name)
                stack.pop()
            else:
                visited.add(target)
                stack.append((target, iter(targets[target])))
    return order


def _plain_node(node: GraphNode) -> dict[str, Any]:
    plain: dict[str, Any] = {"tool": node.tool, "kind": node.kind}
    plain |= {"args": dict(node.args)} if node.args else {}
    if node.writes is not None:
        plain["writes"] = node.writes if isinstance(node.writes, str) else dict(node.writes)
    plain |= {"by_name": list(node.by_name)} if node.by_name else {}
    for name in ("max_visits", "at_limit", "on_error"):
        if (value := getattr(node, name)) is not None:
            plain[name] = value
    return plain | ({"retries": node.retries} if node.retries else {})
