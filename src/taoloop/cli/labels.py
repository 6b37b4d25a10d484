"""What the terminal view says, in the language of the run."""

from __future__ import annotations

_EN = {
    "task": "Task",
    "thought": "Thought",
    "action": "Action",
    "observation": "Observed",
    "error": "Error",
    "answer": "Answer",
    "no_answer": "No answer",
    "rejected": "Unreadable",
    "limit": "Limit",
    "note": "Note",
    "asking": "Approval",
    "approved": "Allowed",
    "refused": "Refused",
    "denied": "Denied",
    "printed": "Printed",
    "raw": "Model",
    "resumed": "Resumed",
    "waiting": "Waiting",
    "thinking": "thinking…",
    "seconds": "{n} s",
    "more": "… {n:,} more characters: tao show {run_id}",
    "kept_as": "… {n:,} characters in all, kept as {ref}",
    "by": "by {by}",
    "limit_reached": "{limit}: {used:g} of {allowed:g}",
    "steps": "{n} step|{n} steps",
    "calls": "{n} tool call|{n} tool calls",
    "tokens": "{n:,} tokens",
    "cost": "{usd} USD",
    "cost_unknown": "cost unknown",
    "time": "{s:.1f} s",
    "run": "run {run_id}",
    "resume": "Go on: {command}",
    "offline": "offline: the embedded planner, not a language model",
    "ask_title": "May this call run?",
    "ask_tool": "Tool",
    "ask_why": "Why",
    "ask_keys": "[y] yes, once   [n] no   [q] later: ",
    "ask_again": "Type y, n or q, then Enter: ",
    "ask_reason": "Why not? The model reads this: ",
    "no_model": "No model is configured, so the embedded offline model answers: a small deterministic planner, "
    "not a language model. To use a real one, set one of {variables} in the environment or in a .env file here, "
    "or name one with --model (see `tao models`).",
    "stopping": "stopping… (Ctrl-C again to quit at once)",
}

_ZH = {
    "task": "任务",
    "thought": "思考",
    "action": "行动",
    "observation": "观察",
    "error": "错误",
    "answer": "答案",
    "no_answer": "没有答案",
    "rejected": "不可读",
    "limit": "上限",
    "note": "提示",
    "asking": "待批准",
    "approved": "已允许",
    "refused": "已拒绝",
    "denied": "不允许",
    "printed": "打印",
    "raw": "模型",
    "resumed": "已恢复",
    "waiting": "等待中",
    "thinking": "思考中…",
    "seconds": "{n} 秒",
    "more": "… 还有 {n:,} 个字符:tao show {run_id}",
    "kept_as": "… 共 {n:,} 个字符,保存为 {ref}",
    "by": "由 {by}",
    "limit_reached": "{limit}:{used:g} / {allowed:g}",
    "steps": "{n} 步",
    "calls": "{n} 次工具调用",
    "tokens": "{n:,} 个令牌",
    "cost": "{usd} 美元",
    "cost_unknown": "费用未知",
    "time": "{s:.1f} 秒",
    "run": "运行 {run_id}",
    "resume": "继续:{command}",
    "offline": "offline:内置规划器,不是语言模型",
    "ask_title": "允许执行这次调用吗?",
    "ask_tool": "工具",
    "ask_why": "原因",
    "ask_keys": "[y] 允许一次   [n] 拒绝   [q] 以后再说:",
    "ask_again": "请输入 y、n 或 q,然后按回车:",
    "ask_reason": "为什么拒绝?模型会看到:",
    "no_model": "没有配置模型,由内置的 offline 模型回答:它是一个小型的确定性规划器,不是语言模型。"
    "要使用真正的模型,请在环境变量或当前目录的 .env 文件中设置 {variables} 之一,"
    "或用 --model 指定(见 `tao models`)。",
    "stopping": "正在停止…(再按一次 Ctrl-C 立即退出)",
}


def label(language: str, name: str, **values: object) -> str:
    """The text called `name` in `language`; English where the language has none."""
    text = (_ZH if language == "zh" else _EN)[name]
    if "|" in text and "n" in values:
        one, _, many = text.partition("|")
        text = one if values["n"] == 1 else many
    return text.format(**values) if values else text
