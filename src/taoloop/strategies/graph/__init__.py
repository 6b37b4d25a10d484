"""Graph workflows as a strategy: what a graph is, how it is checked and drawn, and what runs next. Pure."""

from __future__ import annotations

from taoloop.strategies.graph.checks import graph_problems
from taoloop.strategies.graph.mermaid import draw_mermaid
from taoloop.strategies.graph.progress import GraphProgress, graph_progress
from taoloop.strategies.graph.strategy import GRAPH, GraphStrategy
from taoloop.strategies.graph.workflow import END, EXIT, START, Branch, GraphNode, Workflow

__all__ = [
    "END",
    "EXIT",
    "GRAPH",
    "START",
    "Branch",
    "GraphNode",
    "GraphProgress",
    "GraphStrategy",
    "Workflow",
    "draw_mermaid",
    "graph_problems",
    "graph_progress",
]
