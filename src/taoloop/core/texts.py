"""Texts for people and models about how a run ended and why a call was not run, in the run's language."""

from __future__ import annotations

import math

from taoloop.core.events import LimitReached
from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    en={
        # how a run ended, or what it waits for
        "max_steps": "max loops reached without final: the step limit of {allowed} was reached and the task is not "
        "done. Narrow the task or raise the limit (max_steps).",
        "max_tool_calls": "The limit of {allowed} tool calls was reached and the task is not done. "
        "Raise max_tool_calls.",
        "max_tokens": "The token budget of {allowed} was used up ({used}) and the task is not done. Raise max_tokens.",
        "max_cost_usd": "The budget of {allowed} USD was used up ({used}) and the task is not done. "
        "Raise max_cost_usd.",
        "unpriced": "The price of the model is unknown, so the budget of {allowed} USD cannot be enforced. "
        "Omit max_cost_usd, or limit the run by max_tokens.",
        "max_wall_s": "The time limit of {allowed} s was reached and the task is not done. Raise max_wall_s.",
        "max_working_s": "The working-time limit of {allowed} s was reached and the task is not done. "
        "Raise max_working_s.",
        "max_consecutive_errors": "{used} errors in a row (limit {allowed}); the task is not done.",
        "max_total_errors": "{used} errors in this run (limit {allowed}); the task is not done.",
        "repeat_stop": "The same action gave the same result {used} times (limit {allowed}); the task is not done.",
        "unreadable": "The model output could not be parsed: {used} unreadable replies in a row. Last: {detail}",
        "answered": "The model gave its final answer.",
        "stopped": "Stopped before it was done; resume it to continue.",
        "model_failed": "The model failed: {detail}",
        "too_long": "Even at its shortest the prompt has about {size} tokens, and the model accepts about {window}. "
        "Shorten the task, the earlier conversation, the instructions or the tools, or use a model with a larger "
        "window (context_tokens).",
        "closing_failed": " The last turn gave no answer: {detail}",
        "no_closing": "the reply was not a final answer",
        "waiting": "Waiting for a person's answer on: {detail}",
        "handed_over": "Waiting for the result of: {detail}",
        "in_doubt": "Outcome unknown; a person must say whether it happened: {detail}",
        # why a call was not run
        "no_such_tool": "there is no such tool in this run",
        "unknown_tool": "There is no tool called {name!r}.",
        "known_tools": "Known tools: {names}.",
        "no_tools": "This run has no tools: answer without one.",
        "tool_call_limit": "The run may make {allowed} tool calls; none is left.",
        "denied": "This action was denied: {reasons}.",
        "reason_separator": "; ",
        # the same for a model that must not read what a tool says
        "opaque_invalid_arguments": "The arguments with their values filled in do not fit the tool's schema.",
        "opaque_denied": "The policy does not allow this call.",
        "opaque_refused": "A person refused this call. Do not ask for it again.",
        "opaque_timeout": "The call gave no result in time.",
        "opaque_tool_error": "The tool failed.",
        "opaque_invalid_output": "The call was carried out, but its result does not fit what the tool declares.",
        "opaque_in_doubt": "It may or may not have happened. Find out with a tool that only reads before you"
        " try again.",
        "opaque_not_done": "It did not happen.",
        "opaque_failed": "The call failed.",
        # what is wrong with the stored events of a run
        "event_changed": "event {seq} ({kind}) is not what was written: it was edited, replaced or moved",
        "event_out_of_place": "event {seq} is in the place of event {expected}",
        "event_missing": "event {first} is missing",
        "events_missing": "the events {first} to {last} are missing",
        "end_missing": "the end is missing: what was written from event {seq} on",
        "events_added": "event {seq} and what follows it were added after the end of the run",
    },
    zh={
        "max_steps": "已达到步数上限 {allowed}（max loops reached without final），任务尚未完成。"
        "请缩小任务范围或提高上限（max_steps）。",
        "max_tool_calls": "已达到工具调用上限 {allowed} 次，任务尚未完成。请提高 max_tool_calls。",
        "max_tokens": "token 预算 {allowed} 已用完（已用 {used}），任务尚未完成。请提高 max_tokens。",
        "max_cost_usd": "费用预算 {allowed} 美元已用完（已用 {used}），任务尚未完成。请提高 max_cost_usd。",
        "unpriced": "模型价格未知，无法控制 {allowed} 美元的费用预算。请去掉 max_cost_usd，或改用 max_tokens 限制。",
        "max_wall_s": "已达到时间上限 {allowed} 秒，任务尚未完成。请提高 max_wall_s。",
        "max_working_s": "已达到工作时间上限 {allowed} 秒，任务尚未完成。请提高 max_working_s。",
        "max_consecutive_errors": "连续出错 {used} 次（上限 {allowed}），任务尚未完成。",
        "max_total_errors": "本次运行共出错 {used} 次（上限 {allowed}），任务尚未完成。",
        "repeat_stop": "同一操作已有 {used} 次得到相同结果（上限 {allowed}），任务尚未完成。",
        "unreadable": "无法解析模型输出：连续 {used} 次回复无法解析。最后一次：{detail}",
        "answered": "模型给出了最终答案。",
        "stopped": "运行在完成之前已停止，可以续跑。",
        "model_failed": "模型出错：{detail}",
        "too_long": "提示词压缩到最短仍约有 {size} 个 token，超出模型的上限（约 {window} 个）。"
        "请缩短任务、之前的对话、说明或工具，或改用上下文窗口更大的模型（context_tokens）。",
        "closing_failed": "收尾轮没有得到答案：{detail}",
        "no_closing": "回复不是最终答案",
        "waiting": "等待审批：{detail}",
        "handed_over": "等待以下调用的结果：{detail}",
        "in_doubt": "结果未知，需人工确认是否已生效：{detail}",
        "no_such_tool": "本次运行没有这个工具",
        "unknown_tool": "没有名为 {name!r} 的工具。",
        "known_tools": "可用的工具：{names}。",
        "no_tools": "本次运行没有任何工具，请直接作答。",
        "tool_call_limit": "本次运行最多调用 {allowed} 次工具，次数已用完。",
        "denied": "此操作已被策略拦截：{reasons}。",
        "reason_separator": "；",
        "opaque_invalid_arguments": "填入值之后的参数不符合该工具的 Schema。",
        "opaque_denied": "策略不允许此次调用。",
        "opaque_refused": "此次调用已被人工拒绝，不要再次请求。",
        "opaque_timeout": "调用超时，没有返回结果。",
        "opaque_tool_error": "工具出错。",
        "opaque_invalid_output": "调用已执行，但结果不符合该工具的声明。",
        "opaque_in_doubt": "此次调用可能已生效，也可能没有。再次尝试之前，请先用只读的工具查明。",
        "opaque_not_done": "此次调用没有生效。",
        "opaque_failed": "调用失败。",
        "event_changed": "事件 {seq}（{kind}）与写入时不同：被编辑、替换或移动过",
        "event_out_of_place": "事件 {seq} 占了事件 {expected} 的位置",
        "event_missing": "缺少事件 {first}",
        "events_missing": "缺少事件 {first} 到 {last}",
        "end_missing": "结尾缺失：事件 {seq} 及之后写入的内容都不见了",
        "events_added": "事件 {seq} 及其后的内容是在运行结束之后添加的",
    },
)

end_message = TEXTS.text
"""A text by the run's language and its name: `end_message("zh", "waiting", detail=...)`."""


def limit_text(language: str, reached: LimitReached, detail: str = "") -> str:
    """Why the limit ended the run, and what to do."""
    name = "unreadable" if reached.status == "unreadable" else reached.limit
    if name == "max_cost_usd" and math.isinf(reached.used):
        name = "unpriced"
    return TEXTS.text(language, name, allowed=_plain(reached.allowed), used=_plain(reached.used), detail=detail)


def _plain(value: float) -> str:
    if math.isinf(value):
        return "?"
    return f"{value:.6g}" if value % 1 else f"{int(value)}"
