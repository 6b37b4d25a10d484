"""A graph of 1,000 nodes: the time to check it; and what a step of a graph costs beside a step of ReAct.

Usage: graph.py [nodes] [steps]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from taoloop import END, START, Agent, Graph, Limits, Node, ScriptedModel, tool

STATE = {
    "type": "object",
    "properties": {"count": {"type": "integer", "default": 0}, "seen": {"type": "array", "default": []}},
}


@tool(tier="read", inline=True)
def add(count: int) -> int:
    """Count."""
    return count + 1


def large_graph(nodes: int) -> Graph:
    """Stages of a branch, a fork of two with a join, and a loop back with a limit."""
    names = [f"n{number}" for number in range(nodes)]
    edges: dict[str, Any] = {START: names[0]}
    table: dict[str, Any] = {}
    for number, name in enumerate(names):
        after = names[number + 1 : number + 4]
        limit = 5 if number % 10 == 0 else None
        table[name] = Node(add, writes="seen" if number % 4 in (1, 2) else "count", max_visits=limit)
        if number % 4 == 0 and len(after) == 3:
            edges[name] = after[:2]
        elif number % 4 == 1 and len(after) >= 2:
            edges[name] = after[1]
        elif number % 10 == 9 and after:
            edges[name] = {"count > 10": after[0], "else": names[number - 9]}
        else:
            edges[name] = after[0] if after else END
    return Graph(state=STATE, nodes=table, edges=edges, merge={"seen": "append"})


def seconds(work: Callable[[], object], times: int = 7) -> float:
    """The median CPU time of `work`."""
    measured = []
    for _ in range(times):
        began = time.process_time()
        work()
        measured.append(time.process_time() - began)
    return statistics.median(measured)


def step_cost(run: Callable[[int], object], steps: int) -> float:
    """The CPU time of one step: that of many, less that of few."""
    run(10)
    return (seconds(lambda: run(steps)) - seconds(lambda: run(10))) / (steps - 10)


def run_graph(steps: int) -> None:
    """One node in a loop."""
    nodes = {"add": Node(add, writes="count", max_visits=steps + 1)}
    graph = Graph(state=STATE, nodes=nodes, edges={START: "add", "add": {f"count >= {steps}": END, "else": "add"}})
    assert graph.agent().run_sync("{}").status == "completed"


def run_react(steps: int) -> None:
    """The same calls, decided by a scripted model."""
    replies: list[Any] = [{"tool_calls": [{"name": "add", "args": {"count": number}}]} for number in range(steps)]
    model = ScriptedModel([*replies, "done"])
    agent = Agent(model=model, tools=[add], limits=Limits(max_steps=None))
    assert agent.run_sync("Count.").status == "completed"


def main() -> None:
    """Print the figures."""
    nodes, steps = (int(text) for text in (*sys.argv[1:], *("1000", "500")[len(sys.argv) - 1 :]))
    graph = large_graph(nodes)
    began = time.process_time()
    workflow = graph.workflow
    built = time.process_time() - began

    def check() -> None:
        for name in ("reachable", "bits", "fields"):
            workflow.__dict__.pop(name, None)
        graph.check()

    print(f"graph of {len(workflow.nodes)} nodes made: {built * 1e3:.1f} ms")
    print(f"checked: {seconds(check) * 1e3:.1f} ms")
    react, own = step_cost(run_react, steps), step_cost(run_graph, steps)
    print(f"a step of ReAct: {react * 1e6:.0f} us, of a graph: {own * 1e6:.0f} us, above: {(own - react) * 1e6:.0f} us")


if __name__ == "__main__":
    main()
