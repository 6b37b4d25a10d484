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
from taoloop.core.decision import Call
from taoloop.core.events import ActionStarted, Compensated, Observed
from taoloop.core.redaction.redactor import contains_redaction
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import observation_text
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import ConfigError, InvalidArguments, RunNotFound
from taoloop.journals.base import Journal
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import BoundAgent, bind
from taoloop.strategies.undo import call_of
from taoloop.tools.tool import Tool

UndoStatus = Literal["undo", "undone", "cannot", "unknown", "skipped", "elsewhere"]
"""What becomes of a call: it will be undone, was undone before, cannot be undone, may or may not have happened, is
left alone because a person said so, or was made by the run that this one was forked from."""

UNCLEAR = frozenset({"in_doubt", "timeout", "exception", "invalid_output"})
"""Errors of a call that may have had its effect all the same."""

_NOTHING = object()


class RunNode(NamedTuple):
    """A run among those to be undone: its trace, its agent (None: gone), and what its tools are called in the plan."""

    trace: Trace
    agent: BoundAgent | None
    prefix: str
    step: int | None  # of the outermost run, None for that run itself


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedUndo:
    """One call of a run, and what becomes of it. `step` counts in the run that is undone.

    `name` is what a person calls it by: its call id, with its run before it where that is an inner one. `call` takes it
    back; `why` is for people: why it cannot be taken back, or what came of an attempt.
    """

    name: str
    run_id: str
    call_id: str
    step: int
    tool: str
    args: Any
    standing: UndoStatus
    call: Call | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """What undoing a run back to the end of a step would do, last effect first."""

    run_id: str
    to_step: int
    language: str
    items: tuple[PlannedUndo, ...]
    tools: Mapping[str, Tool] = field(default_factory=dict, repr=False, compare=False)

    def of(self, *standings: UndoStatus) -> tuple[PlannedUndo, ...]:
        """The calls of which that becomes."""
        return tuple(item for item in self.items if item.standing in standings)

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
    """A run with those inside it, and the runs that undid something of them, by the run that each was started for."""

    places: Mapping[str, RunNode]
    undos: Mapping[str, Sequence[Trace]]
    tools: Mapping[str, Tool]

    @property
    def all_undos(self) -> Iterator[Trace]:
        """Every run that undid something here."""
        return (trace for traces in self.undos.values() for trace in traces)

    def tool(self, place: RunNode, name: str) -> Tool | None:
        """The code behind a compensation of a run's calls: the agent's own tool, one that was given, or a built-in."""
        agent = place.agent
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
    places: dict[str, RunNode] = {}
    undos: dict[str, Sequence[Trace]] = {}
    todo = [RunNode(trace, bind(agent), "", None)]
    while todo:
        place = todo.pop()
        run_id = place.trace.run_id
        places[run_id] = place
        undos[run_id] = await undos_of(journal, run_id)
        todo += [inner async for inner in _inner_runs(journal, place) if inner.trace.run_id not in places]
    return RunTree(places, undos, {one.name: one for one in tools})


async def undos_of(journal: Journal, run_id: str) -> list[Trace]:
    """The runs that were started to undo a run, in their order."""
    found: list[Trace] = []
    while (trace := await _loaded(journal, undo_id(run_id, len(found) + 1))) is not None:
        found.append(trace)
    return found


async def _loaded(journal: Journal, run_id: str) -> Trace | None:
    try:
        events = await journal.load(run_id)
    except RunNotFound:
        return None
    return Trace(run_id, events) if events else None


async def _inner_runs(journal: Journal, place: RunNode) -> AsyncIterator[RunNode]:
    trace = place.trace
    for step in trace.steps:
        for call in step.calls:
            child = inner_run_of(trace, call)
            inner = await _loaded(journal, child) if child is not None else None
            if inner is None or inner.started is None or inner.started.parent != trace.run_id:
                continue
            name = call.requested.tool
            outer = place.step or step.number
            yield RunNode(inner, _agent_behind(place.agent, name), f"{place.prefix}{name}.", outer)


def inner_run_of(trace: Trace, call: CallView) -> str | None:
    """The id of the run that a call became, or may have become before its process died."""
    if call.observed is not None and call.observed.child is not None:
        return call.observed.child
    lost = call.attempts > 0 and (call.observed is None or not call.observed.ok)
    return f"{trace.run_id}.{call.requested.call_id.removeprefix('call_')}" if lost else None


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
    by: str
    why: str = ""


