"""Texts for people about how a run ended, in the run's language."""

from __future__ import annotations

import math

from taoloop.core.events import LimitReached

_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "max_steps": "max loops reached without final: the step limit of {allowed} was reached and the task is not "
        "done. Narrow the task or raise the limit (max_steps).",
        "max_tool_calls": "The limit of {allowed} tool calls was reached and the task is not done. "
        "Raise max_tool_calls.",
        "max_tokens": "The token budget of {allowed} was used up ({used}) and the task is not done. Raise max_tokens.",
        "max_cost_usd": "The budget of {allowed} USD was used up ({used}) and the task is not done. "
        "Raise max_cost_usd.",
        "unpriced": "The price of the model is unknown, so the budget of {allowed} USD cannot be kept. "
        "Leave max_cost_usd away, or bound the run by max_tokens.",
        "max_wall_s": "The time limit of {allowed} s was reached and the task is not done. Raise max_wall_s.",
        "max_working_s": "The working-time limit of {allowed} s was reached and the task is not done. "
        "Raise max_working_s.",
        "max_consecutive_errors": "{used} errors in a row (limit {allowed}); the task is not done.",
        "max_total_errors": "{used} errors in this run (limit {allowed}); the task is not done.",
        "repeat_stop": "The same action gave the same result {used} times (limit {allowed}); the task is not done.",
        "unreadable": "The model output could not be parsed: {used} unreadable replies in a row. Last: {detail}",
        "answered": "The model gave its final answer.",
        "stopped": "Stopped before it was done; resume it to go on.",
        "model_failed": "The model failed: {detail}",
        "too_long": "The prompt is about {size} tokens long at its shortest, and the model takes about {window}. "
        "Shorten the task, the earlier conversation, the instructions or the tools, or use a model with a larger "
        "window (context_tokens).",
        "closing_failed": " The last turn gave no answer: {detail}",
        "no_closing": "it was no final answer",
        "waiting": "Waiting for a person's answer on: {detail}",
        "handed_over": "Waiting for the result of: {detail}",
        "in_doubt": "In doubt, a person must say whether it happened: {detail}",
    },
    "zh": {
        "max_steps": "已达到步数上限 {allowed}（max loops reached without final），任务尚未完成。"
        "请缩小任务范围或提高上限（max_steps）。",
        "max_tool_calls": "已达到工具调用上限 {allowed} 次，任务尚未完成。请提高 max_tool_calls。",
        "max_tokens": "令牌预算 {allowed} 已用完（已用 {used}），任务尚未完成。请提高 max_tokens。",
        "max_cost_usd": "费用预算 {allowed} 美元已用完（已用 {used}），任务尚未完成。请提高 max_cost_usd。",
        "unpriced": "模型价格未知，无法遵守 {allowed} 美元的费用预算。请去掉 max_cost_usd，或改用 max_tokens 限制。",
        "max_wall_s": "已达到时间上限 {allowed} 秒，任务尚未完成。请提高 max_wall_s。",
        "max_working_s": "已达到工作时间上限 {allowed} 秒，任务尚未完成。请提高 max_working_s。",
        "max_consecutive_errors": "连续出错 {used} 次（上限 {allowed}），任务尚未完成。",
        "max_total_errors": "本次运行共出错 {used} 次（上限 {allowed}），任务尚未完成。",
        "repeat_stop": "同一操作得到同样结果已有 {used} 次（上限 {allowed}），任务尚未完成。",
        "unreadable": "无法解析模型输出：连续 {used} 次回复不可读。最后一次：{detail}",
        "answered": "模型给出了最终答案。",
        "stopped": "在完成之前已停止；可以恢复后继续。",
        "model_failed": "模型出错：{detail}",
        "too_long": "提示词压缩到最短仍约有 {size} 个令牌，而模型约可容纳 {window} 个。"
        "请缩短任务、之前的对话、说明或工具，或改用窗口更大的模型（context_tokens）。",
        "closing_failed": "收尾一轮没有得到答案：{detail}",
        "no_closing": "不是最终答案",
        "waiting": "须由人决定：{detail}",
        "handed_over": "等待以下调用的结果：{detail}",
        "in_doubt": "结果不明，须由人说明是否已生效：{detail}",
    },
}


def end_message(language: str, name: str, **values: object) -> str:
    """The text called `name` in `language` (English where the language has none)."""
    return _TEXTS.get(language, _TEXTS["en"])[name].format(**values)


def limit_text(language: str, reached: LimitReached, detail: str = "") -> str:
    """Why the limit ended the run, and what to do."""
    name = "unreadable" if reached.status == "unreadable" else reached.limit
    if name == "max_cost_usd" and math.isinf(reached.used):
        name = "unpriced"
    return end_message(language, name, allowed=_plain(reached.allowed), used=_plain(reached.used), detail=detail)


def _plain(value: float) -> str:
    if math.isinf(value):
        return "?"
    return f"{value:.6g}" if value % 1 else f"{int(value)}"
