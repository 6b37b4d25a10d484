"""The plan of an undo: what a run did, in reverse, and how each call is taken back, or why it cannot be.

Nothing is guessed. A call is taken back where its card names a compensation whose arguments all follow from the trace;
whatever else may have changed the world is listed for a person.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, call_digest
from taoloop.core.events import ActionStarted, Compensated, Observed, Undo
from taoloop.core.redaction.redactor import contains_redaction
from taoloop.core.trace import Trace
from taoloop.core.views.steps import UNCLEAR, CallView
from taoloop.core.views.transcript import observation_text
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps, loads
from taoloop.errors import ConfigError, InvalidArguments
from taoloop.journals.base import Journal
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import BoundAgent, bind
from taoloop.runtime.child_run import inner_run_id, load_trace
from taoloop.runtime.texts import TEXTS
from taoloop.strategies.planned_calls import call_of, plan_of
from taoloop.tools.tool import Tool

UndoStatus = Literal["undo", "undone", "cannot", "unknown", "skipped", "elsewhere"]
"""What becomes of a call: it will be undone, was undone before, cannot be undone, may or may not have happened, is
left alone because a person said so, or was made by the run that this one was forked from."""

_NOTHING = object()


class RunNode(NamedTuple):
    """One of the runs to be undone."""

    trace: Trace
    """What the run did."""

    agent: BoundAgent | None
    """The agent whose run it is; None where it is no longer among the tools of the outer one."""

    prefix: str
    """The prefix of the names of its tools in the plan."""

    step: int | None
    """The step of the outermost run that it belongs to; None for that run itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedUndo:
    """One call of a run, and what becomes of it."""

    name: str
    """How a person names it: its call id, with its run before it where that is an inner one."""

    run_id: str
    """The run that made the call."""

    call_id: str
    """The id of the call in that run."""

    step: int
    """The step of the run that is undone, from 1."""

    tool: str
    """The tool that was called."""

    args: Any
    """The arguments of the call."""

    status: UndoStatus
    """What becomes of it."""

    call: Call | None = None
    """The call that undoes it, if there is one."""

    why: str = ""
    """For people: why it cannot be undone, or what came of an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """What undoing a run back to the end of a step would do."""

    run_id: str
    """The run to undo."""

    to_step: int
    """The last step that stays; 0 undoes all of the run."""

    language: str
    """The language of the run, and of the texts in the plan."""

    items: tuple[PlannedUndo, ...]
    """Every call that may have changed something, last effect first."""

    tools: Mapping[str, Tool] = field(default_factory=dict, repr=False, compare=False)
    """The tools that undo, by their names in the plan."""

    def of(self, *statuses: UndoStatus) -> tuple[PlannedUndo, ...]:
        """The calls with one of these statuses."""
        return tuple(item for item in self.items if item.status in statuses)

    @property
    def digest(self) -> str:
        """A name for exactly these calls and what becomes of each: a person agrees to it, and to nothing else."""
        items = [
            [item.name, item.status, item.call and call_digest(item.call.tool, item.call.args)] for item in self.items
        ]
        return hashlib.sha256(dumps([self.run_id, self.to_step, items]).encode()).hexdigest()

    @property
    def todo(self) -> tuple[PlannedUndo, ...]:
        """What will be undone, in this order."""
        return self.of("undo")

    @property
    def left(self) -> tuple[PlannedUndo, ...]:
        """What stays done, or may have been done, whatever is undone."""
        return self.of("cannot", "unknown", "skipped")


@dataclass(frozen=True, slots=True)
class RunTree:
    """A run with those inside it, and the runs that undid something of them."""

    nodes: Mapping[str, RunNode]
    """The runs by their ids, the outermost first."""

    undos: Mapping[str, Sequence[Trace]]
    """The runs that undo, by the run that each was started for."""

    tools: Mapping[str, Tool]
    """Compensations that are not among the agents' tools, by name."""

    @property
    def compensations(self) -> Iterator[tuple[str, Undo, CallView]]:
        """Every call that was to undo something here, as `RUN_ID:CALL_ID`, with its entry in the plan."""
        for undo in (trace for traces in self.undos.values() for trace in traces):
            for number, entry in enumerate(plan_of(undo)):
                if (call := undo.calls.get(call_of(number))) is not None:
                    yield f"{undo.run_id}:{call_of(number)}", entry, call

    def tool(self, node: RunNode, name: str) -> Tool | None:
        """The code behind a compensation of a run's calls: the agent's own tool, one that was given, or a built-in."""
        agent = node.agent
        if agent is not None and name in agent.toolbox:
            return agent.toolbox.get(name)
        return self.tools.get(name) or (None if agent is None else _builtin(agent, name))