def attempts(tree: RunTree) -> dict[tuple[str, str], Attempt]:
    """The last attempt at each call, by its run and id: from the runs that undid, and from what was noted of them."""
    found: dict[tuple[str, str], Attempt] = {}
    for place in tree.places.values():
        for event in place.trace.events:
            if isinstance(event.fact, Compensated) and event.fact.ok:
                found[place.trace.run_id, event.fact.call_id] = Attempt("done", event.fact.by_call_id)
    for undo in tree.all_undos:
        plan = undo.started.undoes if undo.started is not None else None
        for number, entry in enumerate(plan.plan if plan is not None else ()):
            key, call = (entry.run_id, entry.call_id), undo.calls.get(call_of(number))
            if call is None or (key in found and found[key].how == "done"):
                continue
            by = f"{undo.run_id}:{call.requested.call_id}"
            seen = call.observed
            if seen is None:
                if call.attempts:
                    found[key] = Attempt("open", by)
            elif seen.ok:
                found[key] = Attempt("done", by)
            else:
                unclear = seen.error is not None and seen.error.code in UNCLEAR
                found[key] = Attempt("unclear" if unclear else "failed", by, observation_text(seen))
    return found


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
    trace = tree.places[run_id].trace
    if isinstance(to_step, bool) or not 0 <= to_step <= len(trace.steps):
        raise ConfigError(
            f"The run {run_id} cannot be undone to step {to_step!r}.",
            hint=f"It has {len(trace.steps)} steps; 0 undoes all of it.",
        )
    making = _Making(journal, tree, run_id, trace.agent.language, attempts(tree), frozenset(skip), frozenset(again))
    items = [item async for item in making.items(tree.places[run_id], to_step)]
    known = {item.name for item in items}
    if unknown := sorted({*skip, *again} - known):
        raise ConfigError(
            f"There is no call {unknown[0]!r} to be undone.",
            hint=f"Those there are: {', '.join(sorted(known)) or 'none'}.",
        )
    return UndoPlan(
        run_id=run_id, to_step=to_step, language=trace.agent.language, items=tuple(items), tools=making.tools
    )


@dataclass(slots=True)
class _Making:
    """A plan while it is being made."""

    journal: Journal
    tree: RunTree
    run_id: str
    language: str
    tried: Mapping[tuple[str, str], Attempt]
    skip: frozenset[str]
    again: frozenset[str]
    tools: dict[str, Tool] = field(default_factory=dict)

    async def items(self, place: RunNode, to_step: int = 0) -> AsyncIterator[PlannedUndo]:
        """The calls of a run, the last effect first; those of a run inside it stand where it was called."""
        for call, step in _effects(place.trace, to_step):
            inner = inner_run_of(place.trace, call)
            if inner is not None and inner in self.tree.places:
                async for item in self.items(self.tree.places[inner]):
                    yield item
            else:
                yield await self._item(place, call, place.step or step)

    async def _item(self, place: RunNode, call: CallView, step: int) -> PlannedUndo:
        run_id, call_id = place.trace.run_id, call.requested.call_id
        name = call_id if run_id == self.run_id else f"{run_id}:{call_id}"
        standing, why, undoing = await self._standing(place, call, name)
        return PlannedUndo(
            name=name,
            run_id=run_id,
            call_id=call_id,
            step=step,
            tool=call.requested.tool,
            args=call.args,
            standing=standing,
            call=undoing,
            why=why,
        )

    async def _standing(self, place: RunNode, call: CallView, name: str) -> tuple[UndoStatus, str, Call | None]:
        attempt = self.tried.get((place.trace.run_id, call.requested.call_id))
        if attempt is not None and attempt.how == "done":
            return "undone", attempt.by, None
        if _maker(place.trace, call) != place.trace.run_id:
            return "elsewhere", self._say("elsewhere", run_id=_maker(place.trace, call)), None
        if name in self.skip:
            return "skipped", self._say("skipped"), None
        if attempt is not None and attempt.how == "unclear" and name not in self.again:
            return "unknown", self._say("undo_unclear", by=attempt.by, why=attempt.why), None
        seen = call.observed
        if seen is None or (not seen.ok and (seen.error is None or seen.error.code != "invalid_output")):
            return "unknown", self._say("unclear", why="" if seen is None else observation_text(seen)).rstrip(), None
        undoing = await self._undoing(place, call, seen)
        if isinstance(undoing, str):
            return "cannot", undoing, None
        if attempt is None:
            return "undo", "", undoing
        return "undo", self._say("begun" if attempt.how == "open" else "tried", by=attempt.by, why=attempt.why), undoing

    async def _undoing(self, place: RunNode, call: CallView, seen: Observed) -> Call | str:
        """The call that takes this one back, or why there is none."""
        trace, agent, name = place.trace, place.agent, call.requested.tool
        now = agent.toolbox.get(name).card if agent is not None and name in agent.toolbox else None
        card = trace.card(name) or now
        if card is None or (card.tier is None and card.compensation is None):
            return self._say("undeclared", tool=name)
        if not card.can_be_undone:
            return self._say("irreversible" if card.reversible is False else "no_compensation", tool=name)
        if card.compensation is None:
            return self._say("by_hand", tool=name)
        tool = self.tree.tool(place, card.compensation)
        if tool is None:
            return self._say("no_tool", tool=card.compensation)
        wanted = card.compensation_args
        if not wanted and now is not None and now.compensation == card.compensation:
            wanted = now.compensation_args  # the run is older than they are
        args = await self._args(trace, call, seen, wanted, tool.card)
        if isinstance(args, str):
            return args
        try:
            args = tool.prepare(args).args
        except InvalidArguments as error:
            return self._say("bad_args", tool=tool.name, why=str(error))
        qualified = f"{place.prefix}{tool.name}"
        self.tools[qualified] = tool if qualified == tool.name else tool.with_card(name=qualified)
        return Call(tool=qualified, args=args)

    async def _args(
        self, trace: Trace, call: CallView, seen: Observed, wanted: Mapping[str, str], card: ToolCard
    ) -> dict[str, Any] | str:
        args: dict[str, Any] = {}
        for name, source in wanted.items():
            kind, _, path = source.partition(".")
            if source == "call_id":
                args[name] = call.requested.call_id
                continue
            whole = call.args if kind == "args" else await self._output(trace, seen) if kind == "output" else _NOTHING
            value = _at(whole, path)
            if value is not _NOTHING:
                args[name] = value
            elif name in card.required or kind != "args":
                return self._say("missing", tool=card.name, name=name, source=source)
        return self._say("redacted", tool=card.name) if contains_redaction(args) else args

    async def _output(self, trace: Trace, seen: Observed) -> Any:
        """The whole output of a call, as data where it is JSON; nothing if the whole is not there as it was."""
        if not seen.ok:
            return _NOTHING
        text, form = seen.output, seen.form
        if seen.artifact is not None:
            kept = await self.journal.artifact(trace.run_id, seen.artifact)
            if kept is None or hashlib.sha256(kept.body.encode()).hexdigest() != seen.output_digest:
                return _NOTHING
            text = kept.body
        if form != "json":
            return text
        try:
            return loads(text)
        except NotJsonError:
            return _NOTHING

    def _say(self, name: str, /, **values: object) -> str:
        texts = _ZH if self.language == "zh" else _EN
        return texts[name].format(**values)


