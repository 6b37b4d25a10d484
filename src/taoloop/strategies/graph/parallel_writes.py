"""Fields of the state that two nodes may write which run in parallel, so that one value would be lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from taoloop.strategies.graph.progress import written_fields
from taoloop.strategies.graph.workflow import Branch, Workflow, reachable_sets


def parallel_writes(workflow: Workflow) -> Iterator[tuple[str, str, str]]:
    """A field without a merge rule and two nodes that may write it in parallel; each field at most once.

    Two nodes may run in parallel behind a fork if one comes after one of its branches only and the other after another
    one only. Where the branches meet in a single node, that waits for both, and what comes after it is no longer in
    parallel; where they meet in several, so is whatever does not wait for the other.
    """
    writers = _writers(workflow)
    reported: set[str] = set()
    for source, branches in workflow.edges.items():
        for branch in branches:
            if len(branch.to) > 1 and (open_fields := {*writers} - reported):
                for field, first, second in _behind_fork(workflow, source, branch, writers, open_fields):
                    if field not in reported:
                        reported.add(field)
                        yield field, first, second


def _writers(workflow: Workflow) -> dict[str, int]:
    """The nodes that write each field without a merge rule, as a set of bits."""
    writers: dict[str, int] = {}
    for node in workflow.nodes.values():
        for field in written_fields(node):
            if field not in workflow.merge:
                writers[field] = writers.get(field, 0) | workflow.bits[node.name]
    return {field: bitset for field, bitset in writers.items() if bitset & (bitset - 1)}


def _behind_fork(
    workflow: Workflow, source: str, branch: Branch, writers: dict[str, int], open_fields: set[str]
) -> Iterator[tuple[str, str, str]]:
    bits, nodes = workflow.bits, workflow.nodes
    reachable = workflow.reachable
    if (
        source in nodes and reachable[source] & bits[source]
    ):  # in a loop: what comes after its next round is another one
        loop = workflow.loops[reachable[source]]
        targets = {name: [] if name == source else [*workflow.targets(name)] for name in loop}
        reachable = {**reachable, **reachable_sets(targets, bits, reachable)}
    heads = [target for target in branch.to if target in nodes]
    behind = {head: reachable[head] | bits[head] for head in heads}
    for field in sorted(open_fields):
        writing = [head for head in heads if behind[head] & writers[field]]
        pair = next(
            (
                pair
                for first, second in combinations(writing, 2)
                if (pair := _parallel_pair(workflow, reachable, behind[first], behind[second], writers[field]))
            ),
            None,
        )
        if pair is not None:
            yield field, *pair


def _parallel_pair(
    workflow: Workflow, reachable: Mapping[str, int], first: int, second: int, writers: int
) -> tuple[str, str] | None:
    """Two of the writers that may run in parallel, one behind each of two branches."""
    shared = first & second
    entries = _entries(workflow, (first | second) & ~shared, shared) if shared else []
    left, right = first & ~shared, second & ~shared
    if len(entries) > 1:  # they meet in several nodes, of which none waits for all
        left, right = first, second
    names, bits = [*workflow.nodes], workflow.bits
    lefts, rights = _names(names, left & writers), _names(names, right & writers)
    for name in lefts:
        for other in rights:
            if name != other and not reachable[name] & bits[other] and not reachable[other] & bits[name]:
                return name, other
    return None


def _entries(workflow: Workflow, outside: int, shared: int) -> list[str]:
    """The nodes that two branches share and that something before them, in one of the branches, leads to."""
    names, bits = [*workflow.nodes], workflow.bits
    entries = {
        target
        for name in _names(names, outside)
        for target in workflow.targets(name)
        if target in workflow.nodes and bits[target] & shared
    }
    return sorted(entries)


def _names(names: list[str], bitset: int) -> list[str]:
    """The nodes of a set of bits, in the order of the graph."""
    members = []
    while bitset:
        lowest = bitset & -bitset
        number = lowest.bit_length() - 1
        if number < len(names):
            members.append(names[number])
        bitset ^= lowest
    return members
