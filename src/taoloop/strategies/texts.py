"""What strategies write into a run without a model: outcomes of calls, answers and reasons, in the run's language."""

from __future__ import annotations

from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    en={
        # answers of people
        "refused": "A person refused this action: {note}.",
        "timed_out_approval": "Nobody answered in time: {note}.",
        "no_reason": "no reason was given",
        "refused_hint": "Do not ask for it again.",
        "preapproved": "tier {tier} was approved in advance",
        # calls without an outcome
        "happened_by_probe": "This call happened: the tool's own check found so afterwards. Its output was lost.",
        "happened_by_person": "This call happened: {by} says so. Its output was lost.",
        "no_outcome": "The process stopped while this call ran: its effect may or may not have happened. "
        "It was not repeated.",
        "timed_out": "This call gave no result in time: its effect may or may not have happened, or may still happen.",
        "unknown_hint": "Find out with a tool that only reads whether it happened before you try again.",
        "not_done": "This call did not happen: it was started {count} times and never finished.",
        "not_done_hint": "The same call would most likely end the same way; do it another way, or say so.",
        # runs that are one call
        "call_done": "The call was made.",
        "call_failed": "The call was not made, or failed: {code}: {message}",
        # runs that undo another one
        "undo": "Undo {call_id} of run {run_id}.",
        "undo_done": "The plan was carried out to its end; calls undone: {count}.",
        "undo_failed": "{call_id} of run {run_id} was not undone: {why} The entries after it in the plan were not"
        " carried out.",
        "undo_resumed": "The calls in progress when the process ended are settled; the rest needs a new plan.",
    },
    zh={
        "refused": "人工拒绝了此操作：{note}。",
        "timed_out_approval": "审批超时：{note}。",
        "no_reason": "未说明理由",
        "refused_hint": "不要再次请求此操作。",
        "preapproved": "已预先批准 {tier} 级",
        "happened_by_probe": "这次调用已经生效：事后由工具自身的检查确认。它的输出已丢失。",
        "happened_by_person": "这次调用已经生效：由 {by} 确认。它的输出已丢失。",
        "no_outcome": "这次调用执行期间进程停止：它可能已生效，也可能没有。没有重复执行。",
        "timed_out": "这次调用超时，没有返回结果：它可能已生效，可能没有，也可能稍后才生效。",
        "unknown_hint": "再次尝试之前，请先用只读的工具查明它是否已经生效。",
        "not_done": "这次调用没有生效：已开始 {count} 次，都没有完成。",
        "not_done_hint": "同样的调用很可能结果相同；请换一种做法，或如实说明。",
        "call_done": "调用已完成。",
        "call_failed": "调用未执行或失败：{code}：{message}",
        "undo": "撤销运行 {run_id} 的 {call_id}。",
        "undo_done": "计划已全部执行，撤销了 {count} 次调用。",
        "undo_failed": "运行 {run_id} 的 {call_id} 没有撤销：{why} 计划中排在其后的都没有执行。",
        "undo_resumed": "进程结束时正在进行的调用已有定论；其余部分需要新的计划。",
    },
)


def preapproval_note(language: str, tier: str | None) -> str:
    """The note of an approval that the operator gave in advance, for all calls of a tier."""
    return TEXTS.text(language, "preapproved", tier=tier or "destructive")