def undo_id(run_id: str, number: int) -> str:
    """The id of the run that undoes `run_id` for the `number`-th time, from 1."""
    return f"{run_id}.undo-{number}"


def is_open(undo: Trace) -> bool:
    """Whether a run that undoes is not over, or has a call whose outcome nobody knows yet."""
    return undo.finished is None or any(call.attempts for call in undo.pending.values())


async def load_tree(journal: Journal, agent: AgentSettings, trace: Trace, tools: Sequence[Tool] = ()) -> RunTree:
    """Everything in the journal that belongs to a run; `tools` are known beside those of the agents."""
    nodes: dict[str, RunNode] = {}
    undos: dict[str, Sequence[Trace]] = {}
    todo = [RunNode(trace, bind(agent), "", None)]
    while todo:
        node = todo.pop()
        run_id = node.trace.run_id
        nodes[run_id] = node
        undos[run_id] = await undos_of(journal, run_id)
        todo += [inner async for inner in _inner_runs(journal, node) if inner.trace.run_id not in nodes]
    return RunTree(nodes, undos, {tool.name: tool for tool in tools})


async def undos_of(journal: Journal, run_id: str) -> list[Trace]:
    """The runs that were started to undo a run, in their order."""
    undos: list[Trace] = []
    while (trace := await load_trace(journal, undo_id(run_id, len(undos) + 1))) is not None:
        undos.append(trace)
    return undos


async def _inner_runs(journal: Journal, node: RunNode) -> AsyncIterator[RunNode]:
    trace = node.trace
    for step in trace.steps:
        for call in step.calls:
            child = inner_run_of(trace, call)
            inner = await load_trace(journal, child) if child is not None else None
            if inner is None or inner.started is None or inner.started.parent != trace.run_id:
                continue
            name = call.requested.tool
            outer = node.step or step.number
            yield RunNode(inner, _agent_behind(node.agent, name), f"{node.prefix}{name}.", outer)


def inner_run_of(trace: Trace, call: CallView) -> str | None:
    """The id of the run that a call became, or may have become before its process died."""
    if call.observed is not None and call.observed.child is not None:
        return call.observed.child
    lost = call.attempts > 0 and (call.observed is None or not call.observed.ok)
    return inner_run_id(trace.run_id, call.requested.call_id) if lost else None


def _agent_behind(agent: BoundAgent | None, name: str) -> BoundAgent | None:
    """The agent that is the tool of this name."""
    if agent is None or name not in agent.toolbox:
        return None
    inner: AgentSettings | None = getattr(agent.toolbox.get(name).handler, "agent", None)
    return None if inner is None else bind(inner)


# What becomes of each call


class Attempt(NamedTuple):
    """What came of trying to take a call back: it happened, failed, may have happened, or waits to be finished."""

    how: Literal["done", "failed", "unclear", "open"]
    """What came of it; `open`: the attempt was started and has no outcome yet."""

    by: str
    """The call that compensates, as `RUN_ID:CALL_ID`."""

    why: str = ""
    """For people: the error, or what is unclear."""


def attempts(tree: RunTree) -> dict[tuple[str, str], Attempt]:
    """The last attempt at each call, by its run and id: from the runs that undid, and from what was noted of them."""
    last_attempts: dict[tuple[str, str], Attempt] = {}
    for node in tree.nodes.values():
        for event in node.trace.events:
            if isinstance(event.fact, Compensated) and event.fact.ok:
                last_attempts[node.trace.run_id, event.fact.call_id] = Attempt("done", event.fact.by_call_id)
    for by, entry, call in tree.compensations:
        key, observed = (entry.run_id, entry.call_id), call.observed
        if key in last_attempts and last_attempts[key].how == "done":
            continue
        if observed is None:
            if call.attempts:
                last_attempts[key] = Attempt("open", by)
        elif observed.ok:
            last_attempts[key] = Attempt("done", by)
        else:
            unclear = observed.error is not None and observed.error.code in UNCLEAR
            last_attempts[key] = Attempt("unclear" if unclear else "failed", by, observation_text(observed))
    return last_attempts


