"""中文聊天机器人：同一会话里记得上文，换一个会话也记得用户让它记住的事。

A chat bot in Chinese: it remembers the conversation, and, across conversations, what the user asked it to remember.
Run: python examples/recipes/chinese_chat.py [--user 小明] [--session 今天] [--model deepseek:deepseek-chat]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from taoloop import Agent, Trace
from taoloop.models import FunctionModel, Reply


def play(task: str, trace: Trace) -> Reply:
    """演示用的模型：要记住的就记下，问起的就查找，其余的从上文里答。"""
    observed = [call.observed for call in trace.calls.values() if call.observed is not None]
    if observed:
        return f"我记得的是：{observed[-1].output}" if task.endswith("？") else "好的，我记住了。"
    if task.startswith("请记住："):
        return {"tool_calls": [{"name": "remember", "args": {"text": task.removeprefix("请记住："), "topic": "用户"}}]}
    if task.startswith("你还记得"):
        return {"tool_calls": [{"name": "recall", "args": {"query": task}}]}
    earlier = trace.started.history if trace.started else ()
    return f"刚才您说的是：{earlier[-2].content}" if earlier else "您好！有什么可以帮您？"


def chat_bot(folder: Path, *, model: str | None = None) -> Agent:
    """聊天机器人；对话存放在 chat.db，记住的事存放在 notes.db。"""
    return Agent(
        name="小道",
        model=model or FunctionModel(play, dialect="native"),
        tools=["remember", "recall"],
        memory=folder / "notes.db",
        journal=folder / "chat.db",
        language="zh",
        instructions="你叫小道，用简体中文回答，简短、亲切。要记住的事用 remember 记下，问起时先用 recall 查找。",
    )


def main() -> None:
    """一行一行地聊，空行结束。"""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user", default="小明", help="每个用户有自己的会话")
    parser.add_argument("--session", default="今天", help="会话的名字；同名的会话接着聊")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--model", help="真正的模型，例如 deepseek:deepseek-chat；默认由一个函数代替")
    options = parser.parse_args()
    chat = chat_bot(options.folder, model=options.model).chat(session=options.session, user=options.user)
    while text := input("您："):
        print("小道：", chat.run_sync(text).answer)


if __name__ == "__main__":
    main()
