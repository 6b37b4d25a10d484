"""A run as a report that people read outside the terminal: plain parts, which a page or a text is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from taoloop.core.decision import Act, Answer
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Event,
    Finished,
    ModelReplied,
    Observed,
    RunStarted,
)
from taoloop.core.stored_events import ChainReport
from taoloop.core.trace import Trace

_WORDS = {
    "en": {
        "report": "Run report",
        "task": "Task",
        "answer": "Answer",
        "status": "Status",
        "agent": "Agent",
        "model": "Model",
        "began": "Began",
        "ended": "Last event",
        "summary": "Summary",
        "steps": "Steps",
        "calls": "Tool calls",
        "tokens": "Tokens",
        "cost": "Cost",
        "unknown": "unknown",
        "part_of": "Part of run",
        "after": "Goes on after run",
        "whole": "As it was written: the hash chain of {n} events is whole.",
        "broken": "NOT as it was written: {text}.",
        "head": "Head of the chain",
        "what": "What happened",
        "step": "Step {n}",
        "thought": "Thought",
        "reply": "Reply as it came",
        "action": "Action",
        "args": "Arguments",
        "verdict": "Verdict",
        "reasons": "Reasons",
        "tier": "Tier",
        "approved": "Allowed by a person",
        "refused": "Refused by a person",
        "by": "By",
        "note": "Note",
        "new_args": "Arguments in place of the model's",
        "started": "Begun",
        "attempt": "attempt {n}",
        "observed": "Observed",
        "failed": "Failed",
        "printed": "Printed",
        "artifact": "The whole is kept as",
        "child": "By run",
        "finished": "End",
        "reason": "Reason",
        "hashes": "Hashes of the events",
        "allow": "allowed",
        "ask": "a person decides",
        "deny": "denied",
    },
    "zh": {
        "report": "运行报告",
        "task": "任务",
        "answer": "答案",
        "status": "状态",
        "agent": "智能体",
        "model": "模型",
        "began": "开始",
        "ended": "最后事件",
        "summary": "概况",
        "steps": "步数",
        "calls": "工具调用",
        "tokens": "令牌",
        "cost": "费用",
        "unknown": "未知",
        "part_of": "属于运行",
        "after": "接在运行之后",
        "whole": "与写入时一致：{n} 个事件的哈希链完整。",
        "broken": "与写入时不一致：{text}。",
        "head": "链头",
        "what": "经过",
        "step": "第 {n} 步",
        "thought": "思考",
        "reply": "模型原文",
        "action": "行动",
        "args": "参数",
        "verdict": "判定",
        "reasons": "理由",
        "tier": "级别",
        "approved": "已由人允许",
        "refused": "已被人拒绝",
        "by": "决定者",
        "note": "说明",
        "new_args": "替换模型参数的参数",
        "started": "开始执行",
        "attempt": "第 {n} 次",
        "observed": "观察",
        "failed": "失败",
        "printed": "打印",
        "artifact": "全文保存为",
        "child": "由运行完成",
        "finished": "结束",
        "reason": "原因",
        "hashes": "各事件的哈希",
        "allow": "允许",
        "ask": "须由人决定",
        "deny": "不允许",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One event: its head line, short facts beside it, and texts. `look` names its colour.

    A text is `(name, text, form)`; `form` is `text`, `code` or `folded` (code that is shown on demand).
    """

    seq: int
    at: str
    look: str
    title: str
    facts: list[tuple[str, str]]
    texts: list[tuple[str, str, str]]
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run: what it is, what came of it, whether it is whole, and its parts in order."""

    run_id: str
    language: str
    title: str
    task: str
    answer: str
    whole: bool
    verdict: str
    facts: list[tuple[str, str]]
    parts: list[Part]

    def fact(self, name: str, text: str) -> str:
        """A short fact on one line."""
        if not name:
            return text
        return f"{name}：{text}" if self.language == "zh" else f"{name}: {text}"

    def word(self, name: str, **values: object) -> str:
        """A heading of the report in its language."""
        return word(self.language, name, **values)


def word(language: str, name: str, **values: object) -> str:
    """A heading in this language; English where there is none."""
    return _WORDS["zh" if language == "zh" else "en"][name].format(**values)


def report_of(trace: Trace, chain: ChainReport, links: list[str]) -> Report:
    """The report of a run. `links` are the hashes of its events, in order."""
    language = trace.agent.language

    def say(name: str, **values: object) -> str:
        return word(language, name, **values)

    flaw = chain.first
    verdict = say("whole", n=chain.events) if flaw is None else say("broken", text=flaw.text)
    finished = trace.finished
    parts = [_part(event, link, say) for event, link in zip(trace.events, links, strict=True)]
    return Report(
        run_id=trace.run_id,
        language="zh" if language == "zh" else "en",
        title=say("report"),
        task=trace.task,
        answer="" if finished is None else finished.answer or finished.reason,
        whole=chain.whole,
        verdict=verdict,
        facts=[(name, text) for name, text in _facts(trace, chain, say) if text],
        parts=parts,
    )


Say = Callable[..., str]


def _facts(trace: Trace, chain: ChainReport, say: Say) -> Iterator[tuple[str, str]]:
    agent, started = trace.agent, trace.started
    yield say("status"), trace.status
    yield say("agent"), f"{agent.name} · {agent.strategy} · {agent.dialect}"
    yield say("model"), agent.model
    yield say("began"), _time(trace.events[0].at)
    yield say("ended"), _time(trace.events[-1].at)
    yield say("steps"), str(trace.step_count)
    yield say("calls"), str(trace.tool_calls)
    yield say("tokens"), f"{trace.usage.total_tokens:,}"
    yield say("cost"), say("unknown") if trace.unpriced_calls else f"{trace.cost_usd:.6g} USD"
    yield say("part_of"), (started.parent or "") if started else ""
    yield say("after"), (started.after or "") if started else ""
    yield say("head"), chain.head


def _part(event: Event, link: str, say: Say) -> Part:
    look, title, facts, texts = _shape(event, say)
    return Part(
        seq=event.seq,
        at=_time(event.at),
        look=look,
        title=title,
        facts=[(name, text) for name, text in facts if text],
        texts=[(name, text, form) for name, text, form in texts if text],
        link=link,
    )


_Shape = tuple[str, str, list[tuple[str, str]], list[tuple[str, str, str]]]


def _shape(event: Event, say: Say) -> _Shape:
    match event.fact:
        case RunStarted() as fact:
            return "quiet", say("task"), [], [("", fact.task, "text")]
        case ModelReplied() as fact:
            return _reply(fact, say)
        case ActionRequested() as fact:
            facts = [(say("verdict"), say(fact.verdict)), (say("tier"), fact.tier or "")]
            facts.append((say("reasons"), "; ".join(fact.reasons)))
            look = {"allow": "action", "ask": "ask", "deny": "bad"}[fact.verdict]
            title = f"{say('action')} · {fact.tool} · {fact.call_id}"
            return look, title, facts, [(say("args"), _data(fact.args), "code")]
        case ApprovalGiven() as fact:
            texts = [(say("note"), fact.note, "text")]
            if fact.args is not None:
                texts.append((say("new_args"), _data(fact.args), "code"))
            return "good", f"{say('approved')} · {fact.call_id}", [(say("by"), fact.by)], texts
        case ApprovalRefused() as fact:
            note = [(say("note"), fact.note, "text")]
            return "bad", f"{say('refused')} · {fact.call_id}", [(say("by"), fact.by)], note
        case ActionStarted() as fact:
            return "quiet", f"{say('started')} · {fact.call_id} · {say('attempt', n=fact.attempt)}", [], []
        case Observed() as fact:
            return _observation(fact, say)
        case Finished() as fact:
            texts = [(say("answer"), fact.answer or "", "text"), (say("reason"), fact.reason, "text")]
            look = "good" if fact.status == "completed" else "bad"
            return look, f"{say('finished')} · {fact.status}", [], texts
        case fact:
            fields = {name: value for name, value in asdict(fact).items() if value not in (None, "", (), [], {})}
            return "quiet", fact.kind, [], [("", _data(fields), "code")]


def _reply(fact: ModelReplied, say: Say) -> _Shape:
    facts = [(say("model"), fact.model), (say("tokens"), f"{fact.usage.input_tokens} + {fact.usage.output_tokens}")]
    facts.append(("", f"{fact.latency_s:.2f} s"))
    if fact.cost_usd is not None:
        facts.append((say("cost"), f"{fact.cost_usd:.6g} USD"))
    texts: list[tuple[str, str, str]] = []
    match fact.decision:
        case Act(reason=reason):
            texts.append((say("thought"), reason, "text"))
        case Answer(text=text, reason=reason):
            texts += [(say("thought"), reason, "text"), (say("answer"), text, "text")]
        case _:
            pass
    calls = "".join(f"\n→ {call.name} {call.arguments}" for call in fact.tool_calls)
    texts.append((say("reply"), f"{fact.text}{calls}".strip(), "folded"))
    purpose = "" if fact.purpose == "decide" else f" · {fact.purpose}"
    return "thought", f"{say('step', n=fact.step)}{purpose}", facts, texts


def _observation(fact: Observed, say: Say) -> _Shape:
    facts = [("", f"{fact.latency_s:.2f} s"), (say("child"), fact.child or "")]
    if fact.artifact is not None:
        facts.append((say("artifact"), f"{fact.artifact} ({fact.size_chars:,} · sha256 {fact.output_digest})"))
    texts = [("", fact.output, "code"), (say("printed"), fact.printed, "code")]
    if fact.error is not None:
        texts.insert(0, (fact.error.code, " ".join(f"{fact.error.message} {fact.error.hint}".split()), "text"))
    title = say("observed") if fact.ok else say("failed")
    return "good" if fact.ok else "bad", f"{title} · {fact.call_id}", facts, texts


def _data(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
