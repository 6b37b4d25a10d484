"""A server on stdin and stdout that does what its one argument (JSON) says, also what no server should do.

`tools`: its list, or the path of a file with it; `call`: how it answers a call, or that by the names of tools; `start`
and `list`: what it does then; `has`: further capabilities; `lists`: results of further
methods. It writes what it gets to the file `log`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLAN: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
ECHO = {
    "name": "echo",
    "description": "Say it again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def log(text: str) -> None:
    if "log" in PLAN:
        with Path(PLAN["log"]).open("a") as file:
            file.write(text + "\n")


def die() -> None:
    sys.stderr.write("out of memory\n")
    sys.stderr.flush()
    os._exit(3)


def die_once() -> None:
    mark = Path(PLAN["mark"])
    if not mark.exists():
        mark.touch()
        os._exit(3)


def write_forever(text: str) -> None:
    while True:
        sys.stdout.write(text)


def flood() -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    write_forever((json.dumps(notice) + "\n") * 100)


def some_notices() -> None:
    for _ in range(5_000):
        send(method="notifications/message", params={"level": "info", "data": "x"})


def change() -> None:
    Path(PLAN["tools"]).write_text(json.dumps(PLAN["changed"]))
    send(method="notifications/tools/list_changed")


BEFORE: dict[str, Callable[[], Any]] = {
    "die": die,
    "die once": die_once,
    "garbage": lambda: sys.stdout.write('hello\n{"a":\n\xff\n[[[[\n'),
    "endless garbage": lambda: write_forever("no message\n" * 100),
    "endless line": lambda: write_forever("x" * 100_000),
    "flood": flood,
    "some notices": some_notices,
    "change": change,
    "slow": lambda: time.sleep(0.3),
}


def call(ident: Any, params: dict[str, Any]) -> None:
    how, args = PLAN.get("call", "echo"), params.get("arguments", {})
    if isinstance(how, dict):
        how = how.get(params["name"], "echo")
    BEFORE.get(how, bool)()
    text = str(args.get("text"))
    if how == "hang":
        return
    if how == "error":
        send(id=ident, error=PLAN.get("error", {"code": -32602, "message": "no such thing"}))
    elif how == "task":
        send(id=ident, result={"task": task("working", "begun")})
    elif how == "result":
        send(id=ident, result=PLAN["result"])
    else:
        said = json.dumps(dict(os.environ)) if how == "env" else os.getcwd() if how == "where" else text  # noqa: PTH109
        send(id=ident, result={"content": [{"type": "text", "text": said}]})


def task(status: str, message: str) -> dict[str, Any]:
    at = "2026-01-01T00:00:00Z"
    times = {"createdAt": at, "lastUpdatedAt": at, "ttl": None, "pollInterval": 20}
    return {"taskId": "t1", "status": status, "statusMessage": message, **times}


def answer_task(method: str, ident: Any) -> None:
    """`states`: the states that it has one after the other, the last one for ever."""
    states = PLAN.get("states", ["completed"])
    if method == "tasks/get":
        state = states.pop(0) if len(states) > 1 else states[0]
        send(id=ident, result=task(state, f"is {state}"))
    elif method == "tasks/result":
        send(id=ident, result={"content": [{"type": "text", "text": "done as a task"}]})
    else:
        send(id=ident, result=task("cancelled", ""))


def list_tools(ident: Any) -> None:
    how, tools = PLAN.get("list"), PLAN.get("tools", [ECHO])
    if isinstance(tools, str):
        tools = json.loads(Path(tools).read_text())
        how = tools if isinstance(tools, str) else how
    if how == "slow pages":
        time.sleep(0.05)
    pages: dict[Any, Any] = {
        None: {"tools": tools},
        "a million": {"tools": [{}] * 1_000_000},
        "slow pages": {"tools": [], "nextCursor": str(time.time())},
        "endless": {"tools": tools, "nextCursor": "again"},
        "endless pages": {"tools": [], "nextCursor": str(time.time())},
        "nonsense": {"tools": "none"},
    }
    if how != "hang":
        send(id=ident, result=pages[how])


def answer(method: str, ident: Any, params: dict[str, Any]) -> None:
    if method == "initialize":
        has = {"tools": {"listChanged": True}, **PLAN.get("has", {})}
        info = {"name": "fake", "version": "1"}
        send(id=ident, result={"protocolVersion": "2025-11-25", "capabilities": has, "serverInfo": info})
    elif method == "tools/list":
        list_tools(ident)
    elif method in PLAN.get("lists", {}):
        send(id=ident, result=PLAN["lists"][method])
    elif method.startswith("tasks/"):
        answer_task(method, ident)
    elif method == "tools/call":
        call(ident, params)
    elif ident is not None:
        send(id=ident, error={"code": -32601, "message": f"no method {method}"})


def main() -> None:
    if PLAN.get("start") == "die":
        sys.stderr.write("no configuration found\n")
        sys.exit(1)
    log(f"started {os.getpid()}")
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method", ""), message.get("params", {})
        log(f"{method} {json.dumps(params)}")
        if PLAN.get("start") == "hang":
            time.sleep(60)
        answer(method, message.get("id"), params)
    if PLAN.get("stay"):
        time.sleep(60)


main()