async def make_plan(
    journal: Journal,
    tree: RunTree,
    run_id: str,
    to_step: int,
    *,
    skip: Collection[str] = (),
    again: Collection[str] = (),
) -> UndoPlan:
    """The plan for undoing everything after the step `to_step` of a run.

    `skip` names calls to be left alone, `again` calls whose compensation may be tried once more although nobody knows
    whether it happened.

    Raises:
        ConfigError: there is no such step, or no call of such a name.
    """
    trace = tree.nodes[run_id].trace
    if isinstance(to_step, bool) or not 0 <= to_step <= len(trace.steps):
        raise ConfigError(
            f"The run {run_id} cannot be undone to step {to_step!r}.",
            hint=f"It has {len(trace.steps)} steps; 0 undoes all of it.",
        )
    planner = _Planner(journal, tree, run_id, trace.agent.language, attempts(tree), frozenset(skip), frozenset(again))
    items = [item async for item in planner.items(tree.nodes[run_id], to_step)]
    known = {item.name for item in items}
    if unknown := sorted({*skip, *again} - known):
        raise ConfigError(
            f"There is no call {unknown[0]!r} to be undone.", hint=f"Its calls: {', '.join(sorted(known)) or 'none'}."
        )
    return UndoPlan(
        run_id=run_id, to_step=to_step, language=trace.agent.language, items=tuple(items), tools=planner.tools
    )


@dataclass(slots=True)
class _Planner:
    """Makes the plan for one run, and collects the tools that it needs."""

    journal: Journal
    tree: RunTree
    run_id: str
    language: str
    tried: Mapping[tuple[str, str], Attempt]
    skip: frozenset[str]
    again: frozenset[str]
    tools: dict[str, Tool] = field(default_factory=dict)

    async def items(self, node: RunNode, to_step: int = 0) -> AsyncIterator[PlannedUndo]:
        """The calls of a run, the last effect first, with those of an inner run at the call that started it."""
        for call, step in effects_after(node.trace, to_step):
            inner = inner_run_of(node.trace, call)
            if inner is not None and inner in self.tree.nodes:
                async for item in self.items(self.tree.nodes[inner]):
                    yield item
            else:
                yield await self._item(node, call, node.step or step)

    async def _item(self, node: RunNode, call: CallView, step: int) -> PlannedUndo:
        run_id, call_id = node.trace.run_id, call.requested.call_id
        name = call_id if run_id == self.run_id else f"{run_id}:{call_id}"
        status, why, compensation = await self._status_of(node, call, name)
        return PlannedUndo(
            name=name,
            run_id=run_id,
            call_id=call_id,
            step=step,
            tool=call.requested.tool,
            args=call.args,
            status=status,
            call=compensation,
            why=why,
        )

    async def _status_of(self, node: RunNode, call: CallView, name: str) -> tuple[UndoStatus, str, Call | None]:
        attempt = self.tried.get((node.trace.run_id, call.requested.call_id))
        if attempt is not None and attempt.how == "done":
            return "undone", attempt.by, None
        if _maker(node.trace, call) != node.trace.run_id:
            return "elsewhere", self._text("elsewhere", run_id=_maker(node.trace, call)), None
        if name in self.skip:
            return "skipped", self._text("skipped"), None
        if attempt is not None and attempt.how == "unclear" and name not in self.again:
            return "unknown", self._text("unknown", by=attempt.by, why=attempt.why), None
        observed = call.observed
        if observed is None:
            return "unknown", self._text("effect_unknown", why="").rstrip(), None
        if not observed.ok and (observed.error is None or observed.error.code != "invalid_output"):
            return "unknown", self._text("effect_unknown", why=observation_text(observed)).rstrip(), None
        compensation = await self._compensation_of(node, call, observed)
        if isinstance(compensation, str):
            return "cannot", compensation, None
        if attempt is None:
            return "undo", "", compensation
        why = self._text("open" if attempt.how == "open" else "failed_before", by=attempt.by, why=attempt.why)
        return "undo", why, compensation

    async def _compensation_of(self, node: RunNode, call: CallView, observed: Observed) -> Call | str:
        """The call that takes this one back, or why there is none."""
        trace, agent, name = node.trace, node.agent, call.requested.tool
        now = agent.toolbox.get(name).card if agent is not None and name in agent.toolbox else None
        card = trace.card(name) or now
        if card is None or (card.tier is None and card.compensation is None):
            return self._text("undeclared", tool=name)
        if not card.can_be_undone:
            return self._text("irreversible" if card.reversible is False else "no_compensation", tool=name)
        if card.compensation is None:
            return self._text("by_hand", tool=name)
        tool = self.tree.tool(node, card.compensation)
        if tool is None:
            return self._text("no_tool", tool=card.compensation)
        sources = card.compensation_args
        if not sources and now is not None and now.compensation == card.compensation:
            sources = now.compensation_args  # the run is older than they are
        args = await self._args(trace, call, observed, sources, tool.card)
        if isinstance(args, str):
            return args
        try:
            args = tool.prepare(args).args
        except InvalidArguments as error:
            return self._text("bad_args", tool=tool.name, why=str(error))
        qualified = f"{node.prefix}{tool.name}"
        self.tools[qualified] = tool if qualified == tool.name else tool.with_card(name=qualified)
        return Call(tool=qualified, args=args)

    async def _args(
        self, trace: Trace, call: CallView, observed: Observed, sources: Mapping[str, str], card: ToolCard
    ) -> dict[str, Any] | str:
        args: dict[str, Any] = {}
        for name, source in sources.items():
            kind, _, path = source.partition(".")
            if source == "call_id":
                args[name] = call.requested.call_id
                continue
            whole = (
                call.args if kind == "args" else await self._output(trace, observed) if kind == "output" else _NOTHING
            )
            value = _at(whole, path)
            if value is not _NOTHING:
                args[name] = value
            elif name in card.required or kind != "args":
                return self._text("missing_arg", tool=card.name, name=name, source=source)
        return self._text("redacted", tool=card.name) if contains_redaction(args) else args

    async def _output(self, trace: Trace, observed: Observed) -> Any:
        """The whole output of a call, as data where it is JSON; nothing if the whole is not there as it was."""
        if not observed.ok:
            return _NOTHING
        text, form = observed.output, observed.form
        if observed.artifact is not None:
            artifact = await self.journal.artifact(trace.run_id, observed.artifact)
            if artifact is None or hashlib.sha256(artifact.body.encode()).hexdigest() != observed.output_digest:
                return _NOTHING
            text = artifact.body
        if form != "json":
            return text
        try:
            return loads(text)
        except NotJsonError:
            return _NOTHING

    def _text(self, name: str, /, **values: object) -> str:
        return TEXTS.text(self.language, f"undo_{name}", **values)


