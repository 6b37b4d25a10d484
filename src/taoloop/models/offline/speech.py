"""What the model says: reasons, answers made of observed facts, and plain refusals, in the language of the task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import Fault
from taoloop.models.offline.results import Finding
from taoloop.models.offline.schema import Param

ANNOUNCEMENT = "offline: a small deterministic planner, not a language model"
_ANNOUNCED = {"en": ANNOUNCEMENT, "zh": "offline:一个小型确定性规划器,不是语言模型"}
_TEXTS = {
    "en": {
        "act": 'For "{what}" the tool {tool} fits.',
        "again": "{tool} reported an error; I try the value that it suggests.",
        "done": "All parts of the task are answered by observations.",
        "partly": "This is what the observations answer.",
        "refuse": "I cannot do this with the tools at hand.",
        "result": "The result is {value}.",
        "basis": "Based on: {calls}.",
        "no_tool": 'I cannot do "{what}": no tool here fits.',
        "no_order": 'I do not carry out "{what}": it is a question, a report or a condition, not an order.',
        "no_sum": "I cannot work out {what}: no tool here does this arithmetic.",
        "missing": 'I cannot do "{what}": {tool} needs {names}, and the task does not say.',
        "failed": "{tool}({args}) failed: {message}",
        "no_number": "I cannot go on with {what}: there is no single number in an earlier result.",
        "no_value": 'I cannot go on with "{what}": there is no single value in its result.',
        "nothing": "There is nothing to do: the task only says what not to do.",
        "unused": 'I did not use "{what}".',
        "tools": "Tools I have: {names}.",
        "no_tools": "I cannot answer without tools: I have no tools in this run, and I know nothing by myself.",
        "yes": "Yes",
        "no": "No",
        "equal": "They are equal",
        "apart": "I cannot work out the difference: the results have no numbers that can be compared.",
        "unfinished": 'Not finished: "{what}" was still open.',
        "cut": "Only the first part of the output of {tool} was seen.",
    },
    "zh": {
        "act": "“{what}”适合用工具 {tool}。",
        "again": "{tool} 报告了错误;改用它建议的值再试一次。",
        "done": "任务的各部分都已有观察结果。",
        "partly": "以下是观察结果所能回答的部分。",
        "refuse": "现有工具做不了这件事。",
        "result": "结果是 {value}。",
        "basis": "依据:{calls}。",
        "no_tool": "我做不到“{what}”:没有合适的工具。",
        "no_order": "我不会执行“{what}”:这是提问、陈述或条件,不是指令。",
        "no_sum": "我算不出 {what}:没有能做这种运算的工具。",
        "missing": "我做不到“{what}”:{tool} 缺少参数 {names},任务里没有给出。",
        "failed": "{tool}({args}) 失败:{message}",
        "no_number": "“{what}”无法继续:前面的结果里没有唯一的数字。",
        "no_value": "“{what}”无法继续:结果里没有唯一的值。",
        "nothing": "没有要做的事:任务只说了不要做什么。",
        "unused": "“{what}”没有用上。",
        "tools": "我有的工具:{names}。",
        "no_tools": "没有工具就无法回答:这次运行没有工具,而我自己什么也不知道。",
        "yes": "是",
        "no": "否",
        "equal": "两者相等",
        "apart": "算不出差别:结果里没有可比较的数字。",
        "unfinished": "尚未完成:“{what}”。",
        "cut": "{tool} 的输出只看到前一部分。",
    },
}
_MOST_WORDS, _MOST_NAMES, _MOST_ARGS = 100, 40, 120


class Speech:
    """Says things in one language."""

    def __init__(self, *, chinese: bool) -> None:
        self._language = "zh" if chinese else "en"

    def say(self, text: str, **values: object) -> str:
        """The sentence called `text`."""
        return _TEXTS[self._language][text].format(**values)

    def missing(self, what: str, tool: str, params: Sequence[Param]) -> str:
        """A refusal that names the arguments for which there is no value."""
        names = ", ".join(f"{param.name} ({short(param.text)})" if param.text else param.name for param in params)
        return self.say("missing", what=short(what), tool=tool, names=names)

    def failed(self, tool: str, args: Mapping[str, Any], fault: Fault | None) -> str:
        """What an error said."""
        message = f"{fault.message} {fault.hint}".strip() if fault else ""
        return self.say("failed", tool=tool, args=arguments(args), message=short(message, 600))

    def answer(self, ends: Sequence[Finding], facts: Sequence[Finding], troubles: Sequence[str]) -> str:
        """An answer of observed facts only, with the calls that they come from, and what could not be done."""
        parts = []
        if len(ends) == 1:
            parts.append(self._single(ends[0]))
        elif ends:
            parts.append(
                "; ".join(": ".join(filter(None, (label(end), _inside(end)))) for end in ends)
                + ("。" if self._language == "zh" else ".")
            )
        parts += troubles
        if len(facts) > 1 or (facts and not ends):
            calls = "; ".join(f"{fact.tool}({arguments(fact.args)}) → {short(_inside(fact), 80)}" for fact in facts)
            parts.append(self.say("basis", calls=calls))
        elif facts:
            parts.append(f"({facts[0].tool}({arguments(facts[0].args)}))")
        parts += [self.say("cut", tool=fact.tool) for fact in facts if fact.observed.artifact is not None]
        return " ".join(parts)

    def refusal(self, troubles: Sequence[str], cards: Sequence[ToolCard]) -> str:
        """What cannot be done, and what could."""
        return " ".join([*troubles, self.tools(cards), f"({_ANNOUNCED[self._language]})"])

    def tools(self, cards: Sequence[ToolCard]) -> str:
        """The list of tools."""
        names = [card.name for card in cards]
        listed = ", ".join(names[:_MOST_NAMES]) + (" …" if len(names) > _MOST_NAMES else "")
        return self.say("tools", names=listed) if names else self.say("no_tools")

    def _single(self, end: Finding) -> str:
        content = end.content
        if (count := end.count()) is not None:
            return f"{count} ({end.shown()})"
        number = end.number()
        bare = isinstance(content, int | float) or end.observed.output.strip().startswith("result=")
        if number is not None and bare:
            return self.say("result", value=number)
        return end.shown()


def _inside(finding: Finding) -> str:
    """What came back, as a part of a longer sentence: what is said of a lost output has a full stop of its own."""
    return finding.shown().rstrip(".。") if finding.lost else finding.shown()


def label(finding: Finding) -> str:
    """A name for one of several results: the texts in its arguments."""
    values = finding.args.values() if isinstance(finding.args, Mapping) else ()
    return short(", ".join(str(value) for value in values if isinstance(value, str | int | float))) or finding.tool


def arguments(args: Any) -> str:
    """Arguments in one short line."""
    if not isinstance(args, Mapping):
        return short(str(args))
    parts = (f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in args.items())
    return short(", ".join(parts), _MOST_ARGS)


def short(text: str, most: int = _MOST_WORDS) -> str:
    """A text in one line, cut."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else line[: most - 1] + "…"
