"""A graph as a Mermaid flowchart, with the path of a run marked in it."""

from __future__ import annotations

from taoloop.core.trace import Trace
from taoloop.strategies.graph.progress import GraphProgress, graph_progress
from taoloop.strategies.graph.workflow import END, EXIT, START, Workflow

_SHAPES = {"function": ("[", "]"), "tool": ("[/", "/]"), "agent": ("[[", "]]"), "person": ("{{", "}}")}
_CLASSES = (
    "classDef passed fill:#d8f0dd,stroke:#2f7d43,color:#12351c",
    "classDef current fill:#fff1c9,stroke:#9a6b00,color:#3d2b00",
    "classDef failed fill:#fbdcdc,stroke:#b02a2a,color:#4a0f0f",
)


def draw_mermaid(workflow: Workflow, trace: Trace | None = None) -> str:
    """The flowchart of a graph: people are hexagons, agents have double sides, tools slanted ones.

    With the `trace` of a run of it, what the run has passed is marked, with how often; so is where it is, or failed.
    Dotted arrows lead on after an error, or in place of a node that was entered as often as it may be.
    """
    progress = graph_progress(trace) if trace is not None else None
    workflow = progress.workflow if progress is not None else workflow
    ids = {name: f"n{number}" for number, name in enumerate(workflow.nodes)} | {name: name for name in (START, EXIT)}
    ids |= {START: "start_", END: "end_", EXIT: "exit_"}
    lines = ["flowchart TD", f"  {ids[START]}([start])"]
    for node in workflow.nodes.values():
        left, right = _SHAPES[node.kind]
        count = progress.visits.get(node.name, 0) if progress is not None else 0
        times = f" ×{count}" if count > 1 else ""
        bound = f"<br/>≤ {node.max_visits}" if node.max_visits is not None else ""
        lines.append(f'  {ids[node.name]}{left}"{_text(node.name)}{times}{bound}"{right}')
    arrows: list[str] = []
    passed: list[int] = []
    for source, target, arrow in _edges(workflow):
        if progress is not None and (source, target) in progress.passed:
            passed.append(len(arrows))
        arrows.append(f"  {ids[source]} {arrow} {ids[target]}")
    targets = {target for _, target, _ in _edges(workflow)}
    lines += [f"  {ids[name]}([{name}])" for name in (END, EXIT) if name in targets]
    lines += arrows
    if progress is not None:
        lines += _marks(progress, ids)
    if passed:
        lines.append(f"  linkStyle {','.join(map(str, passed))} stroke:#2f7d43,stroke-width:3px")
    return "\n".join(lines) + "\n"


def _edges(workflow: Workflow) -> list[tuple[str, str, str]]:
    """Every edge of the drawing: from, to, and its arrow."""
    edges = []
    for source in (START, *workflow.nodes):
        for branch in workflow.edges.get(source, ()):
            edges += [(source, target, _arrow(workflow, source, branch.when)) for target in branch.to]
        node = workflow.nodes.get(source)
        if node is not None and node.on_error is not None:
            edges.append((source, node.on_error, "-. error .->"))
        if node is not None and node.at_limit is not None:
            edges.append((source, node.at_limit, "-. limit .->"))
    return edges


def _arrow(workflow: Workflow, source: str, when: str) -> str:
    if len(workflow.edges[source]) == 1:
        return "-->"
    return f'-->|"{_text(when or "else")}"|'


def _marks(progress: GraphProgress, ids: dict[str, str]) -> list[str]:
    current = {*progress.due, *progress.running}
    failed = set(progress.failed) & set(progress.workflow.nodes)
    passed = {name for name, count in progress.visits.items() if count} - current - failed
    marked = [("passed", passed), ("current", current), ("failed", failed)]
    lines = [
        f"  class {','.join(ids[name] for name in progress.workflow.nodes if name in names)} {style}"
        for style, names in marked
        if names
    ]
    return [*(f"  {text}" for text in _CLASSES), *lines] if lines else []


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
