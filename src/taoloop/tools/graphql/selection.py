"""What an operation returns unless the operator says so: the nearest fields, bounded in number, never in circles.

Upper levels go first. A field with required arguments is left out, and so is a page of further objects below the
field that is asked for: a model pages through what it asked for itself.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_composite_type,
    is_required_argument,
)

_PAGING = frozenset(
    {"first", "last", "after", "before", "limit", "offset", "page", "perPage", "pageSize", "skip", "take"}
)
_WRAPPERS = frozenset({"nodes", "edges", "node", "pageInfo"})
"""Fields that only wrap what was asked for: they take no level of their own."""

_PAGE_WRAPPERS = frozenset({"items", "results", "data"})
_PAGE_FIELDS = frozenset({"pageInfo", "totalCount", "total", "hasMore", "hasNextPage", "nextToken", "cursor"})
"""Fields by which a type is one page of something, so that `_PAGE_WRAPPERS` in it are wrappers, too."""

_MAX_MEMBERS = 8


@dataclass(slots=True)
class _Node:
    """A set of fields of one type; `members` are those of the types that an abstract one may be."""

    kind: Any
    depth: int
    path: tuple[str, ...]
    names: dict[str, _Node | None] = field(default_factory=dict)
    members: dict[str, _Node] = field(default_factory=dict)

    def text(self) -> str:
        """The fields as GraphQL; empty if there are none."""
        parts = ["__typename"] if not isinstance(self.kind, GraphQLObjectType) or not self.names else []
        for name, inner in self.names.items():
            parts.append(name if inner is None else f"{name} {{ {inner.text()} }}")
        shared = {name: _type_of(self.kind, name) for name in self.names}
        for member, node in self.members.items():
            fields = []
            for name, inner in node.names.items():
                if name in self.names:
                    continue
                type_text = _type_of(node.kind, name)
                label = name
                if shared.setdefault(name, type_text) != type_text:  # two types must not answer under one name
                    label = f"{member}_{name}: {name}"
                fields.append(label if inner is None else f"{label} {{ {inner.text()} }}")
            if fields:
                parts.append(f"... on {member} {{ {' '.join(fields)} }}")
        return " ".join(parts)


def default_selection(schema: GraphQLSchema, kind: GraphQLOutputType, *, depth: int, max_fields: int) -> str:
    """The selection set for a result of this type, with its braces; empty for a scalar.

    Args:
        schema: The schema of the type.
        kind: The type of the field.
        depth: How many levels of objects are selected.
        max_fields: How many fields there are at most, those of wrappers not counted.
    """
    named = get_named_type(kind)
    if not is_composite_type(named):
        return ""
    root = _Node(named, 1, (named.name,))
    waiting, count = deque([root]), 0
    while waiting:
        node = waiting.popleft()
        for owner in (node, *_members(schema, node)):
            for name, item in _fields_of(owner.kind).items():
                if name in owner.names or not _is_plain(item):
                    continue
                inner = get_named_type(item.type)
                if not is_composite_type(inner):
                    if count < max_fields:
                        owner.names[name], count = None, count + 1
                    continue
                child = _child(owner, name, item, inner, depth)
                if child is not None and count < max_fields:
                    owner.names[name] = child
                    waiting.append(child)
    _prune(root)
    return f"{{ {root.text()} }}"


def _child(node: _Node, name: str, item: GraphQLField, inner: Any, depth: int) -> _Node | None:
    """The set of fields below a field; None: it is left out."""
    is_page = name in _PAGE_WRAPPERS and not _PAGE_FIELDS.isdisjoint(_fields_of(node.kind))
    is_wrapper = (name in _WRAPPERS or is_page) and not item.args
    if inner.name in node.path or (not is_wrapper and not _PAGING.isdisjoint(item.args)):
        return None
    if name == "edges" and "nodes" in _fields_of(node.kind):
        return None
    level = node.depth if is_wrapper else node.depth + 1
    return None if level > depth else _Node(inner, level, (*node.path, inner.name))


def _members(schema: GraphQLSchema, node: _Node) -> list[_Node]:
    """The first types that an abstract one may be, as sets of fields of their own."""
    if isinstance(node.kind, GraphQLUnionType | GraphQLInterfaceType):
        for member in list(schema.get_possible_types(node.kind))[:_MAX_MEMBERS]:
            if member.name not in node.path:
                node.members[member.name] = _Node(member, node.depth, (*node.path, member.name))
    return list(node.members.values())


def _prune(node: _Node) -> None:
    """Leave out fields below which nothing was selected."""
    for owner in (node, *node.members.values()):
        for name, inner in list(owner.names.items()):
            if inner is not None:
                _prune(inner)
                if not inner.names and not any(member.names for member in inner.members.values()):
                    del owner.names[name]


def _fields_of(kind: Any) -> dict[str, GraphQLField]:
    return {} if isinstance(kind, GraphQLUnionType) else kind.fields


def _is_plain(item: GraphQLField) -> bool:
    return item.deprecation_reason is None and not any(map(is_required_argument, item.args.values()))


def _type_of(kind: Any, name: str) -> str:
    item = _fields_of(kind).get(name)
    return "" if item is None else str(item.type)
