"""How far a run of a graph has come: its state, which nodes are due, and what stopped it. A view of the trace.

A node runs once nothing else that is due can still lead to it: so every node that several paths lead to is a join, and
waits for exactly those of them that are on their way. Where nodes wait for each other, in a loop, the first one runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from taoloop.core.cards.coercion import coerce_value
from taoloop.core.decision import Act, Call
from taoloop.core.events import ActionRequested, DoubtSettled, Event, ModelReplied, Observed, Resumed, RunStarted
from taoloop.core.texts import TEXTS
from taoloop.core.trace import Trace
from taoloop.errors import IllegalEvent
from taoloop.strategies.graph.expressions import ExpressionError, UnsetField, read_condition, read_path, read_template
from taoloop.strategies.graph.state_types import misfit
from taoloop.strategies.graph.workflow import END, EXIT, START, GraphNode, Workflow
from taoloop.strategies.in_doubt import output_is_lost

SEPARATOR = ", "
"""Between the names of nodes that run together, in the text of their decision."""

NO_ANSWER = "no_answer"
"""The code of the error of a question that was approved without being answered: it is asked again."""

ERROR = "error"
"""What conditions and texts call the last failure (`error.node`, `error.code`, `error.message`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the run of a graph cannot go on."""

    kind: Literal["task", "node", "limit"]
    """The task does not fit; a node failed, with nothing that follows then; or it has been entered too often."""
    node: str = ""
    """The node."""
    reason: str = ""
    """What is wrong, in words."""
    count: int = 0
    """How often the node may be entered."""


class GraphProgress:
    """The state of one run, folded event by event; nothing here raises for what a tool returned."""

    def __init__(self, workflow: Workflow, trace: Trace) -> None:
        self.workflow, self._trace, self._language = workflow, trace, trace.agent.language
        self.state: dict[str, Any] = {}
        self.due: list[str] = []
        self.running: list[str] = []
        self.failed: dict[str, Failure] = {}
        self.visits: dict[str, int] = {}
        self.passed: dict[tuple[str, str], int] = {}
        self.has_exited = False
        self.last_error: dict[str, str] | None = None
        self._retried: dict[str, int] = {}
        self._node_of: dict[str, str] = {}
        self._outcomes: dict[str, Observed] = {}
        self._happened: set[str] = set()  # calls whose outcome was lost, and that are known to have happened

    def fold(self, event: Event) -> None:
        """Process the next event of the trace."""
        fact = event.fact
        kind = type(fact)
        if kind is ActionRequested:
            assert isinstance(fact, ActionRequested)  # noqa: S101  # for the type checker
            if len(self._node_of) < len(self.running):
                self._node_of[fact.call_id] = self.running[len(self._node_of)]
        elif kind is Observed:
            assert isinstance(fact, Observed)  # noqa: S101  # as above
            if (name := self._node_of.get(fact.call_id)) is not None:
                self._outcomes[name] = fact
                if len(self._outcomes) == len(self.running):
                    self._settle()
        elif isinstance(fact, ModelReplied) and isinstance(fact.decision, Act):
            self.running = fact.text.split(SEPARATOR)
            self.due = [name for name in self.due if name not in self.running]
            self._node_of, self._outcomes = {}, {}
        elif isinstance(fact, RunStarted):
            self._begin(fact.task)
        elif isinstance(fact, Resumed):
            self._try_again()
        elif isinstance(fact, DoubtSettled) and fact.happened:
            self._happened.add(fact.call_id)

    @property
    def failure(self) -> Failure | None:
        """What stopped the run first."""
        return next(iter(self.failed.values()), None)

    def ready(self) -> list[str]:
        """The nodes that run next, together, in the order of the graph."""
        due = self.due
        if len(due) < 2:
            return due
        reachable, bits = self.workflow.reachable, self.workflow.bits
        ready = [
            name for name in due if not any(reachable[other] & bits[name] for other in due if other != name)
        ] or due[:1]
        return sorted(ready, key=bits.__getitem__)

    def call_of(self, name: str, required: tuple[str, ...]) -> Call:
        """The call of a node in this state; arguments that are not `required` are left out while they have no value.

        Raises:
            ExpressionError: an argument has no value.
        """
        node, args = self.workflow.nodes[name], {}
        scope = self.scope
        for arg, value in node.args.items():
            try:
                args[arg] = read_template(value).evaluate(scope)
            except UnsetField:
                if arg in required:
                    raise
        return Call(tool=node.tool, args=args)

    def answer(self) -> str:
        """The answer of the run, from its state.

        Raises:
            ExpressionError: a field of it has no value.
        """
        if self.workflow.answer is None:
            return json.dumps(self.state, ensure_ascii=False)
        value = read_template(self.workflow.answer).evaluate(self.scope)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    @property
    def scope(self) -> Mapping[str, Any]:
        """What conditions and texts read: the state, and the last failure."""
        if self.last_error is None or ERROR in self.workflow.fields:
            return self.state
        return {**self.state, ERROR: self.last_error}

    def fail(self, name: str, reason: str) -> None:
        """Stop at a node, unless another one follows after errors."""
        self.last_error = {"node": name, "code": "graph", "message": reason}
        node = self.workflow.nodes.get(name)
        if node is not None and node.on_error is not None:
            self._enter(node.on_error, name)
        else:
            self.failed[name] = Failure(kind="node", node=name, reason=reason)

    def _begin(self, task: str) -> None:
        workflow = self.workflow
        fields = workflow.fields
        self.state = {name: rule["default"] for name, rule in fields.items() if "default" in rule}
        try:
            values = {workflow.input: task} if workflow.input is not None else json.loads(task)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            example = ", ".join(f'"{name}": …' for name in required_inputs(workflow) or list(fields)[:1])
            self._refuse_task(TEXTS.text(self._language, "graph_task_json", example=f"{{{example}}}"))
            return
        for name, written in values.items():
            rule = fields.get(name)
            if rule is None:
                known = SEPARATOR.join(fields)
                self._refuse_task(TEXTS.text(self._language, "graph_task_field", name=name, known=known))
                return
            value = coerce_value(written, _rooted(rule, workflow))
            if problem := misfit(value, rule, workflow.state, name):
                self._refuse_task(problem)
                return
            self.state[name] = value
        if lacking := [name for name in required_inputs(workflow) if name not in self.state]:
            self._refuse_task(TEXTS.text(self._language, "graph_task_lacks", names=SEPARATOR.join(lacking)))
            return
        self._follow(START)

    def _refuse_task(self, reason: str) -> None:
        self.failed[START] = Failure(kind="task", reason=reason)

    def _try_again(self) -> None:
        """After a resume the nodes that stopped the run are due again, and loops may run as often as at first."""
        failed, self.failed = self.failed, {}
        for name, failure in failed.items():
            if failure.kind == "task":
                self.failed[name] = failure
            elif failure.kind == "limit":
                self.visits[name] = 0
                self._enter(name, name)
            elif name == START:
                self._follow(START)
            elif failure.count:  # its call succeeded, and the way out of it has no value
                self._follow(name)
            else:
                self._retried.pop(name, None)
                self._due(name)

    def _settle(self) -> None:
        """All nodes that ran have an outcome: update the state in the order of the graph, and see what comes next."""
        running, self.running = self.running, []
        for name in running:
            node, observed = self.workflow.nodes[name], self._outcomes[name]
            if self._update(node, observed):
                self._retried.pop(name, None)
        for name in running:
            if self._outcomes[name].ok or self._is_refusal(self.workflow.nodes[name], self._outcomes[name]):
                self._follow(name)

    def _update(self, node: GraphNode, observed: Observed) -> bool:
        """Take over the result of a node; False if it failed."""
        if not observed.ok and not self._is_refusal(node, observed):
            self._handle_error(node, observed)
            return False
        try:
            updates = self._updates(node, observed)
        except ExpressionError as error:
            self._misuse(node, str(error))
            return False
        for field, update in updates.items():
            rule = self.workflow.fields[field]
            value = self._merged(field, coerce_value(update, _rooted(rule, self.workflow)))
            if problem := misfit(value, rule, self.workflow.state, field):
                self._misuse(node, TEXTS.text(self._language, "graph_misfit", problem=problem))
                return False
            self.state[field] = value
        return True

    def _misuse(self, node: GraphNode, reason: str) -> None:
        """A call succeeded, and its result does not fit the state: that is an error of the node."""
        self._outcomes[node.name] = Observed(call_id="", ok=False, output="")
        self.fail(node.name, reason)

    def _is_refusal(self, node: GraphNode, observed: Observed) -> bool:
        """Whether a person said no to a question that is answered by yes or no."""
        is_refused = observed.error is not None and observed.error.code == "refused"
        return is_refused and node.kind == "person" and isinstance(node.writes, str)

    def _updates(self, node: GraphNode, observed: Observed) -> dict[str, Any]:
        if not observed.ok:
            assert isinstance(node.writes, str)  # noqa: S101  # a refusal
            return {node.writes: False}
        writes = node.writes
        if writes is not None and not writes:
            return {}
        if observed.call_id in self._happened and output_is_lost(self._trace, self._trace.calls[observed.call_id]):
            raise ExpressionError(TEXTS.text(self._language, "graph_output_lost"))
        if observed.artifact is not None:
            raise ExpressionError(TEXTS.text(self._language, "graph_too_long", size=observed.size_chars))
        value: Any = observed.output
        if observed.form == "json":
            value = json.loads(value)
        if isinstance(writes, str):
            return {writes: value}
        if writes is not None:
            return {field: read_path(path)(value) for field, path in writes.items()}
        if not isinstance(value, dict):
            raise ExpressionError(TEXTS.text(self._language, "graph_no_object"))
        return {field: value[field] for field in node.by_name if field in value}

    def _merged(self, field: str, value: Any) -> Any:
        rule, before = self.workflow.merge.get(field, "last"), self.state.get(field)
        if rule == "append":
            return [*(before or ()), *(value if isinstance(value, list) else (value,))]
        if rule == "add" and isinstance(value, int | float) and isinstance(before, int | float):
            return before + value
        return value

    def _handle_error(self, node: GraphNode, observed: Observed) -> None:
        error = observed.error
        code, message = ("error", "") if error is None else (error.code, error.message)
        count = self._retried.get(node.name, 0)
        if code == NO_ANSWER or (error is not None and error.retryable and count < node.retries):
            self._retried[node.name] = count + 1
            self._due(node.name)
            return
        self.last_error = {"node": node.name, "code": code, "message": message}
        if node.on_error is not None:
            self._enter(node.on_error, node.name)
            return
        self.failed[node.name] = Failure(kind="node", node=node.name, reason=f"{code}: {message}")

    def _follow(self, name: str) -> None:
        """Enter what the first branch leads to whose condition holds."""
        scope = self.scope
        for branch in self.workflow.edges.get(name, ()):
            try:
                if branch.when and not read_condition(branch.when).evaluate(scope):
                    continue
            except ExpressionError as error:
                reason = TEXTS.text(self._language, "graph_condition", condition=branch.when, problem=error)
                self.failed[name] = Failure(kind="node", node=name, reason=reason, count=1)
                return
            for target in branch.to:
                self._enter(target, name)
            return

    def _enter(self, target: str, source: str) -> None:
        workflow = self.workflow
        while True:  # ends: `check` refuses nodes that are in each other's place at their limits
            if source != target:
                self.passed[source, target] = self.passed.get((source, target), 0) + 1
            if target == EXIT:
                self.has_exited = True
            if target in (END, EXIT) or target in self.due:
                return
            node, count = workflow.nodes[target], self.visits.get(target, 0)
            if node.max_visits is None or count < node.max_visits:
                self.visits[target] = count + 1
                self._due(target)
                return
            if node.at_limit is None:
                self.failed[target] = Failure(kind="limit", node=target, count=count)
                return
            source, target = target, node.at_limit

    def _due(self, name: str) -> None:
        if name not in self.due:
            self.due.append(name)


def _rooted(rule: Any, workflow: Workflow) -> Mapping[str, Any]:
    """The schema of a field by itself, with what its references name."""
    definitions = workflow.state.get("$defs")
    return {**rule, "$defs": definitions} if definitions and isinstance(rule, Mapping) else rule


def required_inputs(workflow: Workflow) -> list[str]:
    """The fields that the task must give: required, without a value at the beginning, and written by no node."""
    if workflow.input is not None:
        return []
    written = {name for node in workflow.nodes.values() for name in written_fields(node)}
    return [
        name
        for name in workflow.state.get("required", ())
        if name in workflow.fields and "default" not in workflow.fields[name] and name not in written
    ]


def written_fields(node: GraphNode) -> tuple[str, ...]:
    """The fields that a node may write."""
    if node.writes is None:
        return node.by_name
    return (node.writes,) if isinstance(node.writes, str) else tuple(node.writes)


def graph_progress(trace: Trace) -> GraphProgress:
    """How far the run of a graph has come.

    Raises:
        IllegalEvent: it is no run of a graph.
    """
    description = trace.agent.graph
    if description is None:
        raise IllegalEvent(f"Run {trace.run_id} has the strategy 'graph' and no graph.")
    return trace.view("graph", lambda: GraphProgress(Workflow.from_plain(description), trace))