def effects_after(trace: Trace, to_step: int) -> list[tuple[CallView, int]]:
    """The calls after a step that may have changed something, the last one first; and the step of each."""
    ended = {e.fact.call_id: e.seq for e in trace.events if isinstance(e.fact, Observed)}
    effects = [
        (call, step.number)
        for step in trace.steps
        if step.number > to_step
        for call in step.calls
        if _may_have_happened(trace, call)
    ]
    return sorted(effects, key=lambda pair: -ended.get(pair[0].requested.call_id, len(trace.events)))


def _may_have_happened(trace: Trace, call: CallView) -> bool:
    card, observed = trace.card(call.requested.tool), call.observed
    if observed is not None and observed.child is not None:
        return True  # that run knows
    if not call.attempts or (card is not None and card.reads_only):
        return False
    return observed is None or observed.ok or (observed.error is not None and observed.error.code in UNCLEAR)


def _maker(trace: Trace, call: CallView) -> str:
    """The run that made a call: another one where the events were copied for a fork."""
    if trace.started is None or trace.started.forked_from is None:
        return trace.run_id
    keys = [
        event.fact.idempotency_key
        for event in trace.events
        if isinstance(event.fact, ActionStarted) and event.fact.call_id == call.requested.call_id
    ]
    return keys[-1].rpartition(":")[0] or trace.run_id


def _at(value: Any, path: str) -> Any:
    """The value at a path of names, or nothing."""
    if value is _NOTHING or not path:
        return value
    if isinstance(value, Mapping) and path in value:
        return value[path]
    name, _, rest = path.partition(".")
    if not rest or not isinstance(value, Mapping) or name not in value:
        return _NOTHING
    return _at(value[name], rest)


def _builtin(agent: BoundAgent, name: str) -> Tool | None:
    """A built-in tool that undoes, on the agent's own workspace; it is never among the agent's tools."""
    from taoloop.tools.builtin.catalog import UNDOING, builtin_tools  # noqa: PLC0415  # loads all built-in tools

    workspace = agent.settings.workspace
    if name not in UNDOING or workspace is None:
        return None
    return builtin_tools(workspace, names=(name,))[name]