def _effects(trace: Trace, to_step: int) -> list[tuple[CallView, int]]:
    """The calls after a step that may have changed something, the last one first; and the step of each."""
    ended = {e.fact.call_id: e.seq for e in trace.events if isinstance(e.fact, Observed)}
    found = [
        (call, step.number)
        for step in trace.steps
        if step.number > to_step
        for call in step.calls
        if _may_have_happened(trace, call)
    ]
    return sorted(found, key=lambda pair: -ended.get(pair[0].requested.call_id, len(trace.events)))


def _may_have_happened(trace: Trace, call: CallView) -> bool:
    card, seen = trace.card(call.requested.tool), call.observed
    if seen is not None and seen.child is not None:
        return True  # that run knows
    if not call.attempts or (card is not None and card.reads_only):
        return False
    return seen is None or seen.ok or (seen.error is not None and seen.error.code in UNCLEAR)


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
    return builtin_tools(workspace)[name]


_EN = {
    "elsewhere": "made by run {run_id}, from which this one was forked: undo it there",
    "skipped": "left alone, as you said",
    "unclear": "it may or may not have happened: check by hand. {why}",
    "undo_unclear": "undoing it ({by}) may or may not have happened: check by hand. {why}",
    "begun": "undoing it was begun ({by}) and is brought to its end first",
    "tried": "undoing it failed before ({by}): {why}",
    "undeclared": "{tool} does not declare what it changes, nor how to undo it",
    "irreversible": "a call of {tool} cannot be undone",
    "no_compensation": "{tool} names no call that undoes it",
    "by_hand": "a call of {tool} can be undone, but by no tool: do it by hand",
    "no_tool": "the tool {tool}, which undoes it, is not there",
    "bad_args": "the arguments do not fit {tool}, which undoes it: {why}",
    "missing": "{tool} undoes it and needs {name} from {source}, which the record does not have",
    "redacted": "{tool} undoes it, but a secret among its arguments was not recorded",
}
_ZH = {
    "elsewhere": "由运行 {run_id} 完成，本次运行是它的分支：请在那里撤销",
    "skipped": "按您的要求保留",
    "unclear": "可能已生效，也可能没有：请人工检查。{why}",
    "undo_unclear": "对它的撤销（{by}）可能已生效，也可能没有：请人工检查。{why}",
    "begun": "对它的撤销已经开始（{by}），会先完成",
    "tried": "此前撤销失败（{by}）：{why}",
    "undeclared": "{tool} 没有说明会改变什么，也没有说明如何撤销",
    "irreversible": "{tool} 的调用无法撤销",
    "no_compensation": "{tool} 没有指定用来撤销的调用",
    "by_hand": "{tool} 的调用可以撤销，但没有工具可用：请人工撤销",
    "no_tool": "用来撤销的工具 {tool} 不存在",
    "bad_args": "参数不符合用来撤销的工具 {tool}：{why}",
    "missing": "撤销它的 {tool} 需要 {name}（取自 {source}），记录中没有",
    "redacted": "可用 {tool} 撤销，但其参数中的秘密没有记录",
}
